//! From the first message to the moment when nothing is left to do.

use std::collections::VecDeque;
use std::time::Duration;

use dsh_agent::Agent;
use dsh_agent_core::ServiceContext;
use dsh_agent_loop::{LedAgent, Live};
use dsh_llm::text_of;
use dsh_scope::ScopeClosed;
use dsh_session::{Durability, Event, EventData, MessageSource, SessionFeed};
use dsh_tasks::{Serves, TaskId, TaskRegistry, TaskSnapshot};
use futures_util::FutureExt;
use tokio::sync::{broadcast, mpsc};

use super::format::Task;
use super::printer::Question;
use super::report::Report;
use crate::signals::Signals;

/// What an agent does, with all that can be seen of it.
pub(super) struct Run<'a> {
    tasks: &'a TaskRegistry,
    led: &'a LedAgent,
    events: SessionFeed,
    live: broadcast::Receiver<Live>,
    changes: mpsc::UnboundedReceiver<Change>,
    questions: mpsc::UnboundedReceiver<Question>,
    /// Changes that belong behind events that were not shown yet.
    waiting: VecDeque<Change>,
    /// The number of the next event to be shown.
    shown: u64,
    linger: Duration,
    pub(super) report: Report,
}

/// A task that is new, or may have changed.
struct Change {
    task: Task,
    /// How many events were logged by then.
    logged: u64,
}

/// Why it is not followed any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Followed {
    /// Nothing is left to do.
    ToItsEnd,
    /// It waited long enough for its tasks.
    TooLong,
    /// A turn failed.
    Failed,
    /// Nobody reads what it says.
    Unread,
    /// A signal came.
    Signalled,
}

impl<'a> Run<'a> {
    /// Begins to look, before anything happens.
    pub(super) fn new(
        context: &'a ServiceContext,
        led: &'a LedAgent,
        mut report: Report,
        questions: mpsc::UnboundedReceiver<Question>,
        linger: u64,
    ) -> Result<Self, ScopeClosed<()>> {
        let agent = led.agent();
        for task in context.tasks.list(Some(agent)) {
            report.task(Task::from(&task));
        }
        let changes = watch_tasks(context, led)?;
        Ok(Self {
            tasks: &context.tasks,
            led,
            events: agent.session().subscribe(),
            live: led.live(),
            changes,
            questions,
            waiting: VecDeque::new(),
            shown: agent.session().len(),
            linger: Duration::from_secs(linger),
            report,
        })
    }

    /// Says what will not be waited for, and what cannot be told any more.
    pub(super) fn tell_what_ends(&self, followed: Followed) {
        let agent = self.led.agent();
        let live = self.tasks.list(Some(agent)).into_iter();
        for task in live.filter(|task| !task.status.is_terminal()) {
            let (id, kind, label) = (&task.id, &task.kind, task.label_line());
            self.report
                .note(format!("dsh: ended with the run: {id} ({kind}: {label})"));
        }
        if followed == Followed::Signalled {
            return;
        }
        // Not committed: the session keeps them for the next run.
        for message in agent.inbox().lease().messages() {
            let text = text_of(&message.content);
            let sentence = text.lines().next().unwrap_or_default();
            self.report.note(format!("not delivered: {sentence}"));
        }
    }

    /// Shows what happened while everything was ended.
    pub(super) fn catch_up(&mut self) {
        self.report.closing();
        for event in self.logged() {
            self.show(&event);
        }
        while let Ok(change) = self.changes.try_recv() {
            self.waiting.push_back(change);
        }
        for change in std::mem::take(&mut self.waiting) {
            self.report.task(change.task);
        }
    }

    /// Shows an event, with the tasks around it: one that it starts right behind the result that names it, and the end
    /// of one before the notice of that end.
    ///
    /// Changes are told by the registry beside the log, so they may be late here. What an event names had happened when
    /// the event was logged: that is looked up.
    fn show(&mut self, event: &Event) {
        while let Ok(change) = self.changes.try_recv() {
            self.waiting.push_back(change);
        }
        self.show_changes();
        if let EventData::UserMessage(message) = &event.data
            && let MessageSource::Plugin { subjects, .. } = &message.source
        {
            self.show_ends(subjects);
        }
        self.report.event(event);
        self.shown = event.seq + 1;
        match &event.data {
            EventData::ToolResult { content, .. } => self.show_started(&text_of(content)),
            EventData::StepEnd { .. } | EventData::TurnEnd { .. } => self.show_unnamed(),
            EventData::TurnStart { .. }
            | EventData::StepStart { .. }
            | EventData::RequestHeader { .. }
            | EventData::ModelChoice { .. }
            | EventData::UserMessage(_)
            | EventData::AssistantMessage { .. }
            | EventData::ToolCall { .. } => {}
        }
    }

