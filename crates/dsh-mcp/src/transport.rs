//! The wire as the SDK sees it: requests under ids of ours come in, answers go out.
//!
//! The SDK is given requests only. What JSON-RPC settles by itself (garbage, ids used twice, cancellations, the end)
//! is settled here, where the client's bytes are seen first: the SDK would skip some of it silently, end the session
//! over other parts, and drop the answer of a cancelled request without telling anybody.

use std::collections::VecDeque;
use std::io;

use dsh_agent_core::Served;
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::AsyncRead;
use tokio::sync::mpsc;

use crate::calls::{Calls, Kind, OpenError};
use crate::line::{Line, LineReader, MAX_LINE};
use crate::message::{self, Incoming, Request, refusal, shown};
use crate::writer::{Frame, Job};

/// The client's side of the connection.
pub(crate) struct Wire<R> {
    lines: LineReader<R>,
    calls: Calls,
    outbox: mpsc::Sender<Job>,
    /// Answers to what was not let in. While they wait for a client that does not read, nothing more is read.
    refusals: VecDeque<Value>,
    opened: bool,
}

impl<R: AsyncRead + Send + Unpin> Wire<R> {
    pub(crate) fn new(input: R, calls: Calls, outbox: mpsc::Sender<Job>) -> Self {
        Self {
            lines: LineReader::new(input, MAX_LINE),
            calls,
            outbox,
            refusals: VecDeque::new(),
            opened: false,
        }
    }

    /// The next request for the SDK; `None` at the end of input.
    ///
    /// Cancel safe: the SDK drops this future whenever something else happens first.
    async fn next_request(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            while !self.refusals.is_empty() {
                // Taken from the queue only once there is room: this future may be dropped while it waits.
                let slot = self.outbox.reserve().await.ok()?;
                if let Some(answer) = self.refusals.pop_front() {
                    slot.send(Job::new(Frame::Message(answer)).0);
                }
            }
            match self.lines.next().await {
                Line::Complete(line) => {
                    if let Some(request) = self.take(message::read(&line)) {
                        return Some(request);
                    }
                }
                Line::TooLong(id) => self.refuse_long(id.as_ref()),
                Line::End => return None,
            }
        }
    }

    /// A message was too long to be kept.
    fn refuse_long(&mut self, id: Option<&RequestId>) {
        let reason = format!("a message may have at most {MAX_LINE} bytes");
        tracing::warn!("mcp: refused a longer one: {reason}");
        // As for every request: an id that is in use names the earlier one.
        let opened = id.map(|id| self.calls.open(id, Kind::Other));
        let id = id.filter(|_| !matches!(opened, Some(Err(OpenError::InUse(_)))));
        if let Some(Ok(ours)) = opened {
            self.calls.finish(ours);
        }
        self.refusals.push_back(refusal(id, &reason));
    }

    fn take(&mut self, incoming: Incoming) -> Option<ClientJsonRpcMessage> {
        match incoming {
            Incoming::Request(request) => match self.admit(request) {
                Ok(request) => return Some(request),
                Err(answer) => self.refusals.push_back(answer),
            },
            Incoming::Cancel(id) => self.calls.give_up(&id),
            Incoming::Nothing => {}
            Incoming::Refused(answers) => self.refusals.extend(answers),
        }
        None
    }

    /// Lets a request in, or says why not.
    fn admit(&mut self, request: Request) -> Result<ClientJsonRpcMessage, Value> {
        let opens = request.method == "initialize" || request.names_its_version();
        if !self.opened && !opens && !matches!(request.method.as_str(), "ping" | "server/discover") {
            let reason = format!("{} came before initialize", shown(&request.method));
            return Err(refusal(Some(&request.id), &reason));
        }
        let kind = if request.method == "tools/call" {
            Kind::ToolCall
        } else {
            Kind::Other
        };
        let client = request.id.clone();
        let id = self.calls.open(&client, kind).map_err(|error| {
            // Answered without an id that is in use: with it, this would pass for the answer to the earlier request.
            let id = (error == OpenError::TooMany).then_some(&client);
            refusal(id, &error.to_string())
        })?;
        match request.under(id) {
            Ok(message) => {
                self.opened |= opens;
                Ok(message)
            }
            Err(answer) => {
                self.calls.finish(id);
                Err(answer)
            }
        }
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for Wire<R> {
    type Error = io::Error;

    fn send(&mut self, item: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let outbox = self.outbox.clone();
        let frame = frame_of(item);
        async move {
            let (job, written) = Job::new(frame?);
            outbox
                .send(job)
                .await
                .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            written
                .await
                .unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::BrokenPipe)))
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let ended = self.calls.ended().clone();
        let request = tokio::select! {
            biased;
            () = ended.cancelled() => None,
            request = self.next_request() => request,
        };
        if request.is_none() {
            self.calls.end(Served::InputEnded);
        }
        request
    }

    async fn close(&mut self) -> io::Result<()> {
        self.calls.end(Served::Stopped);
        Ok(())
    }
}

fn frame_of(item: ServerJsonRpcMessage) -> io::Result<Frame> {
    let ours = match &item {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    };
    let ours = match ours {
        Some(RequestId::Number(id)) => Some(*id),
        Some(RequestId::String(_)) | None => None,
    };
    let message = serde_json::to_value(&item)?;
    Ok(match ours {
        Some(id) => Frame::Answer(id, message),
        None => Frame::Message(message),
    })
}
