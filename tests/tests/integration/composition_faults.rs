//! What is wrong with profiles and presets, and how that is told.

use std::fs;

use expect_test::expect;
use tests::Room;

use crate::composition::room;

#[tokio::test]
async fn everything_that_is_wrong_is_told_at_once() {
    let room = room();
    let home = room.home();
    let profile = "colour = 1\n[[providers]]\nid = \"A b\"\nname = \"codexx\"\n[[providers]]\nname = \"codex\"\n\
        [[providers]]\nid = \"one\"\nname = \"claude-code\"\nconfig = { permission_mode = \"default\", grace = 1 }\n\
        [[providers]]\nid = \"two\"\nname = \"fork\"\nconfig = { provider_name = \"spawn\" }\n";
    fs::write(home.join("profiles/wrong.toml"), profile).expect("a profile");
    let preset = "size = 2\n[[tools]]\nid = \"one\"\nname = \"basch\"\n[[tools]]\nid = \"two\"\nname = \"subagent\"\n\
        [[tools]]\nid = \"three\"\nname = \"subagent\"\nconfig = { provider = \"x\", tool_name = \"bash\", max_depth = -1 }\n\
        [[tools]]\nid = \"three\"\nname = \"subagent\"\nconfig = { provider = \"x\", tool_filter = {} }\n\
        [[tools]]\nid = \"four\"\nname = \"subagent\"\nconfig = { provider = \"x\", background_mode = \"continuable\" }\n\
        [[tools]]\nid = \"five\"\nname = \"bash\"\nconfig = { timeout = 1 }\n\
        [[tools]]\nid = \"six\"\nname = \"subagent\"\nconfig = { provider = \"x\", tool_name = \"job_list\" }\n";
    fs::write(home.join("presets/wrong.toml"), preset).expect("a preset");
    let command = ["config", "show", "--profile", "wrong", "--preset", "wrong"];
    let output = room.dsh().args(command).output().await.expect("dsh runs");
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr).replace(&*home.to_string_lossy(), "HOME");
    expect![[r#"
        dsh: HOME/profiles/wrong.toml: providers.A b.id: "A b" is no id: lowercase letters, digits and hyphens, beginning with a letter or digit
        HOME/profiles/wrong.toml: providers[1]: there is no key `id`
        HOME/profiles/wrong.toml: colour: unknown key: a profile has [[providers]] only
        HOME/profiles/wrong.toml: providers.A b.name: there is no provider "codexx": it is "spawn", "fork", "codex", "claude-code" or "acp"
        HOME/profiles/wrong.toml: providers.1.config.program: subagent-codex: no program: set program, or the environment variable DSH_CODEX, to the absolute path of the native codex program
        HOME/profiles/wrong.toml: providers.one.config.grace: unknown key `grace`, expected one of `provider_name`, `program`, `env`, `permission_mode`, `dispose_grace_ms`
        HOME/profiles/wrong.toml: providers.one.config.permission_mode: unknown value `default`, expected one of `dontAsk`, `acceptEdits`, `auto`, `plan`, `bypassPermissions`
        HOME/profiles/wrong.toml: providers.two: another row mounts a provider "spawn" already: give it a provider_name of its own
        HOME/presets/wrong.toml: tools.three.id: stands twice: ids are unique in a file
        HOME/presets/wrong.toml: size: unknown key `size`, expected one of `name`, `description`, `order`, `persona`
        HOME/presets/wrong.toml: tools.one.name: there is no tool "basch": it is "bash" or "subagent"
        HOME/presets/wrong.toml: tools.two.config: there is no key `provider`
        HOME/presets/wrong.toml: tools.three.config.max_depth: subagent max_depth must be a non-negative safe integer, or "provider-managed"
        HOME/presets/wrong.toml: tools.three.config: tool-subagent: `tool_filter` is configured but names neither `allow` nor `deny` — remove the key or fill the filter
        HOME/presets/wrong.toml: tools.four.config: tool-subagent: provider "x" does not support `background_mode: continuable`
        HOME/presets/wrong.toml: tools.five.config.timeout: unknown key `timeout`, there is nothing to configure
        HOME/presets/wrong.toml: tools.four: another row has a tool "subagent" already: names are unique
        HOME/presets/wrong.toml: tools.six: a tool "job_list" is there already: it controls background work
    "#]].assert_eq(&told);
    for (flags, said) in [
        (
            ["--profile", "missing"],
            "dsh: profile \"missing\" does not exist: there is no file ",
        ),
        (["--profile", "../x"], "dsh: profile name \"../x\" is no id: "),
        (
            ["--preset", "missing"],
            "dsh: preset \"missing\" not found (available: standard, code, minimal, ",
        ),
        (["--preset", ".x"], "dsh: preset id \".x\" is no id: "),
    ] {
        let output = room
            .dsh()
            .arg("mcp")
            .args(flags)
            .output()
            .await
            .expect("dsh runs");
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.starts_with(said), "{told}");
    }
}

