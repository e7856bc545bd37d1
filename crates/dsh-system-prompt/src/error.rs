//! Refused registrations and failed assembly.

use dsh_scope::ScopeClosed;

/// Why a section or a variable was not registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// Section names are unique.
    #[error("prompt section \"{0}\" is already registered")]
    DuplicateSection(String),
    /// Variable names are unique.
    #[error("prompt variable \"{0}\" is already registered")]
    DuplicateVariable(String),
    /// No reference could name it.
    #[error(
        "prompt variable name \"{0}\" must be a lowercase letter, then lowercase letters, digits or underscores"
    )]
    VariableName(String),
    /// The scope it should live on is closing or closed.
    #[error(transparent)]
    ScopeClosed(#[from] ScopeClosed<()>),
}

/// Why there is no prompt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AssembleError {
    /// Nobody registered the variable.
    #[error("prompt section \"{section}\" refers to unknown variable \"{variable}\"")]
    UnknownVariable {
        /// Name of the section.
        section: String,
        /// Name in the reference.
        variable: String,
    },
    /// The variable is registered without a value.
    #[error("prompt section \"{section}\" refers to variable \"{variable}\", which has no value")]
    NoValue {
        /// Name of the section.
        section: String,
        /// Name in the reference.
        variable: String,
    },
    /// What stands between `{{` and `}}` is no variable name.
    #[error("prompt section \"{section}\" has a malformed reference \"{{{{{text}}}}}\"")]
    Malformed {
        /// Name of the section.
        section: String,
        /// What stands between the braces.
        text: String,
    },
}
