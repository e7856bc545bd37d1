use super::*;

fn id(message: &str) -> Option<String> {
    let whole = {
        let mut skim = Skim::default();
        skim.read(message.as_bytes());
        skim.id()
    };
    let mut skim = Skim::default();
    for piece in message.as_bytes().chunks(3) {
        skim.read(piece);
    }
    assert_eq!(skim.id(), whole, "however it is cut: {message}");
    whole.map(|id| id.to_string())
}

#[test]
fn an_id_is_found_wherever_it_stands() {
    assert_eq!(id(r#"{"id":7,"method":"m"}"#).as_deref(), Some("7"));
    assert_eq!(
        id(r#" { "method" : "m" , "id" : "s e\"v" } "#).as_deref(),
        Some("s e\"v")
    );
    assert_eq!(
        id(r#"{"method":"m","params":{"id":1,"x":["a,\"id\":2,",{"id":3}]},"\u0069d":4}"#).as_deref(),
        Some("4")
    );
    let blank = " ".repeat(2 * MAX_TOKEN);
    assert_eq!(
        id(&format!(
            r#"{{{blank}"id"{blank}:{blank}7{blank},{blank}"method":"m"}}"#
        ))
        .as_deref(),
        Some("7")
    );
}

#[test]
fn what_is_no_request_has_none() {
    for message in [
        r#"{"method":"m","params":{"id":1}}"#,
        r#"{"id":1,"result":{"method":"m"}}"#,
        r#"{"id":1.5,"method":"m"}"#,
        r#"{"id":{"a":1},"method":"m"}"#,
        r#"{"id":null,"method":"m"}"#,
        r#"[{"id":1,"method":"m"}]"#,
        r#""id":1,"method":"m""#,
        r#"{"id":1,"method""#,
        "}}]]::,,\"\\",
        "",
    ] {
        assert_eq!(id(message), None, "{message}");
    }
    let long = "x".repeat(MAX_TOKEN);
    assert_eq!(id(&format!(r#"{{"id":"{long}","method":"m"}}"#)), None);
}
