//! What was decided without anybody who could be asked: the facts about it, and which of them is the latest.

use crate::config::PermissionMode;

/// Something that was asked for and not given, or given and failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fact {
    CommandCancelled,
    CommandDeclined,
    FileCancelled,
    FileDeclined,
    GrantDenied,
    NoUserInput,
    ElicitationDeclined,
    CodexDeclinedCommand,
    CodexDeclinedFile,
    SandboxFailed,
    EscalationRejected,
    SandboxViolated,
}

/// The facts of a run, of which only the latest is told: the one that was observed last.
///
/// A fact about a turn that Codex has not confirmed yet is provisional: it counts, at its place, when the turn turns out to
/// be ours.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    observed: u64,
    certain: Option<(u64, Fact)>,
    provisional: Option<(u64, Fact)>,
}

impl Fact {
    /// The second line of a diagnostic.
    pub(crate) fn line(self, mode: PermissionMode) -> String {
        let (request, decision, reason) = self.words();
        format!(
            "Codex unattended decision (mode: {}; request: {request}; decision: {decision}): {reason}",
            mode.as_str()
        )
    }

    fn words(self) -> (&'static str, &'static str, &'static str) {
        const NO_APPROVAL: &str = "the provider does not grant interactive approval";
        match self {
            Self::CommandCancelled => ("command approval", "cancelled", NO_APPROVAL),
            Self::CommandDeclined => ("command approval", "declined", NO_APPROVAL),
            Self::FileCancelled => ("file approval", "cancelled", NO_APPROVAL),
            Self::FileDeclined => ("file approval", "declined", NO_APPROVAL),
            Self::GrantDenied => (
                "permission grant",
                "denied",
                "the provider grants no additional turn permissions",
            ),
            Self::NoUserInput => (
                "user input",
                "empty response",
                "the provider does not collect interactive answers",
            ),
            Self::ElicitationDeclined => (
                "MCP elicitation",
                "declined",
                "the provider does not collect interactive MCP input",
            ),
            Self::CodexDeclinedCommand => (
                "command execution",
                "declined",
                "Codex declined the command under the selected permission mode",
            ),
            Self::CodexDeclinedFile => (
                "file change",
                "declined",
                "Codex declined the file change under the selected permission mode",
            ),
            Self::SandboxFailed => ("sandbox execution", "failed", "Codex reported a sandbox failure"),
            Self::EscalationRejected => (
                "command execution",
                "denied",
                "Codex rejected an escalation because the selected policy never asks for approval",
            ),
            Self::SandboxViolated => (
                "sandbox execution",
                "failed",
                "Codex reported a sandbox violation",
            ),
        }
    }
}

impl Facts {
    /// Whatever becomes of the turn.
    pub(crate) fn certain(&mut self, fact: Fact) {
        self.certain = Some(self.placed(fact));
    }

    /// Only if the turn is confirmed.
    pub(crate) fn provisional(&mut self, fact: Fact) {
        self.provisional = Some(self.placed(fact));
    }

    /// The turn is ours.
    pub(crate) fn confirm(&mut self) {
        let both = [self.certain, self.provisional.take()];
        self.certain = both.into_iter().flatten().max_by_key(|(place, _)| *place);
    }

    /// The latest that counts.
    pub(crate) fn latest(&self) -> Option<Fact> {
        self.certain.map(|(_, fact)| fact)
    }

    fn placed(&mut self, fact: Fact) -> (u64, Fact) {
        self.observed += 1;
        (self.observed, fact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s172_a_fact_is_told_with_the_mode_in_fixed_words() {
        let begin = "Codex unattended decision (mode: never; request: ";
        let lines = [
            (
                Fact::CommandCancelled,
                "command approval; decision: cancelled): the provider does not grant interactive approval",
            ),
            (
                Fact::CommandDeclined,
                "command approval; decision: declined): the provider does not grant interactive approval",
            ),
            (
                Fact::FileCancelled,
                "file approval; decision: cancelled): the provider does not grant interactive approval",
            ),
            (
                Fact::FileDeclined,
                "file approval; decision: declined): the provider does not grant interactive approval",
            ),
            (
                Fact::GrantDenied,
                "permission grant; decision: denied): the provider grants no additional turn permissions",
            ),
            (
                Fact::NoUserInput,
                "user input; decision: empty response): the provider does not collect interactive answers",
            ),
            (
                Fact::ElicitationDeclined,
                "MCP elicitation; decision: declined): the provider does not collect interactive MCP input",
            ),
            (
                Fact::CodexDeclinedCommand,
                "command execution; decision: declined): Codex declined the command under the selected permission mode",
            ),
            (
                Fact::CodexDeclinedFile,
                "file change; decision: declined): Codex declined the file change under the selected permission mode",
            ),
            (
                Fact::SandboxFailed,
                "sandbox execution; decision: failed): Codex reported a sandbox failure",
            ),
            (
                Fact::EscalationRejected,
                "command execution; decision: denied): Codex rejected an escalation because the selected policy never asks for approval",
            ),
            (
                Fact::SandboxViolated,
                "sandbox execution; decision: failed): Codex reported a sandbox violation",
            ),
        ];
        for (fact, line) in lines {
            assert_eq!(fact.line(PermissionMode::Never), format!("{begin}{line}"));
        }
        let mode = PermissionMode::ApproveForMe;
        assert!(Fact::NoUserInput.line(mode).contains("(mode: approve-for-me; "));
    }
}
