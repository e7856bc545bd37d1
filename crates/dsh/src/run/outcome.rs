//! What comes of a run.

use dsh_session::TurnEnd;

use super::follow::Followed;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The last turn completed.
    Completed,
    /// It did not.
    Failed(String),
    /// Somebody stopped it.
    Cancelled,
}

impl Outcome {
    /// What came of a run that was followed so far, and whose last turn ended like this.
    pub(super) fn of(followed: Followed, last: Option<&TurnEnd>, max_tokens: Option<u64>) -> Self {
        match followed {
            Followed::Signalled | Followed::Unread => return Self::Cancelled,
            Followed::ToItsEnd | Followed::TooLong | Followed::Failed => {}
        }
        match last {
            Some(TurnEnd::Completed) => Self::Completed,
            Some(TurnEnd::MaxTokens) => Self::Failed(match max_tokens {
                Some(limit) => {
                    format!("the answer was cut off at its limit of tokens (model.max_tokens = {limit})")
                }
                None => {
                    "the answer was cut off at the provider's limit of tokens (model.max_tokens is not set)"
                        .to_owned()
                }
            }),
            Some(TurnEnd::Error { message, .. }) => Self::Failed(message.clone()),
            Some(TurnEnd::Aborted { .. } | TurnEnd::Disposed) => Self::Cancelled,
            Some(TurnEnd::Interrupted) | None => Self::Failed(
                "the agent took no turn: its log refused it, or everything was being ended".to_owned(),
            ),
        }
    }

    /// The exit code that goes with it, where no signal came.
    pub(super) fn code(&self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Failed(_) | Self::Cancelled => 1,
        }
    }

    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    pub(super) fn error(&self) -> Option<&str> {
        match self {
            Self::Failed(error) => Some(error),
            Self::Completed | Self::Cancelled => None,
        }
    }
}
