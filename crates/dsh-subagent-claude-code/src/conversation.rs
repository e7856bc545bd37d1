//! A conversation with a Claude Code that runs: its lines go through the [`Protocol`], and what that asks for is done.
//!
//! What is written to the product is written beside the reading, by the pump: neither waits for the other, so a product that
//! reads nothing while nobody reads from it is no deadlock.

use std::pin::{Pin, pin};
use std::time::Duration;

use dsh_llm::ContentBlock;
use dsh_scope::within;
use dsh_subagent_process::{Failure, JsonLines, LineError, Lines, Product, Streams, log_lines};
use dsh_subprocess::LeaderExit;
use serde_json::Value;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use crate::command;
use crate::config::PermissionMode;
use crate::failure::{Category, Stage, failure};
use crate::protocol::{Effect, Ending, Protocol};

/// How many lines may wait for the product to read them. Who leaves so many unread does not listen.
const OUTBOX: usize = 64;

/// A conversation.
pub(crate) struct Conversation {
    product: Product,
    lines: Lines<pipe::Receiver>,
    protocol: Protocol,
    /// What the pump writes; nothing once the input is to be closed.
    outbox: Option<mpsc::Sender<Value>>,
    pump: Pump,
    /// Over when the product was gone for its grace: whoever still holds its output then is not it.
    gone: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    grace: Duration,
}

/// How a conversation ended.
pub(crate) struct Ended {
    /// The answer.
    pub(crate) outcome: Result<Vec<ContentBlock>, Failure>,
    /// The latest decision that nobody could be asked for.
    pub(crate) fact: Option<String>,
}

/// Writes to the product and reads its log; nothing when both are over.
type Pump = Option<Pin<Box<dyn Future<Output = ()> + Send>>>;

impl Conversation {
    /// Begins it, with the task. `name` is the product's in the log.
    pub(crate) fn new(
        name: &str,
        (product, streams): (Product, Streams),
        mode: PermissionMode,
        task: &str,
        grace: Duration,
    ) -> Self {
        let (outbox, queue) = mpsc::channel(OUTBOX);
        for line in command::opening(task) {
            // There is room for two.
            let _ = outbox.try_send(line);
        }
        let (name, stderr) = (name.to_owned(), streams.stderr);
        let written = write(JsonLines::new(streams.stdin), queue);
        let pump = async move {
            tokio::join!(written, log_lines(&name, stderr, |_| ()));
        };
        let exiting = product.clone();
        let gone = async move {
            exiting.exit().await;
            tokio::time::sleep(grace).await;
        };
        Self {
            product,
            gone: Some(Box::pin(gone)),
            lines: Lines::new(streams.stdout),
            protocol: Protocol::new(mode),
            outbox: Some(outbox),
            pump: Some(Box::pin(pump)),
            grace,
        }
    }

    /// Returns when the product has answered that it takes part: the task is in its hands.
    ///
    /// # Errors
    ///
    /// When it does not, with what was seen of its exit.
    pub(crate) async fn until_up(&mut self) -> Result<(), Failure> {
        let failure = failure(Stage::QueryStart, Category::Unknown);
        loop {
            let line = match self.next_line().await {
                Ok(Some(line)) => line,
                Ok(None) => return Err(failure.with_exit(self.exit().await)),
                Err(error) => return Err(failure.with_exit(self.exit().await).caused_by(error)),
            };
            let mut up = false;
            for effect in self.protocol.line(&line) {
                match effect {
                    Effect::Up => up = true,
                    Effect::Refused => return Err(failure.caused_by("it refused to begin")),
                    Effect::Send(_) | Effect::CloseInput => self.write(effect),
                }
            }
            if up {
                return Ok(());
            }
        }
    }

    /// Listens to the end.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the conversation is still there, for [`drain`](Self::drain).
    pub(crate) async fn listen(&mut self) -> Ended {
        let ending = loop {
            match self.next_line().await {
                Ok(Some(line)) => {
                    for effect in self.protocol.line(&line) {
                        self.write(effect);
                    }
                }
                Ok(None) => break Ending::Closed,
                Err(error) => break Ending::Unreadable(error),
            }
        };
        let exit = self.exit().await;
        Ended {
            fact: self.protocol.fact(),
            outcome: self.protocol.conclude(ending, exit),
        }
    }

    /// Closes the input, and reads what the product still writes: one whose pipes are closed dies of that, and cannot end as it
    /// likes.
    pub(crate) async fn drain(&mut self) {
        self.outbox = None;
        while let Ok(Some(_)) = self.next_line().await {}
        if let Some(pump) = self.pump.take() {
            pump.await;
        }
    }

    fn write(&mut self, effect: Effect) {
        match (effect, &self.outbox) {
            (Effect::Send(line), Some(outbox)) => {
                // A pump that is over, or full, has a product that reads no more: it is answered no more, and its end will
                // tell.
                if outbox.try_send(line).is_err() {
                    self.outbox = None;
                }
            }
            (Effect::CloseInput, _) => self.outbox = None,
            (Effect::Send(_), None) | (Effect::Up | Effect::Refused, _) => {}
        }
    }

    async fn next_line(&mut self) -> Result<Option<String>, LineError> {
        let Some(gone) = &mut self.gone else {
            return Ok(None);
        };
        tokio::select! {
            biased;
            line = beside(&mut self.pump, self.lines.next()) => line,
            () = gone => {
                self.gone = None;
                Ok(None)
            }
        }
    }

    /// How the product exited, which may take a moment after its last line.
    async fn exit(&mut self) -> Option<LeaderExit> {
        beside(&mut self.pump, within(self.grace, self.product.exit())).await
    }
}

/// Writes what is in the queue, and closes the input when nothing more can come.
async fn write(requests: JsonLines, mut queue: mpsc::Receiver<Value>) {
    while let Some(line) = queue.recv().await {
        if let Err(error) = requests.send(&line).await {
            tracing::debug!("cannot write to Claude Code: {error}");
            break;
        }
    }
    requests.close().await;
}

/// Awaits something while the pump works. The pump comes first: a product that never stops to talk still gets its answers.
async fn beside<T>(pump: &mut Pump, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    if let Some(running) = pump {
        tokio::select! {
            biased;
            () = running => {}
            done = &mut work => return done,
        }
        *pump = None;
    }
    work.await
}
