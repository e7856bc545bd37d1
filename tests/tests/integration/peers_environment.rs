//! What a command gets to see: no input to wait for, no secrets, no stray descriptors.

use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use serde_json::json;
use tests::{Room, Server, ServerOptions};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

#[tokio::test]
async fn a_command_that_reads_its_input_ends() {
    let mut server = Server::start().await;
    assert_eq!(server.bash("cat").await.ok(), "(no output)");
    assert_eq!(
        server.bash("read -r line || echo 'no input'").await.ok(),
        "no input\n"
    );
    let id = server.background("cat; echo end").await;
    assert_eq!(
        server.wait(&id).await.ok(),
        "end\n[status: completed, exit code: 0]"
    );
    server.close().await;
}

#[tokio::test]
async fn programs_are_told_not_to_ask_and_not_to_page() {
    let mut server = Server::start().await;
    let reply = server
        .bash("echo $GIT_TERMINAL_PROMPT $PAGER $GIT_PAGER $TERM ${NO_COLOR:+no colour}")
        .await;
    assert_eq!(reply.ok(), "0 cat cat dumb no colour\n");
    server.close().await;
}

#[tokio::test]
async fn secrets_of_the_server_do_not_reach_a_command() {
    let env = [
        ("OPENAI_API_KEY", "secret-1"),
        ("db_password", "secret-2"),
        ("GH_TOKEN", "secret-3"),
        ("AWS_CREDENTIALS", "secret-4"),
        ("CLIENT_SECRET", "secret-5"),
        ("DATABASE_URL", "postgres://user:secret-6@127.0.0.1/db"),
        ("PLAIN", "visible"),
    ];
    let mut server = Server::start_with(ServerOptions {
        env: &env,
        ..ServerOptions::default()
    })
    .await;
    let reply = server.bash("env; echo \"plain=$PLAIN\"").await;
    assert!(!reply.ok().contains("secret-"), "{}", reply.ok());
    assert!(reply.ok().ends_with("plain=visible\n"), "{}", reply.ok());
    server.close().await;
}

#[tokio::test]
async fn a_command_has_three_descriptors_and_default_signals() {
    let mut server = Server::start().await;
    let reply = server
        .bash("ls /proc/$$/fd; grep -E '^Sig(Blk|Ign)' /proc/self/status")
        .await;
    let lines: Vec<&str> = reply.ok().lines().collect();
    let descriptors: Vec<&str> = lines
        .iter()
        .copied()
        .filter(|line| line.parse::<u32>().is_ok_and(|fd| fd < 255))
        .collect();
    assert_eq!(descriptors, ["0", "1", "2"], "{reply:?}");
    for line in lines.iter().filter(|line| line.starts_with("Sig")) {
        assert!(line.ends_with("0000000000000000"), "{line}");
    }
    server.close().await;
}

#[tokio::test]
async fn each_command_leads_a_group_of_its_own() {
    let mut server = Server::start().await;
    let reply = server.bash("echo $$ $(ps -o pgid= -p $$)").await;
    let ids: Vec<&str> = reply.ok().split_whitespace().collect();
    assert_eq!(ids.len(), 2, "{reply:?}");
    assert_eq!(ids[0], ids[1], "{reply:?}");
    server.close().await;
}

/// Whoever may run a program without reading it gets processes that hide their `/proc` from others of the same user, and
/// a shell that cannot read its command there must not take it for an empty one.
#[tokio::test]
async fn a_program_that_its_user_cannot_read_runs_commands_all_the_same() {
    let room = Room::new();
    let prepare = "cp \"$0\" copy && chmod 0111 copy && chmod 0755 .. && chmod 0777 . ../home ../tmp";
    assert!(
        room.shell(prepare)
            .status()
            .await
            .expect("the shell runs")
            .success()
    );
    let mut server = room.shell("exec ./copy mcp");
    // Root can read everything, so it becomes somebody else.
    if std::fs::metadata("/proc/self").expect("this process").uid() == 0 {
        server.uid(65534).gid(65534);
    }
    let mut server = server
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("dsh starts");
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "reader", "version": "1"}}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "bash", "arguments": {"command": "echo hi; exit 5", "description": "d"}}});
    let mut input = server.stdin.take().expect("it is piped");
    let mut answers = BufReader::new(server.stdout.take().expect("it is piped")).lines();
    let mut answer = String::new();
    for message in [hello, call] {
        input
            .write_all(format!("{message}\n").as_bytes())
            .await
            .expect("dsh reads");
        answer = answers.next_line().await.expect("dsh writes").expect("an answer");
    }
    assert!(answer.contains(r"hi\n[exit code: 5]"), "{answer}");
    drop(input);
    assert_eq!(server.wait().await.expect("dsh ends").code(), Some(0));
}
