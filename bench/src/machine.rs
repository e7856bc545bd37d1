//! What the figures were taken on.

use crate::Effort;

/// One sentence about the machine, what else it does, and how many samples there were.
pub(crate) fn describe(effort: Effort) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown", |model| model.trim_start_matches([':', '\t', ' ']));
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or("unknown");
    let class = match policy(&read("/proc/self/stat")) {
        Some(1 | 2) => "real-time class",
        Some(_) | None => "normal class",
    };
    let samples = match effort {
        Effort::Quick => "few samples",
        Effort::Full => "all samples",
    };
    format!(
        "{cores} cores ({model}), Linux {}, load {load} at the start, {class}, {samples}. Median [min..max].",
        kernel.trim()
    )
}

/// The scheduling policy, by the kernel's number: the 41st word, counted from behind the name, which may hold spaces.
fn policy(stat: &str) -> Option<u32> {
    let (_, words) = stat.rsplit_once(") ")?;
    words.split(' ').nth(38)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_is_read_past_a_name_with_spaces() {
        let words: Vec<String> = (3..=52).map(|word| word.to_string()).collect();
        let stat = format!("1 (a) b) {}", words.join(" "));
        assert_eq!(policy(&stat), Some(41));
        assert_eq!(policy(""), None);
    }
}
