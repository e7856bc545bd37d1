//! Tools and restrictions of single agents.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use dsh_agent::{Agent, AgentHandle, AgentRegistry, AgentSpec};
use dsh_llm::CallId;
use dsh_scope::Scope;
use dsh_session::SessionId;
use dsh_tools::{
    Annotations, Concurrency, RegisterError, Restriction, Tool, ToolContext, ToolDefinition, ToolError,
    ToolOutput, ToolRegistry,
};
use serde_json::{Value, json};

/// Says who it is.
struct Named(&'static str, &'static str);

#[async_trait]
impl Tool for Named {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: self.0.to_owned(),
            description: self.1.to_owned(),
            input_schema: json!({"type": "object", "properties": {}}),
            annotations: Annotations::default(),
        }
    }

    fn concurrency(&self, args: &Value) -> Concurrency {
        assert!(args.is_object(), "asked with parsed arguments");
        assert_ne!(self.1, "panics");
        Concurrency::Parallel
    }

    async fn call(&self, _: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(self.1))
    }
}

struct Home {
    scope: Scope,
    agents: AgentRegistry,
    tools: ToolRegistry,
}

impl Home {
    fn new() -> Home {
        Home {
            scope: Scope::root("test"),
            agents: AgentRegistry::new(),
            tools: ToolRegistry::new(),
        }
    }

    fn agent(&self, id: &str) -> AgentHandle {
        let spec = AgentSpec {
            id: SessionId::new(id),
            cwd: None,
            within: self.scope.clone(),
        };
        self.agents.create(spec).expect("a new id")
    }

    fn share(&self, name: &'static str, text: &'static str) {
        self.tools
            .register(&self.scope, Arc::new(Named(name, text)))
            .expect("registered");
    }

    fn names(&self, agent: &Agent) -> Vec<String> {
        let definitions = self.tools.definitions_for(agent);
        definitions
            .into_iter()
            .map(|definition| definition.name)
            .collect()
    }

    async fn say(&self, agent: &Arc<Agent>, name: &str) -> String {
        let ctx = ToolContext {
            caller: Some(agent.clone()),
            token: Default::default(),
            call_id: CallId::new("c"),
        };
        let result = self.tools.execute(name, json!({}), ctx).await;
        result.single_text().unwrap_or_default().to_owned()
    }
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn core6_an_agents_own_tool_shadows_the_shared_one_for_it_alone_in_either_order() {
    let home = Home::new();
    let (one, other) = (home.agent("one"), home.agent("other"));
    home.tools
        .register_for(one.agent(), Arc::new(Named("t", "own")))
        .expect("registered");
    home.share("t", "shared");
    assert_eq!(home.say(one.agent(), "t").await, "own");
    assert_eq!(home.say(other.agent(), "t").await, "shared");
    assert_eq!(home.names(one.agent()), ["t"]);
    let twice = home
        .tools
        .register_for(one.agent(), Arc::new(Named("t", "again")));
    assert_eq!(twice.unwrap_err(), RegisterError::Duplicate("t".to_owned()));
    one.dispose().await.expect("disposed");
    let successor = home.agent("one");
    assert_eq!(home.say(successor.agent(), "t").await, "shared");
}

#[tokio::test]
async fn core7_restrictions_intersect_lift_one_by_one_and_hide_nothing_that_was_granted() {
    let home = Home::new();
    for name in ["a", "b", "c"] {
        home.share(name, "shared");
    }
    let agent = home.agent("one");
    let agent = agent.agent();
    home.tools
        .grant(agent, Arc::new(Named("own", "own")))
        .expect("registered");
    home.tools
        .register_for(agent, Arc::new(Named("mine", "mine")))
        .expect("registered");
    assert_eq!(home.names(agent), ["a", "b", "c", "mine", "own"]);
    let allow = home
        .tools
        .restrict(agent, Restriction::Allow(set(&["a", "b"])))
        .expect("restricted");
    let deny = home
        .tools
        .restrict(agent, Restriction::Deny(set(&["b"])))
        .expect("restricted");
    assert_eq!(home.names(agent), ["a", "own"]);
    assert_eq!(home.say(agent, "b").await, r#"Error: unknown tool "b""#);
    assert_eq!(home.say(agent, "mine").await, r#"Error: unknown tool "mine""#);
    assert_eq!(home.say(agent, "own").await, "own");
    home.share("later", "shared");
    assert_eq!(
        home.names(agent),
        ["a", "own"],
        "an allowance concerns later tools, too"
    );
    allow.dispose().await;
    assert_eq!(home.names(agent), ["a", "c", "later", "mine", "own"]);
    deny.dispose().await;
    assert_eq!(home.names(agent), ["a", "b", "c", "later", "mine", "own"]);
    home.tools
        .restrict(agent, Restriction::Allow(set(&[])))
        .expect("restricted");
    assert_eq!(home.names(agent), ["own"]);
}

#[tokio::test]
async fn core7_a_restriction_that_means_nothing_is_refused() {
    let home = Home::new();
    let agent = home.agent("one");
    let restrict = |restriction| home.tools.restrict(agent.agent(), restriction).unwrap_err();
    assert_eq!(
        restrict(Restriction::Deny(set(&[]))),
        RegisterError::NothingRestricted
    );
    assert_eq!(
        restrict(Restriction::Allow(set(&["x"]))),
        RegisterError::UnknownTool("x".to_owned())
    );
    agent.dispose().await.expect("disposed");
    home.share("a", "shared");
    let closed = restrict(Restriction::Deny(set(&["a"])));
    assert!(matches!(closed, RegisterError::ScopeClosed { .. }), "{closed}");
}

#[tokio::test]
async fn core46_what_is_no_tool_and_what_panics_runs_alone() {
    let home = Home::new();
    home.share("t", "parallel");
    home.share("p", "panics");
    let agent = home.agent("one");
    let concurrency = |name| home.tools.concurrency(agent.agent(), name, &json!("{}"));
    assert_eq!(concurrency("t"), Concurrency::Parallel);
    assert_eq!(concurrency("p"), Concurrency::Exclusive);
    assert_eq!(concurrency("none"), Concurrency::Exclusive);
}

#[tokio::test]
async fn who_works_for_somebody_is_kept_from_what_that_one_is_kept_from() {
    let home = Home::new();
    for name in ["a", "b", "c"] {
        home.share(name, "shared");
    }
    let (parent, child) = (home.agent("parent"), home.agent("child"));
    home.tools
        .restrict(parent.agent(), Restriction::Deny(set(&["a"])))
        .expect("restricted");
    home.tools
        .restrict(parent.agent(), Restriction::Allow(set(&["a", "b"])))
        .expect("restricted");
    home.tools
        .restrict_as(child.agent(), parent.agent())
        .expect("restricted");
    assert_eq!(home.names(child.agent()), ["b"]);
    parent.dispose().await.expect("disposed");
    assert_eq!(home.names(child.agent()), ["b"]);
}
