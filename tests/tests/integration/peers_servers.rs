//! Servers that somebody starts and wants to find again: listed, readable, and gone when they were killed.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use dsh_testkit::process::is_gone;
use serde_json::json;
use tests::{Server, ServerOptions};

/// Python's own, at a free port of the loopback.
const SERVE: &str = "python3 -u -m http.server --bind 127.0.0.1 0";
/// Waits in the command itself until the server listens.
const LISTENS: &str = "until grep -qs 'port [0-9]' log; do sleep 0.02; done";

fn options(config: &'static str) -> ServerOptions<'static> {
    ServerOptions {
        config,
        ..ServerOptions::default()
    }
}

/// The port that the server told.
fn port(log: &str) -> u16 {
    let (_, rest) = log.split_once(" port ").expect("it tells its port");
    let digits = rest.split(' ').next().expect("a word");
    digits.parse().expect("a port")
}

fn connect(port: u16) -> std::io::Result<TcpStream> {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port))
}

/// The status line of an answer to a request.
fn answer(port: u16) -> String {
    let mut stream = connect(port).expect("it listens");
    stream
        .write_all(b"GET / HTTP/1.0\r\n\r\n")
        .expect("it takes a request");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    text.lines().next().unwrap_or_default().to_owned()
}

async fn log(server: &Server) -> String {
    server.room.made("log").await;
    std::fs::read_to_string(server.room.file("log")).expect("a log")
}

#[tokio::test]
async fn a_server_under_nohup_is_adopted_found_in_the_list_and_its_port_is_closed_by_the_kill() {
    let mut server = Server::start().await;
    let command = format!("nohup {SERVE} > log 2>&1 & echo $! > child; {LISTENS}; echo started");
    assert_eq!(
        server.bash(&command).await.ok(),
        "started\n[1 process still running; adopted as background task bash-1]"
    );
    let port = port(&log(&server).await);
    assert_eq!(answer(port), "HTTP/1.0 200 OK");
    assert_eq!(
        server.list().await.ok(),
        format!("bash-1 [bash] running, shell exited with code 0, 1 process running — {command}")
    );
    assert_eq!(
        server.output("bash-1").await.ok(),
        "(no new output)\n[status: running, shell exited with code 0, 1 process running]"
    );
    assert_eq!(
        server.kill("bash-1").await.ok(),
        "requested cancellation of task bash-1"
    );
    let end = server.wait("bash-1").await;
    assert_eq!(
        end.texts,
        ["(no new output)\n[status: killed, shell had exited with code 0]"]
    );
    assert!(connect(port).is_err(), "the port is closed when the end is told");
    assert!(is_gone(server.room.pid("child").await));
    assert_eq!(
        server.list().await.texts,
        [format!("bash-1 [bash] killed — {command}")]
    );
    server.close().await;
}

#[tokio::test]
async fn a_server_that_runs_as_a_task_is_read_while_it_serves_and_ends_with_it() {
    let mut server = Server::start().await;
    let id = server.background(&format!("exec {SERVE} 2>&1")).await;
    server.until_resource_says(&id, " port ").await;
    let port = port(server.output(&id).await.ok());
    assert_eq!(answer(port), "HTTP/1.0 200 OK");
    server.kill(&id).await;
    let end = server.wait(&id).await;
    assert!(end.ok().contains("\"GET / HTTP/1.0\" 200"), "{end:?}");
    assert!(end.ok().ends_with("[status: killed, signal: SIGTERM]"), "{end:?}");
    assert!(connect(port).is_err());
    server.close().await;
}

#[tokio::test]
async fn what_is_left_is_ended_where_so_configured_and_its_port_is_closed() {
    let mut server = Server::start_with(options("[tool_bash]\nleftover = \"end\"\n")).await;
    let command = format!("nohup {SERVE} > log 2>&1 & {LISTENS}; echo started");
    assert_eq!(
        server.bash(&command).await.ok(),
        "started\n[1 process left running, now ended]"
    );
    assert!(connect(port(&log(&server).await)).is_err());
    assert_eq!(server.list().await.ok(), "(no background tasks)");
    server.close().await;
}

#[tokio::test]
async fn what_is_left_stays_unnamed_where_so_configured_and_ends_with_the_server() {
    let mut server = Server::start_with(options("[tool_bash]\nleftover = \"leave\"\n")).await;
    let command = format!("nohup {SERVE} > log 2>&1 & echo $! > child; {LISTENS}; echo started");
    assert_eq!(
        server.bash(&command).await.ok(),
        "started\n[1 process still running]"
    );
    let port = port(&log(&server).await);
    assert_eq!(server.list().await.ok(), "(no background tasks)");
    assert_eq!(answer(port), "HTTP/1.0 200 OK");
    let child = server.room.pid("child").await;
    server.close().await;
    assert!(is_gone(child) && connect(port).is_err());
}

#[tokio::test]
async fn without_control_tools_no_background_is_offered_and_nothing_is_left() {
    let mut server = Server::start_with(options("[tool_tasks]\nenabled = false\n")).await;
    let tools = server.request("tools/list", json!({})).await["result"]["tools"].clone();
    let tools = tools.as_array().expect("a list");
    assert_eq!(tools.len(), 1);
    assert!(!tools[0].to_string().contains("run_in_background"), "{tools:?}");
    let arguments = json!({"command": "touch ran", "description": "d", "run_in_background": true});
    assert_eq!(
        server.call("bash", arguments).await.error(),
        "Error: run_in_background is disabled for this deployment (tool_tasks.enabled: false)"
    );
    let left = server.bash("sleep 60 & echo $! > child; ls").await;
    assert_eq!(left.ok(), "child\n[1 process left running, now ended]");
    assert!(is_gone(server.room.pid("child").await));
    server.close().await;
}
