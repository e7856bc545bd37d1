//! Products as clients of `dsh mcp`, keyless: their scripted models start commands in the background, collect and kill them.
//! The server ends with its client, and with it all that it ran.

use std::path::Path;
use std::time::Duration;

use dsh_subprocess::{GuardConfig, Launcher, LeaderExit, ProcessTree, Proof, Spawned, TreeEnd};
use dsh_testkit::Gate;
use dsh_testkit::process::is_gone;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tests::{GATED, Product, Turn};
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The longest that a product may take to end, on a busy machine too.
const LIMIT: Duration = Duration::from_secs(30);

/// A task that goes on when its client has gone: one shell, and a child in a session of its own.
const STAYS: &str = "setsid sleep 600 & echo $! > session; echo $$ > shell; sleep 600";

/// A product at work, with `dsh mcp` for its server.
struct Client {
    product: Product,
    tree: ProcessTree,
    _output: JoinSet<()>,
}

impl Client {
    async fn start(product: Product) -> Client {
        let helper =
            std::env::var_os("DSH_GUARD").expect("DSH_GUARD names the helper: run `cargo xtask test`");
        let launcher = Launcher::guarded(GuardConfig::helper(helper)).expect("the helper is there");
        let product = product.with_tools();
        let started = launcher.spawn(product.run("use the tools")).await;
        let Spawned {
            tree, stdout, stderr, ..
        } = started.expect("the product starts");
        let mut output = JoinSet::new();
        for (name, pipe) in [("stdout.log", stdout), ("stderr.log", stderr)] {
            output.spawn(save(pipe, product.room.home().join(name)));
        }
        Client {
            product,
            tree,
            _output: output,
        }
    }

    /// What the call of turn `number` answered, as the model was told with the next request.
    async fn answer(&self, number: usize) -> String {
        let request = self.product.model.asked(number + 1).await;
        self.product.answered(&request)
    }

    /// The processes of its server that is up.
    fn servers(&self) -> Vec<u32> {
        let binary =
            std::env::var_os("DSH_BIN").expect("DSH_BIN names the dsh binary: run `cargo xtask test`");
        let is_server = |pid: &u32| {
            std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|program| program == *binary)
        };
        self.product
            .room
            .processes()
            .into_iter()
            .filter(is_server)
            .collect()
    }

    /// The end of the product. Nobody else is asked to end: the server and its tasks do that by themselves.
    async fn ended(&self) -> LeaderExit {
        let exit = timeout(LIMIT, self.tree.leader_exit()).await;
        let exit = exit.expect("the product exits");
        let end: TreeEnd = timeout(LIMIT, self.tree.ended())
            .await
            .expect("its server ends, too");
        assert_eq!((end.proof, end.survivors.len()), (Proof::Guard, 0), "{end:?}");
        self.product.assert_clean();
        exit
    }
}

async fn save(mut pipe: Receiver, file: impl AsRef<Path>) {
    let mut file = tokio::fs::File::create(file).await.expect("a file in the room");
    _ = tokio::io::copy(&mut pipe, &mut file).await;
}

/// Starts a command in the background.
fn starts(command: &str) -> Turn {
    let arguments =
        json!({"command": command, "description": "run a test command", "run_in_background": true});
    Turn::tool("bash", arguments)
}

fn collects(id: &str) -> Turn {
    Turn::tool(
        "task_output",
        json!({"task_id": id, "wait": true, "timeout_ms": 60000}),
    )
}

/// The first command is collected, the second one killed, and the third one left.
fn turns([killing, leaving]: &[Gate; 2]) -> Vec<Turn> {
    vec![
        starts(&format!("{GATED}echo collected")),
        collects("bash-1"),
        starts("echo $$ > killed; sleep 600"),
        Turn::tool("task_kill", json!({"task_id": "bash-2"})).held(killing),
        collects("bash-2"),
        starts(STAYS),
        Turn::tool("task_list", Value::Object(serde_json::Map::new())),
        Turn::text("done").held(leaving),
    ]
}

async fn collects_and_kills(product: Product, [killing, leaving]: [Gate; 2]) {
    let client = Client::start(product).await;
    let room = &client.product.room;
    assert_eq!(client.answer(1).await, "started background task bash-1");
    room.go();
    assert_eq!(
        client.answer(2).await,
        "collected\n[status: completed, exit code: 0]"
    );
    assert_eq!(client.answer(3).await, "started background task bash-2");
    let killed = room.pid("killed").await;
    assert!(!is_gone(killed));
    killing.open();
    assert_eq!(client.answer(4).await, "requested cancellation of task bash-2");
    assert_eq!(
        client.answer(5).await,
        "(no new output)\n[status: killed, signal: SIGTERM]"
    );
    assert!(is_gone(killed));
    assert_eq!(client.answer(6).await, "started background task bash-3");
    let listed = client.answer(7).await;
    assert!(listed.contains("bash-3 [bash] running"), "{listed}");
    let left = [room.pid("session").await, room.pid("shell").await];
    assert!(!left.iter().any(|pid| is_gone(*pid)));
    assert!(!client.servers().is_empty());

    leaving.open();
    let exit = client.ended().await;
    assert!(left.iter().all(|pid| is_gone(*pid)));
    assert_eq!(exit.to_string(), "exit code: 0");
}

#[tokio::test]
async fn codex_collects_a_task_and_kills_another_and_its_server_ends_with_it() {
    let gates = [Gate::new(), Gate::new()];
    collects_and_kills(Product::codex(turns(&gates)).await, gates).await;
}

#[tokio::test]
async fn claude_collects_a_task_and_kills_another_and_its_server_ends_with_it() {
    let gates = [Gate::new(), Gate::new()];
    collects_and_kills(Product::claude(turns(&gates)).await, gates).await;
}

/// A client that is killed while a task of its server runs.
async fn killed(product: Product) {
    let client = Client::start(product).await;
    let room = &client.product.room;
    assert_eq!(client.answer(1).await, "started background task bash-1");
    let left = [room.pid("session").await, room.pid("shell").await];
    assert!(!left.iter().any(|pid| is_gone(*pid)));
    let leader = Pid::from_raw(client.tree.pid().cast_signed());
    kill(leader, Signal::SIGKILL).expect("it runs");
    let exit = client.ended().await;
    assert!(left.iter().all(|pid| is_gone(*pid)));
    assert_eq!(exit.to_string(), "signal: SIGKILL");
}

#[tokio::test]
async fn codex_that_is_killed_takes_its_server_and_tasks_along() {
    killed(Product::codex([starts(STAYS), Turn::silence()]).await).await;
}

#[tokio::test]
async fn claude_that_is_killed_takes_its_server_and_tasks_along() {
    killed(Product::claude([starts(STAYS), Turn::silence()]).await).await;
}
