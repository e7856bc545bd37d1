//! As many at once as there should ever be.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use dsh_agent::{AgentRegistry, AgentSpec};
use dsh_output::{OutputConfig, OutputLog, Rendering, Stream};
use dsh_scope::Scope;
use dsh_session::SessionId;
use dsh_tasks::{Deps, Outcome, Serves, StartSpec, TaskDone, TaskId, TaskRegistry, TasksConfig, Work};
use dsh_testkit::{Gate, eventually, eventually_within};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::server::DEADLINE;
use crate::{Server, ServerOptions};

/// How many descriptors of the server one live command may take; the limit of the system is shared out by that.
const DESCRIPTORS_EACH: u64 = 8;

/// So many tasks in one registry at once: all live, all are listed, read, and awaited, and each ends once.
///
/// # Panics
///
/// When one does not.
pub async fn tasks_at_once(count: usize) {
    let (root, agents) = (Scope::root("crowd"), AgentRegistry::new());
    let config = TasksConfig {
        max_concurrent_tasks_per_owner: (count as u64).try_into().expect("some"),
        ..TasksConfig::default()
    };
    let deps = Deps {
        agents: Some(agents.clone()),
    };
    let tasks = TaskRegistry::install(&root, deps, config).expect("a registry");
    tasks
        .attach_surface(&root, "crowd", Serves::Everyone)
        .expect("the root is open");
    let told = tell(&tasks, &root);
    let spec = AgentSpec {
        id: SessionId::new("crowd"),
        cwd: None,
        within: root.clone(),
    };
    let handle = agents.create(spec).expect("the id is free");
    let owner = handle.agent();
    let gate = Gate::new();
    let start = |number| tasks.start(gated(number, &gate).owned_by(Arc::clone(owner)));
    let ids: Vec<TaskId> = (0..count).map(|number| start(number).expect("a place")).collect();
    start(count).expect_err("there is no place left");
    assert_eq!(tasks.list(Some(owner)).len(), count);

    let mut waits = JoinSet::new();
    for id in &ids {
        let (tasks, owner, id) = (tasks.clone(), Arc::clone(owner), id.clone());
        waits.spawn(async move {
            let waited = tasks
                .wait(&id, Some(&owner), 60_000.0, &CancellationToken::new())
                .await;
            waited.expect("it may be awaited").claim.deliver();
        });
    }
    let (killed, free) = ids.split_at(count / 10);
    for id in killed {
        let asked = tasks.kill(id, Some(owner), Some("enough"));
        asked.expect("it can be ended").claim.deliver();
    }
    gate.open();
    while let Some(wait) = waits.join_next().await {
        wait.expect("a wait that ends");
    }
    for (number, id) in free.iter().enumerate() {
        let read = tasks.read(id, Some(owner), 1000).expect("it can be read");
        assert_eq!(read.text, format!("{}\n", number + killed.len()));
        assert_eq!(read.snapshot.status_line(), "[status: completed]");
        read.claim.deliver();
    }
    let all_told = || told.lock().unwrap_or_else(PoisonError::into_inner).len() == count;
    eventually("every end is announced", all_told).await;
    let times = told.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(times.values().all(|times| *times == 1), "one was announced twice");
    handle.dispose().await.expect("the agent goes");
    assert!(tasks.get(&ids[0], None).is_err(), "its record went along");
    root.close().await.expect("the registry goes");
}

/// So many commands of one server at once, or as many as the limits of the system permit: all live, one of them can be
/// ended, and nothing is left of them.
///
/// # Panics
///
/// When it is not so.
pub async fn commands_at_once(wanted: u64) {
    let count = permitted(wanted);
    if count < wanted {
        println!("ONLY {count} OF {wanted} COMMANDS: the limits of this system permit no more");
    }
    let config = format!("[tasks]\nmax_concurrent_tasks_per_owner = {count}\n");
    let options = ServerOptions {
        config: &config,
        ..ServerOptions::default()
    };
    let mut server = Server::start_with(options).await;
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(server.background("exec sleep 1000").await);
    }
    let sleeps = |server: &Server| {
        let name = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let all = server.room.processes().into_iter();
        all.filter(|pid| name(pid) == "sleep\n").count() as u64
    };
    eventually_within("all live", DEADLINE, || sleeps(&server) == count).await;
    server.kill(&ids[0]).await;
    let end = server.wait(&ids[0]).await;
    assert!(end.ok().ends_with("[status: killed, signal: SIGTERM]"), "{end:?}");
    assert_eq!(sleeps(&server), count - 1);
    assert_eq!(server.bash("echo still here").await.ok(), "still here\n");
    server.close().await;
}

/// How often each end is announced.
fn tell(tasks: &TaskRegistry, root: &Scope) -> Arc<Mutex<BTreeMap<TaskId, u32>>> {
    let told = Arc::new(Mutex::new(BTreeMap::new()));
    let tells = Arc::clone(&told);
    tasks
        .on_done(root, Serves::Everyone, move |done: TaskDone| {
            let mut told = tells.lock().unwrap_or_else(PoisonError::into_inner);
            *told.entry(done.snapshot.id.clone()).or_insert(0) += 1;
            Box::pin(async { Ok(()) })
        })
        .expect("the root is open");
    told
}

/// Work that writes its number, and lasts until the gate is open or it is asked to end.
fn gated(number: usize, gate: &Gate) -> StartSpec {
    let gate = gate.clone();
    StartSpec::new("gated", "waits for a gate", move || {
        let log = OutputLog::new(OutputConfig::default());
        log.append(Stream::Stdout, format!("{number}\n").as_bytes());
        let (stop, output) = (
            CancellationToken::new(),
            Arc::new(log.reader(Rendering::Sections)),
        );
        let stopped = stop.clone();
        let done = async move {
            let outcome = tokio::select! {
                biased;
                () = stopped.cancelled() => Outcome::killed(),
                () = gate.opened() => Outcome::completed(),
            };
            log.close();
            outcome
        };
        let cancel = move |_: &_| {
            stop.cancel();
            Ok(())
        };
        Ok(Work::new(done, cancel).output(output))
    })
}

/// As many of `wanted` commands as there are descriptors and numbers of processes for; each has two processes.
fn permitted(wanted: u64) -> u64 {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let soft = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let descriptors = soft("Max open files").map(|limit| limit.saturating_sub(200) / DESCRIPTORS_EACH);
    let processes = [soft("Max processes"), number("/proc/sys/kernel/pid_max")];
    let processes = processes.into_iter().flatten().map(|limit| limit / 4);
    processes.chain(descriptors).fold(wanted, u64::min)
}
