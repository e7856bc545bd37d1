//! The words for a failure. Nothing that Claude Code said is in them.

use dsh_subagent_process::{Failure, Subject};

/// What fails here.
pub(crate) const SUBJECT: Subject = Subject::Product("Claude Code");

/// A failure, as far as it is known.
pub(crate) fn failure(stage: Stage, category: Category) -> Failure {
    Failure::new(SUBJECT, stage.as_str(), category.as_str())
}

/// Where in a run it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    QueryStart,
    QueryRun,
    Process,
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Category {
    ErrorDuringExecution,
    ErrorMaxTurns,
    ErrorMaxBudget,
    ErrorMaxStructuredOutputRetries,
    InvalidSuccess,
    AnswerTooLong,
    MissingResult,
    ProcessExit,
    Unknown,
}

impl Stage {
    fn as_str(self) -> &'static str {
        match self {
            Self::QueryStart => "query-start",
            Self::QueryRun => "query-run",
            Self::Process => "process",
        }
    }
}

impl Category {
    /// The one of a result that is no success.
    pub(crate) fn of_subtype(subtype: &str) -> Self {
        let known = [
            Self::ErrorDuringExecution,
            Self::ErrorMaxTurns,
            Self::ErrorMaxBudget,
            Self::ErrorMaxStructuredOutputRetries,
        ];
        let found = known.into_iter().find(|category| category.as_str() == subtype);
        found.unwrap_or(Self::Unknown)
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::ErrorDuringExecution => "error_during_execution",
            Self::ErrorMaxTurns => "error_max_turns",
            Self::ErrorMaxBudget => "error_max_budget_usd",
            Self::ErrorMaxStructuredOutputRetries => "error_max_structured_output_retries",
            Self::InvalidSuccess => "invalid-success",
            Self::AnswerTooLong => "answer-too-long",
            Self::MissingResult => "missing-result",
            Self::ProcessExit => "process-exit",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s237_subtypes_map_to_fixed_categories_and_an_unknown_one_is_not_shown() {
        for subtype in [
            "error_during_execution",
            "error_max_turns",
            "error_max_budget_usd",
            "error_max_structured_output_retries",
        ] {
            assert_eq!(Category::of_subtype(subtype).as_str(), subtype);
        }
        for subtype in [
            "SECRET_TOKEN",
            "success",
            "",
            "process-exit",
            "invalid-success",
            "missing-result",
        ] {
            assert_eq!(Category::of_subtype(subtype), Category::Unknown, "{subtype}");
        }
    }
}
