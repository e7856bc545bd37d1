//! Directories whose file system does not answer.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::harness::{Harness, Setup};
use crate::played::{Hung, pass};

fn harness() -> Harness {
    Setup {
        executor: Some(Arc::new(Hung)),
        ..Setup::default()
    }
    .harness()
}

fn args(background: bool) -> Value {
    json!({ "command": "make", "description": "x", "workdir": "/gone", "timeoutMs": 700, "run_in_background": background })
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_at_its_own_time_and_names_the_directory() {
    for background in [false, true] {
        let harness = harness();
        let begun = tokio::time::Instant::now();
        let result = harness.call(args(background)).await;
        assert!(result.is_error);
        assert_eq!(
            result.single_text().unwrap(),
            "Error: working directory /gone does not answer: nothing was heard within 700ms, so nothing was \
             started; see whether its file system is still there"
        );
        assert_eq!(begun.elapsed(), Duration::from_millis(700));
        assert!(harness.tasks.list(Some(harness.owner.agent())).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_waits_for_no_directory() {
    for background in [false, true] {
        let harness = harness();
        let token = CancellationToken::new();
        let begun = tokio::time::Instant::now();
        let call = harness.call_for(Some(harness.owner.agent()), args(background), token.clone());
        let cancels = async {
            pass(Duration::from_millis(100)).await;
            token.cancel();
        };
        let (result, ()) = tokio::join!(call, cancels);
        assert!(result.is_error);
        assert_eq!(begun.elapsed(), Duration::from_millis(100));
        assert!(harness.tasks.list(Some(harness.owner.agent())).is_empty());
    }
}
