//! How `dsh acp` ends: its exit codes, and that nothing is left.

use std::process::Stdio;

use dsh_testkit::process;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tests::{Room, says, starts};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::{Duration, timeout};

/// Nothing here takes longer, on a busy machine either.
const DEADLINE: Duration = Duration::from_secs(30);

/// A running agent and its editor, with one session.
struct Editor {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    last_id: u64,
}

impl Editor {
    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let line = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        self.input
            .write_all(format!("{line}\n").as_bytes())
            .await
            .expect("the agent reads");
        let answer = async {
            loop {
                let line = self.output.next_line().await.expect("stdout is text");
                let line = line.expect("the agent writes on");
                let message: Value = serde_json::from_str(&line).expect("nothing but protocol");
                if message["id"] == self.last_id && message.get("method").is_none() {
                    return message;
                }
            }
        };
        timeout(DEADLINE, answer).await.expect("an answer in time")
    }

    async fn exit_code(&mut self) -> Option<i32> {
        let status = timeout(DEADLINE, self.child.wait()).await;
        status.expect("it ends in time").expect("it was started").code()
    }

    fn signal(&self, signal: Signal) {
        let pid = self.child.id().expect("it was not waited for");
        kill(Pid::from_raw(pid.cast_signed()), signal).expect("it is there");
    }
}

/// An agent that has started a task, whose process id is in `pid`.
async fn at_work(room: &Room) -> Editor {
    let turns = json!([starts("echo $$ > pid; exec sleep 600"), says("It runs.")]);
    let model = room.script("model.json", turns);
    let mut child = room
        .dsh()
        .args(["acp", "--model", &model])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("dsh starts");
    let mut editor = Editor {
        input: child.stdin.take().expect("a pipe"),
        output: BufReader::new(child.stdout.take().expect("a pipe")).lines(),
        child,
        last_id: 0,
    };
    editor.call("initialize", json!({"protocolVersion": 1})).await;
    let opened = editor
        .call("session/new", json!({"cwd": room.work(), "mcpServers": []}))
        .await;
    let prompt = json!([{"type": "text", "text": "start it"}]);
    let params = json!({"sessionId": opened["result"]["sessionId"], "prompt": prompt});
    let answer = editor.call("session/prompt", params).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    editor
}

#[tokio::test]
async fn signals_end_the_tasks_and_are_the_exit_code() {
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130)] {
        let room = Room::new();
        let mut editor = at_work(&room).await;
        let task = room.pid("pid").await;
        editor.signal(signal);
        assert_eq!(editor.exit_code().await, Some(code));
        assert!(process::is_gone(task));
        room.assert_empty();
    }
}

#[tokio::test]
async fn the_death_of_the_agent_ends_its_tasks() {
    let room = Room::new();
    let mut editor = at_work(&room).await;
    let task = room.pid("pid").await;
    editor.signal(Signal::SIGKILL);
    assert_eq!(editor.exit_code().await, None);
    process::gone(task).await;
}

#[tokio::test]
async fn an_agent_without_a_model_or_a_home_says_so() {
    for (arguments, homes, told) in [
        (vec!["acp"], vec![], "DEEPSEEK_API_KEY"),
        (
            vec!["acp", "--model", "scripted:nowhere.json"],
            vec![],
            "nowhere.json",
        ),
        (vec!["acp"], vec!["DSH_HOME", "HOME"], "set DSH_HOME"),
    ] {
        let room = Room::new();
        let mut command = room.dsh();
        command.args(&arguments).stdin(Stdio::null());
        for home in homes {
            command.env_remove(home);
        }
        let output = timeout(DEADLINE, command.output())
            .await
            .expect("it ends in time");
        let output = output.expect("dsh starts");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(told), "{told:?} is missing: {stderr}");
        assert!(output.stdout.is_empty());
    }
}