#[tokio::test]
async fn what_a_product_cannot_do_is_told_before_anything_is_there() {
    let room = room();
    let preset = "[[tools]]\nid = \"one\"\nname = \"subagent\"\n\
        config = { provider = \"codex\", tool_name = \"a b\", persona = \"x\", tool_filter = { deny = [\"bash\"] } }\n";
    fs::write(room.home().join("presets/wrong.toml"), preset).expect("a preset");
    let told = async |room: &Room| {
        let arguments = ["config", "show", "--profile", "codex", "--preset", "wrong"];
        let output = room.dsh().args(arguments).output().await.expect("dsh runs");
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).replace(&*room.home().to_string_lossy(), "HOME")
    };
    expect![[r#"
        dsh: HOME/presets/wrong.toml: tools.one.config: tool-subagent: tool_name "a b" is none that models can call: letters, digits, `_` and `-`, at most 64
        HOME/presets/wrong.toml: tools.one.config: tool-subagent: provider "codex" cannot enforce max_depth (no depthLimit capability) — set max_depth: 'provider-managed' to leave the recursion budget to the provider
        HOME/presets/wrong.toml: tools.one.config: tool-subagent: provider "codex" does not support tool_filter (no toolFilter capability) — remove the key
        HOME/presets/wrong.toml: tools.one.config: tool-subagent: provider "codex" does not support persona (no persona capability) — remove the key
    "#]].assert_eq(&told(&room).await);
    fs::write(
        room.home().join("presets/wrong.toml"),
        preset.replace("a b", "ab"),
    )
    .expect("a preset");
    expect![[r#"
        dsh: HOME/presets/wrong.toml: tools.one.config: tool-subagent: provider "codex" cannot enforce max_depth (no depthLimit capability) — set max_depth: 'provider-managed' to leave the recursion budget to the provider
        HOME/presets/wrong.toml: tools.one.config: tool-subagent: provider "codex" does not support tool_filter (no toolFilter capability) — remove the key
        HOME/presets/wrong.toml: tools.one.config: tool-subagent: provider "codex" does not support persona (no persona capability) — remove the key
    "#]].assert_eq(&told(&room).await);
}

#[tokio::test]
async fn a_product_whose_program_cannot_be_started_is_a_fault_of_the_profile() {
    let room = room();
    let home = room.home();
    let row = |id: &str, name: &str, more: &str| {
        format!(
            "[[providers]]\nid = \"{id}\"\nname = \"{name}\"\nconfig = {{ provider_name = \"{id}\"{more} }}\n"
        )
    };
    let program = |path: &str| format!(", program = \"{path}\"");
    let there = home.join("product").display().to_string();
    fs::write(home.join("text"), "no program").expect("a file");
    let rows = [
        row("one", "codex", ""),
        row("two", "claude-code", ""),
        row("three", "codex", &program("/nowhere/codex")),
        row("four", "codex", &program("codex")),
        row(
            "five",
            "claude-code",
            &program(&home.join("text").display().to_string()),
        ),
        row("six", "codex", &program(&home.display().to_string())),
        row("seven", "codex", &program(&there)),
        row("eight", "codex", "") + "disabled = true\n",
    ];
    fs::write(home.join("profiles/mine.toml"), rows.concat()).expect("a profile");
    for command in [&["config", "show"][..], &["mcp"], &["run", "go"]] {
        let mut dsh = room.dsh();
        dsh.env_remove("DSH_CODEX").env_remove("DSH_CLAUDE_CODE");
        let output = dsh.args(command).args(["--profile", "mine"]).output();
        let output = output.await.expect("dsh runs");
        assert_eq!(output.status.code(), Some(2), "{command:?}");
        let told = String::from_utf8_lossy(&output.stderr).replace(&*home.to_string_lossy(), "HOME");
        expect![[r#"
            dsh: HOME/profiles/mine.toml: providers.one.config.program: subagent-codex: no program: set program, or the environment variable DSH_CODEX, to the absolute path of the native codex program
            HOME/profiles/mine.toml: providers.two.config.program: subagent-claude-code: no program: set program, or the environment variable DSH_CLAUDE_CODE, to the absolute path of the native claude program
            HOME/profiles/mine.toml: providers.three.config.program: cannot be started: /nowhere/codex: No such file or directory (os error 2): name the native program, or set disabled = true
            HOME/profiles/mine.toml: providers.four.config: subagent-codex: program must be the absolute path of the native codex program, not codex
            HOME/profiles/mine.toml: providers.five.config.program: cannot be started: HOME/text: it is not executable: name the native program, or set disabled = true
            HOME/profiles/mine.toml: providers.six.config.program: cannot be started: HOME: it is not a file: name the native program, or set disabled = true
        "#]].assert_eq(&told);
    }
    assert!(!home.join("product.started").exists());
}

/// What had been installed by then is closed: nothing is said of it.
#[tokio::test]
async fn services_that_cannot_be_put_together_are_told_in_one_line() {
    let room = Room::new();
    let config = "[tool_bash]\ndsh_home = \"\"\n";
    fs::write(room.home().join("config.toml"), config).expect("a configuration");
    let output = room
        .dsh()
        .args(["config", "surface"])
        .output()
        .await
        .expect("dsh runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[tokio::test]
async fn what_is_no_file_is_no_preset_and_nobody_waits_for_it() {
    let room = room();
    let pipe = room.home().join("presets/pipe.toml");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    std::os::unix::fs::symlink("/dev/zero", room.home().join("profiles/zero.toml")).expect("a link");
    for (flags, said) in [
        (["--preset", "pipe"], "presets/pipe.toml: it is not a file"),
        (["--profile", "zero"], "profiles/zero.toml: it is not a file"),
    ] {
        let output = room
            .dsh()
            .args(["config", "show"])
            .args(flags)
            .output()
            .await
            .expect("dsh runs");
        assert_eq!(output.status.code(), Some(2));
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.trim_end().ends_with(said), "{told}");
    }
    let listed = room
        .dsh()
        .args(["config", "preset", "list"])
        .output()
        .await
        .expect("dsh runs");
    assert_eq!(listed.status.code(), Some(0));
}

/// Three files are wrong, and each says everything that is wrong in it.
#[tokio::test]
async fn no_fault_hides_another_one() {
    let room = room();
    let home = room.home();
    fs::write(home.join("wrong.toml"), "colour = 1\n").expect("a configuration");
    let profile = "[[providers]]\nid = \"one\"\nnme = \"codex\"\n\
        [[providers]]\nid = \"two\"\nname = \"codexx\"\ndisabled = \"yes\"\n\
        [[providers]]\nid = \"three\"\nname = \"codex\"\n[providers.config.env]\nA = true\nB = 1\nC = \"c\"\n";
    fs::write(home.join("profiles/wrong.toml"), profile).expect("a profile");
    let preset = "[[tools]]\nid = \"one\"\nname = \"subagent\"\nconfig = { provider = \"spawn\", tool_filter = { deny = [\"bsh\", \"other\"] } }\n\
        [[tools]]\nid = \"two\"\nname = \"subagent\"\nconfig = { provider = \"spawn\", tool_name = \"other\", max_depth = \"x\" }\n\
        [[tools]]\nid = \"three\"\nname = \"subagent\"\nconfig = { provider = \"spawn\", tool_name = \"third\", tool_filter = [\"bash\"] }\n\
        [[tools]]\nid = \"four\"\nname = \"subagent\"\ndisabled = 1\nconfig = { provider = \"spawn\", tool_name = \"a b\" }\n";
    fs::write(home.join("presets/wrong.toml"), preset).expect("a preset");
    let told = async |more: &[&str]| {
        let command = ["config", "show", "--profile", "wrong", "--preset", "wrong"];
        let output = room
            .dsh()
            .args(command)
            .args(more)
            .output()
            .await
            .expect("dsh runs");
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).replace(&*home.to_string_lossy(), "HOME")
    };
    expect![[r#"
        dsh: HOME/profiles/wrong.toml: providers.one.nme: unknown key `nme`, expected one of `id`, `name`, `disabled`, `config`
        HOME/profiles/wrong.toml: providers.one: there is no key `name`
        HOME/profiles/wrong.toml: providers.two.disabled: invalid type: string "yes", expected a boolean
        HOME/profiles/wrong.toml: providers.two.name: there is no provider "codexx": it is "spawn", "fork", "codex", "claude-code" or "acp"
        HOME/profiles/wrong.toml: providers.three.config.env.A: invalid value: boolean `true`, expected a string, or false to remove the variable
        HOME/profiles/wrong.toml: providers.three.config.env.B: invalid type: integer `1`, expected a string, or false to remove the variable
        HOME/presets/wrong.toml: tools.four.disabled: invalid type: integer `1`, expected a boolean
        HOME/presets/wrong.toml: tools.two.config.max_depth: subagent max_depth must be a non-negative safe integer, or "provider-managed"
        HOME/presets/wrong.toml: tools.three.config.tool_filter: must be a table with `allow` or `deny`, each a list of tools
        HOME/presets/wrong.toml: tools.four.config: tool-subagent: tool_name "a b" is none that models can call: letters, digits, `_` and `-`, at most 64
        HOME/presets/wrong.toml: tools.one.config.tool_filter.deny: no tool has the name "bsh" (there is: bash, task_output, task_list, task_kill, subagent, other, third, a b)
    "#]].assert_eq(&told(&[]).await);
    let file = home.join("wrong.toml").display().to_string();
    expect![[r#"
        dsh: HOME/wrong.toml: colour: unknown key `colour`, expected one of `vocabulary`, `model`, `agent`, `approval`, `tasks`, `tool_tasks`, `bash`, `tool_bash`
        HOME/profiles/wrong.toml: providers.one.nme: unknown key `nme`, expected one of `id`, `name`, `disabled`, `config`
        HOME/profiles/wrong.toml: providers.one: there is no key `name`
        HOME/profiles/wrong.toml: providers.two.disabled: invalid type: string "yes", expected a boolean
        HOME/profiles/wrong.toml: providers.two.name: there is no provider "codexx": it is "spawn", "fork", "codex", "claude-code" or "acp"
        HOME/profiles/wrong.toml: providers.three.config.env.A: invalid value: boolean `true`, expected a string, or false to remove the variable
        HOME/profiles/wrong.toml: providers.three.config.env.B: invalid type: integer `1`, expected a string, or false to remove the variable
        HOME/presets/wrong.toml: tools.four.disabled: invalid type: integer `1`, expected a boolean
        HOME/presets/wrong.toml: tools.two.config.max_depth: subagent max_depth must be a non-negative safe integer, or "provider-managed"
        HOME/presets/wrong.toml: tools.three.config.tool_filter: must be a table with `allow` or `deny`, each a list of tools
        HOME/presets/wrong.toml: tools.four.config: tool-subagent: tool_name "a b" is none that models can call: letters, digits, `_` and `-`, at most 64
    "#]].assert_eq(&told(&["--config", &file]).await);
}

/// Another profile may mount it, so it is no fault.
#[tokio::test]
async fn a_tool_that_delegates_to_nobody_of_the_profile_is_named_in_the_log() {
    let room = room();
    let rows = |provider: &str| {
        format!("[[tools]]\nid = \"one\"\nname = \"subagent\"\nconfig = {{ provider = \"{provider}\" }}\n")
    };
    let told = async |provider: &str| {
        fs::write(room.home().join("presets/mine.toml"), rows(provider)).expect("a preset");
        let output = room
            .dsh()
            .args(["config", "surface", "--preset", "mine"])
            .output();
        let output = output.await.expect("dsh runs");
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let warned = "preset mine: row one: the profile has no provider \"spwan\" (it has: spawn, fork)";
    let said = told("spwan").await;
    assert!(said.contains(warned), "{said}");
    assert!(!told("spawn").await.contains("has no provider"));
}
