//! What is in the file, also when there is no room for it.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use async_trait::async_trait;
use dsh_agent_loop::LoopConfig;
use dsh_session::{Event, EventData, Session, SessionFile, SessionHeader, SessionId, TurnEnd};
use dsh_testkit::Gate;
use dsh_tools::{Concurrency, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;

use crate::played::{Room, ask, calls, inject, named, says, story};

/// Tells the child where to write.
const CHILD: &str = "DSH_TEST_NO_ROOM";

/// The limit is a soft one, and its signal is ignored, so that writing fails as it does on a full disk: after a part.
const LIMITED: &str = r#"trap "" XFSZ; ulimit -S -f 16; exec "$0" --exact "$1" --nocapture"#;

fn session(path: &Path) -> Session {
    let header = SessionHeader::new(SessionId::new("s-1"), None);
    Session::persisted(SessionFile::create(path, header).unwrap())
}

fn read(path: &Path) -> Vec<Event> {
    let file = SessionFile::open(path).unwrap();
    assert_eq!(file.repair(), None);
    Session::persisted(file).events()
}

#[tokio::test]
async fn core16_core15_when_a_disposal_returns_the_end_of_the_turn_is_in_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.jsonl");
    let room = Room::new([calls(&[("c1", "slow", "")])]);
    let slow = room.tool("slow", Concurrency::Exclusive);
    let agent = room.agent_of(session(&path), LoopConfig::default()).await;
    agent.agent().follow_up(crate::played::user("go")).unwrap();
    slow.entered.opened().await;
    agent.dispose().await.unwrap();
    let events = agent.agent().session().events();
    assert_eq!(story(agent.agent()).last().unwrap(), "end disposed");
    drop((agent, room));
    assert_eq!(read(&path), events);
}

/// Says more than there is room for, as soon as the gate is open.
struct Verbose(Gate);

#[async_trait]
impl Tool for Verbose {
    fn definition(&self) -> ToolDefinition {
        named("verbose")
    }

    fn concurrency(&self, _: &Value) -> Concurrency {
        Concurrency::Parallel
    }

    async fn call(&self, _: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
        self.0.opened().await;
        Ok(ToolOutput::text("x".repeat(99_999)))
    }
}

/// Runs the rest of the test of this name in a process of its own, whose files may not grow. The child, which comes here
/// again, gets the file to write to.
fn with_little_room(name: &str, rest: impl FnOnce(&Path)) {
    if let Some(path) = std::env::var_os(CHILD) {
        return rest(Path::new(&path));
    }
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", LIMITED])
        .arg(std::env::current_exe().unwrap())
        .arg(format!("written::{name}"))
        .env(CHILD, directory.path().join("s.jsonl"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && told.contains("1 passed"),
        "{told}{complained}"
    );
}

/// The codes of all results.
fn codes(events: &[Event]) -> Vec<Option<&str>> {
    events
        .iter()
        .filter_map(|event| match &event.data {
            EventData::ToolResult { error, .. } => Some(error.as_ref().map(|error| error.code.as_str())),
            _ => None,
        })
        .collect()
}

#[test]
fn core27_calls_of_an_answer_that_is_not_written_are_skipped() {
    with_little_room("core27_calls_of_an_answer_that_is_not_written_are_skipped", skips);
}

#[tokio::main(flavor = "current_thread")]
async fn skips(path: &Path) {
    let much = format!("{:?}", "x".repeat(99_999));
    let room = Room::new([calls(&[("c1", "after", &much)])]);
    let after = room.tool("after", Concurrency::Exclusive);
    let agent = room.agent_of(session(path), LoopConfig::default()).await;
    ask(&agent, "go").await;
    assert!(!after.entered.is_open(), "nothing starts that is not written");
    let expected = ["assistant", "call c1", "result c1", "/step", "end error"];
    assert_eq!(story(agent.agent())[4..], expected);
    assert_eq!(codes(&agent.agent().session().events()), [Some("ABORTED")]);
}

#[test]
fn core27_a_full_disk_ends_the_turn_waits_for_its_calls_and_loses_nothing() {
    with_little_room(
        "core27_a_full_disk_ends_the_turn_waits_for_its_calls_and_loses_nothing",
        loses_nothing,
    );
}

#[tokio::main(flavor = "current_thread")]
async fn loses_nothing(path: &Path) {
    let room = Room::new([
        calls(&[("c1", "verbose", ""), ("c2", "slow", ""), ("c3", "after", "")]),
        says("on"),
    ]);
    let slow = room.tool("slow", Concurrency::Parallel);
    let verbose = Verbose(slow.entered.clone());
    room.tools.register(&room.scope, Arc::new(verbose)).unwrap();
    let after = room.tool("after", Concurrency::Exclusive);
    let agent = room.agent_of(session(path), LoopConfig::default()).await;
    ask(&agent, "go").await;
    assert!(slow.entered.is_open(), "it ran when the log could not be written");
    assert!(!after.entered.is_open(), "nothing starts after that");
    let expected = [
        "assistant",
        "call c1",
        "call c2",
        "result c1",
        "result c2",
        "call c3",
        "result c3",
        "/step",
        "end error",
    ];
    assert_eq!(story(agent.agent())[4..], expected);
    let events = agent.agent().session().events();
    assert_eq!(codes(&events), [None, Some("TOOL_ABORTED"), Some("ABORTED")]);
    let EventData::TurnEnd {
        reason: TurnEnd::Error { code, message, .. },
        ..
    } = &events.last().unwrap().data
    else {
        unreachable!()
    };
    assert_eq!(code.as_deref(), Some("LOG_NOT_WRITTEN"), "{message}");

    // A notice comes while there is still no room: its turn fails, too, and it is in the log.
    inject(agent.agent(), "n1");
    agent.agent().when_idle().await;
    assert_eq!(room.asked().len(), 1, "nothing is asked that is not written");
    assert_eq!(agent.agent().inbox().pending(), 0);

    let room_again = Rlimit {
        current: getrlimit(Resource::Fsize).maximum,
        ..getrlimit(Resource::Fsize)
    };
    setrlimit(Resource::Fsize, room_again).unwrap();
    ask(&agent, "go on").await;
    assert_eq!(room.asked()[1][5..], ["n1", "go on"]);
    assert_eq!(story(agent.agent()).last().unwrap(), "end completed");
    room.check_requests(agent.agent());
    let events = agent.agent().session().events();
    agent.dispose().await.unwrap();
    drop((agent, room));
    assert_eq!(read(path), events);
}
