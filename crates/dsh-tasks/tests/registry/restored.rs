//! Tasks of an earlier harness.

use dsh_tasks::{EndedTask, KillOutcome, Outcome, TaskId, TaskStatus};
use tokio_util::sync::CancellationToken;

use crate::common::{Producer, Rig};

const LOST: &str = "[status: failed, interrupted: the harness ended]";

fn lost(id: &str) -> EndedTask {
    EndedTask::interrupted(TaskId::from(id), "make")
}

#[tokio::test]
async fn a_restored_task_has_ended_and_its_number_is_taken() {
    let rig = Rig::new();
    let a = rig.agent("a");
    rig.tasks
        .restore_ended(a.agent(), [lost("bash-7"), lost("subagent-2")])
        .await
        .unwrap();
    let task = rig.tasks.get(&TaskId::from("bash-7"), Some(a.agent())).unwrap();
    assert_eq!(task.status_line(), LOST);
    assert_eq!(task.list_line(), "bash-7 [bash] failed — make");
    assert_eq!(rig.start(&Producer::new(), Some(a.agent())).as_str(), "bash-8");
    let list = rig.tasks.list(Some(a.agent())).into_iter();
    let ids: Vec<String> = list.map(|task| task.id.to_string()).collect();
    assert_eq!(ids, ["bash-7", "subagent-2", "bash-8"]);
}

#[tokio::test]
async fn an_id_that_no_registry_gives_is_left_out_and_counting_goes_on() {
    let rig = Rig::new();
    let a = rig.agent("a");
    let odd = ["bash-18446744073709551615", "bash-9007199254740992", "bash", "-1"];
    let tasks = odd.map(lost).into_iter().chain([lost("bash-3")]);
    rig.tasks.restore_ended(a.agent(), tasks).await.unwrap();
    for id in odd {
        assert!(rig.tasks.get(&TaskId::from(id), Some(a.agent())).is_err(), "{id}");
    }
    assert_eq!(rig.start(&Producer::new(), Some(a.agent())).as_str(), "bash-4");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_restored_twice_is_one() {
    let rig = Rig::new();
    let ends = rig.ends();
    let a = rig.agent("a");
    let tasks = [lost("bash-1"), lost("bash-1")];
    let restored = async {
        rig.tasks.restore_ended(a.agent(), tasks).await.unwrap();
        rig.tasks
            .restore_ended(a.agent(), [lost("bash-1")])
            .await
            .unwrap();
        a.dispose().await.unwrap();
    };
    let soon = std::time::Duration::from_secs(1);
    assert!(
        tokio::time::timeout(soon, restored).await.is_ok(),
        "it waits for an end that was told"
    );
    assert_eq!(ends.reported(), [("bash-1".to_owned(), false)]);
}

#[tokio::test]
async fn every_operation_finds_it_ended() {
    let rig = Rig::new();
    let a = rig.agent("a");
    let ended = Outcome::completed().detail("exit code: 3");
    let task = EndedTask::new(TaskId::from("bash-1"), "make", ended);
    rig.tasks.restore_ended(a.agent(), [task]).await.unwrap();
    let (id, caller) = (TaskId::from("bash-1"), Some(a.agent()));
    let read = rig.tasks.read(&id, caller, 100).unwrap();
    assert_eq!(
        (read.text.as_str(), read.snapshot.status),
        ("", TaskStatus::Completed)
    );
    assert_eq!(read.snapshot.status_line(), "[status: completed, exit code: 3]");
    let waited = rig
        .tasks
        .wait(&id, caller, 1.0, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(waited.snapshot.status, TaskStatus::Completed);
    let killed = rig.tasks.kill(&id, caller, None).unwrap();
    assert_eq!(killed.outcome, KillOutcome::AlreadyFinished);
    assert_eq!(rig.tasks.observe(&id, caller, 0, 100).unwrap().text, "");
}

#[tokio::test]
async fn what_is_news_is_announced_before_restoring_returns_and_what_is_not_never_is() {
    let rig = Rig::new();
    let ends = rig.ends();
    let a = rig.agent("a");
    let tasks = [lost("bash-1").told(), lost("bash-2")];
    rig.tasks.restore_ended(a.agent(), tasks).await.unwrap();
    let ends = ends.all();
    let [end] = ends.as_slice() else {
        panic!("{ends:?}")
    };
    assert_eq!(end.snapshot.id.as_str(), "bash-2");
    assert!(!end.snapshot.reported);
    assert_eq!(end.owner.as_ref().unwrap().instance(), a.agent().instance());
    let told = rig.tasks.get(&TaskId::from("bash-1"), Some(a.agent())).unwrap();
    assert!(told.reported);
}

#[tokio::test]
async fn two_sessions_may_have_had_a_task_of_the_same_name() {
    let rig = Rig::new();
    let ends = rig.ends();
    let (a, b, c) = (rig.agent("a"), rig.agent("b"), rig.agent("c"));
    let live = rig.start(&Producer::new(), Some(a.agent()));
    assert_eq!(live.as_str(), "bash-1");
    for agent in [&b, &c] {
        rig.tasks
            .restore_ended(agent.agent(), [lost("bash-1")])
            .await
            .unwrap();
    }
    let status = |agent| rig.tasks.get(&live, Some(agent)).unwrap().status_line();
    assert_eq!(status(a.agent()), "[status: running]");
    assert_eq!(status(b.agent()), LOST);
    assert_eq!(status(c.agent()), LOST);
    assert_eq!(ends.all().len(), 2);
    // Told by one, it is news to the other still.
    rig.tasks.read(&live, Some(b.agent()), 1).unwrap().claim.deliver();
    assert!(rig.tasks.get(&live, Some(b.agent())).unwrap().reported);
    assert!(!rig.tasks.get(&live, Some(c.agent())).unwrap().reported);
    b.dispose().await.unwrap();
    assert_eq!(status(c.agent()), LOST);
    assert_eq!(status(a.agent()), "[status: running]");
}

#[tokio::test]
async fn a_restored_task_is_its_sessions_alone_and_goes_with_its_owner() {
    let rig = Rig::new();
    let (a, b) = (rig.agent("a"), rig.agent("b"));
    rig.tasks
        .restore_ended(a.agent(), [lost("bash-1")])
        .await
        .unwrap();
    let id = TaskId::from("bash-1");
    for caller in [Some(b.agent()), None] {
        let refusal = rig.tasks.get(&id, caller).unwrap_err().to_string();
        assert_eq!(refusal, "task bash-1 belongs to another session");
        assert!(rig.tasks.list(caller).is_empty());
    }
    a.dispose().await.unwrap();
    let refusal = rig.tasks.get(&id, Some(b.agent())).unwrap_err().to_string();
    assert_eq!(refusal, "unknown task bash-1");
    let next = rig.start(&Producer::new(), Some(b.agent()));
    assert_eq!(next.as_str(), "bash-2", "its number stays taken");
}

#[tokio::test]
async fn no_tasks_are_restored_for_an_agent_that_is_gone_and_strange_ids_are_left_out() {
    let rig = Rig::new();
    let a = rig.agent("a");
    rig.tasks
        .restore_ended(a.agent(), [lost("bash"), lost("-3")])
        .await
        .unwrap();
    assert!(rig.tasks.list(Some(a.agent())).is_empty());
    a.dispose().await.unwrap();
    let refused = rig.tasks.restore_ended(a.agent(), [lost("bash-1")]).await;
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("not the registered agent instance")
    );
}
