//! The table, as Markdown.

use crate::row::{Row, Target, Verdict};

/// The machine, then every row.
pub(crate) fn render(machine: &str, rows: &[Row]) -> String {
    let mut text = format!("{machine}\n\n");
    text.push_str("| what | ours | floor | ratio | target | met |\n|---|---|---|---|---|---|\n");
    for row in rows {
        let ours = row.ours.shown(|value| row.unit.shown(value));
        let (floor, ratio) = match &row.beside {
            None => ("–".to_owned(), "–".to_owned()),
            Some(beside) => (
                format!(
                    "{}: {}",
                    beside.name,
                    beside.floor.shown(|value| row.unit.shown(value))
                ),
                beside.ratio.shown(|value| format!("{value:.2}")),
            ),
        };
        let target = match row.target {
            Target::RatioAtMost(most) => format!("≤ {most} ×"),
            Target::RatioAtLeast(least) => format!("≥ {least} ×"),
            Target::AtMost(most) => format!("≤ {}", row.unit.shown(most)),
            Target::Nothing => "–".to_owned(),
        };
        let met = match row.verdict() {
            Verdict::Met => "yes",
            Verdict::Missed => "**no**",
            Verdict::None => "",
        };
        let what = &row.what;
        text.push_str(&format!(
            "| {what} | {ours} | {floor} | {ratio} | {target} | {met} |\n"
        ));
    }
    text
}
