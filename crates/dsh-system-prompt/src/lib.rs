//! The system prompt as ordered sections and variables.
//!
//! Whoever has something to say to the model about habits across calls (what a single tool does belongs in its
//! description) registers a [`Section`] on a scope; it is part of the prompt for as long as that scope lives. The prompt
//! is all sections in ascending order, empty ones left out, with one blank line between two.
//!
//! ```
//! use dsh_scope::Scope;
//! use dsh_system_prompt::{PromptRegistry, Section, Variable};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scope = Scope::root("harness");
//! let prompts = PromptRegistry::new();
//! prompts.variable(&scope, Variable::new("cwd", "/srv/project"))?;
//! prompts.section(&scope, Section::new("tool:bash", 105, "Commands run in {{cwd}}."))?;
//! prompts.section(&scope, Section::new("identity", -100, "You work in a test."))?;
//!
//! assert_eq!(prompts.assemble()?, "You work in a test.\n\nCommands run in /srv/project.");
//!
//! scope.close().await?;
//! assert_eq!(prompts.assemble()?, "");
//! # Ok(())
//! # }
//! ```
//!
//! # Orders
//!
//! Sections with the same order stand in the order of their registration; distinct numbers are better. In use: -100 the
//! identity, 0 the persona, 100 to 199 guidance for tools.
//!
//! # Variables
//!
//! `{{name}}` in a section stands for a registered variable; a name is a lowercase letter followed by lowercase letters,
//! digits and underscores. References are strict: `{{`, with a `}}` anywhere after it, must be a reference to a variable
//! that has a value, or assembling fails and names the section. `{{` with no `}}` after it, and `}}` alone, are prose.
//! A value is put in as it is: references in it are not looked for.

mod registry;
mod section;
mod variable;

mod error;

pub use error::{AssembleError, RegisterError};
pub use registry::PromptRegistry;
pub use section::Section;
pub use variable::Variable;
