//! A round trip over MCP: `task_list` of `dsh mcp`, beside a tool of the same SDK that gives back what it got.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::Report;
use crate::figure::Unit;
use crate::rounds::{Start, each, in_turns};
use crate::row::{Row, Target};
use crate::{Effort, Failure};

/// Calls in one sample.
const CALLS: usize = 100;

pub(crate) async fn measure(effort: Effort, report: &Report) -> Result<(), Failure> {
    let home = tempfile::tempdir()?;
    let mut ours = Server::start(&beside_us("dsh")?, &["mcp"], home.path())?;
    let mut echo = Server::start(&beside_us("examples/echo")?, &[], home.path())?;
    let said = ours.call("task_list", json!({}))?;
    let said = said["result"]["content"][0]["text"].clone();
    let rounds = effort.samples(30, 200);
    let [ours, floor] = in_turns(rounds, Start::Warmed, async |way| match way {
        0 => ours.calls("task_list", &json!({})),
        _ => echo.calls("echo", &json!({ "text": said })),
    })
    .await?;
    let what = "round trip of `task_list` over MCP";
    let row = Row::beside(what, Unit::Time, &ours, "an echo through the same SDK", &floor);
    report.row(row.map(|row| row.aims_at(Target::RatioAtMost(1.3))))
}

/// A program that was built with this one.
fn beside_us(name: &str) -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?;
    let path = own.with_file_name(name);
    match path.is_file() {
        true => Ok(path),
        false => Err(format!("{} is not there; `cargo xtask bench` builds it", path.display()).into()),
    }
}

/// A server over stdio, and its one client.
struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    last_id: u64,
}

impl Server {
    fn start(program: &Path, arguments: &[&str], home: &Path) -> Result<Server, Failure> {
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(home)
            .env("DSH_HOME", home)
            .env_remove("DSH_CONFIG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("the output is a pipe")?;
        let mut server = Server {
            stdin: child.stdin.take(),
            stdout: BufReader::new(stdout),
            child,
            last_id: 0,
        };
        server.request(
            "initialize",
            &json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "bench", "version": "1"},
            }),
        )?;
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(server)
    }

    /// Seconds that one of some calls took, one after the other.
    fn calls(&mut self, tool: &str, arguments: &Value) -> Result<f64, Failure> {
        let begun = Instant::now();
        for _ in 0..CALLS {
            self.call(tool, arguments.clone())?;
        }
        Ok(each(CALLS, begun.elapsed()))
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Failure> {
        let answer = self.request("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        match &answer["result"]["content"][0]["text"] {
            Value::String(_) => Ok(answer),
            _ => Err(format!("{tool} answered {answer}").into()),
        }
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.stdout.read_line(&mut line)? == 0 {
                return Err(format!("the server ended instead of answering {method}").into());
            }
            let message: Value = serde_json::from_str(&line)?;
            if message["id"] == id {
                return Ok(message);
            }
        }
    }

    fn send(&mut self, message: &Value) -> Result<(), Failure> {
        let mut line = message.to_string();
        line.push('\n');
        let stdin = self.stdin.as_mut().ok_or("the input is a pipe")?;
        stdin.write_all(line.as_bytes())?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The end of its input ends it.
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}
