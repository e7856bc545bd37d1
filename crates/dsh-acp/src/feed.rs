//! What flows from one session to the editor: one task sends all of it, so that it comes in order.
//!
//! A prompt is answered here as well, after everything of its turn has been sent.

use std::sync::Arc;

use agent_client_protocol::v1::schema::{ContentChunk, Notice, NoticeSeverity, SessionUpdate};
use dsh_agent_loop::Live;
use dsh_llm::text_of;
use dsh_session::{Durability, Event, EventData, Session, SessionFeed};
use futures_util::FutureExt;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::background::Background;
use crate::card::Cards;
use crate::outbox::Outbox;
use crate::prompt::PromptSlot;
use crate::transcript::{Telling, Transcript};

/// Whether the editor shows news that are not part of a session's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// `session.notices` is among its capabilities.
    Shown,
    /// It does not.
    Unknown,
}

/// See the module.
pub(crate) struct Feed {
    pub(crate) transcript: Transcript,
    pub(crate) session: Session,
    pub(crate) log: SessionFeed,
    pub(crate) live: broadcast::Receiver<Live>,
    pub(crate) background: Background,
    pub(crate) outbox: Outbox,
    pub(crate) prompt: Arc<PromptSlot>,
    pub(crate) cards: watch::Sender<Cards>,
    pub(crate) news: News,
}

impl Feed {
    /// Runs until it is told to finish, which is once the agent does nothing more. What is in the log then is sent.
    pub(crate) async fn run(mut self, finish: CancellationToken) {
        loop {
            tokio::select! {
                biased;
                events = self.log.next() => self.send(events).await,
                piece = self.live.recv() => match piece {
                    Ok(piece) => self.piece(piece).await,
                    Err(RecvError::Lagged(_)) => {
                        self.catch_up().await;
                        self.transcript.missed();
                    }
                    Err(RecvError::Closed) => break,
                },
                () = self.background.changed() => self.send_background().await,
                () = finish.cancelled() => break,
            }
        }
        self.catch_up().await;
        self.send_background().await;
    }

    /// Sends what is in the log by now.
    async fn catch_up(&mut self) {
        while let Some(events) = self.log.next().now_or_never() {
            self.send(events).await;
        }
    }

    async fn send(&mut self, events: Vec<Event>) {
        // What is shown is kept: after a crash nobody may be given an id again that an editor has seen. A disk that fails
        // ends the turn, which says so. A choice shows nothing, and alone it is no session to be kept.
        let is_choice = |event: &Event| matches!(event.data, EventData::ModelChoice { .. });
        if !events.iter().all(is_choice) {
            let _ = self.session.flush(Durability::Written).await;
        }
        for event in events {
            for update in self.transcript.event(&event, Telling::Live) {
                self.outbox.update(update).await;
            }
            match &event.data {
                // Behind the update: whoever asks about a call asks after the editor was shown it.
                EventData::ToolCall { .. } => self.show_cards(),
                EventData::ToolResult { content, .. } => {
                    self.show_cards();
                    self.background.kept(&text_of(content));
                    self.send_background().await;
                }
                EventData::StepEnd { .. } => self.show_cards(),
                EventData::TurnStart { .. }
                | EventData::TurnEnd { .. }
                | EventData::StepStart { .. }
                | EventData::RequestHeader { .. }
                | EventData::ModelChoice { .. }
                | EventData::UserMessage(_)
                | EventData::AssistantMessage { .. } => {}
            }
            if let Some(failure) = self.prompt.shown(&event, self.transcript.turn()) {
                self.tell_failure(failure).await;
            }
        }
    }

    fn show_cards(&self) {
        self.cards.send_replace(self.transcript.open_cards());
    }

    async fn piece(&mut self, piece: Live) {
        // What was logged before the piece was sent may have come since this task last looked.
        self.catch_up().await;
        if let Live::Retry { message, after, .. } = &piece
            && self.news == News::Shown
        {
            let title = format!("The model request failed; trying again in {after:.1?}");
            let notice = Notice::new(NoticeSeverity::Warning, title).description(message.clone());
            self.outbox.update(SessionUpdate::Notice(notice)).await;
        }
        if let Some(update) = self.transcript.piece(&piece) {
            self.outbox.update(update).await;
        }
    }

    /// A turn failed that nobody asked for: no answer to a prompt tells it.
    async fn tell_failure(&self, failure: String) {
        let update = match self.news {
            News::Shown => {
                let notice = Notice::new(NoticeSeverity::Error, "Turn failed").description(failure);
                SessionUpdate::Notice(notice)
            }
            News::Unknown => {
                SessionUpdate::AgentMessageChunk(ContentChunk::new(format!("Turn failed: {failure}").into()))
            }
        };
        self.outbox.update(update).await;
    }

    async fn send_background(&mut self) {
        if let Some(update) = self.background.news() {
            self.outbox.update(update).await;
        }
    }
}
