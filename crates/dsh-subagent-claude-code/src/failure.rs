//! What is said of a failure: fixed words and numbers, never what the product said.

use std::fmt;

use dsh_subprocess::LeaderExit;

/// What the texts of this crate begin with that do not stand in a diagnostic.
pub(crate) const PREFIX: &str = "subagent-claude-code";

/// A failure of the product. Its text is safe to show; its source is for the program's log alone.
#[derive(Debug)]
pub(crate) struct Failure {
    stage: Stage,
    category: Category,
    http_status: Option<u16>,
    exit: Option<LeaderExit>,
    source: Option<BoxError>,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Where in a run it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    QueryStart,
    QueryRun,
    Process,
    Teardown,
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Category {
    ErrorDuringExecution,
    ErrorMaxTurns,
    ErrorMaxBudget,
    ErrorMaxStructuredOutputRetries,
    InvalidSuccess,
    MissingResult,
    ProcessExit,
    Unknown,
}

impl Failure {
    pub(crate) fn new(stage: Stage, category: Category) -> Self {
        Self {
            stage,
            category,
            http_status: None,
            exit: None,
            source: None,
        }
    }

    pub(crate) fn with_http_status(self, http_status: Option<u16>) -> Self {
        Self { http_status, ..self }
    }

    pub(crate) fn with_exit(self, exit: Option<LeaderExit>) -> Self {
        Self { exit, ..self }
    }

    pub(crate) fn caused_by(self, source: impl Into<BoxError>) -> Self {
        Self {
            source: Some(source.into()),
            ..self
        }
    }
}

impl Stage {
    fn as_str(self) -> &'static str {
        match self {
            Self::QueryStart => "query-start",
            Self::QueryRun => "query-run",
            Self::Process => "process",
            Self::Teardown => "teardown",
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
            Self::MissingResult => "missing-result",
            Self::ProcessExit => "process-exit",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (stage, category) = (self.stage.as_str(), self.category.as_str());
        write!(
            f,
            "Product subagent failure (product: Claude Code; stage: {stage}; category: {category}"
        )?;
        if let Some(status) = self.http_status {
            write!(f, "; HTTP status: {status}")?;
        }
        match self.exit {
            Some(LeaderExit::Code(code)) => write!(f, "; exit code: {code}")?,
            Some(LeaderExit::Signal { signal, .. }) => write!(f, "; signal: {signal}")?,
            Some(LeaderExit::Lost | LeaderExit::GuardLost) | None => {}
        }
        f.write_str(")")
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
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

    #[test]
    fn a_line_names_what_is_known_and_never_its_cause() {
        let failure = Failure::new(Stage::QueryRun, Category::InvalidSuccess)
            .with_http_status(Some(400))
            .with_exit(Some(LeaderExit::Code(1)))
            .caused_by("SECRET_TOKEN in /private/secret.txt");
        assert_eq!(
            failure.to_string(),
            "Product subagent failure (product: Claude Code; stage: query-run; category: invalid-success; HTTP status: 400; \
             exit code: 1)"
        );
        let unseen = Failure::new(Stage::Teardown, Category::Unknown).with_exit(Some(LeaderExit::Lost));
        assert_eq!(
            unseen.to_string(),
            "Product subagent failure (product: Claude Code; stage: teardown; category: unknown)"
        );
    }
}
