//! Who can be delegated to, and what an agent sees: profiles, presets, and what comes of both.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use expect_test::expect;
use serde_json::{Value, json};
use tests::{Room, Server, ServerOptions, says};

/// A program that says that it was started, and fails.
const PRODUCT: &str = "#!/bin/sh\n: > \"$0.started\"\nexit 7\n";

/// A room whose profiles mount neither product, each, and both, and whose presets show neither, each, and both. The products
/// are programs that must not be started.
pub(crate) fn room() -> Room {
    let room = Room::new();
    let home = room.home();
    for directory in ["profiles", "presets"] {
        fs::create_dir(home.join(directory)).expect("a directory");
    }
    let product = home.join("product");
    fs::write(&product, PRODUCT).expect("a program");
    fs::set_permissions(&product, fs::Permissions::from_mode(0o755)).expect("it is a program");
    let products = ["codex", "claude-code"];
    for (name, chosen) in CHOICES {
        let mounted = products.iter().filter(|product| chosen.contains(product));
        let rows = mounted.map(|provider| {
            format!(
                "[[providers]]\nid = \"subagent-{provider}\"\nname = \"{provider}\"\n[providers.config]\nprogram = {:?}\n",
                product.display().to_string()
            )
        });
        fs::write(
            home.join(format!("profiles/{name}.toml")),
            rows.collect::<String>(),
        )
        .expect("a profile");
        let shown = products.iter().map(|provider| {
            format!(
                "[[tools]]\nid = \"tool-{provider}\"\nname = \"subagent\"\ndisabled = {}\n[tools.config]\n\
                 provider = \"{provider}\"\ntool_name = \"subagent_{}\"\nmax_depth = \"provider-managed\"\n",
                !chosen.contains(provider),
                provider.replace('-', "_")
            )
        });
        let bash = "[[tools]]\nid = \"tool-bash\"\nname = \"bash\"\n".to_owned();
        let text = bash + &shown.collect::<String>();
        fs::write(home.join(format!("presets/{name}.toml")), text).expect("a preset");
    }
    room
}

const CHOICES: [(&str, &[&str]); 4] = [
    ("none", &[]),
    ("codex", &["codex"]),
    ("claude", &["claude-code"]),
    ("both", &["codex", "claude-code"]),
];

pub(crate) async fn server(room: Room, profile: &str, preset: &str, config: &str) -> Server {
    let work = room.work();
    let options = ServerOptions {
        config,
        env: &[("PATH", "")],
        arguments: &["--profile", profile, "--preset", preset],
    };
    let mut server = Server::spawn(room, &work, options);
    server.shake_hands().await;
    server
}

pub(crate) async fn tools(server: &mut Server) -> Vec<Value> {
    let listed = server.request("tools/list", json!({})).await;
    listed["result"]["tools"].as_array().expect("tools").clone()
}

pub(crate) fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
}

/// No product was started, and there is no process but this server's own.
fn nothing_was_started(server: &Server) {
    assert!(!server.room.home().join("product.started").exists());
    let children = server.room.processes();
    assert!(children.iter().all(|pid| is_ours(*pid)), "{children:?}");
}

fn is_ours(pid: u32) -> bool {
    let program = fs::read_link(format!("/proc/{pid}/exe"));
    program.is_ok_and(|program| program.file_name().is_some_and(|name| name == "dsh"))
}

#[tokio::test]
async fn a_product_is_there_where_profile_and_preset_agree_and_nothing_is_started() {
    for (profile, mounted) in CHOICES {
        for (preset, shown) in CHOICES {
            let mut server = server(room(), profile, preset, "").await;
            let tools = tools(&mut server).await;
            let mut expected = vec!["bash"];
            if mounted.contains(&"claude-code") && shown.contains(&"claude-code") {
                expected.push("subagent_claude_code");
            }
            if mounted.contains(&"codex") && shown.contains(&"codex") {
                expected.push("subagent_codex");
            }
            expected.extend(["task_kill", "task_list", "task_output"]);
            assert_eq!(names(&tools), expected, "profile {profile}, preset {preset}");
            nothing_was_started(&server);
            server.close().await;
        }
    }
}

