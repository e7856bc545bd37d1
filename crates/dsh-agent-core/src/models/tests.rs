use super::*;
use crate::config::{ModelOverrides, OverrideError};

fn environment(name: &str) -> Option<OsString> {
    let set = [
        "DEEPSEEK_API_KEY",
        "OPENAI_API_KEY",
        "GATEWAY_KEY",
        "CONFIGURED_KEY",
    ];
    set.contains(&name).then(|| format!("the {name}").into())
}

/// Where a table sends its requests, and with which key.
fn sends(table: &ModelTable) -> Result<(String, Option<String>), String> {
    let config = endpoint(table, environment).map_err(|error| error.to_string())?;
    let key = config.api_key.map(|key| key.expose().to_owned());
    Ok((config.base_url, key))
}

fn with(configured: &ModelTable, model: Option<&str>, url: Option<&str>, key: Option<&str>) -> ModelTable {
    overridden(configured, model, url, key).unwrap()
}

fn overridden(
    configured: &ModelTable,
    model: Option<&str>,
    url: Option<&str>,
    key: Option<&str>,
) -> Result<ModelTable, OverrideError> {
    configured.clone().overridden(ModelOverrides {
        model: model.map(str::to_owned),
        base_url: url.map(str::to_owned),
        api_key_env: key.map(str::to_owned),
    })
}

#[test]
fn a_providers_variable_goes_to_that_providers_url_only() {
    let deepseek = ModelTable::default();
    let key = |url| sends(&with(&deepseek, None, Some(url), None)).unwrap().1;
    let own = Some("the DEEPSEEK_API_KEY".to_owned());
    assert_eq!(sends(&deepseek).unwrap().1, own);
    for url in [
        "https://api.deepseek.com",
        "https://api.deepseek.com/v1",
        " https://api.deepseek.com/",
    ] {
        assert_eq!(key(url), own, "{url}");
    }
    for url in [
        "http://api.deepseek.com",
        "https://api.deepseek.com.example.org",
        "https://api.deepseek.com:8443",
        "https://api.deepseek.com@example.org",
        "https://example.org/api.deepseek.com",
        "http://127.0.0.1:1/v1",
        "https://api.openai.com/v1",
    ] {
        assert_eq!(key(url), None, "{url}");
    }
}

#[test]
fn another_url_gets_the_key_that_is_named_for_it() {
    let named = with(
        &ModelTable::default(),
        None,
        Some("https://example.org"),
        Some("GATEWAY_KEY"),
    );
    assert_eq!(
        sends(&named).unwrap(),
        (
            "https://example.org".to_owned(),
            Some("the GATEWAY_KEY".to_owned())
        )
    );
}

#[test]
fn a_configured_key_goes_where_it_was_configured_to_go() {
    let configured = ModelTable {
        base_url: Some("https://gateway.example.org".to_owned()),
        api_key_env: Some("CONFIGURED_KEY".to_owned()),
        ..ModelTable::default()
    };
    let key = |model, url| sends(&with(&configured, model, url, None)).unwrap().1;
    let configured_key = Some("the CONFIGURED_KEY".to_owned());
    assert_eq!(key(None, None), configured_key);
    assert_eq!(key(Some("other"), None), configured_key);
    assert_eq!(key(None, Some("https://gateway.example.org")), configured_key);
    assert_eq!(key(None, Some("https://elsewhere.example.org")), None);
    assert_eq!(
        key(Some("openai:gpt"), None),
        Some("the OPENAI_API_KEY".to_owned())
    );
}

#[test]
fn a_missing_key_is_named_with_its_variable_and_the_flag() {
    let table = with(&ModelTable::default(), None, None, Some("NOT_SET_KEY"));
    assert_eq!(
        sends(&table).unwrap_err(),
        "no API key for https://api.deepseek.com: set the environment variable NOT_SET_KEY, or name another one with \
         --api-key-env"
    );
}

