//! What real products and models are asked, asked of scripted ones.

use tests::live::{self, agent};
use tests::product::Endpoint;
use tests::{ModelServer, Product, Turn, Wire};

fn words() -> [Turn; 2] {
    // As a model would.
    live::WORDS.map(|word| Turn::Text(format!("{}.", word.to_uppercase())))
}

#[tokio::test]
async fn codex_for_a_real_model_says_what_it_is_told_to() {
    let model = ModelServer::start(Wire::Responses, words()).await;
    live::delegates(Product::codex_at(&Endpoint::local(&model)).await).await;
    assert_eq!(model.strangers(), [""; 0]);
}

#[tokio::test]
async fn claude_for_a_real_model_says_what_it_is_told_to() {
    let model = ModelServer::start(Wire::Messages, words()).await;
    live::delegates(Product::claude_at(&Endpoint::local(&model)).await).await;
    assert_eq!(model.strangers(), [""; 0]);
}

#[tokio::test]
async fn a_model_that_does_as_it_is_told_says_a_word() {
    let model = ModelServer::start(Wire::Chat, [Turn::text(agent::WORD)]).await;
    agent::answers(&Endpoint::local(&model)).await;
}

#[tokio::test]
async fn a_model_that_does_as_it_is_told_looks_waits_kills_and_is_woken() {
    let model = ModelServer::start(Wire::Chat, agent::to_the_letter()).await;
    agent::looks_waits_kills_and_is_woken(&Endpoint::local(&model), 1).await;
}
