//! What a start is refused for, and what it leaves behind.

use std::sync::Arc;

use dsh_session::SessionId;
use dsh_tasks::{
    Deps, InstallError, MAX_LIMIT, Outcome, Serves, StartError, TaskRegistry, TasksConfig, Vocabulary,
};

use crate::common::{OnCancel, Producer, Rig, is_pending, limit, owned, settled};

const FENCE: &str = "background tasks unavailable: no control surface is attached (load dsh-tool-tasks)";

#[tokio::test]
async fn t01_the_owner_of_a_snapshot_is_its_session_or_nobody() {
    let rig = Rig::new();
    let agent = rig.agent("a");
    let of_agent = rig.start(&Producer::new(), Some(agent.agent()));
    let of_nobody = rig.start(&Producer::new(), None);
    let owner: Option<SessionId> = rig.status(&of_agent, Some(agent.agent())).owner;
    assert_eq!(owner, Some(SessionId::new("a")));
    assert_eq!(rig.status(&of_nobody, None).owner, None);
}

#[tokio::test]
async fn t02_without_a_surface_the_fence_refuses_before_anything_else() {
    let rig = Rig::bare(TasksConfig::default());
    let producer = Producer::new();
    // Everything else is wrong with it, too.
    let spec = producer.spec("", "").output_limit_bytes(0);
    assert_eq!(rig.tasks.start(spec).unwrap_err().to_string(), FENCE);
    assert_eq!(producer.runs(), 0);
}

#[tokio::test]
async fn t02_the_fence_speaks_the_other_vocabulary() {
    let rig = Rig::bare(TasksConfig {
        vocabulary: Vocabulary::Job,
        ..TasksConfig::default()
    });
    let refused = rig.try_start(&Producer::new(), None).unwrap_err().to_string();
    assert_eq!(
        refused,
        "background jobs unavailable: no job controller serves this agent (load dsh-tool-jobs in its composition)"
    );
}

#[tokio::test]
async fn t03_a_surface_of_a_scope_serves_the_agents_within_it_only() {
    let rig = Rig::bare(TasksConfig::default());
    let (with, without) = (
        rig.root.child("with").unwrap(),
        rig.root.child("without").unwrap(),
    );
    rig.tasks
        .attach_surface(&with, "panel", Serves::Within(with.clone()))
        .unwrap();
    let (inside, outside) = (rig.agent_within("a", &with), rig.agent_within("b", &without));
    assert!(rig.try_start(&Producer::new(), Some(inside.agent())).is_ok());
    let refused = rig
        .try_start(&Producer::new(), Some(outside.agent()))
        .unwrap_err();
    assert_eq!(refused.to_string(), FENCE);
    let refused = rig.try_start(&Producer::new(), None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        FENCE,
        "unowned work is served by everyone's surface only"
    );
    let served = [Some(inside.agent()), Some(outside.agent()), None].map(|owner| rig.tasks.serves(owner));
    assert_eq!(served, [true, false, false]);
}

#[tokio::test]
async fn t04_a_surface_for_everyone_serves_scoped_and_unowned_work() {
    let rig = Rig::new();
    let scope = rig.root.child("preset").unwrap();
    let agent = rig.agent_within("a", &scope);
    assert!(rig.try_start(&Producer::new(), Some(agent.agent())).is_ok());
    assert!(rig.try_start(&Producer::new(), None).is_ok());
}

#[tokio::test]
async fn t04_a_surface_that_was_detached_serves_nobody() {
    let rig = Rig::bare(TasksConfig::default());
    let surface = rig
        .tasks
        .attach_surface(&rig.root, "panel", Serves::Everyone)
        .unwrap();
    rig.start(&Producer::new(), None);
    surface.detach().await;
    let refused = rig.try_start(&Producer::new(), None).unwrap_err();
    assert_eq!(refused.to_string(), FENCE);
}

#[tokio::test]
async fn t05_kind_label_and_limit_are_checked_in_this_order() {
    let rig = Rig::new();
    let producer = Producer::new();
    let refused = |spec: dsh_tasks::StartSpec| rig.tasks.start(spec).unwrap_err().to_string();
    let spec = producer.spec("", "").output_limit_bytes(0);
    assert_eq!(refused(spec), "invalid task kind: expected a non-empty string");
    let spec = producer.spec("bash", "").output_limit_bytes(0);
    assert_eq!(refused(spec), "invalid task label: expected a non-empty string");
    let text = "invalid outputLimitBytes: expected a positive safe integer, got";
    assert_eq!(
        refused(producer.spec("bash", "l").output_limit_bytes(0)),
        format!("{text} 0")
    );
    let beyond = producer.spec("bash", "l").output_limit_bytes(MAX_LIMIT + 1);
    assert_eq!(refused(beyond), format!("{text} 9007199254740992"));
    assert_eq!(producer.runs(), 0);
}

