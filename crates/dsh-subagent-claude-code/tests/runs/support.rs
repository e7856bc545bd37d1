//! Scripts in the place of Claude Code, and a parent that delegates to them.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use dsh_agent::{Agent, AgentHandle, AgentRegistry, AgentSpec};
use dsh_scope::{EffectHandle, Scope};
use dsh_session::SessionId;
use dsh_subagent::{Run, RunResult, StartError, StartRequest, SubagentRegistry};
use dsh_subagent_claude_code::{ClaudeCodeConfig, Deps, InstallError, install};
use dsh_subprocess::Launcher;
use dsh_testkit::eventually;
use dsh_testkit::process::{is_gone, read_pid};
use std::sync::Arc;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// What every script can call. `up` reads the two first lines and answers; `success` and `error` are results; `until` waits
/// for a file.
const PRELUDE: &str = r#"#!/bin/sh
echo $$ > pid
opened() { IFS= read -r initialize; IFS= read -r task; }
answered() { echo '{"type":"control_response","response":{"subtype":"success","request_id":"initialize","response":{}}}'; }
up() { opened; answered; }
success() { echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"$1\"}"; }
error() { echo "{\"type\":\"result\",\"subtype\":\"$1\",\"is_error\":true,\"errors\":[\"SECRET_TOKEN /private/secret.txt\"]}"; }
until_closed() { while IFS= read -r line; do :; done; }
until_made() { until [ -e "$1" ]; do sleep 0.02; done; }
"#;

/// A registry, and a parent whose directory is the scripts'.
pub(crate) struct Home {
    pub(crate) subagents: SubagentRegistry,
    pub(crate) parent: AgentHandle,
    directory: TempDir,
    scope: Scope,
}

impl Home {
    pub(crate) fn new() -> Home {
        let directory = TempDir::new().expect("a directory");
        let scope = Scope::root("test");
        let parent = agent(&scope, "parent", Some(directory.path().to_owned()));
        Home {
            subagents: SubagentRegistry::new(),
            parent,
            directory,
            scope,
        }
    }

    /// With one provider, `claude-code`, that runs this script.
    pub(crate) fn of(script: &str) -> Home {
        let home = Home::new();
        let config = home.config(script);
        home.install(config).expect("a provider");
        home
    }

    /// A configuration whose program is this script.
    pub(crate) fn config(&self, script: &str) -> ClaudeCodeConfig {
        let number = std::fs::read_dir(self.directory.path())
            .expect("it is there")
            .count();
        let program = self.file(&format!("claude-{number}"));
        std::fs::write(&program, format!("{PRELUDE}{script}\n")).expect("a script");
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&program, executable).expect("a program");
        ClaudeCodeConfig {
            program: Some(program),
            ..ClaudeCodeConfig::default()
        }
    }

    pub(crate) fn install(&self, config: ClaudeCodeConfig) -> Result<EffectHandle, InstallError> {
        let ambient = [
            ("PATH", "/usr/bin:/bin"),
            ("AMBIENT", "ambient"),
            ("REMOVED", "ambient"),
        ];
        let deps = Deps {
            subagents: self.subagents.clone(),
            launcher: Launcher::groups(),
            hurry: CancellationToken::new(),
            ambient: ambient.map(|(name, value)| (name.into(), value.into())).to_vec(),
        };
        install(&self.scope, deps, config)
    }

    /// Another parent, in this directory or in none.
    pub(crate) fn parent_in(&self, cwd: Option<PathBuf>) -> AgentHandle {
        agent(&self.scope, "another parent", cwd)
    }

    pub(crate) fn request(&self) -> StartRequest {
        task_of(self.parent.agent())
    }

    pub(crate) async fn start(&self) -> Run {
        self.subagents
            .start("claude-code", self.request())
            .await
            .expect("it starts")
    }

    /// The failure of a start.
    pub(crate) async fn refused(&self, request: StartRequest) -> StartError {
        self.subagents
            .start("claude-code", request)
            .await
            .expect_err("it does not start")
    }

    /// What came of a run of its own, which is disposed of then.
    pub(crate) async fn result(&self) -> RunResult {
        let run = self.start().await;
        let result = run.result().await.expect("a result");
        run.dispose().await.expect("nothing is left");
        assert!(self.is_gone(), "the product is gone");
        result
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).expect("the script wrote it")
    }

    pub(crate) fn make(&self, name: &str) {
        std::fs::write(self.file(name), "").expect("a file");
    }

    pub(crate) async fn made(&self, name: &str) {
        let file = self.file(name);
        eventually(&format!("the script to make {name}"), || file.exists()).await;
    }

    /// Whether the script that was started last is gone.
    pub(crate) fn is_gone(&self) -> bool {
        is_gone(read_pid(&self.file("pid")).expect("the script wrote it"))
    }

    pub(crate) fn was_started(&self) -> bool {
        self.file("pid").exists()
    }
}

pub(crate) fn task_of(parent: &Arc<Agent>) -> StartRequest {
    StartRequest::new("the task", Arc::clone(parent), CancellationToken::new())
}

/// The first line of a diagnostic with this in it.
pub(crate) fn line(what: &str) -> String {
    format!("Product subagent failure (product: Claude Code; {what})")
}

/// What was cancelled before the product was up.
pub(crate) const ABORTED: &str = "subagent-claude-code: request was aborted before SDK startup";

fn agent(scope: &Scope, id: &str, cwd: Option<PathBuf>) -> AgentHandle {
    let spec = AgentSpec {
        id: SessionId::new(id),
        cwd,
        within: scope.clone(),
    };
    AgentRegistry::new().create(spec).expect("a new id")
}