#[test]
fn a_model_may_name_its_provider_and_has_a_colon_of_its_own_only_at_a_url() {
    let choice = |model, url| {
        let choice = with(&ModelTable::default(), Some(model), url, None).choice();
        (choice.provider, choice.model)
    };
    let pair = |provider: &str, model: &str| (provider.to_owned(), model.to_owned());
    assert_eq!(choice("scripted:a/b.json", None), pair("scripted", "a/b.json"));
    assert_eq!(choice("openai:gpt", None), pair("openai", "gpt"));
    assert_eq!(
        choice("compatible:ns/model:tag", None),
        pair("compatible", "ns/model:tag")
    );
    assert_eq!(
        choice("qwen3:8b", Some("http://localhost/v1")),
        pair("deepseek", "qwen3:8b")
    );
    let configured = ModelTable {
        provider: Provider::Compatible,
        base_url: Some("http://localhost/v1".to_owned()),
        ..ModelTable::default()
    };
    let choice = with(&configured, Some("qwen3:8b"), None, None).choice();
    assert_eq!((choice.provider, choice.model), pair("compatible", "qwen3:8b"));
}

#[test]
fn a_command_line_that_names_nobody_is_refused() {
    let refused = |model, url, key| {
        let refused = overridden(&ModelTable::default(), model, url, key);
        refused.unwrap_err().to_string()
    };
    let unknown = refused(Some("nonsense:x"), None, None);
    assert!(
        unknown.starts_with("unknown provider \"nonsense\" in --model nonsense:x: "),
        "{unknown}"
    );
    assert!(
        unknown.contains("deepseek, openai, compatible, scripted"),
        "{unknown}"
    );
    for url in [None, Some("http://localhost/v1")] {
        assert!(refused(Some(":"), url, None).starts_with("unknown provider \"\""));
        assert!(refused(Some("openai"), url, None).ends_with("write openai:NAME"));
        assert!(refused(Some("deepseek:"), url, None).ends_with("write deepseek:NAME"));
        assert!(refused(Some(""), url, None).starts_with("--model is empty"));
    }
    assert!(refused(None, Some(" "), None).starts_with("--base-url is empty"));
    assert!(refused(None, None, Some("")).starts_with("--api-key-env is empty"));
}

#[test]
fn what_is_missing_is_named() {
    let connect = |model: &str, url| {
        let table = with(&ModelTable::default(), Some(model), url, None);
        Models::connect(&table, environment).unwrap_err().to_string()
    };
    let unnamed = ModelTable {
        provider: Provider::Openai,
        ..ModelTable::default()
    };
    assert_eq!(
        Models::connect(&unnamed, environment).unwrap_err().to_string(),
        "provider openai has no default model: set model.name, or give --model"
    );
    assert_eq!(
        connect("compatible:small", None),
        "provider compatible has no URL of its own: set model.base_url, or give --base-url"
    );
    assert!(connect("scripted:no/such/file", None).contains("no/such/file"));
    assert!(connect("small", Some("nowhere")).contains("nowhere"));
}

#[test]
fn choices_are_models_of_the_same_place_and_stay_there() {
    let configured = ModelTable {
        choices: vec!["deepseek-reasoner".to_owned()],
        temperature: Some(0.5),
        ..ModelTable::default()
    };
    let names = |table: &ModelTable| -> Vec<String> {
        let choices = table.choices().into_iter();
        choices
            .map(|choice| format!("{}/{}", choice.provider, choice.model))
            .collect()
    };
    assert_eq!(names(&configured), ["deepseek/deepseek-reasoner"]);
    assert_eq!(configured.choices()[0].sampling, configured.choice().sampling);
    assert_eq!(
        names(&with(&configured, Some("deepseek-v9"), None, None)),
        ["deepseek/deepseek-reasoner"]
    );
    assert!(names(&with(&configured, Some("openai:gpt-9"), None, None)).is_empty());
    assert!(names(&with(&configured, None, Some("http://127.0.0.1:9"), None)).is_empty());
}
