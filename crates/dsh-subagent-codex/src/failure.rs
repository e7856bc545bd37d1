//! The words for a failure. Nothing that Codex wrote is in them.

use dsh_subagent::StopReason;
use dsh_subagent_process::{Failure, Subject};
use serde_json::Value;

/// What fails here.
pub(crate) const SUBJECT: Subject = Subject::Product("Codex");

/// A failure, as far as it is known.
pub(crate) fn failure(stage: Stage, category: Category) -> Failure {
    Failure::new(SUBJECT, stage.as_str(), category.name).with_http_status(category.http_status)
}

/// How far the conversation had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Initialize,
    ThreadStart,
    TurnStart,
    Turn,
    Process,
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Category {
    name: &'static str,
    http_status: Option<u16>,
}

/// What went wrong, in words that may hold what Codex wrote: for the source of an error and the debug log alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Fault(pub(crate) String);

/// The categories that Codex tells as a word, of every version that this was tried with.
const WORDS: [&str; 19] = [
    CONTEXT_WINDOW,
    "sessionBudgetExceeded",
    "usageLimitExceeded",
    "rateLimitExceeded",
    "flexUnavailable",
    "serverOverloaded",
    "modelNotFound",
    "policyCapacityUnavailable",
    "inferenceHookDenied",
    "cyberPolicy",
    "bioPolicy",
    "misalignmentPolicyViolation",
    "tooManyDenials",
    "internalServerError",
    "unauthorized",
    "badRequest",
    "threadRollbackFailed",
    SANDBOX,
    "other",
];

/// Those that it tells as an object of one key, and whether an HTTP status may stand in it.
const OBJECTS: [(&str, bool); 5] = [
    ("httpConnectionFailed", true),
    ("responseStreamConnectionFailed", true),
    ("responseStreamDisconnected", true),
    ("responseTooManyFailedAttempts", true),
    ("activeTurnNotSteerable", false),
];

const CONTEXT_WINDOW: &str = "contextWindowExceeded";
const SANDBOX: &str = "sandboxError";

impl Stage {
    fn as_str(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::ThreadStart => "thread-start",
            Self::TurnStart => "turn-start",
            Self::Turn => "turn",
            Self::Process => "process",
        }
    }
}

impl Category {
    /// It is known for no more than its stage.
    pub(crate) const UNKNOWN: Self = Self::named("unknown");

    /// The process ended before the turn did.
    pub(crate) const PROCESS_EXIT: Self = Self::named("process-exit");

    /// It was too long.
    pub(crate) const ANSWER_TOO_LONG: Self = Self::named("answer-too-long");

    /// What Codex says of a failed turn, if it is something it is known to say.
    pub(crate) fn of(info: &Value) -> Self {
        let known = match info {
            Value::String(word) => Self::of_word(word),
            Value::Object(object) if object.len() == 1 => object
                .iter()
                .next()
                .and_then(|(name, payload)| Self::of_object(name, payload)),
            _ => None,
        };
        known.unwrap_or(Self::UNKNOWN)
    }

    pub(crate) fn name(self) -> &'static str {
        self.name
    }

    /// Why a run ended that failed by it.
    pub(crate) fn stop(self) -> StopReason {
        if self.name == CONTEXT_WINDOW {
            StopReason::MaxTokens
        } else {
            StopReason::Error
        }
    }

    /// Whether its sandbox failed.
    pub(crate) fn is_sandbox(self) -> bool {
        self.name == SANDBOX
    }

    const fn named(name: &'static str) -> Self {
        Self {
            name,
            http_status: None,
        }
    }

    fn of_word(word: &str) -> Option<Self> {
        WORDS.into_iter().find(|known| *known == word).map(Self::named)
    }

    fn of_object(name: &str, payload: &Value) -> Option<Self> {
        let (name, has_status) = OBJECTS.into_iter().find(|(known, _)| *known == name)?;
        let payload = payload.as_object()?;
        let status = payload.get("httpStatusCode").filter(|_| has_status);
        let status = status.and_then(Value::as_u64);
        Some(Self {
            name,
            http_status: status.and_then(|status| status.try_into().ok()),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(info: &Value) -> String {
        failure(Stage::Turn, Category::of(info)).to_string()
    }

    #[test]
    fn s166_an_object_shows_its_name_and_a_numeric_status_and_nothing_else() {
        for (name, has_status) in OBJECTS {
            let status = json!({ name: {"httpStatusCode": 503, "turnKind": "SECRET_TOKEN"} });
            let shown = if has_status { "; HTTP status: 503" } else { "" };
            let all =
                format!("Product subagent failure (product: Codex; stage: turn; category: {name}{shown})");
            assert_eq!(line(&status), all);
            for odd in [json!("503"), json!(-1), json!(65536), json!(1.5), json!(null)] {
                let text = line(&json!({ name: {"httpStatusCode": odd} }));
                assert!(text.ends_with(&format!("category: {name})")), "{odd}: {text}");
            }
        }
    }

    #[test]
    fn s167_what_it_is_not_known_to_say_is_unknown() {
        for info in [
            json!("SECRET_TOKEN"),
            json!("httpConnectionFailed"),
            json!({"SECRET_TOKEN": {}}),
            json!({"other": {}}),
            json!({"httpConnectionFailed": {}, "activeTurnNotSteerable": {}}),
            json!({"httpConnectionFailed": null}),
            json!({}),
            json!(7),
            Value::Null,
        ] {
            let all = "Product subagent failure (product: Codex; stage: turn; category: unknown)";
            assert_eq!(line(&info), all, "{info}");
        }
    }
}
