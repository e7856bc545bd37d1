//! Agent products, driven without a key: each in a room of its own, with a scripted model on the loopback interface.
//!
//! A product gets its home, its configuration and its temporary files in the room, and an environment with nothing of
//! the machine's but `PATH`. Its proxy is the model server, which refuses and records what would go further.

pub mod claude;
pub mod client;
pub mod codex;
mod endpoint;
pub mod subagent;
mod version;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use dsh_subprocess::{ProcessSpec, Stdin};
use dsh_testkit::eventually;
use tokio::process::Command;

use crate::dialogue::Dialogue;
use crate::model::{ModelServer, Turn, Wire};
use crate::room::Room;

pub use endpoint::Endpoint;
pub use version::Version;

/// A product that was not started yet, its room and its model.
#[derive(Debug)]
pub struct Product {
    /// Where it lives and works. Every process of it carries the room's mark.
    pub room: Room,
    /// What it talks to.
    pub model: ModelServer,
    kind: Kind,
    program: PathBuf,
    env: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Codex,
    ClaudeCode,
}

impl Product {
    /// Codex, configured for a model that says `turns`.
    ///
    /// Its configuration asks before commands and lets them write nothing, so that whoever drives it must say otherwise.
    ///
    /// # Panics
    ///
    /// When `DSH_TEST_CODEX` is not set.
    pub async fn codex(turns: impl IntoIterator<Item = Turn>) -> Product {
        let model = ModelServer::start(Wire::Responses, turns).await;
        let endpoint = Endpoint::scripted(&model);
        Product::new(Kind::Codex, program(codex::PROGRAM), model, &endpoint)
    }

    /// Claude Code, configured for a model that says `turns`.
    ///
    /// Its settings name a model that no other place names.
    ///
    /// # Panics
    ///
    /// When `DSH_TEST_CLAUDE` is not set.
    pub async fn claude(turns: impl IntoIterator<Item = Turn>) -> Product {
        let model = ModelServer::start(Wire::Messages, turns).await;
        let endpoint = Endpoint::scripted(&model);
        Product::new(Kind::ClaudeCode, program(claude::PROGRAM), model, &endpoint)
    }

    /// Codex, configured for a model that is elsewhere: its own is asked nothing.
    ///
    /// # Panics
    ///
    /// When `DSH_TEST_CODEX` is not set.
    pub async fn codex_at(endpoint: &Endpoint) -> Product {
        let model = ModelServer::start(Wire::Responses, []).await;
        Product::new(Kind::Codex, program(codex::PROGRAM), model, endpoint)
    }

    /// Claude Code, configured for a model that is elsewhere: its own is asked nothing.
    ///
    /// # Panics
    ///
    /// When `DSH_TEST_CLAUDE` is not set.
    pub async fn claude_at(endpoint: &Endpoint) -> Product {
        let model = ModelServer::start(Wire::Messages, []).await;
        Product::new(Kind::ClaudeCode, program(claude::PROGRAM), model, endpoint)
    }

    fn new(kind: Kind, program: PathBuf, model: ModelServer, endpoint: &Endpoint) -> Product {
        let room = Room::new();
        let specific = match kind {
            Kind::Codex => codex::prepare(&room, endpoint),
            Kind::ClaudeCode => claude::prepare(&room, endpoint),
        };
        let mut env = environment(&room, endpoint);
        env.extend(specific);
        Product {
            room,
            model,
            kind,
            program,
            env,
        }
    }

    /// The native program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Its whole environment.
    pub fn env(&self) -> &[(String, String)] {
        &self.env
    }

    /// A run of one task that may do anything and needs no further word.
    pub fn run(&self, task: &str) -> ProcessSpec {
        let (args, stdin) = match self.kind {
            Kind::Codex => (codex::exec(task).to_vec(), Stdin::Null),
            Kind::ClaudeCode => {
                let lines = claude::task(task).map(|line| format!("{line}\n"));
                (
                    claude::stream_json("bypassPermissions"),
                    Stdin::Data(lines.concat().into_bytes()),
                )
            }
        };
        let env = self.env.iter();
        ProcessSpec {
            args: args.into_iter().map(Into::into).collect(),
            env: env.map(|(name, value)| (name.into(), value.into())).collect(),
            stdin,
            ..ProcessSpec::new(&self.program, self.room.work())
        }
    }

    /// Starts it with these arguments, for a dialogue in its own protocol: [`codex::APP_SERVER`],
    /// [`claude::stream_json`].
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    pub fn converse(&self, args: &[&str]) -> Dialogue {
        let log = self.room.home().join("stderr.log");
        let stderr = std::fs::File::create(&log).expect("a file for stderr");
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .current_dir(self.room.work())
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .kill_on_drop(true);
        Dialogue::start(command, log)
    }

    /// The usual end of a test under a guard: nothing is left, and nothing wanted to leave this machine.
    ///
    /// # Panics
    ///
    /// When a process is left, or something else than the model was asked for.
    pub fn assert_clean(&self) {
        self.room.assert_empty();
        let strangers = self.model.strangers();
        assert!(strangers.is_empty(), "not for this machine: {strangers:?}");
    }

    /// The usual end of a dialogue. Without a guard a product's own helpers may outlive it, for a moment.
    ///
    /// # Panics
    ///
    /// As [`assert_clean`](Self::assert_clean), at the deadline.
    pub async fn assert_clean_soon(&self) {
        let room = &self.room;
        eventually("the product's helpers to go", || room.processes().is_empty()).await;
        self.assert_clean();
    }
}

/// What both products need.
fn environment(room: &Room, endpoint: &Endpoint) -> Vec<(String, String)> {
    let home = room.home();
    let temporary = home.join("tmp");
    std::fs::create_dir(&temporary).expect("a directory in the room");
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let mut env = vec![
        room.mark(),
        ("PATH".into(), std::env::var("PATH").unwrap_or_default()),
        ("HOME".into(), path(&home)),
        ("XDG_CONFIG_HOME".into(), path(&home.join("xdg"))),
        // Not the room's own: what a killed product leaves there is its affair.
        ("TMPDIR".into(), path(&temporary)),
    ];
    env.extend(endpoint.way.iter().cloned());
    env
}

fn program(variable: &str) -> PathBuf {
    let program = std::env::var_os(variable);
    let program = program.unwrap_or_else(|| panic!("{variable} names the product: run `cargo xtask test`"));
    program.into()
}
