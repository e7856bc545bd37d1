//! What is asked of real products and real models, where somebody pays for it: `cargo xtask live`. Scripted models are asked
//! the same in every run of the tests, so that only the model is new then.

pub mod agent;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::product::subagent::{Freedom, PRESET, mount};
use crate::{Product, Room, Server, ServerOptions};

/// What a product is to say in the foreground, and in the background.
pub const WORDS: [&str; 2] = ["heliotrope", "marmalade"];

/// Delegates to a product in the foreground and in the background, and nothing is left of it.
///
/// # Panics
///
/// When it does not answer as it was told to.
pub async fn delegates(product: Product) {
    let [foreground, background] = WORDS;
    let room = Room::new();
    mount(&room, &[(&product, Freedom::Default)]);
    let work = room.work();
    let options = ServerOptions {
        arguments: &PRESET,
        ..ServerOptions::default()
    };
    let mut server = Server::spawn(room, &work, options);
    server.shake_hands().await;

    let call = server.send_call(product.tool(), task(foreground)).await;
    while !server.has_answered(call) {
        server.list().await;
        // sleep: a model takes seconds, and the answer comes before one to a later call.
        sleep(Duration::from_millis(300)).await;
    }
    let reply = server.reply(call).await;
    assert_says(reply.ok(), foreground);
    product.assert_clean();

    let mut task = task(background);
    task["run_in_background"] = json!(true);
    let started = server.call(product.tool(), task).await;
    assert_eq!(started.ok(), "started background subagent task subagent-1");
    let ended = loop {
        let reply = server.wait("subagent-1").await;
        if !reply.ok().ends_with("[status: running]") {
            break reply;
        }
    };
    let answer = ended.ok().strip_suffix("\n[status: completed]");
    assert_says(answer.unwrap_or_else(|| panic!("{ended:?}")), background);
    product.assert_clean();
    server.close().await;
}

fn task(word: &str) -> Value {
    json!({"description": "say a word", "prompt": asks_for(word)})
}

fn asks_for(word: &str) -> String {
    format!("Reply with exactly the word {word}. Use no tool, and say nothing else.")
}

/// Models are free with capitals and full stops.
fn assert_says(answer: &str, word: &str) {
    let said = answer.trim_matches(|character: char| !character.is_alphabetic());
    assert_eq!(said.to_lowercase(), word, "{answer:?}");
}
