//! What a command gets to see: no input to wait for, no secrets, no stray descriptors.

use tests::{Server, ServerOptions};

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
