//! The beginning of what `cargo xtask chaos` does for longer, always the same.

const SEED: u64 = 1;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_over_the_server_finds_nothing() {
    let faults = tests::chaos::servers(SEED).await;
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_rounds_over_the_registry_find_nothing() {
    for seed in SEED..SEED + 10 {
        let faults = tests::chaos::registry(seed).await;
        assert!(faults.is_empty(), "registry {seed}: {}", faults.join("\n"));
    }
}
