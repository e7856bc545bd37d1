//! Every sentence of the registry that a model sees, in the words of a deployment.

use crate::{
    id::TaskId,
    outcome::Outcome,
    render::{age, capped, label_line},
    snapshot::TaskSnapshot,
};

/// The words a deployment uses for background work. Every sentence of the registry that a model sees is rendered here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Vocabulary {
    /// `task_output`, `task_id`, "background task".
    #[default]
    Task,
    /// `job_output`, `job_id`, "background job".
    Job,
}

/// A live task, as the refusal of a further one names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningTask {
    /// Its id.
    pub id: TaskId,
    /// How long it has run, in milliseconds.
    pub age_ms: u64,
}

/// How many ids an error lists, the newest of them; it only counts the rest.
const LISTED_IDS: usize = 20;
/// The most characters of a notice's summary.
const SUMMARY_CHARS: usize = 120;

impl Vocabulary {
    /// `task`
    pub fn word(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Job => "job",
        }
    }

    /// The tool that reads: `task_output`.
    pub fn output_tool(self) -> &'static str {
        match self {
            Self::Task => "task_output",
            Self::Job => "job_output",
        }
    }

    /// The tool that lists: `task_list`.
    pub fn list_tool(self) -> &'static str {
        match self {
            Self::Task => "task_list",
            Self::Job => "job_list",
        }
    }

    /// The tool that kills: `task_kill`.
    pub fn kill_tool(self) -> &'static str {
        match self {
            Self::Task => "task_kill",
            Self::Job => "job_kill",
        }
    }

    /// The parameter that names a task: `task_id`.
    pub fn id_param(self) -> &'static str {
        match self {
            Self::Task => "task_id",
            Self::Job => "job_id",
        }
    }

    /// A producer's acknowledgement: `started background task bash-1`.
    pub fn started(self, id: &TaskId) -> String {
        format!("started background {} {id}", self.word())
    }

    /// The acknowledgement of a kill.
    pub fn kill_requested(self, id: &TaskId) -> String {
        format!("requested cancellation of {} {id}", self.word())
    }

    /// The answer to a kill that came too late.
    pub fn already_finished(self, snapshot: &TaskSnapshot) -> String {
        let line = snapshot.status_line();
        format!("{} {} had already finished {line}", self.word(), snapshot.id)
    }

    /// The list without rows.
    pub fn empty_list(self) -> String {
        format!("(no background {}s)", self.word())
    }

    /// The last line of a list that leaves out tasks which ended before those it shows.
    pub fn older_ended_not_shown(self, count: usize) -> String {
        let plural = if count == 1 { "" } else { "s" };
        format!("({count} older ended {}{plural} not shown)", self.word())
    }

    /// The sentence that tells an owner of an end.
    pub fn notice(self, snapshot: &TaskSnapshot) -> String {
        let (word, tool) = (self.word(), self.output_tool());
        let (label, line) = (snapshot.label_line(), snapshot.status_line());
        format!(
            "background {word} {} ({}: {label}) finished {line}. Read its output with {tool}.",
            snapshot.id, snapshot.kind
        )
    }

    /// The end that a [`notice`](Self::notice) tells, read back from its text; its cause and what survived are in the
    /// detail. `None` if this is none.
    ///
    /// ```
    /// # use dsh_tasks::Vocabulary;
    /// let notice = "background task bash-1 (bash: make) finished [status: completed, exit code: 3]. Read its output \
    ///     with task_output.";
    /// let outcome = Vocabulary::end_in_notice(notice).expect("a notice");
    /// assert_eq!(outcome.status(), dsh_tasks::OutcomeStatus::Completed);
    /// assert!(Vocabulary::end_in_notice("finished").is_none());
    /// ```
    pub fn end_in_notice(text: &str) -> Option<Outcome> {
        let sentence = text.lines().next()?;
        // A label may hold anything; the status comes after it.
        let (_, line) = sentence.rsplit_once(" finished [status: ")?;
        let (line, _) = line.rsplit_once("]. Read its output with ")?;
        let (status, detail) = match line.split_once(", ") {
            Some((status, detail)) => (status, Some(detail)),
            None => (line, None),
        };
        let outcome = Outcome::with_word(status)?;
        Some(match detail {
            Some(detail) => outcome.detail(detail),
            None => outcome,
        })
    }

    /// The sentence that tells an owner of a silence, and the last line that came before it.
    pub fn silence(self, snapshot: &TaskSnapshot, silent_ms: u64, last_line: &str) -> String {
        let (word, output, kill) = (self.word(), self.output_tool(), self.kill_tool());
        let (label, line) = (snapshot.label_line(), snapshot.status_line());
        let sentence = format!(
            "background {word} {} ({}: {label}) has printed nothing for {silent_ms}ms {line}. Read its output with \
             {output}, or stop it with {kill}.",
            snapshot.id, snapshot.kind
        );
        match last_line {
            "" => sentence,
            last => format!("{sentence}\nlast output:\n> {last}"),
        }
    }

    /// The short form of [`silence`](Self::silence), at most 120 characters.
    pub fn silence_summary(self, snapshot: &TaskSnapshot, silent_ms: u64) -> String {
        let label = snapshot.label_line();
        capped(
            &format!("{} {label} silent for {silent_ms}ms", snapshot.kind),
            SUMMARY_CHARS,
        )
    }

    /// The short form of a notice, at most 120 characters.
    pub fn notice_summary(self, snapshot: &TaskSnapshot) -> String {
        let (label, line) = (snapshot.label_line(), snapshot.status_line());
        capped(&format!("{} {label} {line}", snapshot.kind), SUMMARY_CHARS)
    }

    /// What a producer says where there is no registry.
    pub fn registry_missing(self) -> String {
        let word = self.word();
        format!("background {word}s unavailable: load dsh-{word}s and dsh-tool-{word}s")
    }

    /// What the fence says.
    pub fn no_surface(self) -> &'static str {
        match self {
            Self::Task => {
                "background tasks unavailable: no control surface is attached (load dsh-tool-tasks)"
            }
            Self::Job => {
                "background jobs unavailable: no job controller serves this agent (load dsh-tool-jobs in its composition)"
            }
        }
    }

    /// What an empty id argument gets.
    pub fn empty_id(self) -> String {
        format!(
            "invalid {}: expected a non-empty string, got \"\"",
            self.id_param()
        )
    }

    /// The reason a task is given when the registry ends.
    pub fn service_disposed(self) -> &'static str {
        match self {
            Self::Task => "tasks service disposed",
            Self::Job => "jobs service disposed",
        }
    }

    pub(crate) fn invalid_kind(self) -> String {
        format!("invalid {} kind: expected a non-empty string", self.word())
    }

    pub(crate) fn invalid_label(self) -> String {
        format!("invalid {} label: expected a non-empty string", self.word())
    }

    pub(crate) fn no_agents(self) -> String {
        let word = self.word();
        format!("background {word} ownership requires the agent registry (load dsh-agent)")
    }

    pub(crate) fn not_registered(self, agent: &str) -> String {
        let word = self.word();
        format!(
            "agent \"{agent}\" is not the registered agent instance (background {word} owner must be live)"
        )
    }

    pub(crate) fn limit_reached(self, limit: u64, running: &[RunningTask]) -> String {
        let (word, kill) = (self.word(), self.kill_tool());
        let advice = format!(
            "background {word} limit reached for this owner (limit: {limit}); use {kill} to stop an unneeded \
             {word}, wait for it to finish, then retry"
        );
        let running = running
            .iter()
            .map(|task| format!("{} for {}", task.id, age(task.age_ms)));
        match listed(running) {
            Some(running) => format!("{advice} (running: {running})"),
            None => advice,
        }
    }

    pub(crate) fn closing(self) -> String {
        let word = self.word();
        format!("background {word}s unavailable: the {word} registry is being disposed")
    }

    pub(crate) fn unknown(self, id: &TaskId, known: &[TaskId]) -> String {
        // It comes from outside and may be of any length.
        let (word, id) = (self.word(), label_line(id.as_str()));
        match listed(known.iter().map(TaskId::to_string)) {
            Some(known) => format!("unknown {word} {id} (your {word}s: {known})"),
            None => format!("unknown {word} {id}"),
        }
    }

    pub(crate) fn expired(self, id: &TaskId) -> String {
        let word = self.word();
        format!("{word} {id} has expired: it finished and its record is no longer kept")
    }

    pub(crate) fn foreign(self, id: &TaskId) -> String {
        format!("{} {id} belongs to another session", self.word())
    }
}

/// The last of the items, which are the newest.
fn listed(items: impl ExactSizeIterator<Item = String>) -> Option<String> {
    let rest = items.len().saturating_sub(LISTED_IDS);
    let text = items.skip(rest).collect::<Vec<_>>().join(", ");
    match rest {
        _ if text.is_empty() => None,
        0 => Some(text),
        rest => Some(format!("{text}, and {rest} more")),
    }
}
