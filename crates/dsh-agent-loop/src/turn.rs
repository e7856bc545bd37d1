//! One turn after the other.
//!
//! **Invariants**
//!
//! 1. Whatever happens in a turn, its `turn/end` is logged: a failure ends the turn, never the driver.
//! 2. What the model sees is in the log before the request is made: messages before `step/start`, the header after it.
//! 3. What a result or a notice tells counts as told when it is in the log.
//! 4. A stop is looked for before every request, in every chunk and between tool calls.

use std::sync::Arc;

use dsh_agent::{Agent, Claim, Driver, Stop, Turn};
use dsh_llm::{ModelError, RequestHeader};
use dsh_scope::contain_future;
use dsh_session::{AppendError, Derivation, Durability, EventData, StoreError, TurnEnd};
use dsh_system_prompt::{Section, Variable};
use tokio::sync::broadcast;

use crate::config::LoopConfig;
use crate::live::Live;
use crate::service::{Deps, ModelSeat};

/// Works for one agent.
pub(crate) struct Worker {
    pub(crate) agent: Arc<Agent>,
    pub(crate) deps: Arc<Deps>,
    pub(crate) config: Arc<LoopConfig>,
    pub(crate) model: ModelSeat,
    pub(crate) live: broadcast::Sender<Live>,
    pub(crate) sections: Vec<Section>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) derivation: Derivation,
    /// The header of the last request that this worker made.
    pub(crate) header: Option<RequestHeader>,
}

/// Which step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) turn: u64,
    pub(crate) step: u64,
}

/// Why a turn does not go on, apart from being done.
#[derive(Debug)]
pub(crate) enum Broken {
    Stopped(Stop),
    MaxTokens,
    Failed { code: String, message: String },
}

/// What a step leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Tools were called: the model is to see what they say.
    Step,
    /// The model has said what it had to say.
    Rest,
}

impl Worker {
    pub(crate) async fn drive(mut self, mut driver: Driver) {
        while let Some((mut turn, opening)) = driver.next_turn().await {
            self.run(&mut turn, opening).await;
        }
    }

    async fn run(&mut self, turn: &mut Turn<'_>, opening: Claim) {
        let session = self.agent.session().clone();
        let number = session.next_turn();
        let start = EventData::TurnStart {
            turn: number,
            trigger: turn.trigger(),
        };
        if let Err(error) = session.append(start) {
            // Only somebody else who writes to the log can be the cause. Notices come back with the claim; a message would
            // come back for ever.
            tracing::error!(agent = %self.agent.id(), "a turn was not begun, what it began with is dropped: {error}");
            return;
        }
        let mut place = Place {
            turn: number,
            step: 0,
        };
        let worked = contain_future(self.work(turn, opening, &mut place)).await;
        let reason = match worked {
            Ok(Ok(())) => TurnEnd::Completed,
            Ok(Err(broken)) => end_of(broken, place.step),
            Err(panicked) => {
                tracing::error!(agent = %self.agent.id(), "a turn panicked: {panicked}");
                TurnEnd::Error {
                    step: place.step,
                    message: format!("internal error: {panicked}"),
                    code: Some("INTERNAL".to_owned()),
                }
            }
        };
        session.wind_up(reason);
        if let Err(error) = session.flush(Durability::Synced).await {
            tracing::error!(agent = %self.agent.id(), "the log was not written: {error}");
        }
    }

    async fn work(&mut self, turn: &mut Turn<'_>, opening: Claim, place: &mut Place) -> Result<(), Broken> {
        let mut claim = Some(opening);
        while let Some(told) = claim {
            self.tell(told)?;
            self.flush().await?;
            let next = self.step(turn, place).await?;
            claim = match next {
                Next::Step if turn.is_concluded() => turn.claim_or_close(),
                Next::Step => Some(turn.claim()),
                Next::Rest => turn.claim_or_close(),
            };
        }
        // A cancellation came either before the turn was closed, and is seen here, or too late.
        turn.stop().map_or(Ok(()), |stop| Err(Broken::Stopped(stop)))
    }

    /// Logs what the model is told.
    pub(crate) fn tell(&self, claim: Claim) -> Result<(), Broken> {
        for message in claim.messages() {
            self.log(EventData::UserMessage(message.clone()))?;
        }
        claim.commit();
        Ok(())
    }

    pub(crate) fn log(&self, data: EventData) -> Result<u64, Broken> {
        self.agent.session().append(data).map_err(Broken::from)
    }

    /// What was logged must be written before anything is done about it.
    pub(crate) async fn flush(&self) -> Result<(), Broken> {
        let written = self.agent.session().flush(Durability::Written).await;
        written.map_err(Broken::from)
    }
}

impl Broken {
    pub(crate) fn failed(code: &str, error: &dyn std::error::Error) -> Self {
        Self::Failed {
            code: code.to_owned(),
            message: error.to_string(),
        }
    }
}

fn end_of(broken: Broken, step: u64) -> TurnEnd {
    match broken {
        Broken::Stopped(Stop::Cancelled { reason }) => TurnEnd::Aborted { reason },
        Broken::Stopped(Stop::Disposed) => TurnEnd::Disposed,
        Broken::MaxTokens => TurnEnd::MaxTokens,
        Broken::Failed { code, message } => TurnEnd::Error {
            step,
            message,
            code: Some(code),
        },
    }
}

impl From<AppendError> for Broken {
    fn from(error: AppendError) -> Self {
        Self::failed("LOG_REFUSED", &error)
    }
}

impl From<StoreError> for Broken {
    fn from(error: StoreError) -> Self {
        Self::failed("LOG_NOT_WRITTEN", &error)
    }
}

impl From<ModelError> for Broken {
    fn from(error: ModelError) -> Self {
        Self::failed(&error.code, &error)
    }
}
