//! `cargo xtask ci`: every step, then one table.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::workspace::Workspace;
use crate::{steps, test, tidy};

type Step = (&'static str, fn(&Workspace) -> Result<(), Error>);

/// Cheap steps first. A failing one does not stop the others: one run names everything that is wrong.
const STEPS: [Step; 7] = [
    ("fmt", steps::fmt),
    ("tidy", tidy::run),
    ("clippy", steps::clippy),
    ("test", |workspace| {
        test::run(workspace, &[], test::NotRun::IsAnError)
    }),
    ("soak", |workspace| test::soak(workspace, &[])),
    ("loom", steps::loom),
    ("docs", steps::docs),
];

/// Runs every step, prints the table, and fails with the names of the steps that failed.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Error> {
    let mut rows = Vec::new();
    for (name, step) in STEPS {
        eprintln!("\n=== {name} ===");
        let began = Instant::now();
        let result = step(workspace);
        if let Err(error) = &result {
            eprintln!("{name}: {error}");
        }
        rows.push(Row {
            name,
            result,
            took: began.elapsed(),
        });
    }
    print!("\n{}", table(&rows));
    let failing: Vec<String> = rows
        .iter()
        .filter(|row| row.result.is_err())
        .map(|row| row.name.to_owned())
        .collect();
    if failing.is_empty() {
        Ok(())
    } else {
        Err(Error::Steps(failing))
    }
}

struct Row {
    name: &'static str,
    result: Result<(), Error>,
    took: Duration,
}

fn table(rows: &[Row]) -> String {
    let mut text = format!("{:<8} {:<6} {:>9}\n", "step", "result", "time");
    for row in rows {
        let result = if row.result.is_ok() { "ok" } else { "FAILED" };
        text.push_str(&format!(
            "{:<8} {result:<6} {:>7.1} s",
            row.name,
            row.took.as_secs_f64()
        ));
        if let Err(error) = &row.result {
            text.push_str(&format!("  {error}"));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_the_failing_step() {
        let rows = [
            Row {
                name: "fmt",
                result: Ok(()),
                took: Duration::from_millis(1500),
            },
            Row {
                name: "tidy",
                result: Err(Error::Untidy(2)),
                took: Duration::ZERO,
            },
        ];
        assert_eq!(
            table(&rows),
            "step     result      time\n\
             fmt      ok         1.5 s\n\
             tidy     FAILED     0.0 s  tidy found 2 problem(s), listed above\n"
        );
    }
}
