//! What the person asks for, and what the model answers.

use std::path::Path;

use dsh_agent_loop::ModelChoice;
use dsh_tasks::Vocabulary;
use serde_json::{Value, json};

/// The model's provider, and its name.
pub(super) const NAME: &str = "demo";

/// The one message of a person.
pub(super) const PROMPT: &str =
    "Build the project and start the server. When the build is done, say so and stop the server.";

/// The file for which the build waits before it ends.
pub(super) const GATE: &str = "idle";

/// The build's task, and the server's: the first two of their kind.
pub(super) const BUILD_ID: &str = "bash-1";
pub(super) const SERVER_ID: &str = "bash-2";

/// A server with a child of its own, both of which say who they are and would go on for ten minutes.
const SERVER: &str = "echo \"server pid $$\"; sleep 600 & echo \"worker pid $!\"; wait";

/// The choice of this model.
pub(super) fn model() -> ModelChoice {
    ModelChoice::new(NAME, NAME)
}

/// A short build: it prints, takes a moment, and ends by itself, once `gate` is there.
fn build(gate: &Path) -> String {
    let gate = gate.display();
    format!(
        "for step in fetch compile link; do echo \"$step\"; sleep 0.2; done; \
         until [ -e '{gate}' ]; do sleep 0.02; done; echo 'build finished'"
    )
}

/// The model's answers, in the words of the deployment. Each says what must have been told before it.
pub(super) fn json(words: Vocabulary, gate: &Path) -> String {
    let id = words.id_param();
    let about = |task: &str| json!({ id: task });
    let turns = json!([
        {
            "text": "Both go to the background.",
            "tool_calls": [
                background("Build the project", &build(gate)),
                background("Start the server", SERVER),
            ],
        },
        {
            "expect": [BUILD_ID, SERVER_ID],
            "text": "Meanwhile I do something else.",
            "tool_calls": [call("bash", json!({
                "command": "echo \"meanwhile: $((6 * 7))\"", "description": "Do some arithmetic",
            }))],
        },
        {
            "expect": ["meanwhile: 42"],
            "text": "The build and the server run. I will be told when one of them ends.",
        },
        {
            "expect": [format!("{BUILD_ID} (bash: "), "[status: completed, exit code: 0]"],
            "tool_calls": [call(words.output_tool(), about(BUILD_ID)), call(words.output_tool(), about(SERVER_ID))],
        },
        {
            "expect": ["build finished\n[status: completed, exit code: 0]", "worker pid"],
            "text": "The build is done. The server is no longer needed.",
            "tool_calls": [
                call(words.kill_tool(), json!({ id: SERVER_ID, "reason": "the build is done" })),
                call(words.output_tool(), json!({ id: SERVER_ID, "wait": true })),
            ],
        },
        {
            "expect": ["[status: killed, signal: SIGTERM]"],
            "text": "The build is done: fetched, compiled, linked. The server and its worker are stopped.",
        },
    ]);
    json!({ "turns": turns }).to_string()
}

fn background(description: &str, command: &str) -> Value {
    call(
        "bash",
        json!({ "command": command, "description": description, "run_in_background": true }),
    )
}

fn call(name: &str, arguments: Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}