    /// Shows the changes that came before the next event, of tasks that were shown.
    fn show_changes(&mut self) {
        for change in std::mem::take(&mut self.waiting) {
            if change.logged <= self.shown && self.report.knows(&change.task.id) {
                self.report.task(change.task);
            } else {
                self.waiting.push_back(change);
            }
        }
    }

    /// Shows how these tasks have ended.
    fn show_ends(&mut self, ids: &[String]) {
        for task in self.tasks.list(Some(self.led.agent())) {
            let task = Task::from(&task);
            if ids.contains(&task.id) && !task.is_live() {
                self.report.task(task);
            }
        }
    }

    /// Shows the tasks that a result is the first to name.
    fn show_started(&mut self, result: &str) {
        let listed = self.tasks.list(Some(self.led.agent()));
        let waiting = self.waiting.iter().map(|change| change.task.clone());
        let tasks: Vec<Task> = listed.iter().map(Task::from).chain(waiting).collect();
        for task in tasks {
            if !self.report.knows(&task.id) && TaskId::from(&*task.id).is_named_in(result) {
                self.report.task(task.begun());
            }
        }
        self.show_changes();
    }

    /// Shows the tasks that were started in a step and named by none of its results.
    fn show_unnamed(&mut self) {
        let unnamed = self.waiting.iter();
        let unnamed: Vec<Task> = unnamed
            .filter(|change| change.logged <= self.shown)
            .map(|change| change.task.clone())
            .collect();
        for task in unnamed {
            if !self.report.knows(&task.id) {
                self.report.task(task.begun());
            }
        }
        self.show_changes();
    }

    /// Has what was logged written before it is shown: after a crash no id that was seen may be given again. A disk that
    /// fails ends the turn, which says so.
    async fn keep(&self) {
        let session = self.led.agent().session();
        let _ = session.flush(Durability::Written).await;
    }

    /// What is in the log and was not looked at.
    fn logged(&mut self) -> Vec<Event> {
        self.events.next().now_or_never().unwrap_or_default()
    }
}

impl Change {
    fn of(task: &TaskSnapshot, owner: &Agent) -> Self {
        Self {
            task: Task::from(task),
            logged: owner.session().len(),
        }
    }
}

/// Follows a run until there is no reason to any more.
pub(super) async fn follow(run: &mut Run<'_>, signals: &Signals) -> Followed {
    let rest = rest(run.tasks, run.led.agent(), run.linger);
    tokio::pin!(rest);
    loop {
        run.show_changes();
        tokio::select! {
            biased;
            () = signals.stop.cancelled() => return Followed::Signalled,
            () = run.report.broken() => return Followed::Unread,
            events = run.events.next() => {
                run.keep().await;
                for event in &events {
                    run.show(event);
                }
                if run.report.has_failed() {
                    return Followed::Failed;
                }
            }
            Some(question) = run.questions.recv() => {
                run.keep().await;
                // What the call stands in was logged before anybody asked about it.
                for event in run.logged() {
                    run.show(&event);
                }
                run.report.ask(question);
            }
            Some(change) = run.changes.recv() => run.waiting.push_back(change),
            Ok(live) = run.live.recv() => run.report.live(&live),
            followed = &mut rest => return followed,
        }
    }
}

/// Waits until nothing is left to do, or the agent has waited for its tasks for so long.
async fn rest(tasks: &TaskRegistry, agent: &Agent, linger: Duration) -> Followed {
    let session = agent.session();
    loop {
        agent.when_idle().await;
        let logged = session.len();
        let mut works_again = session.subscribe_from(logged);
        tokio::select! {
            biased;
            () = tasks.when_idle(agent) => {
                // Every notice is in the inbox now. If the agent rests and nothing was logged meanwhile, no turn was
                // open since before the tasks had ended: none can have started another task.
                agent.when_idle().await;
                if session.len() == logged {
                    return Followed::ToItsEnd;
                }
            }
            _ = works_again.next() => {}
            () = tokio::time::sleep(linger) => return Followed::TooLong,
        }
    }
}

/// Every new status of the agent's tasks, as long as the services live.
fn watch_tasks(
    context: &ServiceContext,
    led: &LedAgent,
) -> Result<mpsc::UnboundedReceiver<Change>, ScopeClosed<()>> {
    let (changed, changes) = mpsc::unbounded_channel();
    let (tasks, agent, ended) = (context.tasks.clone(), led.agent().clone(), changed.clone());
    let owner = agent.clone();
    context.tasks.on_change(&context.scope, move |_| {
        for task in tasks.list(Some(&agent)) {
            // Nobody looks any more.
            let _ = changed.send(Change::of(&task, &agent));
        }
    })?;
    // Also those that end with their owner, which are in no list any more.
    context
        .tasks
        .on_done(&context.scope, Serves::Everyone, move |done| {
            if done.snapshot.owner.as_ref() == Some(owner.id()) {
                let _ = ended.send(Change::of(&done.snapshot, &owner));
            }
            Box::pin(async { Ok(()) })
        })?;
    Ok(changes)
}
