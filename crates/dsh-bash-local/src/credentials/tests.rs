use super::*;

#[test]
fn c38_names_of_credentials_are_told_from_names_that_only_look_so() {
    for name in [
        "API_KEY",
        "AWS_ACCESS_KEY_ID",
        "OPENAIKEY",
        "my_secret",
        "GithubToken",
        "NPM_CONFIG__AUTHTOKEN",
        "DB_PASSWORD",
        "MYSQL_PASSWD",
        "PASSPHRASE",
        "GPG_PASSPHRASE",
        "Aws_Credentials",
        "SESSION_COOKIE",
        "COOKIES",
        "OAUTH",
        "GOOGLE_OAUTH_CLIENT",
        "GH_PAT",
        "AZURE_DEVOPS_EXT_PAT",
        "gh-pat",
        "PASS",
        "SSHPASS",
        "SMTP_PASS",
        "SMTP_PASS2",
        "DBPASS",
        "MYSQL_PWD",
        "DBPWD",
        "DB_PW",
        "ROOTPW",
        "HTTP_AUTHORIZATION",
        "BEARER",
        "STRIPE_SK",
        "SLACK_WEBHOOK_URL",
        "AUTH",
        "REDISCLI_AUTH",
        "DOCKER_AUTH_CONFIG",
        "DB_CREDS",
        "CI_JOB_JWT",
        "CI_JOB_JWT_V2",
        "MONKEY_KEY",
        "KEYBOARD_TOKEN",
    ] {
        assert!(is_credential_name(name.as_bytes()), "{name}");
    }
}

#[test]
fn c38_names_that_only_look_like_credentials_pass() {
    for name in [
        "PWD",
        "OLDPWD",
        "SSH_AUTH_SOCK",
        "PATH",
        "PATTERN",
        "COMPATIBLE",
        "BASH_COMPAT",
        "KEYBOARD_LAYOUT",
        "KEYMAP",
        "MONKEY_ISLAND",
        "TOKENIZERS_PARALLELISM",
        "SSH_ASKPASS",
        "GIT_ASKPASS",
        "GIT_AUTHOR_NAME",
        "XAUTHORITY",
        "AUTHORS",
        "NO_PROXY_BYPASS",
        "COMPASS",
        "PASSENGER_ENV",
        "PASSED",
        "CREDO",
        "PWDX",
        "HOME",
        "LANG",
        "",
        "_",
    ] {
        assert!(!is_credential_name(name.as_bytes()), "{name}");
    }
}

#[test]
fn urls_with_a_password_are_told_from_urls_that_only_have_an_at() {
    for value in [
        "postgres://u:p@h",
        "postgres://app:hunter2@db/app",
        "postgres://:p@h",
        "amqp+ssl://u:p@host:5671/vhost?x=1",
        "see https://u:p%40q@host and more",
        "http://host/ then redis://:p@h",
        "https://ghp_token@github.com/o/r",
        "HTTPS://user@host",
        "postgres://u:p/w@h/db",
        "postgres://u:p?w@h/db",
        "postgres://u:p#w@h/db",
        "postgres://u:12@h",
    ] {
        assert!(holds_credential_url(value.as_bytes()), "{value}");
    }
    for value in [
        "https://example.org:8080/@scope/package",
        "https://example.org/@scope/package:1",
        "ssh://git@example.org/repo",
        "http://[::1]:80/",
        "http://[::1]/@x",
        "postgres://app:@db",
        "postgres://db:5432/app?user=a@b",
        "http://host:/@x",
        "http://h:8080 me@example.org",
        "a://",
        "user:password@host",
        "",
    ] {
        assert!(!holds_credential_url(value.as_bytes()), "{value}");
    }
}

#[test]
fn connection_strings_with_a_password_are_told_from_text_that_talks_of_one() {
    for value in [
        "Server=db;Database=app;User Id=u;Password=p;",
        "host=db user=u password=p",
        "jdbc:postgresql://db/app?user=u&password=p",
        "Endpoint=sb://x.net/;SharedAccessKeyName=root;SharedAccessKey=abc=",
        "AccountName=a;accountkey=abc==",
        "pwd=p",
    ] {
        assert!(holds_password_field(value.as_bytes()), "{value}");
    }
    for value in [
        "Server=db;Integrated Security=true",
        "password=",
        "host=db password= user=u",
        "history -a; pwd=$PWD",
        "no_password=1",
        "password",
        "https://host/?next=password",
        "",
    ] {
        assert!(!holds_password_field(value.as_bytes()), "{value}");
    }
}

#[test]
fn urls_that_let_in_by_a_parameter_are_told_from_those_that_only_have_some() {
    for value in [
        "https://h/hook?token=abc",
        "https://h/?page=2&api_key=abc#x",
        "see 'https://h/?access_token=abc'",
        "https://h/blob?sv=1&sig=abc",
        "https://b.s3.amazonaws.com/o?X-Amz-Signature=abc",
        "https://h/cb#id_token=abc",
    ] {
        assert!(holds_credential_parameter(value.as_bytes()), "{value}");
    }
    for value in [
        "https://h/?q=token",
        "https://h/?keyword=abc&page=2",
        "https://h/?token=",
        "https://h/?token=$TOKEN",
        "https://h/token=abc",
        "a?token=abc",
        "https://h/",
        "",
    ] {
        assert!(!holds_credential_parameter(value.as_bytes()), "{value}");
    }
}

#[test]
fn headers_with_a_credential_are_told_from_words() {
    for value in [
        "Authorization: Basic dTpw",
        "AUTHORIZATION:Bearer abc",
        "'http.extraheader=Authorization: Basic dTpw'",
        "Accept: text/plain\nX-Api-Key: abc",
        "private-token: abc",
    ] {
        assert!(holds_credential_header(value.as_bytes()), "{value}");
    }
    for value in [
        "Authorization",
        "Authorization: ",
        "Authorization: $AUTH",
        "authorization=none",
        "Accept: text/plain",
        "",
    ] {
        assert!(!holds_credential_header(value.as_bytes()), "{value}");
    }
}