#[tokio::test]
async fn t06_a_limit_beyond_what_json_can_hold_fails_the_installation() {
    // Zero, fractions and negative numbers cannot be written as this type.
    let rig = Rig::new();
    let installed = TaskRegistry::install(&rig.root, Deps::default(), limit(MAX_LIMIT + 1));
    let InstallError::Limit(9_007_199_254_740_992) = installed.unwrap_err() else {
        panic!("another error");
    };
}

#[tokio::test]
async fn t07_the_largest_limit_is_fine() {
    let rig = Rig::with(limit(MAX_LIMIT));
    assert!(rig.try_start(&Producer::new(), None).is_ok());
}

#[tokio::test]
async fn t08_the_eleventh_live_task_is_refused_by_default() {
    let rig = Rig::new();
    for _ in 0..10 {
        rig.start(&Producer::new(), None);
    }
    let eleventh = Producer::new();
    let refused = rig.try_start(&eleventh, None).unwrap_err().to_string();
    assert!(
        refused.starts_with("background task limit reached for this owner (limit: 10); "),
        "{refused}"
    );
    assert_eq!(eleventh.runs(), 0);
}

#[tokio::test(start_paused = true)]
async fn t09_a_refusal_advises_names_what_runs_and_burns_no_id() {
    let rig = Rig::with(limit(1));
    let first = Producer::new();
    rig.start(&first, None);
    let second = Producer::new();
    assert_eq!(
        rig.try_start(&second, None).unwrap_err().to_string(),
        "background task limit reached for this owner (limit: 1); use task_kill to stop an unneeded task, wait for it \
         to finish, then retry (running: bash-1 for 0s)"
    );
    assert_eq!(second.runs(), 0);
    first.settle(Outcome::completed());
    settled().await;
    assert_eq!(rig.start(&second, None).to_string(), "bash-2");
}

