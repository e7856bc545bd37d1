//! What observers are told, and what they cannot do.

use std::fmt;
use std::sync::Arc;

use dsh_llm::ContentBlock;
use dsh_subagent::{RunFault, RunInfo, RunResult, StopReason, SubagentEvent};
use dsh_testkit::{Gate, LogCapture, eventually};

use crate::rig::{Fake, Heard, Rig, gone, publish};

fn of_run(event: &SubagentEvent) -> &RunInfo {
    match event {
        SubagentEvent::Started(run) | SubagentEvent::Ended { run, .. } => run,
        SubagentEvent::ProviderAdded { .. } | SubagentEvent::ProviderRemoved { .. } => {
            panic!("{event:?} is of no run")
        }
    }
}

async fn ended(heard: &Heard) -> (StopReason, Option<Vec<ContentBlock>>) {
    eventually("the end", || heard.names().contains(&"end")).await;
    let end = heard.all().into_iter().find_map(|event| match event {
        SubagentEvent::Ended {
            stop,
            last_assistant_message,
            ..
        } => Some((stop, last_assistant_message)),
        _ => None,
    });
    end.unwrap()
}

#[tokio::test]
async fn s9_a_start_is_told_when_it_is_one_and_its_end_after_the_result() {
    let (started, over) = (Gate::new(), Gate::new());
    let (start, end) = (started.clone(), over.clone());
    let fake = Fake::new(move |request| {
        let (start, end) = (start.clone(), end.clone());
        async move {
            start.opened().await;
            let work = async move {
                end.opened().await;
                Ok(RunResult::completed("done"))
            };
            publish(request, work, gone()).await
        }
    });
    let rig = Rig::with(&fake);
    let heard = rig.hear(&rig.scope);
    let mut start = tokio_test::task::spawn(rig.start());
    assert!(start.poll().is_pending());
    eventually("the start", || fake.starts() == 1).await;
    assert!(heard.all().is_empty());
    started.open();
    let run = start.await.unwrap();
    assert_eq!(heard.names(), ["start"], "before the caller has the run");
    over.open();
    run.result().await.unwrap();
    ended(&heard).await;
    let all = heard.all();
    assert_eq!(heard.names(), ["start", "end"]);
    assert_eq!(of_run(&all[0]), of_run(&all[1]));
    let of = of_run(&all[0]);
    assert_eq!(
        (of.provider.as_str(), of.id.as_str(), &of.local),
        ("fake", "child", &None)
    );
    assert_eq!(
        (&of.parent, of.parent_instance),
        (rig.parent.agent().id(), rig.parent.agent().instance())
    );
    run.dispose().await.unwrap();
    assert_eq!(heard.names().len(), 2, "a disposal is no second end");
}

#[tokio::test]
async fn s10_two_runs_of_one_child_id_are_two() {
    let rig = Rig::with(&Fake::saying("at once"));
    let heard = rig.hear(&rig.scope);
    for _ in 0..2 {
        let run = rig.start().await.unwrap();
        run.result().await.unwrap();
        run.dispose().await.unwrap();
    }
    eventually("two ends", || heard.names().len() == 4).await;
    let all = heard.all();
    let mut ids: Vec<&str> = all.iter().map(|event| of_run(event).run_id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 2);
    // Also of a result that was there before anybody could ask.
    for id in ids {
        let of_one: Vec<_> = all.iter().filter(|event| of_run(event).run_id == id).collect();
        assert_eq!([of_one[0].name(), of_one[1].name()], ["start", "end"]);
    }
}

#[tokio::test]
async fn s12_an_end_says_why_and_what_was_said_last() {
    let rig = Rig::with(&Fake::saying("done"));
    let heard = rig.hear(&rig.scope);
    let run = rig.start().await.unwrap();
    assert_eq!(
        ended(&heard).await,
        (StopReason::Completed, Some(vec![ContentBlock::text("done")]))
    );
    run.dispose().await.unwrap();

    let silent = Fake::new(|request| {
        publish(
            request,
            async { Ok(RunResult::failed(StopReason::Refusal, None)) },
            gone(),
        )
    });
    let rig = Rig::with(&silent);
    let heard = rig.hear(&rig.scope);
    let run = rig.start().await.unwrap();
    assert_eq!(ended(&heard).await, (StopReason::Refusal, None));
    run.dispose().await.unwrap();

    let broken =
        Fake::new(|request| publish(request, async { Err(RunFault::new("transport gone")) }, gone()));
    let rig = Rig::with(&broken);
    let heard = rig.hear(&rig.scope);
    let run = rig.start().await.unwrap();
    assert_eq!(ended(&heard).await, (StopReason::Error, None));
    let fault = run.result().await.unwrap_err();
    assert_eq!(fault.to_string(), "transport gone");
    run.dispose().await.unwrap();
}

#[derive(Debug)]
struct Unprintable;

impl fmt::Display for Unprintable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("nobody can read this")
    }
}

impl std::error::Error for Unprintable {}

#[tokio::test]
async fn s13_observers_that_fail_stop_neither_each_other_nor_a_run() {
    let log = LogCapture::start();
    let rig = Rig::new();
    let only_removals = |event: &SubagentEvent, fail: fn() -> Result<(), dsh_agent::BoxError>| match event {
        SubagentEvent::ProviderAdded { .. } => Ok(()),
        _ => fail(),
    };
    let failing: [fn() -> Result<(), dsh_agent::BoxError>; 3] = [
        || panic!("sync boom"),
        || Err("async boom".into()),
        || Err(Unprintable.into()),
    ];
    for fail in failing {
        let listener = move |event: &SubagentEvent| only_removals(event, fail);
        rig.subagents.observe(&rig.scope, Arc::new(listener)).unwrap();
    }
    let last = rig.hear(&rig.scope);
    let handle = rig.provide("fake", &Fake::saying("done"));
    let run = rig.start().await.unwrap();
    assert_eq!(run.result().await.unwrap().text(), "done");
    ended(&last).await;
    run.dispose().await.unwrap();
    handle.dispose().await;
    assert_eq!(
        last.names(),
        ["provider-added", "start", "end", "provider-removed"]
    );
    for event in ["start", "end", "provider-removed"] {
        let threw = format!("subagent: {event} listener threw:");
        assert!(log.contains(&threw), "{threw} in {:?}", log.lines());
        assert!(log.contains(&format!("subagent: {event} listener rejected: async boom")));
        assert!(log.contains(&format!(
            "subagent: {event} listener rejected: <unrenderable thrown value>"
        )));
    }
    assert!(log.contains("sync boom"));
}

#[tokio::test]
async fn an_observer_is_called_as_long_as_its_scope() {
    let rig = Rig::new();
    let scope = rig.scope.child("observer").unwrap();
    let heard = rig.hear(&scope);
    rig.provide("one", &Fake::deaf());
    scope.close().await.unwrap();
    rig.provide("two", &Fake::deaf());
    assert_eq!(heard.names(), ["provider-added"]);
}
