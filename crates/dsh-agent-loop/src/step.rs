//! One step: a request, its answer, and the calls in it.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use dsh_agent::{Stop, Turn};
use dsh_llm::{
    Answer, Assembler, AssistantBlock, CallId, Chunk, FinishReason, ModelError, ModelRequest, RequestHeader,
    Retry, ToolCall, Tried,
};
use dsh_scope::contain_future;
use dsh_session::{EventData, HeaderReason};
use dsh_system_prompt::Variable;
use tokio::time::Instant;

use crate::live::Live;
use crate::turn::{Broken, Next, Place, Worker};

/// How a request went.
enum Outcome {
    Answered(Answer),
    Failed(ModelError),
    /// With what had come by then.
    Stopped(Stop, Answer),
}

impl Worker {
    /// Asks the model, again if need be, and runs what it calls. What came during the wait for another try is told with
    /// it: that is a step like any other.
    pub(crate) async fn step(&mut self, turn: &mut Turn<'_>, place: &mut Place) -> Result<Next, Broken> {
        let first_sent = Instant::now();
        let mut asked_to_wait = Duration::ZERO;
        let mut tries = 0;
        loop {
            if let Some(stop) = turn.stop() {
                return Err(Broken::Stopped(stop));
            }
            place.step += 1;
            tries += 1;
            let error = match self.request(turn, *place).await? {
                Outcome::Answered(answer) => match complete(answer) {
                    Ok(answer) => return self.answered(turn, *place, answer).await,
                    Err(error) => error,
                },
                Outcome::Stopped(stop, answer) => {
                    self.log_interrupted(answer)?;
                    return Err(Broken::Stopped(stop));
                }
                Outcome::Failed(error) => error,
            };
            self.end_step(*place)?;
            let elapsed = first_sent.elapsed().saturating_sub(asked_to_wait);
            let tried = Tried {
                tries,
                elapsed,
                jitter: jitter(),
            };
            let Some(after) = self.config.retry.again_after(&error, tried) else {
                return Err(error.into());
            };
            if let Retry::Later { after: Some(_) } = error.retry {
                asked_to_wait += after;
            }
            self.show_retry(*place, error, after);
            tokio::select! {
                () = tokio::time::sleep(after) => {}
                () = turn.token().cancelled() => {}
            }
            if turn.stop().is_none() {
                self.tell(turn.claim())?;
            }
        }
    }

    /// Sends one request and collects its answer.
    async fn request(&mut self, turn: &Turn<'_>, place: Place) -> Result<Outcome, Broken> {
        let request = self.begin_step(place)?;
        self.flush().await?;
        let mut assembler = Assembler::new();
        let streamed = tokio::select! {
            biased;
            () = turn.token().cancelled() => Ok(Ok(())),
            streamed = contain_future(self.stream(turn, request, place, &mut assembler)) => streamed,
        };
        let answer = assembler.finish();
        // What was stopped has not failed, whatever the adapter makes of it.
        if let Some(stop) = turn.stop() {
            return Ok(Outcome::Stopped(stop, answer));
        }
        Ok(match streamed {
            Ok(Ok(())) => Outcome::Answered(answer),
            Ok(Err(error)) => Outcome::Failed(error),
            Err(panicked) => {
                tracing::error!("a model adapter panicked: {panicked}");
                let message = format!("the model adapter panicked: {panicked}");
                Outcome::Failed(ModelError::lasting("ADAPTER_PANICKED", message))
            }
        })
    }

    async fn stream(
        &self,
        turn: &Turn<'_>,
        request: ModelRequest,
        place: Place,
        assembler: &mut Assembler,
    ) -> Result<(), ModelError> {
        let adapter = self.deps.models.get(&request.header.provider)?;
        let mut stream = adapter.send(Arc::new(request), turn.token().clone()).await?;
        while let Some(chunk) = stream.next().await? {
            self.show_chunk(&chunk, place);
            assembler.push(chunk);
        }
        Ok(())
    }

    /// Logs the beginning of a step, and the header if it is not that of the last request. What the request shows was
    /// logged before.
    fn begin_step(&mut self, place: Place) -> Result<ModelRequest, Broken> {
        let session = self.agent.session().clone();
        let header = self.assemble_header()?;
        self.derivation.catch_up(&session);
        let Place { turn, step } = place;
        self.log(EventData::StepStart { turn, step })?;
        if self.header.as_ref() != Some(&header) {
            let reason = match self.header {
                Some(_) => HeaderReason::Change,
                None if session.has_request() => HeaderReason::Resume,
                None => HeaderReason::Initial,
            };
            let logged = header.clone();
            self.log(EventData::RequestHeader {
                reason,
                header: logged,
            })?;
            self.header = Some(header.clone());
        }
        Ok(ModelRequest {
            header,
            messages: self.derivation.messages().to_vec(),
        })
    }

