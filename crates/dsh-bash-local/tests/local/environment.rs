//! What a command finds in its environment.

use dsh_bash::BashRequest;
use tokio_util::sync::CancellationToken;

use crate::fixture::{Fixture, config};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c8_programs_are_told_to_be_plain() {
    let result = Fixture::new()
        .run("echo $NO_COLOR/$TERM/$PAGER/$GIT_PAGER/$GIT_TERMINAL_PROMPT")
        .await;
    assert_eq!(result.stdout.text, "1/dumb/cat/cat/0\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c38_c39_c284_c371_c372_credentials_and_stale_facts_do_not_reach_commands() {
    let ambient = [
        ("SERVICE_API_KEY", "hidden"),
        ("DB_PASSWORD", "hidden"),
        ("DATABASE_URL", "postgres://u:hidden@db/x"),
        ("DSH_SESSION_ID", "stale"),
        ("DSH_OTHER", "stale"),
        ("Dsh_Mixed", "stale"),
        ("npm_token", "hidden"),
        ("GH_PAT", "hidden"),
        ("SSHPASS", "hidden"),
        ("MYSQL_PWD", "hidden"),
        ("SESSION_COOKIE", "hidden"),
        ("DB", "host=db password=hidden"),
        ("PLAIN", "visible"),
    ];
    let fixture = Fixture::with_ambient(config(), &ambient);
    let request = BashRequest {
        dsh_env: [("DSH_SESSION_ID".into(), "fresh".into())].into(),
        ..fixture.request("env")
    };
    let result = fixture
        .run_request(request, &CancellationToken::new())
        .await
        .unwrap();
    let env = result.stdout.text;
    assert!(!env.contains("hidden") && !env.contains("stale"), "{env}");
    assert!(
        env.contains("PLAIN=visible\n") && env.contains("PATH=") && env.contains("DSH_SESSION_ID=fresh\n"),
        "{env}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c21_c22_c323_c325_c354_own_variables_reach_the_command_and_win() {
    let fixture = Fixture::with_ambient(config(), &[("A_PASSWORD", "ambient")]);
    let env = [
        ("ONE", "1"),
        ("TWO", "2"),
        ("TERM", "mine"),
        ("A_PASSWORD", "given"),
    ];
    let request = BashRequest {
        env: env
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect(),
        ..fixture.request("echo $ONE $TWO $TERM $A_PASSWORD")
    };
    let result = fixture
        .run_request(request, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(result.stdout.text, "1 2 mine given\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_allow_list_lets_a_named_credential_through() {
    let config = dsh_bash_local::LocalBashConfig {
        allow_env: vec!["CI_TOKEN".into()],
        ..config()
    };
    let fixture = Fixture::with_ambient(config, &[("CI_TOKEN", "wanted"), ("OTHER_TOKEN", "hidden")]);
    assert_eq!(
        fixture.run("echo $CI_TOKEN$OTHER_TOKEN").await.stdout.text,
        "wanted\n"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_start_up_file_runs_and_exported_functions_work() {
    let start = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(start.path(), "echo from-start-up\n").unwrap();
    let ambient = [
        ("BASH_ENV", start.path().to_str().unwrap()),
        ("SHELLOPTS", "xtrace"),
        ("BASH_FUNC_greet%%", "() { echo hello; }"),
    ];
    let fixture = Fixture::with_ambient(config(), &ambient);
    let result = fixture.run("greet").await;
    assert_eq!(
        (result.stdout.text.as_str(), result.stderr.text.as_str()),
        ("hello\n", "")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_has_exactly_its_three_descriptors_and_a_group_of_its_own() {
    let fixture = Fixture::new();
    let result = fixture
        .run("echo /proc/$$/fd/*; ps -o pgid= -p $$ 2>/dev/null || cut -d' ' -f5 /proc/$$/stat; echo $$")
        .await;
    let lines: Vec<&str> = result.stdout.text.lines().map(str::trim).collect();
    let pid = lines[2];
    let fds: Vec<&str> = lines[0]
        .split(' ')
        .filter_map(|path| path.rsplit('/').next())
        .collect();
    // bash itself opens 255 for a script only; the directory that the glob reads is gone again.
    assert_eq!(
        fds.iter().filter(|fd| fd.len() == 1 && **fd <= "2").count(),
        3,
        "{fds:?}"
    );
    assert!(fds.len() <= 4, "{fds:?}");
    assert_eq!(lines[1], pid);
}
