//! What comes of a child, and what is left of it.

use dsh_session::TurnEnd;
use dsh_subagent::StopReason;
use dsh_testkit::eventually;

use crate::nursery::Nursery;

#[tokio::test]
async fn s110_s113_a_fresh_child_knows_its_task_and_nothing_else() {
    let nursery = Nursery::new();
    crate::nursery::talk(nursery.parent().session(), "before", "known to the parent");
    let (run, mut child) = nursery.spawn().await;
    assert!(child.agent.session().is_empty());
    assert_eq!(child.says("the answer").await, ["the task"]);
    let result = run.result().await.expect("a result");
    assert_eq!(
        (result.text().as_str(), &result.stop, &result.diagnostic),
        ("the answer", &StopReason::Completed, &None)
    );
    assert_eq!(result.structured, None);
    drop(child);
    nursery.close().await;
}

#[tokio::test]
async fn s117_s118_what_ends_a_turn_is_what_ends_the_run() {
    let error = TurnEnd::Error {
        step: 1,
        message: "the model is on holiday".to_owned(),
        code: None,
    };
    let aborted = TurnEnd::Aborted {
        reason: "by somebody".to_owned(),
    };
    for (end, stop, text, diagnostic) in [
        (TurnEnd::Completed, StopReason::Completed, "part", None),
        (TurnEnd::MaxTokens, StopReason::MaxTokens, "part", None),
        (error, StopReason::Error, "", Some("the model is on holiday")),
        (aborted, StopReason::Aborted, "part", None),
    ] {
        let nursery = Nursery::new();
        let (run, mut child) = nursery.spawn().await;
        child
            .turn(async |doing| {
                doing.say("part");
                end.clone()
            })
            .await;
        let result = run.result().await.expect("a result");
        assert_eq!((&result.stop, result.text().as_str()), (&stop, text));
        let said = result.diagnostic.as_ref().map(|said| said.as_str());
        assert_eq!(said, diagnostic);
        drop(child);
        nursery.close().await;
    }
}

#[tokio::test]
async fn the_answer_is_the_last_message_that_has_text() {
    let nursery = Nursery::new();
    let (run, mut child) = nursery.spawn().await;
    child
        .turn(async |doing| {
            doing.say("first");
            doing.say("the answer");
            doing.think("hm");
            doing.say("");
            TurnEnd::Completed
        })
        .await;
    assert_eq!(run.result().await.expect("a result").text(), "the answer");
    drop(child);
    nursery.close().await;
}

#[tokio::test]
async fn s121_a_cancellation_before_the_first_turn_is_no_failure() {
    let nursery = Nursery::new();
    let (run, child) = nursery.spawn().await;
    run.cancel();
    let result = run.result().await.expect("a result");
    assert_eq!(result.stop, StopReason::Aborted);
    assert!(result.output.is_empty() && result.diagnostic.is_none());
    assert!(child.agent.session().is_empty(), "no turn was opened");
    drop(child);
    run.dispose().await.expect("it goes");
    nursery.close().await;
}

#[tokio::test]
async fn s75_s122_a_child_at_work_is_aborted_at_once() {
    let nursery = Nursery::new();
    let (run, mut child) = nursery.spawn().await;
    let cancelled = run.clone();
    child
        .turn(async |doing| {
            doing.say("so far");
            cancelled.cancel();
            let result = cancelled.result().await.expect("a result");
            assert_eq!(
                (result.text().as_str(), result.stop),
                ("so far", StopReason::Aborted)
            );
            // It is told, and what it says after that changes nothing.
            doing.turn.token().cancelled().await;
            doing.say("too late");
            TurnEnd::Aborted {
                reason: String::new(),
            }
        })
        .await;
    drop(child);
    run.dispose().await.expect("it goes");
    nursery.close().await;
}

#[tokio::test]
async fn s123_a_disposal_alone_aborts_a_child_at_work() {
    let nursery = Nursery::new();
    let (run, mut child) = nursery.spawn().await;
    let (disposed, agents) = (run.clone(), nursery.agents.clone());
    let id = child.agent.id().clone();
    let working = async move {
        child
            .turn(async |doing| {
                doing.say("so far");
                doing.turn.token().cancelled().await;
                TurnEnd::Disposed
            })
            .await;
    };
    let disposing = async {
        eventually("it is at work", || !run_log_is_empty(&run)).await;
        disposed.dispose().await.expect("it goes");
    };
    tokio::join!(working, disposing);
    let result = run.result().await.expect("a result");
    assert_eq!(result.stop, StopReason::Aborted);
    assert!(agents.get(&id).is_none());
    nursery.close().await;
}

fn run_log_is_empty(run: &dsh_subagent::Run) -> bool {
    run.local_agent()
        .expect("it is in this process")
        .session()
        .is_empty()
}

#[tokio::test]
async fn a_turn_that_a_notice_opened_is_cut_short_although_the_one_before_was_complete() {
    let nursery = Nursery::new();
    let (run, mut child) = nursery.spawn().await;
    let cancelled = run.clone();
    let agent = child.agent.clone();
    child
        .turn(async |doing| {
            doing.say("first");
            // What is asked now opens the next turn, before the child rests.
            agent
                .follow_up(dsh_session::Message::user("more"))
                .expect("it lives");
            TurnEnd::Completed
        })
        .await;
    child
        .turn(async |doing| {
            doing.say("second, half");
            cancelled.cancel();
            let result = cancelled.result().await.expect("a result");
            assert_eq!(result.stop, StopReason::Aborted);
            TurnEnd::Aborted {
                reason: String::new(),
            }
        })
        .await;
    drop(child);
    nursery.close().await;
}

#[tokio::test]
async fn what_a_child_left_running_is_named_and_ends_with_it() {
    let nursery = Nursery::new();
    nursery.start_task(nursery.parent(), "of the parent");
    let (run, mut child) = nursery.spawn().await;
    let agent = child.agent.clone();
    nursery.start_task(&agent, "make");
    nursery.start_task(&agent, "serve\nport 80");
    child.says("It runs.").await;
    let result = run.result().await.expect("a result");
    assert_eq!(
        result.text(),
        "It runs.\n[ended with the subagent: sleep-2 (sleep: make), sleep-3 (sleep: serve port 80)]"
    );
    drop(child);
    run.dispose().await.expect("it goes");
    let left = nursery.tasks.list(Some(nursery.parent()));
    let ids: Vec<String> = left.iter().map(|task| task.id.to_string()).collect();
    assert_eq!(ids, ["sleep-1"], "the parent's own goes on");
    nursery.close().await;
}

#[tokio::test]
async fn nothing_more_is_asked_of_a_child_that_has_answered() {
    let nursery = Nursery::new();
    let (run, mut child) = nursery.spawn().await;
    child.says("The answer.").await;
    run.result().await.expect("a result");
    let refused = child.agent.follow_up(dsh_session::Message::user("more"));
    refused.expect_err("it has answered");
    drop(child);
    nursery.close().await;
}

#[tokio::test]
async fn a_parent_that_goes_takes_its_children_along() {
    let nursery = Nursery::new();
    let (run, child) = nursery.spawn().await;
    let id = child.agent.id().clone();
    drop(child);
    nursery.parent().scope().close().await.expect("it closes");
    assert!(nursery.agents.get(&id).is_none());
    assert_eq!(run.result().await.expect("a result").stop, StopReason::Aborted);
    nursery.close().await;
}
