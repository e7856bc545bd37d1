//! What can be wrong with a script.

use std::{fmt, io, path::PathBuf};

use dsh_session::StoreError;

/// Why there is no script.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read script {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The recorded session cannot be read.
    #[error("cannot replay: {0}")]
    Log(#[from] StoreError),
    /// It is no script.
    #[error("script {name} is wrong: {}", listed(faults))]
    Wrong {
        /// Which one.
        name: String,
        /// All that is wrong with it.
        faults: Vec<Fault>,
    },
}

/// One thing that is wrong with a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where, such as `turns[2].tool_calls[0].name`; empty for the whole.
    pub place: String,
    /// What.
    pub problem: String,
}

/// How a script and the calls that were made differ.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("script {name}: {}", problems.join("; "))]
pub struct ScriptMisfit {
    /// Which script.
    pub name: String,
    /// The differences: calls that were refused, in order, then turns that were never asked for.
    pub problems: Vec<String>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() {
            f.write_str(&self.problem)
        } else {
            write!(f, "{}: {}", self.place, self.problem)
        }
    }
}

fn listed(faults: &[Fault]) -> String {
    let faults: Vec<_> = faults.iter().map(Fault::to_string).collect();
    faults.join("; ")
}