    /// What the next request has besides messages.
    fn assemble_header(&self) -> Result<RequestHeader, Broken> {
        let model = self.model.get();
        let mut variables = vec![
            Variable::new("provider", &model.provider),
            Variable::new("model", &model.model),
            Variable {
                name: "cwd".to_owned(),
                value: self.agent.cwd().map(|cwd| cwd.display().to_string()),
            },
        ];
        variables.extend(self.variables.iter().cloned());
        let system = self.deps.prompts.assemble_with(&self.sections, &variables);
        let system = system.map_err(|error| Broken::failed("PROMPT", &error))?;
        let tools = self.deps.tools.definitions_for(&self.agent);
        let tools = self.config.tool_order.apply(tools);
        Ok(RequestHeader {
            provider: model.provider,
            model: model.model,
            system,
            tools: tools.map_err(|error| Broken::failed("TOOL_ORDER", &error))?,
            sampling: model.sampling,
        })
    }

    /// Logs an answer and runs its calls.
    async fn answered(&mut self, turn: &Turn<'_>, place: Place, answer: Answer) -> Result<Next, Broken> {
        let cut = answer.finish == Some(FinishReason::MaxTokens);
        let mut content = answer.content;
        if cut {
            content.retain(|block| block.as_tool_call().is_none());
        }
        identify(&mut content, place);
        let calls: Vec<ToolCall> = content
            .iter()
            .filter_map(AssistantBlock::as_tool_call)
            .cloned()
            .collect();
        self.log(EventData::AssistantMessage {
            content,
            finish: answer.finish,
            usage: answer.usage,
            interrupted: false,
        })?;
        let next = if calls.is_empty() { Next::Rest } else { Next::Step };
        self.batch(turn, calls).await?;
        self.end_step(place)?;
        match (turn.stop(), cut) {
            (Some(stop), _) => Err(Broken::Stopped(stop)),
            (None, true) => Err(Broken::MaxTokens),
            (None, false) => Ok(next),
        }
    }

    /// Keeps what had come of an answer when it was stopped.
    fn log_interrupted(&self, answer: Answer) -> Result<(), Broken> {
        if answer.content.is_empty() {
            return Ok(());
        }
        self.log(EventData::AssistantMessage {
            content: answer.content,
            finish: answer.finish,
            usage: answer.usage,
            interrupted: true,
        })?;
        Ok(())
    }

    fn end_step(&self, Place { turn, step }: Place) -> Result<(), Broken> {
        self.log(EventData::StepEnd { turn, step }).map(drop)
    }

    fn show_chunk(&self, chunk: &Chunk, Place { turn, step }: Place) {
        let live = match chunk {
            Chunk::TextDelta { text, .. } => Live::Text {
                turn,
                step,
                text: text.clone(),
            },
            Chunk::ReasoningDelta { text, .. } => Live::Reasoning {
                turn,
                step,
                text: text.clone(),
            },
            Chunk::ToolCallDelta { .. } | Chunk::BlockEnd { .. } | Chunk::Usage(_) | Chunk::Finish(_) => {
                return;
            }
        };
        // Nobody has to look.
        let _ = self.live.send(live);
    }

    fn show_retry(&self, Place { turn, step }: Place, error: ModelError, after: Duration) {
        // Not a warning: whoever follows the agent is told.
        tracing::info!(agent = %self.agent.id(), "model request failed, next try in {after:.1?}: {error}");
        let _ = self.live.send(Live::Retry {
            turn,
            step,
            message: error.message,
            after,
        });
    }
}

/// An answer that is one, or why it is none.
fn complete(answer: Answer) -> Result<Answer, ModelError> {
    match &answer.finish {
        Some(FinishReason::Stop | FinishReason::ToolCalls | FinishReason::MaxTokens) => Ok(answer),
        Some(FinishReason::Error { message, code }) => {
            let code = code.clone().unwrap_or_else(|| "MODEL_ERROR".to_owned());
            Err(ModelError::lasting(code, message.clone()))
        }
        Some(FinishReason::Aborted) => Err(ModelError::lasting(
            "ABORTED",
            "the provider ended the answer as aborted",
        )),
        None => Err(ModelError::passing(
            "STREAM_CLOSED",
            "the answer was cut off before its end",
        )),
    }
}

/// Gives every call of an answer an id that no other one of it has: some models leave ids out or repeat them.
fn identify(content: &mut [AssistantBlock], Place { turn, step }: Place) {
    let mut seen = BTreeSet::new();
    for (index, block) in content.iter_mut().enumerate() {
        let AssistantBlock::ToolCall(call) = block else {
            continue;
        };
        // The model may have chosen the very id that is made here.
        for attempt in 0.. {
            if !call.id.as_str().is_empty() && !seen.contains(&call.id) {
                break;
            }
            call.id = CallId::new(format!("call-{turn}-{step}-{}", index + attempt));
        }
        seen.insert(call.id.clone());
    }
}

/// A number from 0 to 1, by chance: every hasher is keyed anew.
fn jitter() -> f64 {
    let random = RandomState::new().hash_one(0) >> 32;
    f64::from(u32::try_from(random).unwrap_or(u32::MAX)) / f64::from(u32::MAX)
}
