//! The services of one harness, put together and taken apart in order.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use dsh_agent::{Agent, AgentRegistry, BoxError};
use dsh_agent_loop::{AgentLoop, CreateError, LedAgent, ModelChoice};
use dsh_bash::BashExecutor;
use dsh_bash_local::LocalBash;
use dsh_llm::ModelRegistry;
use dsh_scope::Scope;
use dsh_session::{Session, SessionHeader, SessionId};
use dsh_subagent::SubagentRegistry;
use dsh_subprocess::Launcher;
use dsh_system_prompt::PromptRegistry;
use dsh_tasks::TaskRegistry;
use dsh_tool_bash::Background;
use dsh_tools::{Approver, ToolRegistry};
use tokio_util::sync::CancellationToken;

use crate::approval::AskFirst;
use crate::composition::{Children, Composer, Composition, Control, Ground, Means, Role};
use crate::config::Config;
use crate::error::AssembleError;

/// Handles to all services. Cheap to clone; none of them owns another.
#[derive(Clone)]
pub struct ServiceContext {
    /// What everything here lives on. Agents and front doors live in it, too, and end before the services.
    pub scope: Scope,
    /// The live agents.
    pub agents: AgentRegistry,
    /// The tools that models can call.
    pub tools: ToolRegistry,
    /// What models are told about habits across calls.
    pub prompts: PromptRegistry,
    /// The tasks.
    pub tasks: TaskRegistry,
    /// Runs commands.
    pub bash: Arc<dyn BashExecutor>,
    /// Makes agents that work on their own.
    pub agent_loop: AgentLoop,
    /// Who can be delegated to.
    pub subagents: SubagentRegistry,
    /// The model that answers unless another one is chosen.
    pub model: ModelChoice,
    composer: Arc<Composer>,
}

/// What a program brings along.
#[derive(Debug)]
pub struct Parts {
    /// What the services live on. When they cannot be put together, the program closes it: something may be installed by then.
    pub scope: Scope,
    /// How commands are started: that decides what belongs to a command, and what its end proves.
    pub launcher: Launcher,
    /// Who answers for which provider. Without anybody, agents in this process cannot be delegated to.
    pub models: ModelRegistry,
    /// Who can be delegated to, and what agents are composed from.
    pub composition: Composition,
}

impl Default for Parts {
    /// A scope of their own, process groups, and no model.
    fn default() -> Self {
        Self {
            scope: Scope::root("agent core"),
            launcher: Launcher::groups(),
            models: ModelRegistry::new(),
            composition: Composition::default(),
        }
    }
}

impl ServiceContext {
    /// An agent with a driver that leads `session`, and the configured model. Who may be asked about calls is `approver`.
    ///
    /// Where the session had tasks under an earlier harness, they are there, ended, and ends that nobody was told of are in
    /// the inbox: they open no turn, and go into the first one. Notices and messages that nobody took are logged
    /// when the agent is disposed, so they are not lost with it.
    ///
    /// # Errors
    ///
    /// [`CreateError`] when its id is taken or the services are being shut down. Nothing is left behind then.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub async fn lead(
        &self,
        session: Session,
        approver: Option<Arc<dyn Approver>>,
    ) -> Result<LedAgent, CreateError> {
        self.composer.lead(session, Role::Lead(approver)).await
    }

    /// Gives an agent that is led from outside the tools of its preset.
    ///
    /// # Errors
    ///
    /// When its preset cannot be used any more, or the agent is being disposed. It may have some of the tools then.
    pub fn compose(&self, agent: &Arc<Agent>) -> Result<(), BoxError> {
        self.composer.compose(agent)
    }

    /// The preset of sessions that name none.
    pub fn preset(&self) -> &str {
        &self.composer.preset
    }

    /// The header of a new session: it names the preset that its agent is composed from, now and when it is gone on with.
    pub fn session_header(&self, id: SessionId, cwd: Option<PathBuf>) -> SessionHeader {
        SessionHeader {
            preset: Some(self.preset().to_owned()),
            ..SessionHeader::new(id, cwd)
        }
    }

    /// All services but the tools and those who can be delegated to.
    fn install(config: &Config, parts: &Parts) -> Result<Self, AssembleError> {
        let scope = parts.scope.clone();
        let agents = AgentRegistry::new();
        let tools = ToolRegistry::new();
        let prompts = PromptRegistry::new();
        let subagents = SubagentRegistry::new();
        // The executor closes after the registry: by then the registry has ended every task with its true cause.
        let bash = LocalBash::with_launcher(&scope, config.bash.clone(), parts.launcher.clone())?;
        let deps = dsh_tasks::Deps {
            agents: Some(agents.clone()),
        };
        let tasks = TaskRegistry::install(&scope, deps, config.tasks())?;
        let deps = dsh_agent_loop::Deps {
            agents: agents.clone(),
            tools: tools.clone(),
            prompts: prompts.clone(),
            models: parts.models.clone(),
        };
        let agent_loop = AgentLoop::new(deps, config.agent_loop());
        let composer = Composer {
            scope: scope.clone(),
            agent_loop: agent_loop.clone(),
            tools: tools.clone(),
            subagents: subagents.clone(),
            tasks: tasks.clone(),
            control: config.tool_tasks.control(),
            ground: Ground::new(&parts.composition.profile, config),
            presets: parts.composition.presets.clone(),
            preset: parts.composition.preset.clone(),
            model: config.model.choice(),
            persona: config.agent.persona.as_str().into(),
            known: Mutex::default(),
        };
        Ok(Self {
            scope,
            agents,
            tools,
            prompts,
            tasks,
            bash: Arc::new(bash),
            agent_loop,
            subagents,
            model: config.model.choice(),
            composer: Arc::new(composer),
        })
    }
}

