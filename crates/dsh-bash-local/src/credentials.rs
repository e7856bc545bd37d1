//! What looks like a credential, by its name or by its value.

/// What marks a name wherever it stands in it.
const MARKS: [&str; 12] = [
    "KEY",
    "SECRET",
    "TOKEN",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "COOKIE",
    "OAUTH",
    "AUTHORIZATION",
    "BEARER",
    "WEBHOOK",
];

/// Words that have a mark in them and are none.
const HARMLESS: [&str; 6] = ["KEYBOARD", "KEYMAP", "KEYWORD", "MONKEY", "TURKEY", "TOKENIZER"];

/// What marks a name as a whole part of it.
const PARTS: [&str; 9] = ["PASS", "PWD", "PW", "PAT", "AUTH", "CRED", "CREDS", "JWT", "SK"];

/// What marks a name as the end of a part of it: `SSHPASS`, `DBPWD`, `ROOTPW`.
const ENDS: [&str; 3] = ["PASS", "PWD", "PW"];

/// Parts that end so and are none: programs that ask, what goes around something, a tool.
const HARMLESS_PARTS: [&str; 3] = ["ASKPASS", "BYPASS", "COMPASS"];

/// Names that look like credentials and are none: directories, and the socket of an agent that signs but never shows a key.
const HARMLESS_NAMES: [&str; 3] = ["PWD", "OLDPWD", "SSH_AUTH_SOCK"];

/// Fields of connection strings that hold passwords.
const FIELDS: [&str; 5] = ["PASSWORD", "PASSWD", "PWD", "ACCOUNTKEY", "SHAREDACCESSKEY"];

/// Parameters of URLs that sign them: who has the URL has what it stands for.
const SIGNATURES: [&str; 3] = ["SIG", "SIGNATURE", "X-AMZ-SIGNATURE"];

/// Headers that carry credentials.
const HEADERS: [&str; 4] = ["AUTHORIZATION", "COOKIE", "X-API-KEY", "PRIVATE-TOKEN"];

/// Whether a variable of this name holds a credential, as far as a name says. The parts of a name are its runs of letters
/// and digits, without the digits at their ends.
pub(crate) fn is_credential_name(name: &[u8]) -> bool {
    let name = String::from_utf8_lossy(name).to_ascii_uppercase();
    if HARMLESS_NAMES.contains(&&*name) {
        return false;
    }
    let rest = HARMLESS
        .iter()
        .fold(name.clone(), |name, word| name.replace(word, "_"));
    MARKS.iter().any(|mark| rest.contains(mark))
        || name
            .split(|c: char| !c.is_alphanumeric())
            .map(|part| part.trim_end_matches(|c: char| c.is_ascii_digit()))
            .filter(|part| !HARMLESS_PARTS.contains(part))
            .any(|part| PARTS.contains(&part) || ENDS.iter().any(|end| part.ends_with(end)))
}

/// Whether any URL in `value` carries a password, or (for http, where it can only be a credential) a user name.
pub(crate) fn holds_credential_url(value: &[u8]) -> bool {
    let mut rest = value;
    while let Some(at) = rest.windows(3).position(|window| window == b"://") {
        let scheme = &rest[..at];
        rest = &rest[at + 3..];
        let url = up_to(rest, |byte| {
            matches!(byte, b'"' | b'\'') || byte.is_ascii_whitespace()
        });
        let authority = up_to(url, |byte| matches!(byte, b'/' | b'?' | b'#'));
        let Some(userinfo) = before_last(authority, b'@') else {
            if is_broken_by_its_password(authority, url) {
                return true;
            }
            continue;
        };
        let has_password = after_first(userinfo, b':').is_some_and(|password| !password.is_empty());
        let is_web = ends_with(scheme, "HTTP") || ends_with(scheme, "HTTPS");
        if has_password || (is_web && !userinfo.is_empty()) {
            return true;
        }
    }
    false
}

/// A password with a slash, a question mark or a hash that should have been escaped: `u:p/w@host`. What stands behind the
/// colon of a host is a number.
fn is_broken_by_its_password(authority: &[u8], url: &[u8]) -> bool {
    !authority.starts_with(b"[")
        && url[authority.len()..].contains(&b'@')
        && after_first(authority, b':').is_some_and(|port| !port.iter().all(u8::is_ascii_digit))
}

/// Whether `value` has a field like `password=…`, as the connection strings of databases do: at its beginning, or after a
/// blank or one of `;?&,`. A value that begins with `$` is yet to come from elsewhere.
pub(crate) fn holds_password_field(value: &[u8]) -> bool {
    let separates = |byte: &u8| matches!(byte, b';' | b'?' | b'&' | b',') || byte.is_ascii_whitespace();
    value.split(separates).any(|field| {
        let Some(at) = field.iter().position(|byte| *byte == b'=') else {
            return false;
        };
        let (name, password) = (&field[..at], &field[at + 1..]);
        FIELDS
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
            && password.first().is_some_and(|first| *first != b'$')
    })
}

/// Whether a URL in `value` has a parameter whose name is that of a credential (`?access_token=…`), or a signature.
pub(crate) fn holds_credential_parameter(value: &[u8]) -> bool {
    let mut parts =
        value.split(|byte| matches!(byte, b'?' | b'&' | b'#' | b'"' | b'\'') || byte.is_ascii_whitespace());
    // What stands before the first `?` is no parameter.
    let has_url = value.windows(3).any(|window| window == b"://");
    has_url
        && parts.any(|part| {
            let Some(at) = part.iter().position(|byte| *byte == b'=') else {
                return false;
            };
            let (name, value) = (&part[..at], &part[at + 1..]);
            let is_signature = SIGNATURES
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
            let is_name = name
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(byte));
            let is_set = value.first().is_some_and(|first| *first != b'$');
            is_set && is_name && (is_signature || is_credential_name(name))
        })
}

/// Whether `value` has a header that carries a credential: `Authorization: Basic …`, also in a list of settings.
pub(crate) fn holds_credential_header(value: &[u8]) -> bool {
    let value = String::from_utf8_lossy(value).to_ascii_uppercase();
    HEADERS.iter().any(|header| {
        value.match_indices(header).any(|(at, _)| {
            let rest = value[at + header.len()..].trim_start();
            let credential = rest.strip_prefix(':').map(str::trim_start);
            credential.is_some_and(|credential| !credential.is_empty() && !credential.starts_with('$'))
        })
    })
}

fn up_to(text: &[u8], ends: impl Fn(&u8) -> bool) -> &[u8] {
    text.split(ends).next().unwrap_or_default()
}

fn before_last(text: &[u8], byte: u8) -> Option<&[u8]> {
    text.iter().rposition(|each| *each == byte).map(|at| &text[..at])
}

fn after_first(text: &[u8], byte: u8) -> Option<&[u8]> {
    text.iter()
        .position(|each| *each == byte)
        .map(|at| &text[at + 1..])
}

fn ends_with(text: &[u8], end: &str) -> bool {
    text.len() >= end.len() && text[text.len() - end.len()..].eq_ignore_ascii_case(end.as_bytes())
}

#[cfg(test)]
mod tests;
