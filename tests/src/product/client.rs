//! Products as clients of `dsh mcp`: they start it, and their model calls its tools.

use serde_json::{Value, json};

use super::{Kind, Product};
use crate::model::{Request, Turn};
use crate::room::binary;

/// How both products call a tool of the server.
const PREFIX: &str = "mcp__dsh__";

impl Product {
    /// Configures `dsh mcp` as a server of this product, in its room.
    ///
    /// # Panics
    ///
    /// When `DSH_BIN` is not set, or a file cannot be written.
    #[must_use]
    pub fn with_tools(self) -> Product {
        let dsh = binary().into_string().expect("a path of text");
        let home = self.room.home();
        // Codex passes on little of its own environment.
        let named = |name: &str| self.env.iter().find(|(known, _)| known == name);
        let passed = ["HOME", "TMPDIR"].into_iter().filter_map(named).cloned();
        let env = passed.chain([self.room.mark(), ("DSH_HOME".into(), home.display().to_string())]);
        match self.kind {
            Kind::Codex => {
                let file = home.join("codex").join("config.toml");
                let mut text = std::fs::read_to_string(&file).expect("its configuration");
                text += &format!(
                    "\n[mcp_servers.dsh]\ncommand = {dsh:?}\nargs = [\"mcp\"]\nstartup_timeout_sec = 60\n\
                     [mcp_servers.dsh.env]\n"
                );
                for (name, value) in env {
                    text += &format!("{name} = {value:?}\n");
                }
                std::fs::write(file, text).expect("its configuration");
            }
            Kind::ClaudeCode => {
                let env: serde_json::Map<String, Value> =
                    env.map(|(name, value)| (name, value.into())).collect();
                let server = json!({"type": "stdio", "command": dsh, "args": ["mcp"], "env": env});
                let text = json!({"mcpServers": {"dsh": server}}).to_string();
                std::fs::write(home.join("claude").join(".claude.json"), text).expect("its configuration");
            }
        }
        self
    }

    /// What the last tool call of a conversation answered, all its blocks in one.
    ///
    /// # Panics
    ///
    /// When there is none, or none that looks like an answer of the server.
    pub fn answered(&self, request: &Request) -> String {
        let blocks = match self.kind {
            Kind::Codex => {
                let last = last(&request.body["input"]);
                codex_blocks(&last["output"]).unwrap_or_else(|| panic!("no answer: {last}"))
            }
            Kind::ClaudeCode => {
                let said = request.body["messages"].as_array().into_iter().flatten();
                let mut blocks = said.flat_map(|message| message["content"].as_array().into_iter().flatten());
                let answer = blocks.rfind(|block| block["type"] == "tool_result");
                answer.map_or(Value::Null, |answer| answer["content"].clone())
            }
        };
        if let Some(text) = blocks.as_str() {
            return text.to_owned();
        }
        let texts = blocks.as_array().into_iter().flatten();
        texts.filter_map(|block| block["text"].as_str()).collect()
    }
}

impl Turn {
    /// Calls a tool of the server that a product [has](Product::with_tools).
    pub fn tool(name: &str, arguments: Value) -> Turn {
        Turn::Call(format!("{PREFIX}{name}"), arguments)
    }
}

/// Behind a line about the time that it took: as JSON in one text, or, since 0.171, as the blocks themselves.
fn codex_blocks(output: &Value) -> Option<Value> {
    if let Some(text) = output.as_str() {
        let (_, blocks) = text.split_once("Output:\n")?;
        return serde_json::from_str(blocks).ok();
    }
    let (time, blocks) = output.as_array()?.split_first()?;
    time["text"].as_str()?.ends_with("Output:").then(|| blocks.into())
}

fn last(list: &Value) -> &Value {
    list.as_array()
        .and_then(|list| list.last())
        .unwrap_or(&Value::Null)
}
