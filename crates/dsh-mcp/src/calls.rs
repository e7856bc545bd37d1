//! The requests in flight, and what their answers will have told the model.
//!
//! **Invariants**
//!
//! 1. A request has an id of ours from the moment it is read until its answer was written or given up. Ours are never
//!    used twice, so a late answer can never be taken for that of a later request with the client's same id.
//! 2. The deliveries of a request are here or gone. [`Calls::finish`] hands them out, once, and only while nobody gave
//!    the answer up; in every other case they are dropped, which abandons them.
//! 3. A given-up request has no entry: what its handler parks later is dropped at once.
//! 4. After the end nothing is delivered any more, but answers may still be written.
//!
//! Lock order: this lock is a leaf. Deliveries and tokens are foreign code: they are dropped and cancelled outside it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dsh_agent_core::Served;
use dsh_tools::Deliveries;
use rmcp::model::RequestId;
use tokio_util::sync::CancellationToken;

use crate::message::shown;

/// How many requests a client may have in flight, answers that it has not read included.
const MAX_IN_FLIGHT: usize = 1024;

/// The requests in flight. Cloning gives another handle to the same table.
#[derive(Clone)]
pub(crate) struct Calls {
    table: Arc<Mutex<Table>>,
    ended: CancellationToken,
}

/// What a request asks for, as far as its answer is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Its result may carry pending notices.
    ToolCall,
    /// Everything else.
    Other,
}

/// Why a request was not taken in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OpenError {
    /// The client has not had its answer to an earlier request with this id.
    #[error("request id {} is in use by a request in flight", shown(&.0.to_string()))]
    InUse(RequestId),
    /// The client asks faster than it reads, or waits for very much at once.
    #[error("{MAX_IN_FLIGHT} requests are in flight, which is the limit; wait for an answer or cancel one")]
    TooMany,
}

/// To whom an answer goes.
#[derive(Debug)]
pub(crate) struct Addressee {
    /// The client's id of the request.
    pub(crate) client: RequestId,
    /// Whether the answer may carry pending notices now.
    pub(crate) kind: Kind,
}

#[derive(Default)]
struct Table {
    last_id: i64,
    open: HashMap<i64, Call>,
    by_client: HashMap<RequestId, i64>,
    end: Option<Served>,
}

struct Call {
    client: RequestId,
    kind: Kind,
    /// Its answer is on its way: a client that uses the id again has read it.
    answering: bool,
    token: CancellationToken,
    parked: Deliveries,
}

impl Calls {
    pub(crate) fn new() -> Self {
        Self {
            table: Arc::default(),
            ended: CancellationToken::new(),
        }
    }

    /// Takes a request in and gives it an id of ours.
    ///
    /// # Errors
    ///
    /// The client's id is in flight already, or too many requests are.
    pub(crate) fn open(&self, client: &RequestId, kind: Kind) -> Result<i64, OpenError> {
        let token = self.ended.child_token();
        let mut table = self.lock();
        let known = table.by_client.get(client).and_then(|id| table.open.get(id));
        if known.is_some_and(|call| !call.answering) {
            return Err(OpenError::InUse(client.clone()));
        }
        if table.open.len() >= MAX_IN_FLIGHT {
            return Err(OpenError::TooMany);
        }
        table.last_id += 1;
        let id = table.last_id;
        table.by_client.insert(client.clone(), id);
        let client = client.clone();
        let parked = Deliveries::default();
        table.open.insert(
            id,
            Call {
                client,
                kind,
                answering: false,
                token,
                parked,
            },
        );
        Ok(id)
    }

    /// Cancelled when the client gives the request up, and at the end.
    pub(crate) fn token(&self, id: i64) -> CancellationToken {
        let known = self.lock().open.get(&id).map(|call| call.token.clone());
        known.unwrap_or_else(|| {
            let given_up = CancellationToken::new();
            given_up.cancel();
            given_up
        })
    }

    /// Keeps what becomes true once the answer was written. Drops it at once if nobody waits for the answer.
    pub(crate) fn park(&self, id: i64, deliveries: Deliveries) {
        let mut table = self.lock();
        let over = table.end.is_some();
        let refused = match table.open.get_mut(&id) {
            Some(call) if !over => std::mem::replace(&mut call.parked, deliveries),
            _ => deliveries,
        };
        drop(table);
        drop(refused);
    }

    /// The client gave the request up: its token is cancelled, its deliveries are abandoned, its id is free again.
    pub(crate) fn give_up(&self, client: &RequestId) {
        let call = {
            let mut table = self.lock();
            table
                .by_client
                .remove(client)
                .and_then(|id| table.open.remove(&id))
        };
        if let Some(call) = call {
            call.token.cancel();
        }
    }

    /// To whom the answer goes, which is about to be written; `None` when it was given up.
    pub(crate) fn begin_answer(&self, id: i64) -> Option<Addressee> {
        let mut table = self.lock();
        let over = table.end.is_some();
        let call = table.open.get_mut(&id)?;
        call.answering = true;
        let kind = if over { Kind::Other } else { call.kind };
        Some(Addressee {
            client: call.client.clone(),
            kind,
        })
    }

    /// The client's id of a request.
    pub(crate) fn client_of(&self, id: i64) -> Option<RequestId> {
        self.lock().open.get(&id).map(|call| call.client.clone())
    }

    /// The write of the answer is over, however it went: the entry goes. Hands out the deliveries unless the answer was
    /// given up in the meantime.
    pub(crate) fn finish(&self, id: i64) -> Option<Deliveries> {
        let mut table = self.lock();
        let call = table.open.remove(&id)?;
        if table.by_client.get(&call.client) == Some(&id) {
            table.by_client.remove(&call.client);
        }
        let live = table.end.is_none();
        drop(table);
        live.then_some(call.parked)
    }

    /// The connection is over: every token is cancelled and every parked delivery abandoned. The first cause stays.
    pub(crate) fn end(&self, cause: Served) {
        let abandoned: Vec<_> = {
            let mut table = self.lock();
            table.end.get_or_insert(cause);
            table
                .open
                .values_mut()
                .map(|call| std::mem::take(&mut call.parked))
                .collect()
        };
        self.ended.cancel();
        drop(abandoned);
    }

    /// Cancelled once the connection is over.
    pub(crate) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Resolves when the connection is over, with the cause.
    pub(crate) async fn over(self) -> Served {
        self.ended.cancelled().await;
        // Set before the token is cancelled.
        self.cause().unwrap_or(Served::Stopped)
    }

    /// Why the connection is over; `None` while it is not.
    pub(crate) fn cause(&self) -> Option<Served> {
        self.lock().end
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