/// The assembled services, and the right to shut them down.
///
/// Dropping it without [`shutdown`](Self::shutdown) waits for nothing: commands are told to end when the last handle
/// goes, and what is left is named in the log.
pub struct AgentCore {
    context: ServiceContext,
    hurry: CancellationToken,
}

impl AgentCore {
    /// Checks the configuration, then installs the services, each after those it needs: executor, task registry, task
    /// tools, `bash` tool. Nothing is started.
    ///
    /// # Errors
    ///
    /// [`AssembleError::Config`] with everything that is wrong with the configuration, or [`AssembleError::Composition`]
    /// with everything that does not fit together, before anything was installed; the others name what could not be
    /// installed.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn assemble(config: Config) -> Result<Self, AssembleError> {
        Self::assemble_with(config, Parts::default())
    }

    /// As [`assemble`](Self::assemble), with what the program brings along.
    ///
    /// # Errors
    ///
    /// As [`assemble`](Self::assemble).
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn assemble_with(mut config: Config, parts: Parts) -> Result<Self, AssembleError> {
        config.check()?;
        parts.composition.check(&config)?;
        // What holds a key is no business of commands, whatever it is called.
        config.bash.deny_env.extend(config.model.api_key_env.clone());
        parts.composition.warn();
        let context = ServiceContext::install(&config, &parts)?;
        install_tools(&context, &config)?;
        let hurry = CancellationToken::new();
        let means = Means {
            products: dsh_subagent_process::Deps {
                subagents: context.subagents.clone(),
                launcher: parts.launcher,
                hurry: hurry.clone(),
                ambient: config.bash.environment(),
            },
            agents: Arc::new(Children::of(&context.composer)),
            tools: context.tools.clone(),
            tasks: context.tasks.clone(),
        };
        let profile = &parts.composition.profile;
        profile.mount(&context.scope, &means, !parts.models.is_empty())?;
        Ok(Self { context, hurry })
    }

    /// The services.
    pub fn context(&self) -> &ServiceContext {
        &self.context
    }

    /// Takes the grace from everything that is being ended, now and from now on.
    pub fn hurry(&self) {
        self.context.bash.hurry();
        self.hurry.cancel();
    }

    /// Ends everything, in the reverse order of its installation: agents with their tasks first, then the tools, the
    /// tasks that nobody owns, and what the executor still runs. Every call awaits the one shutdown.
    ///
    /// # Cancel safety
    ///
    /// The shutdown begins at the first poll and runs in a task of its own: dropping this future only stops waiting.
    pub async fn shutdown(&self) {
        if let Err(error) = self.context.scope.close().await {
            tracing::error!("agent core: {error}");
        }
    }
}

/// Without the task tools no control surface is attached: the registry would refuse every start, so none is offered.
fn install_tools(context: &ServiceContext, config: &Config) -> Result<(), AssembleError> {
    let scope = &context.scope;
    if !config.approval.ask.is_empty() {
        let ask = AskFirst(config.approval.ask.iter().cloned().collect());
        drop(context.tools.policy(scope, Arc::new(ask))?);
    }
    let background = match config.tool_tasks.control() {
        Control::Attached => {
            let deps = dsh_tool_tasks::Deps {
                tools: context.tools.clone(),
                prompts: context.prompts.clone(),
                tasks: context.tasks.clone(),
            };
            drop(dsh_tool_tasks::install(
                scope,
                deps,
                config.tool_tasks.settings(),
            )?);
            Background::Tasks(context.tasks.clone())
        }
        Control::Off => Background::Off {
            setting: "tool_tasks.enabled: false",
        },
    };
    let deps = dsh_tool_bash::Deps {
        tools: context.tools.clone(),
        prompts: context.prompts.clone(),
        bash: Arc::clone(&context.bash),
        background,
    };
    drop(dsh_tool_bash::install(scope, deps, config.tool_bash.clone())?);
    Ok(())
}
