//! `cargo xtask live`: real products and real models, for whoever has a key and wants to pay.

use crate::error::Error;
use crate::nextest::Nextest;
use crate::workspace::Workspace;
use crate::{foreign, process, test};

/// A key, and the tests of the target `live` that need it: their names begin with this.
struct Key {
    variable: &'static str,
    tests: &'static str,
}

const KEYS: [Key; 3] = [
    Key {
        variable: "OPENAI_API_KEY",
        tests: "codex_",
    },
    Key {
        variable: "ANTHROPIC_API_KEY",
        tests: "claude_",
    },
    Key {
        variable: "DEEPSEEK_API_KEY",
        tests: "deepseek_",
    },
];

/// Runs what there is a key for, and names what there is none for.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Error> {
    let (there, missing): (Vec<&Key>, Vec<&Key>) = KEYS.iter().partition(|key| {
        let value = std::env::var_os(key.variable);
        value.is_some_and(|value| !value.is_empty())
    });
    for key in &missing {
        println!("NOT RUN, there is no {}: live tests {}*", key.variable, key.tests);
    }
    let filter = filter(&there).ok_or_else(no_key)?;
    let mut tests = test::with_programs(workspace, Nextest::ready(workspace)?.command("run"))?;
    for foreign in foreign::prepare_products(workspace) {
        // Without a product, a test says itself what it misses.
        match foreign.program {
            Ok(program) => _ = tests.env(foreign.variable, program),
            Err(error) => eprintln!("{}: {error}", foreign.name),
        }
    }
    tests
        .args(["--package", "tests", "--test", "live", "--profile", "live"])
        .args(["--no-tests", "fail", "--filterset", &filter])
        .env("DSH_LIVE", "1");
    process::run(tests.args(arguments))
}

/// A filter for what these keys permit; `None` if there are none.
fn filter(keys: &[&Key]) -> Option<String> {
    let tests = keys.iter().map(|key| format!("test(/^{}/)", key.tests));
    let tests = tests.collect::<Vec<_>>().join(" | ");
    (!tests.is_empty()).then_some(tests)
}

fn no_key() -> Error {
    Error::NotRun(format!(
        "live tests need a key, in {}",
        KEYS.map(|key| key.variable).join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_there_is_a_key_for_is_run_and_nothing_without_one() {
        assert_eq!(filter(&[]), None);
        assert_eq!(filter(&[&KEYS[0]]).as_deref(), Some("test(/^codex_/)"));
        let two = [&KEYS[0], &KEYS[2]];
        assert_eq!(
            filter(&two).as_deref(),
            Some("test(/^codex_/) | test(/^deepseek_/)")
        );
        let said = no_key().to_string();
        assert!(KEYS.iter().all(|key| said.contains(key.variable)), "{said}");
    }
}
