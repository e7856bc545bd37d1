//! The registry and its tools in this process, with agents that come and go and producers that play.
//!
//! Half of the rounds run on one thread with a clock that is stepped: there even the moments are the seed's. The others run
//! on two threads with the real clock.

mod agent;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dsh_agent::{AgentHandle, AgentRegistry, AgentSpec};
use dsh_scope::Scope;
use dsh_session::SessionId;
use dsh_system_prompt::PromptRegistry;
use dsh_tasks::{ListenerHandle, Serves, TaskDone, TaskId, TaskRegistry, TasksConfig};
use dsh_tool_tasks::ToolTasksConfig;
use dsh_tools::ToolRegistry;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::dice::Dice;
use super::lines::LINE;
use super::player::PANIC;
use super::{Faults, Found};

/// How long the tasks of one owner may take to end.
const DISPOSAL: Duration = Duration::from_millis(300);
/// What a busy machine may add to a bound.
const SLACK: Duration = Duration::from_secs(5);

/// What the agents of a round share.
struct World {
    root: Scope,
    agents: AgentRegistry,
    tools: ToolRegistry,
    prompts: PromptRegistry,
    tasks: TaskRegistry,
    config: ToolTasksConfig,
    /// How many milliseconds the clock was stepped by.
    stepped: AtomicU64,
    /// Nothing new begins.
    closing: AtomicBool,
    /// How often the end of each task was announced, and whether a notice could be made of it.
    announced: Mutex<BTreeMap<TaskId, (usize, bool)>>,
    /// Tasks that somebody has now.
    known: Mutex<BTreeMap<TaskId, SessionId>>,
    /// It has another owner as long as anything of a producer is kept.
    kept: Arc<()>,
}

/// A round over the registry.
pub(super) fn round(seed: u64) -> Found {
    quiet_players();
    let mut dice = Dice::new(seed);
    let mut builder = if dice.percent(50) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.start_paused(true);
        builder
    } else {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2);
        builder
    };
    match builder.enable_all().build() {
        Ok(runtime) => runtime.block_on(live(dice)),
        Err(error) => Found::fault(format!("no runtime: {error}")),
    }
}

async fn live(mut dice: Dice) -> Found {
    let limit = 1 + dice.below(12) as u64;
    let room = LINE as usize * (4 + dice.below(2000));
    let world = match World::new(limit, room) {
        Ok(world) => Arc::new(world),
        Err(error) => return Found::fault(error),
    };
    let agents = 1 + dice.below(4);
    let mut lives = JoinSet::new();
    for letter in ('a'..).take(agents) {
        lives.spawn(agent::live(Arc::clone(&world), letter, dice.fork()));
    }
    let (abrupt, steps) = (dice.percent(30), 3 + dice.below(10));
    let mut faults = world.befall(&mut dice, steps).await;
    world.closing.store(true, Ordering::Release);
    if abrupt {
        faults.extend(world.close(agents).await);
    }
    while let Some(life) = lives.join_next().await {
        match life {
            Ok(found) => faults.extend(found),
            Err(error) => faults.push(format!("an agent panicked: {error}")),
        }
    }
    faults.extend(world.close(agents).await);
    faults.extend(world.all_is_gone().await);
    let tasks = world
        .announced
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .len();
    Found { tasks, faults }
}

impl World {
    fn new(limit: u64, room: usize) -> Result<World, String> {
        let (root, agents) = (Scope::root("chaos"), AgentRegistry::new());
        let deps = dsh_tasks::Deps {
            agents: Some(agents.clone()),
        };
        let config = TasksConfig {
            max_concurrent_tasks_per_owner: limit.try_into().map_err(|_| "no limit")?,
            dispose_timeout: DISPOSAL,
            ..TasksConfig::default()
        };
        let tasks = TaskRegistry::install(&root, deps, config).map_err(|error| error.to_string())?;
        Ok(World {
            root,
            agents,
            tools: ToolRegistry::new(),
            prompts: PromptRegistry::new(),
            tasks,
            config: ToolTasksConfig {
                max_read_bytes: room,
                ..ToolTasksConfig::default()
            },
            stepped: AtomicU64::new(0),
            closing: AtomicBool::new(false),
            announced: Mutex::default(),
            known: Mutex::default(),
            kept: Arc::default(),
        })
    }

    /// What is nobody's doing: the tools go and come back, listeners panic, time passes at once.
    async fn befall(self: &Arc<Self>, dice: &mut Dice, steps: usize) -> Faults {
        let mut faults = Vec::new();
        if let Err(error) = self.listen() {
            return vec![error];
        }
        for _ in 0..steps {
            match self.install() {
                Ok(handle) => {
                    let after = self.listen_after_the_tools();
                    self.pass(dice).await;
                    if let Some(after) = after {
                        after.detach().await;
                    }
                    faults.extend(handle.uninstall().await.err().map(|error| error.to_string()));
                }
                Err(error) => faults.push(error),
            }
            if dice.percent(30) {
                self.pass(dice).await;
            }
        }
        // The last ones stay.
        faults.extend(self.install().err());
        self.listen_after_the_tools();
        self.pass(dice).await;
        faults
    }