#[tokio::test]
async fn a_product_that_cannot_start_says_so_in_the_foreground_and_as_a_task() {
    let mut server = server(room(), "both", "both", "").await;
    let mut shown = String::new();
    for (tool, id) in [
        ("subagent_codex", "subagent-1"),
        ("subagent_claude_code", "subagent-2"),
    ] {
        let task = json!({"description": "try", "prompt": "say hello"});
        shown += &format!("{}\n", server.call(tool, task.clone()).await.text());
        let mut background = task;
        background["run_in_background"] = json!(true);
        let started = server.call(tool, background).await;
        assert_eq!(started.text(), format!("started background subagent task {id}"));
        shown += &format!("{}\n", server.wait(id).await.text());
    }
    expect![[r#"
        Error: subagent-codex: Product subagent failure (product: Codex; stage: initialize; category: unknown; exit code: 7)
        (no new output)
        [status: failed, Error: subagent-codex: Product subagent failure (product: Codex; stage: initialize; category: unknown; exit code: 7)]
        Error: subagent-claude-code: Product subagent failure (product: Claude Code; stage: query-start; category: unknown; exit code: 7)
        (no new output)
        [status: failed, Error: subagent-claude-code: Product subagent failure (product: Claude Code; stage: query-start; category: unknown; exit code: 7)]
    "#]].assert_eq(&shown);
    assert!(server.room.home().join("product.started").exists());
    server.close().await;
}

#[tokio::test]
async fn without_the_control_tools_a_background_call_starts_nothing_and_the_foreground_works() {
    let mut server = server(room(), "both", "both", "[tool_tasks]\nenabled = false\n").await;
    assert_eq!(
        names(&tools(&mut server).await),
        ["bash", "subagent_claude_code", "subagent_codex"]
    );
    let task = json!({"description": "try", "prompt": "say hello", "run_in_background": true});
    let refused = server.call("subagent_codex", task).await;
    expect!["Error: background tasks unavailable: load dsh-tasks and dsh-tool-tasks"]
        .assert_eq(refused.text());
    nothing_was_started(&server);
    let task = json!({"description": "try", "prompt": "say hello"});
    let failed = server.call("subagent_codex", task).await;
    assert!(
        failed.text().starts_with("Error: subagent-codex: "),
        "{}",
        failed.text()
    );
    assert!(server.room.home().join("product.started").exists());
    server.close().await;
}

#[tokio::test]
async fn a_preset_is_copied_to_begin_one_and_no_other_one_is_overwritten() {
    let room = Room::new();
    let preset = async |arguments: &[&str]| {
        let mut command = room.dsh();
        let command = command.args(["config", "preset"]).args(arguments);
        let output = command.output().await.expect("dsh runs");
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).expect("text"))
    };
    let (code, said) = preset(&["copy", "code", "mine"]).await;
    let file = room.home().join("presets/mine.toml");
    assert_eq!((code, said.trim_end()), (Some(0), &*file.to_string_lossy()));
    let mode = |path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(
        (mode(file.clone()), mode(room.home().join("presets"))),
        (0o600, 0o700)
    );
    let text = fs::read_to_string(&file).expect("the copy");
    assert!(
        text.starts_with("description = \"As standard, for work on programs.\"\n"),
        "{text}"
    );
    assert!(
        !text.contains("\norder = ") && !text.starts_with("name"),
        "{text}"
    );
    assert!(text.contains("# The products"), "comments are kept: {text}");

    let (_, listed) = preset(&["list"]).await;
    let ids: Vec<&str> = listed.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(ids, ["standard", "code", "minimal", "mine"]);
    for (to, said) in [
        ("mine", "dsh: preset \"mine\" exists already: choose another id\n"),
        (
            "minimal",
            "dsh: preset \"minimal\" exists already: choose another id\n",
        ),
        (
            "../mine",
            "dsh: preset id \"../mine\" is no id: lowercase letters, digits and hyphens, beginning with a letter or digit\n",
        ),
    ] {
        assert_eq!(
            preset(&["copy", "standard", to]).await,
            (Some(2), said.to_owned())
        );
    }
    assert_eq!(fs::read_to_string(&file).expect("untouched"), text);
}

