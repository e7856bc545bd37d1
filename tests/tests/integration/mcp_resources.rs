//! Each task is a resource: seen without being told, and never consumed.

use serde_json::json;
use tests::Server;

#[tokio::test]
async fn a_task_is_listed_and_read_without_consuming_or_telling() {
    let mut server = Server::start().await;
    let id = server.background("echo hello").await;
    server.until_resource_says(&id, "completed").await;
    let list = server.request("resources/list", json!({})).await;
    let resources = list["result"]["resources"].as_array().expect("resources").clone();
    assert_eq!(resources.len(), 1, "{list}");
    assert_eq!(resources[0]["uri"], "dsh://task/bash-1");
    assert_eq!(resources[0]["mimeType"], "text/plain");

    let read = server
        .request("resources/read", json!({"uri": "dsh://task/bash-1"}))
        .await;
    let text = read["result"]["contents"][0]["text"]
        .as_str()
        .expect("text")
        .to_owned();
    assert!(text.contains("hello") && text.contains("completed"), "{text}");

    let told = server.output(&id).await;
    assert_eq!(
        told.ok(),
        "hello\n[status: completed, exit code: 0]",
        "still unread for the model"
    );
    server.close().await;
}

#[tokio::test]
async fn a_subscriber_hears_of_the_end() {
    let mut server = Server::start().await;
    let id = server.background("until [ -e go ]; do sleep 0.05; done").await;
    let uri = format!("dsh://task/{id}");
    let subscribed = server.request("resources/subscribe", json!({"uri": uri})).await;
    assert!(subscribed["result"].is_object(), "{subscribed}");
    server.room.go();
    loop {
        let heard = server.other().await;
        if heard["method"] != "notifications/resources/updated" {
            continue;
        }
        assert_eq!(heard["params"]["uri"], uri.as_str());
        let read = server.request("resources/read", json!({"uri": uri})).await;
        let text = read["result"]["contents"][0]["text"]
            .as_str()
            .expect("text")
            .to_owned();
        if text.contains("[status: completed, exit code: 0]") {
            break;
        }
    }
    let removed = server.request("resources/unsubscribe", json!({"uri": uri})).await;
    assert!(removed["result"].is_object(), "{removed}");
    server.close().await;
}

#[tokio::test]
async fn a_resource_that_is_not_there_is_an_error() {
    let mut server = Server::start().await;
    for uri in [
        "dsh://task/bash-1",
        "dsh://other/bash-1",
        "file:///etc/passwd",
        "not a uri",
    ] {
        let read = server.request("resources/read", json!({"uri": uri})).await;
        assert!(
            read["error"]["message"]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
            "{uri}: {read}"
        );
    }
    assert_eq!(server.bash("echo alive").await.ok(), "alive\n");
    server.close().await;
}
