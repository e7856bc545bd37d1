//! One task through its whole life.

use crate::common::{Producer, Rig};
use dsh_tasks::Outcome;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn one_life() {
    let rig = Rig::new();
    let agent = rig.agent("a");
    let owner = Some(agent.agent());
    let ends = rig.ends();
    let producer = Producer::stream();
    let id = rig.start(&producer, owner);
    assert_eq!(id.to_string(), "bash-1");
    producer.write("hello\n");
    let read = rig.tasks.read(&id, owner, 1000).unwrap();
    assert_eq!(read.text, "hello\n");
    read.claim.deliver();
    producer.settle(Outcome::completed().detail("exit code: 0"));
    let waited = rig
        .tasks
        .wait(&id, owner, 1000.0, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(waited.snapshot.status_line(), "[status: completed, exit code: 0]");
    assert!(ends.all().is_empty());
    waited.claim.deliver();
    crate::common::settled().await;
    assert_eq!(ends.reported(), [("bash-1".to_owned(), true)]);
    agent.dispose().await.unwrap();
    assert_eq!(
        rig.tasks.get(&id, owner).unwrap_err().to_string(),
        "unknown task bash-1"
    );
    rig.root.close().await.unwrap();
}
