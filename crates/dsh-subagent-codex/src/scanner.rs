//! Signatures in what Codex writes for people: the only places where it tells of some denials.

use crate::permission::Fact;

const SIGNATURES: [(&[u8], Fact); 2] = [
    (
        b"approval policy is Never; reject command",
        Fact::EscalationRejected,
    ),
    (b"recorded sandbox violation:", Fact::SandboxViolated),
];

/// Looks for signatures in chunks. Of what it has seen it keeps no more than what could be the beginning of one.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    begun: Vec<u8>,
}

impl Scanner {
    /// The last signature that this chunk completes.
    pub(crate) fn scan(&mut self, chunk: &[u8]) -> Option<Fact> {
        let mut text = std::mem::take(&mut self.begun);
        text.extend_from_slice(chunk);
        let ends = SIGNATURES.iter().filter_map(|(signature, fact)| {
            let at = text
                .windows(signature.len())
                .rposition(|window| window == *signature)?;
            Some((at + signature.len(), *fact))
        });
        let last = ends.max_by_key(|(end, _)| *end);
        let begun = SIGNATURES
            .iter()
            .map(|(signature, _)| begun(&text, signature))
            .max()
            .unwrap_or_default();
        self.begun = text.split_off(text.len() - begun);
        last.map(|(_, fact)| fact)
    }
}

/// How many bytes at the end of the text could be the beginning of the signature.
fn begun(text: &[u8], signature: &[u8]) -> usize {
    let longest = (signature.len() - 1).min(text.len());
    (1..=longest)
        .rev()
        .find(|length| text.ends_with(&signature[..*length]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: &str = "approval policy is Never; reject command";
    const VIOLATION: &str = "recorded sandbox violation:";

    #[test]
    fn s175_a_signature_in_a_large_chunk_across_chunks_and_the_last_of_two() {
        let mut scanner = Scanner::default();
        let large = format!("{}{NEVER} SECRET_TOKEN{}", "x".repeat(2048), "y".repeat(2048));
        assert_eq!(scanner.scan(large.as_bytes()), Some(Fact::EscalationRejected));

        for split in 1..NEVER.len() {
            let mut scanner = Scanner::default();
            let (first, second) = NEVER.split_at(split);
            assert_eq!(
                scanner.scan(format!("before {first}").as_bytes()),
                None,
                "{split}"
            );
            let second = format!("{second} after");
            assert_eq!(
                scanner.scan(second.as_bytes()),
                Some(Fact::EscalationRejected),
                "{split}"
            );
        }

        for (text, last) in [
            (format!("{NEVER} {VIOLATION}"), Fact::SandboxViolated),
            (format!("{VIOLATION} {NEVER}"), Fact::EscalationRejected),
        ] {
            assert_eq!(Scanner::default().scan(text.as_bytes()), Some(last));
        }
    }

    #[test]
    fn s175_nothing_is_kept_but_a_beginning() {
        let mut scanner = Scanner::default();
        scanner.scan(b"SECRET_TOKEN /private/secret.txt recorded sand");
        assert_eq!(scanner.begun, b"recorded sand");
        assert_eq!(scanner.scan(b"wich, SECRET_TOKEN"), None);
        assert_eq!(scanner.begun, b"");
    }

    #[test]
    fn s176_an_old_signature_is_not_found_again() {
        let mut scanner = Scanner::default();
        assert_eq!(scanner.scan(NEVER.as_bytes()), Some(Fact::EscalationRejected));
        assert_eq!(scanner.scan(b" harmless"), None);
        assert_eq!(scanner.scan(b""), None);
    }
}
