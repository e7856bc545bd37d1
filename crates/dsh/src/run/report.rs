//! What happens, as it is shown.

use std::time::Duration;

use dsh_agent_loop::{Live, ModelChoice};
use dsh_llm::{AssistantBlock, Usage, text_of};
use dsh_session::{Event, EventData, MessageSource, Session, TurnEnd};
use dsh_tools::parse_arguments;
use serde::Serialize;

use super::RunError;
use super::format::{Line, Summary, Task};
use super::outcome::Outcome;
use super::printer::{Printer, Question};
use crate::cli::OutputFormat;
use crate::signals::Signals;

/// How long a reader who takes nothing can hold up the end after a signal.
const PATIENCE: Duration = Duration::from_secs(2);

/// Shows what happens, and keeps what the result says.
pub(super) struct Report {
    format: OutputFormat,
    printer: Printer,
    session: String,
    turn: u64,
    doing: String,
    said: Option<String>,
    usage: Usage,
    tasks: Vec<Task>,
    last_end: Option<TurnEnd>,
    stage: Stage,
}

/// Whether what happens still counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running,
    /// The result is decided, unless a turn is still open: what else happens is shown, and changes nothing.
    Closing,
}

impl Report {
    /// Begins: the session is shown.
    pub(super) fn new(
        format: OutputFormat,
        printer: Printer,
        session: &Session,
        model: &ModelChoice,
    ) -> Self {
        let report = Self {
            format,
            printer,
            session: session.id().to_string(),
            turn: 0,
            doing: String::new(),
            said: None,
            usage: Usage::default(),
            tasks: Vec::new(),
            last_end: None,
            stage: Stage::Running,
        };
        let cwd = session.cwd().map(|cwd| cwd.to_string_lossy());
        report.stream(&Line::Session {
            session: &report.session,
            provider: &model.provider,
            model: &model.model,
            cwd: cwd.as_deref(),
        });
        report
    }

    /// An event of the log.
    pub(super) fn event(&mut self, event: &Event) {
        let turn = self.turn;
        match &event.data {
            EventData::TurnStart { turn, .. } => self.turn_starts(*turn),
            EventData::TurnEnd { reason, .. } => self.turn_ends(reason),
            EventData::StepStart { .. } => self.doing("thinking"),
            EventData::UserMessage(message) => {
                // In the end notices are logged that nobody took.
                if let MessageSource::Plugin { subjects, .. } = &message.source
                    && self.stage == Stage::Running
                {
                    let text = text_of(&message.content);
                    self.stream(&Line::Notice {
                        turn,
                        text: &text,
                        tasks: subjects,
                    });
                }
            }
            EventData::AssistantMessage { content, usage, .. } => {
                self.usage += usage.unwrap_or_default();
                self.says(content);
            }
            EventData::ToolCall {
                call_id,
                name,
                arguments: written,
            } => {
                self.doing(name);
                self.stream(&Line::ToolCall {
                    turn,
                    id: call_id.as_str(),
                    name,
                    arguments: parse_arguments(written.as_str().into()),
                });
            }
            EventData::ToolResult {
                call_id,
                content,
                is_error,
                ..
            } => {
                let text = text_of(content);
                self.stream(&Line::ToolResult {
                    turn,
                    id: call_id.as_str(),
                    text: &text,
                    is_error: *is_error,
                });
            }
            EventData::StepEnd { .. } | EventData::RequestHeader { .. } | EventData::ModelChoice { .. } => {}
        }
    }

    /// Whether the last turn has ended, and not by itself.
    pub(super) fn has_failed(&self) -> bool {
        self.last_end
            .as_ref()
            .is_some_and(|end| *end != TurnEnd::Completed)
    }

    /// Decides the result as it is now.
    pub(super) fn closing(&mut self) {
        self.stage = Stage::Closing;
    }

    /// Whether a task was shown.
    pub(super) fn knows(&self, id: &str) -> bool {
        self.tasks.iter().any(|known| known.id == id)
    }

