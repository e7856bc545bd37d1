//! What `dsh run` prints as `stream-json`, up to where it was cut.

use std::collections::BTreeMap;

use serde_json::Value;

use super::log::Log;
use crate::chaos::Faults;

/// The lines that came.
#[derive(Debug)]
pub(super) struct Stream {
    lines: Vec<Value>,
    /// Whether half a line follows.
    is_torn: bool,
}

/// The words for a task that has not ended.
const LIVE: [&str; 2] = ["running", "stopping"];

impl Stream {
    /// Takes it apart.
    ///
    /// # Errors
    ///
    /// A whole line that is no object with a type.
    pub(super) fn read(bytes: &[u8]) -> Result<Stream, String> {
        let mut stream = Stream {
            lines: Vec::new(),
            is_torn: false,
        };
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if line.last() != Some(&b'\n') {
                stream.is_torn = true;
                break;
            }
            match serde_json::from_slice::<Value>(line) {
                Ok(value) if value["type"].is_string() => stream.lines.push(value),
                Ok(_) | Err(_) => {
                    return Err(format!(
                        "no line of a stream: {:?}",
                        String::from_utf8_lossy(line)
                    ));
                }
            }
        }
        Ok(stream)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The result, if it came.
    pub(super) fn result(&self) -> Option<&Value> {
        self.lines.last().filter(|line| line["type"] == "result")
    }

    /// What is wrong with the lines among themselves.
    pub(super) fn check(&self, session: Option<&str>) -> Faults {
        let mut faults = Vec::new();
        for (number, line) in self.lines.iter().enumerate() {
            let kind = line["type"].as_str().unwrap_or_default();
            if (number == 0) != (kind == "session") {
                faults.push(format!("line {number} is {line}"));
            }
            if kind == "result" && number + 1 != self.lines.len() {
                faults.push(format!(
                    "something follows the result: {}",
                    self.lines[number + 1]
                ));
            }
            if kind == "session" && session.is_some_and(|session| line["session"] != session) {
                faults.push(format!("it is another session than {session:?}: {line}"));
            }
        }
        faults.extend(self.check_tasks());
        faults
    }

    /// Each task begins once and ends once, and the result has them all as they ended.
    fn check_tasks(&self) -> Faults {
        let mut faults = Vec::new();
        let mut tasks: BTreeMap<&str, (&str, &Value)> = BTreeMap::new();
        for line in self.lines.iter().filter(|line| line["type"] == "task") {
            let (Some(id), Some(status)) = (line["id"].as_str(), line["status"].as_str()) else {
                faults.push(format!("no task: {line}"));
                continue;
            };
            if let Some((before, _)) = tasks.insert(id, (status, &line["detail"]))
                && !LIVE.contains(&before)
            {
                faults.push(format!("{id} was {before}, and then {line}"));
            }
        }
        let Some(result) = self.result() else {
            return faults;
        };
        let told = result["tasks"].as_array().map_or(0, Vec::len);
        if told != tasks.len() {
            faults.push(format!("{} tasks were shown, the result has {told}", tasks.len()));
        }
        for task in result["tasks"].as_array().into_iter().flatten() {
            let shown = task["id"].as_str().and_then(|id| tasks.get(id));
            let same =
                |(status, detail): &(&str, &Value)| task["status"] == *status && task["detail"] == **detail;
            if !shown.is_some_and(same) || LIVE.iter().any(|live| task["status"] == *live) {
                faults.push(format!("the result has {task}, and {shown:?} was shown"));
            }
        }
        faults
    }

    /// What was shown and is not in the log.
    pub(super) fn check_log(&self, log: &Log) -> Faults {
        let kinds = [
            ("tool_result", "tool/result"),
            ("notice", "user/message"),
            ("text", "assistant/message"),
        ];
        let mut faults = Vec::new();
        for line in &self.lines {
            let kind = kinds.iter().find(|(kind, _)| line["type"] == *kind);
            if let (Some((_, kind)), Some(text)) = (kind, line["text"].as_str())
                && !log.has(kind, text)
            {
                faults.push(format!("was shown, and is not in the log: {line}"));
            }
        }
        faults
    }

    /// Whether it may end here: with the result, or where it was cut.
    pub(super) fn is_whole(&self) -> bool {
        !self.is_torn && self.result().is_some()
    }
}
