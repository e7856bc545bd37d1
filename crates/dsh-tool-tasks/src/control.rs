//! What the three tools share: the registry, the words, and the reading of an id.

use std::error::Error;
use std::sync::Arc;

use dsh_agent::Agent;
use dsh_tasks::{Claim, TaskId, TaskRegistry, Vocabulary};
use dsh_tools::{CallCard, CardKind, Delivery, ToolError, head_within, schema_of};
use schemars::JsonSchema;
use serde_json::{Map, Value};

use crate::config::ToolTasksConfig;

/// The name of the id in the argument types; the model sees [`Vocabulary::id_param`] instead.
const ID_FIELD: &str = "id";
/// The most bytes of an id on a card: whoever calls may send anything.
const MAX_ID_SHOWN: usize = 200;

pub(crate) struct Control {
    pub(crate) tasks: TaskRegistry,
    pub(crate) config: ToolTasksConfig,
}

impl Control {
    pub(crate) fn vocabulary(&self) -> Vocabulary {
        self.tasks.vocabulary()
    }

    /// The id that a call names.
    pub(crate) fn id(&self, text: &str) -> Result<TaskId, ToolError> {
        if text.is_empty() {
            Err(ToolError::new(self.vocabulary().empty_id()))
        } else {
            Ok(TaskId::new(text))
        }
    }

    /// How a call about one task is shown.
    pub(crate) fn card(&self, doing: &str, kind: CardKind, args: &Value) -> CallCard {
        let (word, id) = (self.vocabulary().word(), self.id_in(args));
        let id = head_within(id, MAX_ID_SHOWN);
        CallCard::Generic {
            title: format!("{doing} background {word} {id}"),
            kind,
            raw_input: Some(id.into()),
            content: Vec::new(),
        }
    }

    /// The id in arguments that nobody has checked yet.
    fn id_in<'a>(&self, args: &'a Value) -> &'a str {
        args.get(self.vocabulary().id_param())
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The limit that the named task's producer set, if this caller may see the task.
    pub(crate) fn limit(&self, args: &Value, caller: Option<&Arc<Agent>>) -> Option<usize> {
        let snapshot = self.tasks.get(&TaskId::new(self.id_in(args)), caller).ok()?;
        limit_of(snapshot.output_limit_bytes)
    }
}

/// A limit in bytes; one that this machine cannot count to is none.
pub(crate) fn limit_of(bytes: Option<u64>) -> Option<usize> {
    usize::try_from(bytes?).ok()
}

/// The input schema of `T`, whose id field has the name of this vocabulary. `T` reads both names.
pub(crate) fn schema<T: JsonSchema>(vocabulary: Vocabulary) -> Value {
    let mut schema = schema_of::<T>();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        *properties = std::mem::take(properties)
            .into_iter()
            .map(|(name, property)| {
                if name == ID_FIELD {
                    (id_param(vocabulary), property)
                } else {
                    (name, property)
                }
            })
            .collect::<Map<_, _>>();
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        for name in required.iter_mut().filter(|name| *name == ID_FIELD) {
            *name = id_param(vocabulary).into();
        }
    }
    schema
}

/// The model got what `claim` stands for once it has the result.
pub(crate) fn delivery(claim: Claim) -> Delivery {
    Delivery::new(move || claim.deliver())
}

/// What the registry refused, for the model.
pub(crate) fn refused(error: impl Error) -> ToolError {
    ToolError::new(error.to_string())
}

fn id_param(vocabulary: Vocabulary) -> String {
    vocabulary.id_param().to_owned()
}