    /// A task is new, or may have changed.
    pub(super) fn task(&mut self, task: Task) {
        let known = self.tasks.iter_mut().find(|known| known.id == task.id);
        match known {
            Some(known) if *known == task => return,
            // What is told late: it has ended.
            Some(known) if !known.is_live() && task.is_live() => return,
            Some(known) => *known = task.clone(),
            None => self.tasks.push(task.clone()),
        }
        self.stream(&Line::Task(&task));
        self.show_status();
    }

    /// Something that is not in the log.
    pub(super) fn live(&mut self, live: &Live) {
        match live {
            Live::Retry { message, after, .. } => {
                let message = message.replace(char::is_control, " ");
                let seconds = after.as_secs_f64();
                self.note(format!(
                    "dsh: model request failed, next try in {seconds:.1}s: {message}"
                ));
                self.doing("waiting for the next try");
            }
            Live::Text { .. } | Live::Reasoning { .. } => {}
        }
    }

    /// A line for a person, on stderr.
    pub(super) fn note(&self, note: String) {
        self.printer.note(note);
    }

    /// A question for the person at the terminal, behind everything that was shown.
    pub(super) fn ask(&self, question: Question) {
        self.printer.ask(question);
    }

    /// Waits until stdout takes nothing more.
    pub(super) async fn broken(&self) {
        self.printer.broken().await;
    }

    /// How the last turn ended; nothing if it has not.
    pub(super) fn last_end(&self) -> Option<&TurnEnd> {
        self.last_end.as_ref()
    }

    /// Shows the result, and waits until everything that was shown is written.
    pub(super) async fn finish(mut self, outcome: &Outcome, signals: &Signals) -> Result<(), RunError> {
        self.doing("");
        let result = Summary {
            session: &self.session,
            status: outcome.as_str(),
            result: self.said.as_deref(),
            error: outcome.error(),
            usage: self.usage.into(),
            tasks: self.tasks.iter().collect(),
        };
        match self.format {
            OutputFormat::Text => {}
            OutputFormat::Json => self.json(&result),
            OutputFormat::StreamJson => self.json(&Line::Result(result)),
        }
        if let Some(error) = outcome.error() {
            self.note(format!("dsh: {error}"));
        }
        let stuck = async {
            signals.stop.cancelled().await;
            tokio::time::sleep(PATIENCE).await;
        };
        tokio::select! {
            written = self.printer.finish() => written.map_err(RunError::Output),
            () = stuck => Ok(()),
        }
    }

    fn turn_starts(&mut self, turn: u64) {
        match self.stage {
            Stage::Running => {
                self.turn = turn;
                self.last_end = None;
                self.said = None;
            }
            Stage::Closing => {}
        }
    }

    fn turn_ends(&mut self, reason: &TurnEnd) {
        // While closing, only the turn that was open then counts.
        self.last_end.get_or_insert_with(|| reason.clone());
        if self.has_failed() {
            self.closing();
        }
        self.doing("");
    }

    fn says(&mut self, content: &[AssistantBlock]) {
        let text: String = content.iter().filter_map(AssistantBlock::as_text).collect();
        if text.is_empty() {
            return;
        }
        match self.format {
            OutputFormat::Text => self.printer.line(text.trim_end_matches('\n').to_owned()),
            OutputFormat::StreamJson => {
                let turn = self.turn;
                self.json(&Line::Text { turn, text: &text });
            }
            OutputFormat::Json => {}
        }
        self.said = Some(text);
    }

    fn stream(&self, line: &Line<'_>) {
        match self.format {
            OutputFormat::StreamJson => self.json(line),
            OutputFormat::Text | OutputFormat::Json => {}
        }
    }

    fn json(&self, value: &impl Serialize) {
        // Strings and numbers only: this cannot fail.
        self.printer
            .line(serde_json::to_string(value).unwrap_or_default());
    }

    fn doing(&mut self, what: &str) {
        what.clone_into(&mut self.doing);
        self.show_status();
    }

    /// One line: what the agent does, and the tasks that live.
    fn show_status(&self) {
        let live = self.tasks.iter().filter(|task| task.is_live());
        let live: Vec<String> = live.map(|task| format!("{} {}", task.id, task.status)).collect();
        let parts = [self.doing.clone(), live.join(", ")];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        self.printer.status(parts.join(" | "));
    }
}
