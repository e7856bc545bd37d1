//! Scripts by file name.

use dsh_llm::{AssistantBlock, ModelAdapter, ModelRegistry};
use dsh_llm_scripted::ScriptedModels;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

use crate::support::*;

async fn say(models: &dyn ModelAdapter, model: &str) -> Result<Vec<AssistantBlock>, String> {
    let sent = models
        .send(request(model, Vec::new()), CancellationToken::new())
        .await;
    let mut assembler = dsh_llm::Assembler::new();
    for chunk in chunks(sent.map_err(|error| format!("{} {error}", error.code))?).await {
        assembler.push(chunk);
    }
    Ok(assembler.finish().content)
}

#[tokio::test]
async fn each_file_is_a_model_with_one_place() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, json: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, json).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let a = file("a.json", r#"{"turns": [{"text": "a1"}, {"text": "a2"}]}"#);
    let b = file("b.json", r#"{"turns": [{"text": "b1"}, {"text": "b2"}]}"#);
    let models = ScriptedModels::new();
    let mut registry = ModelRegistry::new();
    registry.register("scripted", Arc::new(models.clone())).unwrap();
    let adapter = registry.get("scripted").unwrap();
    assert_eq!(say(&*adapter, &a).await, Ok(vec![text("a1")]));
    assert_eq!(say(&*adapter, &b).await, Ok(vec![text("b1")]));
    assert_eq!(say(&models, &a).await, Ok(vec![text("a2")]));
    let misfits = models.finish().unwrap_err();
    let told: Vec<_> = misfits.iter().map(ToString::to_string).collect();
    assert_eq!(told, [format!("script {b}: turns[1] was never asked for")]);
    assert_eq!(models.load(&b).unwrap().unused(), 1, "it is read once");
    assert_eq!(say(&models, &b).await, Ok(vec![text("b2")]));
    assert_eq!(models.finish(), Ok(()));
}

#[tokio::test]
async fn a_file_that_is_no_script_fails_the_request() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.json");
    let path = path.to_str().unwrap();
    let models = ScriptedModels::new();
    let error = say(&models, path).await.unwrap_err();
    let expected =
        format!("SCRIPT_INVALID cannot read script {path}: No such file or directory (os error 2)");
    assert_eq!(error, expected);
    std::fs::write(path, "{}").unwrap();
    let error = say(&models, path).await.unwrap_err();
    assert_eq!(
        error,
        format!("SCRIPT_INVALID script {path} is wrong: has no \"turns\"")
    );
}
