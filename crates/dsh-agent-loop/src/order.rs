//! In which order a model sees its tools.

use dsh_llm::ToolSpec;
use dsh_tools::ToolDefinition;

/// Stands for all tools that are not listed.
const REST: &str = "<unlisted-tools>";

/// In which order a model sees its tools. The default is by name, in the order of the bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOrder {
    before: Vec<String>,
    after: Vec<String>,
}

/// Why a list is no order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolOrderError {
    /// Where the others go is not said, or more than once.
    #[error("the tool order must have {REST:?} exactly once, has it {0} times")]
    Rest(usize),
    /// A tool has two places.
    #[error("the tool order lists {0:?} twice")]
    Duplicate(String),
    /// There is no such tool.
    #[error("the tool order lists {0:?}, but there is no such tool")]
    Unknown(String),
}

impl ToolOrder {
    /// The order of a list of names, in which `<unlisted-tools>` stands for all the others.
    ///
    /// # Errors
    ///
    /// [`ToolOrderError::Rest`] or [`ToolOrderError::Duplicate`].
    pub fn new(names: &[String]) -> Result<Self, ToolOrderError> {
        for (index, name) in names.iter().enumerate() {
            if name != REST && names.iter().take(index).any(|earlier| earlier == name) {
                return Err(ToolOrderError::Duplicate(name.clone()));
            }
        }
        let mut parts = names.split(|name| name == REST);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(before), Some(after), None) => Ok(Self {
                before: before.to_vec(),
                after: after.to_vec(),
            }),
            _ => Err(ToolOrderError::Rest(
                names.iter().filter(|name| *name == REST).count(),
            )),
        }
    }

    /// The tools as a model is told about them, in this order.
    ///
    /// # Errors
    ///
    /// [`ToolOrderError::Unknown`] when a listed tool is not there.
    pub(crate) fn apply(&self, mut tools: Vec<ToolDefinition>) -> Result<Vec<ToolSpec>, ToolOrderError> {
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        let mut take = |names: &[String]| -> Result<Vec<ToolDefinition>, ToolOrderError> {
            let mut taken = Vec::with_capacity(names.len());
            for name in names {
                let place = tools.iter().position(|tool| tool.name == *name);
                let place = place.ok_or_else(|| ToolOrderError::Unknown(name.clone()))?;
                taken.push(tools.remove(place));
            }
            Ok(taken)
        };
        let (before, after) = (take(&self.before)?, take(&self.after)?);
        let ordered = before.into_iter().chain(tools).chain(after);
        Ok(ordered.map(spec).collect())
    }
}

/// Name, description and parameters: the rest is for programs.
fn spec(tool: ToolDefinition) -> ToolSpec {
    ToolSpec {
        name: tool.name,
        description: tool.description,
        parameters: tool.input_schema,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(names: &[&str]) -> Vec<ToolDefinition> {
        let definition = |name: &&str| ToolDefinition {
            name: (*name).to_owned(),
            description: String::new(),
            input_schema: serde_json::json!({"type": "object"}),
            annotations: dsh_tools::Annotations::default(),
        };
        names.iter().map(definition).collect()
    }

    fn order(names: &[&str]) -> Result<ToolOrder, ToolOrderError> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        ToolOrder::new(&names)
    }

    fn names(specs: &[ToolSpec]) -> Vec<&str> {
        specs.iter().map(|spec| spec.name.as_str()).collect()
    }

    #[test]
    fn core53_by_name_whatever_the_order_of_registration() {
        let specs = ToolOrder::default().apply(tools(&["b", "a", "B"])).unwrap();
        assert_eq!(names(&specs), ["B", "a", "b"]);
    }

    #[test]
    fn core53_listed_tools_go_where_they_are_listed() {
        let specs = order(&["z", REST, "a"])
            .unwrap()
            .apply(tools(&["a", "m", "b", "z"]))
            .unwrap();
        assert_eq!(names(&specs), ["z", "b", "m", "a"]);
    }

    #[test]
    fn core53_bad_lists_are_refused() {
        assert_eq!(order(&["a"]), Err(ToolOrderError::Rest(0)));
        assert_eq!(order(&[REST, "a", REST]), Err(ToolOrderError::Rest(2)));
        assert_eq!(
            order(&["a", REST, "a"]),
            Err(ToolOrderError::Duplicate("a".to_owned()))
        );
        let unknown = order(&[REST, "x"]).unwrap().apply(tools(&["a"]));
        assert_eq!(unknown, Err(ToolOrderError::Unknown("x".to_owned())));
    }
}
