use super::*;

#[test]
fn no_output_closes_its_fence() {
    for text in ["", "plain", "```", "a ```` b", "`````````"] {
        let shown = console(text, None);
        let fence = shown.split("console").next().unwrap();
        assert!(fence.len() >= 3 && !text.contains(fence), "{shown}");
        assert!(shown.ends_with(fence), "{shown}");
    }
}
