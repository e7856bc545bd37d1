//! What can be set, and what an editor can choose.

use std::path::PathBuf;

use agent_client_protocol::v1::schema::{
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelectOption,
};
use dsh_agent_loop::ModelChoice;

/// The id of the option that chooses the model.
pub(crate) const MODEL: &str = "model";

/// What a program decides about the sessions of an editor.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The directory of the sessions' logs, one file each. It is made when the first session is.
    pub sessions: PathBuf,
    /// The models that the editor may choose from, besides the configured one.
    pub models: Vec<ModelChoice>,
}

/// The choices of the editor, the configured model first.
#[derive(Debug, Clone)]
pub(crate) struct Choices(Vec<ModelChoice>);

impl Choices {
    pub(crate) fn new(configured: ModelChoice, others: Vec<ModelChoice>) -> Self {
        let mut models = vec![configured];
        for other in others {
            if !models.iter().any(|known| value_of(known) == value_of(&other)) {
                models.push(other);
            }
        }
        Self(models)
    }

    /// The choice with this value.
    pub(crate) fn get(&self, value: &str) -> Option<&ModelChoice> {
        self.0.iter().find(|model| value_of(model) == value)
    }

    /// The choice of this provider's model.
    pub(crate) fn find(&self, provider: &str, model: &str) -> Option<&ModelChoice> {
        self.0
            .iter()
            .find(|known| known.provider == provider && known.model == model)
    }

    /// The one option that sessions have.
    pub(crate) fn option(&self, current: &ModelChoice) -> SessionConfigOption {
        let choice =
            |model: &ModelChoice| SessionConfigSelectOption::new(value_of(model), model.model.clone());
        let choices: Vec<_> = self.0.iter().map(choice).collect();
        SessionConfigOption::select(MODEL, "Model", value_of(current), choices)
            .category(SessionConfigOptionCategory::Model)
    }
}

fn value_of(model: &ModelChoice) -> String {
    format!("{}/{}", model.provider, model.model)
}
