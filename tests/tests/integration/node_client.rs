//! The official ACP client for Node, which we did not write, drives the agent (`tests/clients/acp/drive.mjs`).

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tests::Room;
use tokio::process::Command;
use tokio::time::timeout;

#[tokio::test]
async fn drives_everything_an_editor_does() {
    let modules =
        std::env::var_os("DSH_TEST_ACP").expect("DSH_TEST_ACP has the client: run `cargo xtask test`");
    let dsh = std::env::var_os("DSH_BIN").expect("DSH_BIN names the dsh binary: run `cargo xtask test`");
    let room = Room::new();
    let (name, value) = room.mark();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/acp/drive.mjs");
    let mut command = Command::new("node");
    command
        .arg(script)
        .arg(modules)
        .arg(dsh)
        .arg(room.work())
        .current_dir(room.work())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", room.home())
        .env("DSH_HOME", room.home())
        .env("TMPDIR", room.tmp())
        .env(name, value)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let output = timeout(Duration::from_secs(90), command.output())
        .await
        .expect("the client ends in time");
    let output = output.expect("node starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && said.ends_with("ok\n"),
        "{said}\n{complained}"
    );
    room.assert_empty();
}