#[tokio::test(start_paused = true)]
async fn t09_a_refusal_names_ages() {
    let rig = Rig::with(limit(2));
    rig.start(&Producer::new(), None);
    tokio::time::advance(std::time::Duration::from_secs(172)).await;
    rig.start(&Producer::new(), None);
    tokio::time::advance(std::time::Duration::from_secs(12)).await;
    let refused = rig.try_start(&Producer::new(), None).unwrap_err().to_string();
    assert!(
        refused.ends_with("(running: bash-1 for 3m 4s, bash-2 for 12s)"),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn t09_a_refusal_names_the_newest_of_very_many() {
    let rig = Rig::with(limit(22));
    for _ in 1..=22 {
        rig.start(&Producer::new(), None);
    }
    let refused = rig.try_start(&Producer::new(), None).unwrap_err().to_string();
    let named: Vec<_> = (3..=22).map(|n| format!("bash-{n} for 0s")).collect();
    let expected = format!("(running: {}, and 2 more)", named.join(", "));
    assert!(refused.ends_with(&expected), "{refused}");
}

#[tokio::test]
async fn t10_a_kill_request_frees_no_slot() {
    let rig = Rig::with(limit(1));
    let first = Producer::new();
    let id = rig.start(&first, None);
    rig.tasks.kill(&id, None, None).unwrap().claim.deliver();
    assert!(matches!(
        rig.try_start(&Producer::new(), None),
        Err(StartError::Limit { .. })
    ));
    first.settle(Outcome::killed());
    settled().await;
    assert_eq!(rig.start(&Producer::new(), None).to_string(), "bash-2");
}

#[tokio::test(start_paused = true)]
async fn work_that_runs_already_is_never_refused_and_counts() {
    let rig = Rig::with(limit(1));
    let (first, left, next) = (Producer::new(), Producer::new(), Producer::new());
    rig.start(&first, None);
    let adopted = left.spec("bash", "left over").already_running();
    assert_eq!(rig.tasks.start(adopted).unwrap().to_string(), "bash-2");
    first.settle(Outcome::completed());
    settled().await;
    let refused = rig.try_start(&next, None).unwrap_err().to_string();
    assert!(refused.ends_with("(running: bash-2 for 0s)"), "{refused}");
}

#[tokio::test]
async fn t11_a_slot_is_freed_by_every_kind_of_end() {
    for outcome in [Outcome::completed(), Outcome::killed(), Outcome::failed()] {
        let rig = Rig::with(limit(1));
        let producer = Producer::new();
        rig.start(&producer, None);
        producer.settle(outcome);
        settled().await;
        assert!(rig.try_start(&Producer::new(), None).is_ok());
    }
}

#[tokio::test]
async fn t12_every_exact_owner_and_unowned_work_have_slots_of_their_own() {
    let rig = Rig::with(limit(1));
    let (a, b) = (rig.agent("a"), rig.agent("b"));
    let ending = Producer::new().on_cancel(OnCancel::Settle);
    rig.start(&ending, Some(a.agent()));
    rig.start(&Producer::new(), Some(b.agent()));
    rig.start(&Producer::new(), None);
    for full in [Some(a.agent()), Some(b.agent()), None] {
        assert!(matches!(
            rig.try_start(&Producer::new(), full),
            Err(StartError::Limit { .. })
        ));
    }
    a.dispose().await.unwrap();
    let again = rig.agent("a");
    assert!(rig.try_start(&Producer::new(), Some(again.agent())).is_ok());
    let refused = rig.try_start(&Producer::new(), Some(a.agent())).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "agent \"a\" is not the registered agent instance (background task owner must be live)"
    );
}

#[tokio::test]
async fn t13_ids_count_per_kind() {
    let rig = Rig::new();
    let kinds = ["bash", "bash", "subagent", "workflow", "pty-send"];
    let ids = kinds.map(|kind| {
        rig.tasks
            .start(Producer::new().spec(kind, "l"))
            .unwrap()
            .to_string()
    });
    assert_eq!(
        ids,
        ["bash-1", "bash-2", "subagent-1", "workflow-1", "pty-send-1"]
    );
}

#[tokio::test]
async fn a_starter_that_fails_or_panics_registers_nothing_and_burns_no_id() {
    let rig = Rig::with(limit(1));
    let fails = dsh_tasks::StartSpec::new("bash", "l", || Err("no such shell".into()));
    assert_eq!(rig.tasks.start(fails).unwrap_err().to_string(), "no such shell");
    let panics = dsh_tasks::StartSpec::new("bash", "l", || panic!("starter exploded"));
    assert_eq!(
        rig.tasks.start(panics).unwrap_err().to_string(),
        "starter exploded"
    );
    assert!(rig.ids(None).is_empty());
    assert_eq!(
        rig.start(&Producer::new(), None).to_string(),
        "bash-1",
        "and the slot is free"
    );
}

#[tokio::test]
async fn p3_a_nested_start_does_not_get_past_the_limit() {
    let rig = Rig::with(limit(1));
    let inner = Producer::new();
    let (tasks, nested) = (rig.tasks.clone(), inner.clone());
    let refusal = Arc::new(std::sync::Mutex::new(None));
    let seen = refusal.clone();
    let outer = dsh_tasks::StartSpec::new("bash", "outer", move || {
        *seen.lock().unwrap() = Some(tasks.start(nested.spec("bash", "inner")).unwrap_err().to_string());
        Ok(Producer::new().work())
    });
    assert_eq!(rig.tasks.start(outer).unwrap().to_string(), "bash-1");
    let refusal = refusal.lock().unwrap().clone().unwrap();
    assert!(
        refusal.ends_with("then retry"),
        "a start under way has no id to name: {refusal}"
    );
    assert_eq!(inner.runs(), 0);
}

#[tokio::test]
async fn a_nested_start_within_the_limit_gets_the_lower_number_and_is_listed_first() {
    let rig = Rig::new();
    let tasks = rig.tasks.clone();
    let outer = dsh_tasks::StartSpec::new("bash", "outer", move || {
        tasks.start(Producer::new().spec("bash", "inner"))?;
        Ok(Producer::new().work())
    });
    assert_eq!(rig.tasks.start(outer).unwrap().to_string(), "bash-2");
    assert_eq!(rig.ids(None), ["bash-1", "bash-2"]);
}

#[tokio::test]
async fn work_that_is_over_already_is_running_until_its_end_was_seen() {
    let rig = Rig::new();
    let producer = Producer::new();
    producer.settle(Outcome::completed());
    let id = rig.start(&producer, None);
    assert_eq!(rig.status(&id, None).status_line(), "[status: running]");
    settled().await;
    assert_eq!(rig.status(&id, None).status_line(), "[status: completed]");
}

#[tokio::test]
async fn an_owner_whose_scope_is_closing_starts_nothing_not_even_its_second_task() {
    let rig = Rig::new();
    let agent = rig.agent("a");
    let slow = Producer::new();
    rig.start(&slow, Some(agent.agent()));
    let disposal = agent.dispose();
    tokio::pin!(disposal);
    assert!(is_pending(disposal.as_mut()).await);
    let late = Producer::new();
    let refused = rig
        .tasks
        .start(owned(late.spec("bash", "late"), Some(agent.agent())))
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cannot create effect on inactive scope \"agent a\""
    );
    assert_eq!(late.runs(), 0);
    slow.settle(Outcome::killed());
    disposal.await.unwrap();
}

#[tokio::test]
async fn nor_does_one_whose_tasks_are_not_being_ended_yet() {
    let rig = Rig::new();
    let agent = rig.agent("a");
    let first = Producer::new().on_cancel(OnCancel::Settle);
    rig.start(&first, Some(agent.agent()));
    // Of what a scope holds, the last comes first: its tasks end after this.
    let gate = dsh_testkit::Gate::new();
    let opened = gate.clone();
    let scope = agent.agent().scope();
    scope
        .effect("plugin", || async move { opened.opened().await })
        .unwrap();
    let disposal = agent.dispose();
    tokio::pin!(disposal);
    assert!(is_pending(disposal.as_mut()).await);
    assert!(first.reasons().is_empty());
    let late = Producer::new();
    assert!(rig.try_start(&late, Some(agent.agent())).is_err());
    assert_eq!(late.runs(), 0);
    gate.open();
    disposal.await.unwrap();
}
