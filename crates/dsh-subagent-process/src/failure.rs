//! What is known of a failure of a product: fixed words, and numbers.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use dsh_agent::BoxError;
use dsh_subprocess::LeaderExit;

/// A failure of a product. Its text has fixed words and numbers in it, so models and people may read it; what the product said
/// belongs into its source, which only the log of the program shows.
#[derive(Debug, Clone)]
pub struct Failure {
    subject: Subject,
    stage: &'static str,
    category: &'static str,
    code: Option<(&'static str, i64)>,
    exit: Option<LeaderExit>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// What failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The product of this name.
    Product(&'static str),
    /// Some agent of this protocol.
    Protocol(&'static str),
}

impl Failure {
    /// What failed, how far it had come, and what kind of failure it is: words of the provider's own.
    pub fn new(subject: Subject, stage: &'static str, category: &'static str) -> Self {
        Self {
            subject,
            stage,
            category,
            code: None,
            exit: None,
            source: None,
        }
    }

    /// With the status that a model's server gave the product, if it told one.
    #[must_use]
    pub fn with_http_status(self, status: Option<u16>) -> Self {
        let code = status.map(|status| ("HTTP status", status.into()));
        Self { code, ..self }
    }

    /// With the code of the error that it answered with.
    #[must_use]
    pub fn with_error_code(self, code: i32) -> Self {
        let code = Some(("error code", code.into()));
        Self { code, ..self }
    }

    /// With how the process ended, if that is known.
    #[must_use]
    pub fn with_exit(self, exit: Option<LeaderExit>) -> Self {
        Self {
            exit: exit.or(self.exit),
            ..self
        }
    }

    /// With what is behind it.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// What is behind it.
    pub(crate) fn cause(&self) -> Option<Arc<dyn Error + Send + Sync>> {
        self.source.clone()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            subject,
            stage,
            category,
            code,
            exit,
            source: _,
        } = self;
        match subject {
            Subject::Product(product) => write!(f, "Product subagent failure (product: {product}; ")?,
            Subject::Protocol(protocol) => write!(f, "{protocol} subagent failure (")?,
        }
        write!(f, "stage: {stage}; category: {category}")?;
        if let Some((name, code)) = code {
            write!(f, "; {name}: {code}")?;
        }
        match exit {
            Some(LeaderExit::Code(code)) => write!(f, "; exit code: {code}")?,
            Some(LeaderExit::Signal { signal, .. }) => write!(f, "; signal: {signal}")?,
            Some(LeaderExit::Lost | LeaderExit::GuardLost) | None => {}
        }
        f.write_str(")")
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROBOT: Subject = Subject::Product("Robot");

    #[test]
    fn s192_a_line_names_what_is_known_and_never_its_cause() {
        let failure = Failure::new(ROBOT, "turn", "other")
            .with_http_status(Some(400))
            .with_exit(Some(LeaderExit::Code(17)))
            .with_exit(None)
            .caused_by("SECRET_TOKEN in /private/secret.txt");
        assert_eq!(
            failure.to_string(),
            "Product subagent failure (product: Robot; stage: turn; category: other; HTTP status: 400; exit code: 17)"
        );
        let cause = failure.source().expect("what is behind it").to_string();
        assert!(cause.contains("SECRET_TOKEN"), "{cause}");
        for unseen in [None, Some(LeaderExit::Lost), Some(LeaderExit::GuardLost)] {
            assert_eq!(
                Failure::new(ROBOT, "turn", "other").with_exit(unseen).to_string(),
                "Product subagent failure (product: Robot; stage: turn; category: other)"
            );
        }
        let spoken = Failure::new(Subject::Protocol("RPC"), "call", "refused").with_error_code(-32603);
        assert_eq!(
            spoken.to_string(),
            "RPC subagent failure (stage: call; category: refused; error code: -32603)"
        );
    }
}
