//! The beginning of what `cargo xtask chaos` does for longer, always the same.

use tests::chaos::Found;

const SEED: u64 = 1;
/// One whose lives are short.
const AGENTS: u64 = 7;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_over_the_server_finds_nothing() {
    nothing_is_wrong(&tests::chaos::servers(SEED).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_over_agents_finds_nothing() {
    nothing_is_wrong(&tests::chaos::agents(AGENTS).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rounds_over_the_registry_find_nothing() {
    for seed in SEED..SEED + 6 {
        nothing_is_wrong(&tests::chaos::registry(seed).await);
    }
}

fn nothing_is_wrong(found: &Found) {
    assert!(found.faults.is_empty(), "{}", found.faults.join("\n"));
    assert!(found.tasks > 10, "{} tasks are no chaos", found.tasks);
}
