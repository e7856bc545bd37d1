//! What is done for each request of the editor.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, ClientCapabilities, CloseSessionRequest, CloseSessionResponse,
    ContentBlock as Block, Implementation, InitializeRequest, InitializeResponse, ListSessionsRequest,
    ListSessionsResponse, LoadSessionRequest, LoadSessionResponse, NewSessionRequest, NewSessionResponse,
    PromptRequest, PromptResponse, SessionCapabilities, SessionCloseCapabilities, SessionListCapabilities,
    SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, SystemPrompt,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Client, Error, JsonRpcResponse};
use dsh_agent::{Agent, AgentStatus};
use dsh_llm::ContentBlock;
use dsh_session::{Durability, Message, MessageSource, Session, SessionId};

use crate::card::Terminals;
use crate::config::MODEL;
use crate::connection::{Capabilities, Connection};
use crate::error::{internal, invalid, not_found};
use crate::feed::News;
use crate::prompt::PromptSlot;
use crate::sessions::Open;
use crate::transcript::Telling;

/// Why a session is stopped.
const CANCEL: &str = "session/cancel";

type Editor = ConnectionTo<Client>;

impl Connection {
    pub(crate) fn initialize(&self, request: &InitializeRequest) -> InitializeResponse {
        *self.capabilities() = capabilities(&request.client_capabilities);
        let sessions = SessionCapabilities::new()
            .close(SessionCloseCapabilities::new())
            .list(SessionListCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .session_capabilities(sessions);
        InitializeResponse::new(request.protocol_version)
            .agent_capabilities(capabilities)
            .agent_info(Implementation::new("dsh", env!("CARGO_PKG_VERSION")))
    }

    pub(crate) async fn new_session(
        self: Arc<Self>,
        request: NewSessionRequest,
        editor: Editor,
    ) -> Result<NewSessionResponse, Error> {
        let NewSessionRequest {
            cwd,
            additional_directories,
            mcp_servers,
            system_prompt,
            ..
        } = request;
        check(
            &cwd,
            &additional_directories,
            mcp_servers.len(),
            system_prompt.as_ref(),
        )?;
        let preset = Some(self.preset());
        let session = self.with_store(move |store| store.create(cwd, preset)).await?;
        let open = self.open(session, editor, Telling::Live).await?;
        let response = NewSessionResponse::new(open.led.agent().id().to_string());
        Ok(response.config_options(vec![self.models.option(&open.led.model())]))
    }

    pub(crate) async fn load_session(
        self: Arc<Self>,
        request: LoadSessionRequest,
        editor: Editor,
    ) -> Result<LoadSessionResponse, Error> {
        let LoadSessionRequest {
            cwd,
            additional_directories,
            mcp_servers,
            system_prompt,
            session_id,
            ..
        } = request;
        check(
            &cwd,
            &additional_directories,
            mcp_servers.len(),
            system_prompt.as_ref(),
        )?;
        if self.session(&session_id.0).is_ok() {
            return Err(invalid(format_args!(
                "session {session_id} is open: close it before it is loaded"
            )));
        }
        let session: Session = self
            .with_store(move |store| store.load(&session_id.0, &cwd))
            .await?;
        let open = self.open(session, editor, Telling::Replay).await?;
        Ok(LoadSessionResponse::new().config_options(vec![self.models.option(&open.led.model())]))
    }

    pub(crate) async fn list_sessions(
        self: Arc<Self>,
        request: ListSessionsRequest,
    ) -> Result<ListSessionsResponse, Error> {
        self.with_store(move |store| store.list(&request)).await
    }

    pub(crate) async fn close_session(
        self: Arc<Self>,
        request: CloseSessionRequest,
    ) -> Result<CloseSessionResponse, Error> {
        let id = &request.session_id.0;
        let open = self.sessions.remove(&session_id(id)).ok_or_else(|| unknown(id))?;
        open.close().await;
        // The last handle: the session's file is free again when the answer is there.
        drop(open);
        Ok(CloseSessionResponse::new())
    }

    /// Takes a prompt in; its turn answers it.
    pub(crate) fn prompt(
        &self,
        request: PromptRequest,
        responder: Responder<PromptResponse>,
    ) -> Result<(), Error> {
        let taken = self
            .session(&request.session_id.0)
            .and_then(|open| Ok((open, content(request.prompt)?)));
        match taken {
            Ok((open, content)) => begin(&open, content, responder),
            Err(error) => responder.respond_with_error(error),
        }
    }

    pub(crate) fn cancel(&self, request: &CancelNotification) {
        match self.session(&request.session_id.0) {
            Ok(open) => stop(&open.prompt, open.led.agent()),
            Err(error) => tracing::debug!("acp: nothing to cancel: {error}"),
        }
    }

    /// Chooses a model, and answers when the choice is kept.
    pub(crate) fn set_config_option(
        &self,
        request: &SetSessionConfigOptionRequest,
        responder: Responder<SetSessionConfigOptionResponse>,
    ) -> Result<(), Error> {
        match self.choose(request) {
            Ok(kept) => {
                self.spawn("acp session/set_config_option", answer(responder, kept));
                Ok(())
            }
            Err(error) => responder.respond_with_error(error),
        }
    }

    /// The choice is made; what is left to be done keeps it.
    fn choose(
        &self,
        request: &SetSessionConfigOptionRequest,
    ) -> Result<impl Future<Output = Result<SetSessionConfigOptionResponse, Error>> + use<>, Error> {
        let open = self.session(&request.session_id.0)?;
        if &*request.config_id.0 != MODEL {
            return Err(invalid(format_args!(
                "there is no option {:.64}",
                request.config_id
            )));
        }
        let value = request
            .value
            .as_value_id()
            .ok_or_else(|| invalid("the model is chosen by the id of a value"))?;
        let model = self
            .models
            .get(&value.0)
            .ok_or_else(|| invalid(format_args!("there is no model {value:.64}")))?;
        let session = open.led.agent().session().clone();
        let is_new = session.is_empty();
        open.led.set_model(model.clone()).map_err(internal)?;
        let options = vec![self.models.option(model)];
        Ok(async move {
            // A session in which nothing has happened is not kept; its choice is, with the first turn.
            if !is_new {
                session.flush(Durability::Written).await.map_err(internal)?;
            }
            Ok(SetSessionConfigOptionResponse::new(options))
        })
    }

    fn session(&self, id: &Arc<str>) -> Result<Arc<Open>, Error> {
        let open = self.sessions.get(&session_id(id));
        open.ok_or_else(|| unknown(id))
    }
}

/// Answers with what comes of the work, whenever it does.
pub(crate) async fn answer<T: JsonRpcResponse>(
    responder: Responder<T>,
    work: impl Future<Output = Result<T, Error>>,
) {
    if let Err(error) = responder.respond_with_result(work.await) {
        tracing::debug!("acp: a request was not answered: {error}");
    }
}

fn begin(open: &Open, content: Vec<ContentBlock>, responder: Responder<PromptResponse>) -> Result<(), Error> {
    let agent = open.led.agent().clone();
    let from = agent.session().len();
    let withdrawn = responder.cancellation();
    if let Err(responder) = open.prompt.occupy(responder, from) {
        return responder
            .respond_with_error(invalid("a prompt of this session is in flight: cancel it first"));
    }
    let message = Message {
        content,
        source: MessageSource::User,
    };
    if let Err(error) = agent.follow_up(message) {
        tracing::debug!("acp: {error}");
        open.prompt.cancel();
    }
    let prompt = Arc::clone(&open.prompt);
    let watch = open.running.track_future(async move {
        tokio::select! {
            biased;
            () = agent.when_idle() => {}
            // By `$/cancel_request`.
            () = withdrawn.cancelled() => {
                stop(&prompt, &agent);
                agent.when_idle().await;
            }
        }
        if agent.status() == AgentStatus::Disposed {
            // No turn takes it any more. It is kept in the log.
            prompt.cancel();
        }
        prompt.at_rest(from, &agent.session().events_from(from));
    });
    open.spawn("acp prompt", watch);
    Ok(())
}

fn stop(prompt: &PromptSlot, agent: &Agent) {
    prompt.cancel();
    agent.cancel(CANCEL);
}

fn capabilities(editor: &ClientCapabilities) -> Capabilities {
    let terminal = editor.meta.as_ref().and_then(|meta| meta.get("terminal_output"));
    let notices = editor
        .session
        .as_ref()
        .and_then(|session| session.notices.as_ref());
    Capabilities {
        terminals: match terminal.and_then(serde_json::Value::as_bool) {
            Some(true) => Terminals::Shown,
            Some(false) | None => Terminals::AsText,
        },
        news: match notices {
            Some(_) => News::Shown,
            None => News::Unknown,
        },
    }
}

/// What a session may not ask for.
fn check(
    cwd: &Path,
    additional_directories: &[PathBuf],
    mcp_servers: usize,
    system_prompt: Option<&SystemPrompt>,
) -> Result<(), Error> {
    if !cwd.is_absolute() {
        return Err(invalid(format_args!("cwd {} is not absolute", cwd.display())));
    }
    if !additional_directories.is_empty() {
        return Err(invalid("additionalDirectories is not supported"));
    }
    if mcp_servers > 0 {
        return Err(invalid("mcpServers is not supported"));
    }
    if system_prompt.is_some() {
        return Err(invalid("systemPrompt is not supported"));
    }
    Ok(())
}

/// What the model is told. A link to a resource is a Markdown link.
fn content(prompt: Vec<Block>) -> Result<Vec<ContentBlock>, Error> {
    let block = |block| match block {
        Block::Text(text) => Ok(ContentBlock::text(text.text)),
        Block::ResourceLink(link) => Ok(ContentBlock::text(format!("[{}]({})", link.name, link.uri))),
        Block::Image(_) => Err(invalid("images are not supported in a prompt")),
        Block::Audio(_) => Err(invalid("audio is not supported in a prompt")),
        _ => Err(invalid("only text and resource_link are supported in a prompt")),
    };
    if prompt.is_empty() {
        return Err(invalid("the prompt is empty"));
    }
    prompt.into_iter().map(block).collect()
}

fn session_id(id: &Arc<str>) -> SessionId {
    SessionId::new(Arc::clone(id))
}

fn unknown(id: &str) -> Error {
    not_found(format_args!("session {id:.64} is not open"))
}
