//! How many agents stand above one.

use dsh_agent::Agent;

/// The largest depth: the largest whole number that every JSON reader keeps exactly.
pub const MAX_DEPTH: u64 = 9_007_199_254_740_991;

/// Why a child would stand too deep.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DepthError {
    /// The limit is none.
    #[error("subagent max_depth must be a non-negative safe integer")]
    Malformed,
    /// The limit is reached.
    #[error("subagent depth {depth} exceeds max_depth {max}")]
    Exceeded {
        /// Where the child would stand.
        depth: u64,
        /// How deep it may.
        max: u64,
    },
    /// There is no number for it.
    #[error("subagent child depth exceeds the safe-integer range")]
    Overflow,
}

/// How many agents would stand above a child of `parent`: one more than above the parent, of which its session knows.
///
/// # Errors
///
/// [`DepthError::Exceeded`] where that is more than `max`, [`DepthError::Overflow`] where there is no number for it.
pub fn child_depth(parent: &Agent, max: Option<u64>) -> Result<u64, DepthError> {
    let depth = parent.session().header().delegation_depth + 1;
    if depth > MAX_DEPTH {
        return Err(DepthError::Overflow);
    }
    match max {
        Some(max) if depth > max => Err(DepthError::Exceeded { depth, max }),
        Some(_) | None => Ok(depth),
    }
}

/// Whether a limit is one.
///
/// # Errors
///
/// [`DepthError::Malformed`].
pub fn check_max_depth(max: u64) -> Result<(), DepthError> {
    if max > MAX_DEPTH {
        return Err(DepthError::Malformed);
    }
    Ok(())
}
