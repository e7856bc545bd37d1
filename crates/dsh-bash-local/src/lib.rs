//! The bash executor on this machine, over process trees.
//!
//! [`LocalBash`] runs a command as `bash -c -- <command>` would: not a login shell, not interactive, no start-up files, nothing kept from
//! one command to the next. It implements [`dsh_bash::BashExecutor`].
//!
//! # Contract
//!
//! - **Ownership.** [`LocalBash::install`] ties the executor to a scope. Closing the scope ends every live process,
//!   foreground ones too, and waits for it; afterwards `start` refuses.
//! - **Level.** [`LocalBash::with_launcher`] says whether commands run in process groups or under guards, which decides
//!   what belongs to a process (a `setsid` child does under a guard) and what its end proves.
//! - **Limits.** `memory_limit_bytes` and `pids_limit` hold for all processes of one command together. Where they cannot
//!   be held, the executor is not installed: nothing runs without the limits it was to have. The end says
//!   which of them was reached, in the background and in the foreground; where a command has left something running, the
//!   end of that does.
//! - **Refused at the call**, with nothing started: a blank command or one with a NUL byte, without a guard a command
//!   longer than one argument of a process may be ([`MAX_COMMAND_BYTES`]), a directory that is missing, is no directory or may not be
//!   entered. What goes wrong later ends the process with `spawn failed: …`, which its output says, too.
//! - **A directory whose file system does not answer** holds up neither a thread nor the end of the program. The kernel is
//!   asked for what it knows by itself, which costs less than a microsecond and is nearly always enough (Linux 5.12); for
//!   the rest a shell of its own asks, which costs as much as a command. When 16 of those hang that nobody waits for, a
//!   directory that the kernel does not know is refused at once. A start that hangs all the same, because its file system
//!   fell silent in between, is given up on `grace_ms` after its end was asked for, or a second if that is more.
//! - **Output.** Both pipes are read into one log in the order in which they become readable. What a pipe orders, stays
//!   ordered; between two pipes there is no order but that.
//! - **After the shell's exit** output is collected until both pipes end: at most `grace_ms`, and at most `drain_ms`
//!   when members of the tree are known to live on, or when the end of the process was asked for. After that the pipe
//!   of a tree that was seen empty is closed and [`dsh_bash::Pipe::HeldOutside`] says so; the pipe of live members stays
//!   open, and what they write still arrives.
//! - **The end** is the end of the tree: TERM to all of it, `grace_ms`, then KILL until it is empty, whatever the shell
//!   itself did.
//!
//! # The environment of a command
//!
//! It starts as the environment of the program (or what [`LocalBash::with_ambient`] was given) without
//!
//! - every name that, in any case, contains `KEY`, `SECRET`, `TOKEN`, `PASSWORD`, `PASSWD`, `PASSPHRASE`, `CREDENTIAL`,
//!   `COOKIE` or `OAUTH`, except within `KEYBOARD`, `KEYMAP`, `KEYWORD`, `MONKEY`, `TURKEY` or `TOKENIZER`;
//! - every name with a part (a run of letters and digits, without the digits at its end) that is `PW`, `PAT`, `AUTH`,
//!   `CRED`, `CREDS` or `JWT`, or ends with `PASS` or `PWD`, except the parts `ASKPASS`, `BYPASS` and `COMPASS` and the
//!   names `PWD`, `OLDPWD` and `SSH_AUTH_SOCK`. That socket is let through on purpose: without it no command could reach
//!   a repository over SSH, and the agent behind it signs but never shows a key;
//! - every value with a URL that has a password in it, or an http URL with a user name, which is a credential there;
//! - every value with a field `password=`, `passwd=`, `pwd=`, `AccountKey=` or `SharedAccessKey=` that is not empty, as
//!   connection strings have them, unless it begins with `$`;
//! - every value with a URL that has a parameter of such a name, or a signature (`sig`, `signature`, `X-Amz-Signature`), and
//!   with a header `Authorization:`, `Cookie:`, `X-Api-Key:` or `Private-Token:`, unless what it is begins with `$`;
//! - every `DSH_*` name: those are the harness's own, and only a spec's `dsh_env` sets them;
//! - `BASH_ENV`, `SHELLOPTS` and `BASHOPTS`: a start-up file would run before every command and could bring back what
//!   was removed, and options would change what a command means. Exported functions stay: they are how tools such as
//!   environment modules work at all in a fresh shell;
//!
//! and then gets `NO_COLOR=1`, `TERM=dumb`, `PAGER=cat`, `GIT_PAGER=cat`, `GIT_TERMINAL_PROMPT=0` and the spec's own
//! variables, which win over all of this. `allow_env` names what must come through (`DATABASE_URL`, say); it cannot
//! name `DSH_*`. `deny_env` names what must not, and wins over it.
//!
//! **Limits.** This keeps credentials out of sight, it is no wall. It does not see a credential whose name and value
//! look like nothing of the above, nor one in a file that a command may read. The program's own environment stays
//! readable for its user: without a guard a command finds it in `/proc/$PPID/environ`, under one it has to look further.
//!
//! # What this executor cannot see
//!
//! At any level, work that a command hands to another daemon (`docker`, `at`) is outside the tree: nothing ends it, and
//! all that is told of it is that it may hold a pipe.
//!
//! Without a guard, so is a process that leaves the group of its shell (`setsid`). The command is an argument of its shell
//! then, so everybody on the machine can read it in the process list, and `pkill -f` with a pattern out of the command
//! itself ends the shell first. Under a guard the command stands in nobody's arguments.
//!
//! # Example
//!
//! ```
//! use dsh_bash::{BashExecutor, BashRequest, ShellExit, run};
//! use dsh_bash_local::{LocalBash, LocalBashConfig};
//! use dsh_scope::Scope;
//!
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
//! let scope = Scope::root("example");
//! let bash = LocalBash::install(&scope, LocalBashConfig::default()).unwrap();
//!
//! let spec = bash.resolve(BashRequest::new("echo hello; exit 3")).unwrap();
//! let result = run(&bash, &spec, scope.token()).await.unwrap();
//! assert_eq!(result.stdout.text, "hello\n");
//! assert_eq!(result.exit, ShellExit::Code(3));
//!
//! scope.close().await.unwrap();
//! # });
//! ```

mod check;
mod config;
mod credentials;
mod directories;
mod driver;
mod env;
mod error;
mod process;
mod pump;
mod service;

pub use check::MAX_COMMAND_BYTES;
pub use config::LocalBashConfig;
pub use error::{ConfigError, ConfigErrors, InstallError};
pub use service::LocalBash;

/// What refusals of this executor begin with.
pub(crate) const NAME: &str = "bash-local";
