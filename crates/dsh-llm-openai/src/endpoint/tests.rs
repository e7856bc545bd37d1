use super::*;

fn problem(url: &str) -> String {
    Endpoint::parse(url).unwrap_err().to_string()
}

#[test]
fn the_path_is_added_to_the_base() {
    for (base, authority, target) in [
        (
            "https://api.deepseek.com",
            "api.deepseek.com",
            "/chat/completions",
        ),
        (" https://h/v1/ ", "h", "/v1/chat/completions"),
        ("http://127.0.0.1:8080//", "127.0.0.1:8080", "/chat/completions"),
        ("http://[::1]:9/a/b", "[::1]:9", "/a/b/chat/completions"),
    ] {
        let endpoint = Endpoint::parse(base).unwrap();
        assert_eq!(
            (&*endpoint.authority, endpoint.target.as_str()),
            (authority, target),
            "{base}"
        );
    }
}

#[test]
fn a_useless_base_is_refused_with_a_reason() {
    for (url, reason) in [
        ("", "is no URL"),
        ("api.deepseek.com", "must be absolute"),
        ("/v1", "must be absolute"),
        ("ftp://h", "must begin with https:// or http://"),
        ("https://", "is no URL"),
        ("https://h/v1?key=1", "must have no query"),
        ("https://h/v1#a", "must have no query and no fragment"),
        (
            "https://h/v1/chat/completions/",
            "must end before /chat/completions",
        ),
        ("https://h:0", "has no usable port"),
        ("https://h:", "has no usable port"),
        ("https://h:99999", "has no usable port"),
        ("https://h h", "is no URL"),
    ] {
        let problem = problem(url);
        assert!(problem.contains(reason), "{url}: {problem}");
    }
}

#[test]
fn a_password_is_refused_and_not_repeated() {
    for url in [
        "https://me:hunter2@h/v1",
        "ftp://hunter2@h",
        "hunter2@h",
        "https://me:hunter2@",
    ] {
        let problem = problem(url);
        assert!(problem.contains("user name or a password"), "{url}: {problem}");
        assert!(!problem.contains("hunter2"), "{problem}");
    }
    assert!(Endpoint::parse("https://h/@team").is_ok(), "a path may hold an @");
}

#[test]
fn loopback_is_this_machine_only() {
    for (url, loopback) in [
        ("http://localhost:1", true),
        ("http://LOCALHOST", true),
        ("http://127.8.9.1", true),
        ("http://[::1]:1", true),
        ("http://[::ffff:127.0.0.1]", true),
        ("http://localhost.example.com", false),
        ("http://127.0.0.1.example.com", false),
        ("http://10.0.0.1", false),
        ("http://0.0.0.0", false),
    ] {
        assert_eq!(Endpoint::parse(url).unwrap().is_loopback(), loopback, "{url}");
    }
}
