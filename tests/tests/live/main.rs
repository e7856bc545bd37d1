//! Real products and real models, for whoever has a key and wants to pay: `cargo xtask live`. No other command runs these
//! tests, and without a key each fails.

use tests::Product;
use tests::live::{self, agent};
use tests::product::Endpoint;

#[tokio::test]
async fn codex_says_what_it_is_told_to() {
    live::delegates(Product::codex_at(&Endpoint::live("OPENAI")).await).await;
}

#[tokio::test]
async fn claude_says_what_it_is_told_to() {
    live::delegates(Product::claude_at(&Endpoint::live("ANTHROPIC")).await).await;
}

#[tokio::test]
async fn deepseek_says_a_word() {
    agent::answers(&Endpoint::live("DEEPSEEK")).await;
}

#[tokio::test]
async fn deepseek_looks_waits_kills_and_is_woken() {
    agent::looks_waits_kills_and_is_woken(&Endpoint::live("DEEPSEEK"), 25).await;
}
