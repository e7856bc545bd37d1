//! Tool calls to a server, as short as tests want them.

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::server::DEADLINE;
use crate::{Reply, Server};

impl Server {
    /// Calls a tool.
    ///
    /// # Panics
    ///
    /// When the answer is a protocol error.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Reply {
        let id = self.send_call(tool, arguments).await;
        self.reply(id).await
    }

    /// Sends a tool call and returns its id.
    pub async fn send_call(&mut self, tool: &str, arguments: Value) -> i64 {
        self.send("tools/call", json!({"name": tool, "arguments": arguments}))
            .await
    }

    /// The reply to a tool call.
    ///
    /// # Panics
    ///
    /// When the answer is a protocol error.
    pub async fn reply(&mut self, id: i64) -> Reply {
        let answer = self.answer(id).await;
        assert!(answer["error"].is_null(), "{answer}");
        Reply::from_result(&answer["result"])
    }

    /// Runs a command in the foreground.
    pub async fn bash(&mut self, command: &str) -> Reply {
        self.call(
            "bash",
            json!({"command": command, "description": "run a test command"}),
        )
        .await
    }

    /// Starts a command in the background and returns its task id.
    ///
    /// # Panics
    ///
    /// When it is refused, or acknowledged in other words than the agreed ones.
    pub async fn background(&mut self, command: &str) -> String {
        self.background_with(command, json!({})).await
    }

    /// The same with further arguments.
    ///
    /// # Panics
    ///
    /// When it is refused, or acknowledged in other words than the agreed ones.
    pub async fn background_with(&mut self, command: &str, more: Value) -> String {
        let mut arguments =
            json!({"command": command, "description": "run a test command", "run_in_background": true});
        for (name, value) in more.as_object().into_iter().flatten() {
            arguments[name] = value.clone();
        }
        let reply = self.call("bash", arguments).await;
        let id = reply.ok().strip_prefix("started background task ");
        id.unwrap_or_else(|| panic!("not an acknowledgement: {reply:?}"))
            .to_owned()
    }

    /// Reads a task without waiting.
    pub async fn output(&mut self, id: &str) -> Reply {
        self.call("task_output", json!({"task_id": id})).await
    }

    /// Reads a task after waiting for its end.
    pub async fn wait(&mut self, id: &str) -> Reply {
        self.call(
            "task_output",
            json!({"task_id": id, "wait": true, "timeout_ms": 20000}),
        )
        .await
    }

    /// Asks for the end of a task.
    pub async fn kill(&mut self, id: &str) -> Reply {
        self.call("task_kill", json!({"task_id": id})).await
    }

    /// The list of tasks.
    pub async fn list(&mut self) -> Reply {
        self.call("task_list", json!({})).await
    }

    /// Calls `tool` until a result carries a notice, and returns that result: between the end of a task and its notice
    /// lies a moment that no client can see.
    ///
    /// # Panics
    ///
    /// When none does within the deadline.
    pub async fn told_by(&mut self, tool: &str, arguments: Value) -> Reply {
        let told = async {
            loop {
                let reply = self.call(tool, arguments.clone()).await;
                if !reply.notices().is_empty() {
                    return reply;
                }
            }
        };
        timeout(DEADLINE, told)
            .await
            .unwrap_or_else(|_| panic!("nothing is told"))
    }

    /// Waits until the resource of `id` shows `status`; that tells the model nothing.
    ///
    /// # Panics
    ///
    /// When it does not within the deadline.
    pub async fn until_resource_says(&mut self, id: &str, status: &str) {
        let seen = async {
            loop {
                let answer = self
                    .request("resources/read", json!({"uri": format!("dsh://task/{id}")}))
                    .await;
                let text = answer["result"]["contents"][0]["text"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
                if text.contains(status) {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        timeout(DEADLINE, seen)
            .await
            .unwrap_or_else(|_| panic!("{id} does not become {status}"));
    }
}
