//! Agent products whose tools run in sessions of their own: whatever ends the product, nothing of them is left.

use std::path::Path;
use std::time::Duration;

use dsh_subprocess::{GuardConfig, Launcher, LeaderExit, ProcessTree, Proof, Spawned, TreeEnd};
use dsh_testkit::eventually_within;
use dsh_testkit::process::{is_gone, read_pid};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getsid};
use tests::{Product, Turn};
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// What the model has run: a child of its own session, one that ignores a hangup, and a daemon of two forks.
const TOOL: &str = "\
setsid sleep 600 >/dev/null 2>&1 </dev/null & echo $! > session
nohup sleep 600 >/dev/null 2>&1 </dev/null & echo $! > nohup
(setsid bash -c 'cd /; sleep 600 & echo $! > \"$OLDPWD/daemon\"' >/dev/null 2>&1 </dev/null &)
echo $$ > shell; sleep 600";

/// Where its processes write who they are.
const FILES: [&str; 4] = ["session", "nohup", "shell", "daemon"];
const DAEMON: usize = 3;

/// The grace for a product to go by itself.
const GRACE: Duration = Duration::from_secs(3);

/// The longest that a tool may take to run and its tree to end, on a busy machine too.
const LIMIT: Duration = Duration::from_secs(30);

/// A product in the middle of a tool call.
struct Running {
    product: Product,
    tree: ProcessTree,
    /// The processes of its tool.
    tool: [u32; FILES.len()],
    _output: JoinSet<()>,
}

fn guarded() -> Launcher {
    let helper = std::env::var_os("DSH_GUARD").expect("DSH_GUARD names the helper: run `cargo xtask test`");
    Launcher::guarded(GuardConfig::helper(helper)).expect("the helper is there")
}

/// The model calls the shell; should the call be over too soon, it says nothing more.
fn script() -> [Turn; 2] {
    [Turn::shell(TOOL), Turn::silence()]
}

impl Running {
    async fn start(product: Product, launcher: &Launcher) -> Running {
        let started = launcher.spawn(product.run("run the tool")).await;
        let Spawned {
            tree, stdout, stderr, ..
        } = started.expect("the product starts");
        let mut output = JoinSet::new();
        for (name, pipe) in [("stdout.log", stdout), ("stderr.log", stderr)] {
            output.spawn(save(pipe, product.room.home().join(name)));
        }
        // A product takes its time to start, on a busy machine much of it.
        product.model.asked(1).await;
        let files = FILES.map(|name| product.room.file(name));
        let known = || files.iter().all(|file| read_pid(file).is_some());
        eventually_within("the tool to run", LIMIT, known).await;
        let tool = files
            .each_ref()
            .map(|file| read_pid(file).expect("it was just there"));
        let running = Running {
            product,
            tree,
            tool,
            _output: output,
        };
        running.assert_reaches_beyond_its_session();
        running
    }

    /// The fact that these tests are about: the tool is neither in the leader's group nor in its session.
    fn assert_reaches_beyond_its_session(&self) {
        let session = |pid: u32| getsid(Some(Pid::from_raw(pid.cast_signed()))).expect("it runs");
        let leader = session(self.tree.pid());
        for pid in self.tool {
            assert_ne!(session(pid), leader, "{pid} is in the session of its product");
        }
    }

    fn daemon(&self) -> u32 {
        self.tool[DAEMON]
    }

    fn signal_leader(&self, signal: Signal) {
        kill(Pid::from_raw(self.tree.pid().cast_signed()), signal).expect("the product runs");
    }

    async fn leader_exit(&self) -> LeaderExit {
        let exit = timeout(LIMIT, self.tree.leader_exit()).await;
        exit.expect("the product exits")
    }

    async fn ended(&self) -> TreeEnd {
        timeout(LIMIT, self.tree.ended()).await.expect("the tree ends")
    }

    /// The end is proven, and true at the moment it is told.
    async fn assert_leaves_nothing(&self) -> TreeEnd {
        let end = self.ended().await;
        assert_eq!((end.proof, end.survivors.len()), (Proof::Guard, 0), "{end:?}");
        assert!(self.tool.iter().all(|pid| is_gone(*pid)));
        self.product.assert_clean();
        end
    }
}

async fn save(mut pipe: Receiver, file: impl AsRef<Path>) {
    let mut file = tokio::fs::File::create(file).await.expect("a file in the room");
    _ = tokio::io::copy(&mut pipe, &mut file).await;
}

/// Ends a running product by its handle.
async fn terminated(product: Product) {
    let running = Running::start(product, &guarded()).await;
    running.tree.terminate(GRACE);
    running.assert_leaves_nothing().await;
}

/// Somebody else ends the product's leader. Its handle still knows whom it left, and the owner, who saw it exit, ends
/// those.
async fn signalled(product: Product, signal: Signal) -> LeaderExit {
    let running = Running::start(product, &guarded()).await;
    running.signal_leader(signal);
    let exit = running.leader_exit().await;
    let left: Vec<u32> = running.tree.members().iter().map(|member| member.pid).collect();
    assert!(left.contains(&running.daemon()), "{left:?}");
    running.tree.terminate(GRACE);
    running.assert_leaves_nothing().await;
    exit
}

/// The same without a guard: the group is empty, so its end is told, and a part of the tool goes on. How much depends on
/// how well the product tidies up; its daemon it cannot find.
async fn escaped(product: Product) {
    let running = Running::start(product, &Launcher::groups()).await;
    running.tree.terminate(GRACE);
    let end = running.ended().await;
    assert_eq!((end.proof, end.survivors.len()), (Proof::Group, 0), "{end:?}");
    assert!(
        !is_gone(running.daemon()),
        "if a group is enough, no guard is needed"
    );
}

#[tokio::test]
async fn codex_terminated_leaves_nothing() {
    terminated(Product::codex(script()).await).await;
}

#[tokio::test]
async fn codex_ended_by_one_sigterm_to_its_leader_leaves_nothing() {
    signalled(Product::codex(script()).await, Signal::SIGTERM).await;
}

#[tokio::test]
async fn codex_killed_leaves_nothing() {
    let exit = signalled(Product::codex(script()).await, Signal::SIGKILL).await;
    assert_eq!(exit.to_string(), "signal: SIGKILL");
}

#[tokio::test]
async fn codex_in_a_group_leaves_its_tool_behind() {
    escaped(Product::codex(script()).await).await;
}

#[tokio::test]
async fn claude_terminated_leaves_nothing() {
    terminated(Product::claude(script()).await).await;
}

#[tokio::test]
async fn claude_ended_by_one_sigterm_to_its_leader_leaves_nothing() {
    signalled(Product::claude(script()).await, Signal::SIGTERM).await;
}

#[tokio::test]
async fn claude_killed_leaves_nothing() {
    let exit = signalled(Product::claude(script()).await, Signal::SIGKILL).await;
    assert_eq!(exit.to_string(), "signal: SIGKILL");
}

#[tokio::test]
async fn claude_in_a_group_leaves_its_tool_behind() {
    escaped(Product::claude(script()).await).await;
}