#[tokio::test]
async fn every_row_is_shown_with_what_it_comes_to() {
    let room = room();
    room.script("model.json", json!([says("never asked")]));
    fs::write(
        room.home().join("config.toml"),
        "[model]\nprovider = \"scripted\"\nname = \"model.json\"\n",
    )
    .expect("a configuration");
    let shown = async |flags: &[&str]| {
        let output = room
            .dsh()
            .args(["config", "show"])
            .args(flags)
            .output()
            .await
            .expect("dsh runs");
        let shown = String::from_utf8(output.stdout).expect("text");
        let at = shown.find("# profile").expect("the composition");
        shown[at..].to_owned()
    };
    expect![[r#"
        # profile default
        #   subagent-spawn: provider spawn, active, but not in dsh mcp: that needs this row in the file of the profile
        #   subagent-fork: provider fork, active, but not in dsh mcp: that needs this row in the file of the profile
        # preset standard
        #   tool-bash: tool bash, active
        #   tool-subagent: tool subagent, active
        #   tool-subagent-fork: tool subagent_fork, active
        #   tool-subagent-codex: tool subagent_codex, disabled
        #   tool-subagent-claude-code: tool subagent_claude_code, disabled
    "#]]
    .assert_eq(&shown(&[]).await);
    expect![[r#"
        # profile codex
        #   subagent-spawn: provider spawn, active, but not in dsh mcp: that needs this row in the file of the profile
        #   subagent-fork: provider fork, active, but not in dsh mcp: that needs this row in the file of the profile
        #   subagent-codex: provider codex, active
        # preset both
        #   tool-bash: tool bash, active
        #   tool-codex: tool subagent_codex, active
        #   tool-claude-code: tool subagent_claude_code, provider claude-code not mounted
    "#]]
    .assert_eq(&shown(&["--profile", "codex", "--preset", "both"]).await);
}

#[tokio::test]
async fn a_session_keeps_its_preset() {
    let room = Room::new();
    let model = room.script("model.json", json!([says("One.")]));
    let run = async |more: &[&str]| {
        let arguments = ["go", "--model", &model, "--session", "s.jsonl"];
        room.run(&[&arguments[..], more].concat()).await
    };
    assert_eq!(run(&["--preset", "minimal"]).await.stdout, "One.\n");
    let refused = run(&["--resume", "--preset", "standard"]).await;
    assert_eq!(
        (refused.code, &*refused.stderr),
        (
            Some(2),
            "dsh: the session has the preset \"minimal\" and cannot be resumed with \"standard\": leave out --preset\n"
        )
    );
    room.script(
        "model.json",
        json!([{"tool_calls": [{"name": "subagent", "arguments": {"description": "x", "prompt": "x"}}]}, {"text": "No."}]),
    );
    let resumed = run(&["--resume", "--output-format", "stream-json"]).await;
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let results = resumed.of_type("tool_result");
    assert_eq!(results[0]["text"], "Error: unknown tool \"subagent\"");
}

#[tokio::test]
async fn a_profile_sets_and_removes_variables_of_a_product() {
    let room = room();
    let (product, profile) = (
        room.home().join("product"),
        room.home().join("profiles/codex.toml"),
    );
    let tells = "#!/bin/sh\necho \"${KEPT-none} ${SET-none} ${REMOVED-none}\" > \"$0.env\"\nexit 7\n";
    fs::write(&product, tells).expect("a program");
    let rows = fs::read_to_string(&profile).expect("a profile");
    let arguments = ["--profile", "codex", "--preset", "codex"];

    let wrong = format!("{rows}[providers.config.env]\nREMOVED = true\n");
    fs::write(&profile, wrong).expect("a profile");
    let refused = room.dsh().arg("mcp").args(arguments).output();
    let refused = refused.await.expect("dsh runs");
    let told = String::from_utf8_lossy(&refused.stderr);
    let said = "codex.toml: providers.subagent-codex.config.env.REMOVED: invalid value: boolean `true`, expected a string, or false to remove the variable\n";
    assert!(told.ends_with(said), "{told}");

    let right = format!("{rows}[providers.config.env]\nSET = \"set\"\nREMOVED = false\n");
    fs::write(&profile, right).expect("a profile");
    let work = room.work();
    let options = ServerOptions {
        env: &[("KEPT", "kept"), ("REMOVED", "not removed")],
        arguments: &arguments,
        ..ServerOptions::default()
    };
    let mut server = Server::spawn(room, &work, options);
    server.shake_hands().await;
    let task = json!({"description": "try", "prompt": "say hello"});
    server.call("subagent_codex", task).await.error();
    let got = fs::read_to_string(product.with_extension("env"));
    assert_eq!(got.expect("it was started"), "kept set none\n");
    server.close().await;
}

/// An MCP client is shown the agents of this program that the file has a row for, whatever the row sets.
#[tokio::test]
async fn a_client_delegates_to_the_agents_of_this_program_that_the_file_has_a_row_for() {
    const SPAWN: &str = "[[providers]]\nid = \"subagent-spawn\"\nname = \"spawn\"\n";
    const FORK: &str = "[[providers]]\nid = \"subagent-fork\"\nname = \"fork\"\n";
    let named = format!("{SPAWN}config = {{ provider_name = \"spawn\" }}\n");
    let off = format!("{SPAWN}disabled = true\n");
    for (rows, shown) in [
        (String::new(), &[][..]),
        (SPAWN.to_owned(), &["subagent"]),
        (format!("{SPAWN}disabled = false\nconfig = {{}}\n"), &["subagent"]),
        (named, &["subagent"]),
        (FORK.to_owned(), &["subagent_fork"]),
        (format!("{SPAWN}{FORK}"), &["subagent", "subagent_fork"]),
        (off.clone(), &[]),
        (format!("{off}{FORK}"), &["subagent_fork"]),
    ] {
        let room = room();
        fs::write(room.home().join("profiles/mine.toml"), &rows).expect("a profile");
        room.script("model.json", json!([says("never asked")]));
        let config = "[model]\nprovider = \"scripted\"\nname = \"model.json\"\n";
        let mut server = server(room, "mine", "standard", config).await;
        let tools = tools(&mut server).await;
        let mut expected = vec!["bash"];
        expected.extend(shown);
        expected.extend(["task_kill", "task_list", "task_output"]);
        assert_eq!(names(&tools), expected, "{rows}");
        server.close().await;
    }
}
