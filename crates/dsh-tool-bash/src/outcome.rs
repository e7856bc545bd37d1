//! How a process reads as a task: its end, and what it is doing now.

use dsh_bash::{Asked, End, EndReason, Found, Member, Pipe, ProcessState, ShellExit};
use dsh_tasks::{Cause, Outcome, Survivor};

use crate::render::{PIPE_HELD, processes};

/// The end of a process as the end of a task. Says only what was seen: the registry adds who asked, and who survived.
pub(crate) fn outcome(end: End) -> Outcome {
    let End {
        exit,
        asked,
        survivors,
        limits_reached,
        pipe,
    } = end;
    let mut facts = vec![exit_fact(&exit, asked.as_ref())];
    facts.extend(limits_reached);
    let shut_down = matches!(
        asked,
        Some(Asked {
            reason: EndReason::Disposed,
            ..
        })
    );
    facts.extend(shut_down.then(|| "bash executor shut down".to_owned()));
    facts.extend((pipe == Pipe::HeldOutside && asked.is_none()).then(|| PIPE_HELD.to_owned()));

    let survivors = survivors.into_iter().map(survivor).collect();
    let outcome = verdict(&exit, asked.as_ref())
        .detail(facts.join("; "))
        .survivors(survivors);
    match asked.map(|asked| asked.reason) {
        Some(EndReason::TimedOut { after }) => outcome.cause(Cause::Deadline(
            u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
        )),
        Some(EndReason::Asked | EndReason::Cancelled | EndReason::Disposed) | None => outcome,
    }
}

fn verdict(exit: &ShellExit, asked: Option<&Asked>) -> Outcome {
    match (exit, asked) {
        // Whoever did not see the end cannot say that it came as asked.
        (ShellExit::Failed { .. } | ShellExit::Unseen { .. }, _) => Outcome::failed(),
        (ShellExit::Signal { .. }, _) | (_, Some(_)) => Outcome::killed(),
        (ShellExit::Code(_), None) => Outcome::completed(),
    }
}

fn exit_fact(exit: &ShellExit, asked: Option<&Asked>) -> String {
    let was_over = asked.is_some_and(|asked| asked.found == Found::ShellExited);
    match exit {
        ShellExit::Code(code) if was_over => format!("shell had exited with code {code}"),
        ShellExit::Code(code) => format!("exit code: {code}"),
        ShellExit::Signal { name, .. } if was_over => format!("shell had been ended by {name}"),
        ShellExit::Signal {
            name,
            core_dumped: false,
        } => format!("signal: {name}"),
        ShellExit::Signal {
            name,
            core_dumped: true,
        } => format!("signal: {name}; core dumped"),
        ShellExit::Failed { reason } | ShellExit::Unseen { reason } => reason.clone(),
    }
}

/// What is worth saying about a live process: that its shell is gone, and who is not.
pub(crate) fn live_detail(state: &ProcessState) -> Option<String> {
    let ProcessState::ShellExited { exit, members } = state else {
        return None;
    };
    let shell = match exit {
        ShellExit::Code(code) => format!("shell exited with code {code}"),
        ShellExit::Signal { name, .. } => format!("shell ended by {name}"),
        ShellExit::Failed { reason } | ShellExit::Unseen { reason } => reason.clone(),
    };
    Some(match members.len() {
        0 => shell,
        count => format!("{shell}, {} running", processes(count)),
    })
}

/// Who is known to live, for a task that is given up on before its end. The shell itself is not named while it runs.
pub(crate) fn survivors(state: &ProcessState) -> Vec<Survivor> {
    match state {
        ProcessState::Starting | ProcessState::Running => Vec::new(),
        ProcessState::ShellExited { members, .. } => members.iter().cloned().map(survivor).collect(),
        ProcessState::Ended(end) => end.survivors.iter().cloned().map(survivor).collect(),
    }
}

/// What a foreground result says of those who could not be ended, in the words of a task.
pub(crate) fn survived(members: Vec<Member>) -> Option<String> {
    let survivors: Vec<_> = members.into_iter().map(survivor).collect();
    Survivor::phrase(&survivors)
}

fn survivor(member: Member) -> Survivor {
    let Member { pid, command } = member;
    Survivor { pid, command }
}

#[cfg(test)]
mod tests;
