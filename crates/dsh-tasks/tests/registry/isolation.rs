//! Who may use which task.

use dsh_agent::AgentRegistry;
use dsh_scope::Scope;
use dsh_tasks::{Deps, Serves, TaskRegistry, TasksConfig};
use tokio_util::sync::CancellationToken;

use crate::common::{OnCancel, Producer, Rig, owned};

#[tokio::test]
async fn t34_an_owned_task_is_its_sessions_and_an_unowned_one_everybodys() {
    let rig = Rig::new();
    let (a, b) = (rig.agent("a"), rig.agent("b"));
    let id = rig.start(&Producer::new(), Some(a.agent()));
    let free = rig.start(&Producer::new(), None);
    assert!(rig.tasks.read(&id, Some(a.agent()), 1).is_ok());
    assert!(rig.tasks.read(&free, Some(b.agent()), 1).is_ok());
    let foreign = "task bash-1 belongs to another session";
    for caller in [Some(b.agent()), None] {
        assert_eq!(rig.tasks.get(&id, caller).unwrap_err().to_string(), foreign);
        assert_eq!(rig.tasks.read(&id, caller, 1).unwrap_err().to_string(), foreign);
        assert_eq!(
            rig.tasks.observe(&id, caller, 0, 1).unwrap_err().to_string(),
            foreign
        );
        assert_eq!(
            rig.tasks.kill(&id, caller, None).unwrap_err().to_string(),
            foreign
        );
        let waited = rig.tasks.wait(&id, caller, 1.0, &CancellationToken::new()).await;
        assert_eq!(waited.unwrap_err().to_string(), foreign);
    }
    assert!(rig.tasks.kill(&free, Some(b.agent()), None).is_ok());
}

#[tokio::test]
async fn t35_a_list_has_the_callers_tasks_and_unowned_ones_in_order() {
    let rig = Rig::new();
    let (a, b) = (rig.agent("a"), rig.agent("b"));
    for owner in [Some(a.agent()), None, Some(b.agent()), Some(a.agent())] {
        rig.start(&Producer::new(), owner);
    }
    assert_eq!(rig.ids(Some(a.agent())), ["bash-1", "bash-2", "bash-4"]);
    assert_eq!(rig.ids(Some(b.agent())), ["bash-2", "bash-3"]);
    assert_eq!(rig.ids(None), ["bash-2"]);
    let unknown = rig.tasks.get(&"bash-7".into(), Some(b.agent())).unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "unknown task bash-7 (your tasks: bash-2, bash-3)"
    );
}

#[tokio::test]
async fn t36_owned_work_needs_the_agent_registry() {
    let rig = Rig::new();
    let agent = rig.agent("a");
    let root = Scope::root("without agents");
    let tasks = TaskRegistry::install(&root, Deps::default(), TasksConfig::default()).unwrap();
    tasks.attach_surface(&root, "test", Serves::Everyone).unwrap();
    let producer = Producer::new().on_cancel(OnCancel::Settle);
    let refused = tasks.start(owned(producer.spec("bash", "l"), Some(agent.agent())));
    assert_eq!(
        refused.unwrap_err().to_string(),
        "background task ownership requires the agent registry (load dsh-agent)"
    );
    assert!(tasks.list(Some(agent.agent())).is_empty() && producer.runs() == 0);
    assert_eq!(
        tasks.start(producer.spec("bash", "l")).unwrap().to_string(),
        "bash-1"
    );
    root.close().await.unwrap();
}

#[tokio::test]
async fn t37_an_unregistered_owner_is_refused_and_a_registered_one_cleaned_up() {
    let rig = Rig::new();
    let elsewhere = AgentRegistry::new();
    let spec = |within: &Scope| dsh_agent::AgentSpec {
        id: dsh_session::SessionId::new("a"),
        cwd: None,
        within: within.clone(),
    };
    let stranger = elsewhere.create(spec(&rig.root)).unwrap();
    let producer = Producer::new().on_cancel(OnCancel::Settle);
    let refused = rig
        .try_start(&producer, Some(stranger.agent()))
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("is not the registered agent instance"),
        "{refused}"
    );
    assert!(rig.ids(Some(stranger.agent())).is_empty() && producer.runs() == 0);
    let agent = rig.agent("a");
    assert_eq!(rig.start(&producer, Some(agent.agent())).to_string(), "bash-1");
    agent.dispose().await.unwrap();
    assert_eq!(producer.reasons(), ["owner disposed"]);
    assert!(rig.ids(Some(agent.agent())).is_empty());
}

#[tokio::test]
async fn t38_an_old_instance_starts_nothing_and_still_sees_its_sessions_tasks() {
    let rig = Rig::new();
    let old = rig.agent("a");
    old.dispose().await.unwrap();
    let new = rig.agent("a");
    let id = rig.start(&Producer::new(), Some(new.agent()));
    let late = Producer::new();
    assert!(rig.try_start(&late, Some(old.agent())).is_err());
    assert_eq!(late.runs(), 0);
    assert_eq!(rig.ids(Some(old.agent())), [id.to_string()]);
}