    fn install(&self) -> Result<dsh_tool_tasks::Handle, String> {
        let deps = dsh_tool_tasks::Deps {
            tools: self.tools.clone(),
            prompts: self.prompts.clone(),
            tasks: self.tasks.clone(),
        };
        dsh_tool_tasks::install(&self.root, deps, self.config.clone()).map_err(|error| error.to_string())
    }

    /// Time, as a clock gives it or in one step.
    async fn pass(&self, dice: &mut Dice) {
        let time = dice.millis(400);
        let paused = dice.percent(20) && tokio::runtime::Handle::current().metrics().num_workers() == 1;
        if paused {
            let step = time * 10;
            self.stepped.fetch_add(step.as_millis() as u64, Ordering::Relaxed);
            tokio::time::advance(step).await;
        } else {
            // sleep: that time passes is what is tried.
            tokio::time::sleep(time).await;
        }
    }

    /// Somebody who counts, between some who panic and fail.
    fn listen(self: &Arc<Self>) -> Result<(), String> {
        let closed = |_| "the root is closed".to_owned();
        let everyone = || Serves::Everyone;
        self.tasks
            .on_done(&self.root, everyone(), |_| panic!("{PANIC}: listener"))
            .map_err(closed)?;
        self.tasks
            .on_done(&self.root, everyone(), |_| {
                Box::pin(async {
                    tokio::task::yield_now().await;
                    panic!("{PANIC}: what a listener returned")
                })
            })
            .map_err(closed)?;
        let world = Arc::downgrade(self);
        self.tasks
            .on_done(&self.root, everyone(), move |done: TaskDone| {
                if let Some(world) = world.upgrade() {
                    world.hear(&done);
                }
                Box::pin(async { Err("failed later".into()) })
            })
            .map_err(closed)?;
        self.tasks
            .on_change(&self.root, |_| panic!("{PANIC}: observer"))
            .map_err(closed)?;
        Ok(())
    }

    fn hear(&self, done: &TaskDone) {
        let mut announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        announced.entry(done.snapshot.id.clone()).or_default().0 += 1;
    }

    /// Somebody who comes after the tools: whoever hears of an end there comes after the notice of it.
    fn listen_after_the_tools(self: &Arc<Self>) -> Option<ListenerHandle> {
        let world = Arc::downgrade(self);
        let listener = self
            .tasks
            .on_done(&self.root, Serves::Everyone, move |done: TaskDone| {
                if let Some(world) = world.upgrade() {
                    let mut announced = world.announced.lock().unwrap_or_else(PoisonError::into_inner);
                    announced.entry(done.snapshot.id.clone()).or_default().1 = true;
                }
                Box::pin(async { Ok(()) })
            });
        listener.ok()
    }

    /// How often an end was announced, and whether a notice could be made of it.
    fn announced(&self, id: &TaskId) -> (usize, bool) {
        let announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        announced.get(id).copied().unwrap_or_default()
    }

    fn agent(&self, id: &str) -> Option<AgentHandle> {
        let spec = AgentSpec {
            id: SessionId::new(id),
            cwd: None,
            within: self.root.clone(),
        };
        self.agents.create(spec).ok()
    }

    /// The time, without what it was stepped by.
    fn now(&self) -> Instant {
        Instant::now() - Duration::from_millis(self.stepped.load(Ordering::Relaxed))
    }

    /// Ends everything within its bound: each owner's tasks, then what is nobody's.
    async fn close(&self, agents: usize) -> Faults {
        let began = self.now();
        let closed = self.root.close().await;
        let (took, bound) = (self.now() - began, DISPOSAL * (agents as u32 + 1) + SLACK);
        let mut faults: Faults = closed.err().map(|error| error.to_string()).into_iter().collect();
        if took > bound {
            faults.push(format!("the end took {took:?} of {bound:?}"));
        }
        faults
    }

    /// Nothing of any producer is kept, no end was announced twice, and no task is there.
    async fn all_is_gone(&self) -> Faults {
        let mut faults = Vec::new();
        let began = std::time::Instant::now();
        while Arc::strong_count(&self.kept) > 1 && began.elapsed() < SLACK {
            tokio::task::yield_now().await;
        }
        let kept = Arc::strong_count(&self.kept) - 1;
        if kept > 0 {
            faults.push(format!("{kept} parts of producers are kept after the end"));
        }
        let left = self.tasks.list(None);
        if !left.is_empty() {
            faults.push(format!("tasks are left: {left:?}"));
        }
        let announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        let twice = announced.iter().filter(|(_, (times, _))| *times > 1);
        faults.extend(twice.map(|(id, (times, _))| format!("the end of {id} was announced {times} times")));
        faults
    }
}

/// Panics that are played are not printed.
fn quiet_players() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let payload = panic.payload();
            let text = payload.downcast_ref::<&str>().copied();
            let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
            if !text.is_some_and(|text| text.starts_with(PANIC)) {
                before(panic);
            }
        }));
    });
}
