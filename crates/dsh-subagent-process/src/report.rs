//! What is said of a child that came to nothing, and to whom.

use std::error::Error;
use std::fmt;
use std::path::Path;

use dsh_agent::BoxError;
use dsh_subagent::{Diagnostic, RunFault, RunResult, StartFailure, StopReason};
use dsh_subprocess::LeaderExit;

use crate::{Failure, ReleaseError, Subject};

/// What one provider says of its failures. Models get the [line](Failure) of one, and so does the log, at level warn; what is
/// behind it may hold what the product said, and is in the log at level debug alone.
#[derive(Debug, Clone)]
pub struct Reports {
    crate_name: &'static str,
    subject: Subject,
    provider: String,
}

impl Reports {
    /// For the provider of this name, whose children are these. The name of its crate stands before every error that a model
    /// reads.
    pub fn new(crate_name: &'static str, subject: Subject, provider: impl Into<String>) -> Self {
        Self {
            crate_name,
            subject,
            provider: provider.into(),
        }
    }

    /// The name of the provider.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// A request that is refused, in fixed words.
    pub fn refused(&self, why: impl fmt::Display) -> StartFailure {
        StartFailure::new(format!("{}: {why}", self.crate_name))
    }

    /// Where a child works: in this directory. Whether that can be entered is seen by the launcher.
    ///
    /// # Errors
    ///
    /// There is none, where `remedy` says what to do about it; or it is not absolute, which is this `failure`.
    pub fn directory<'a>(
        &self,
        cwd: Option<&'a Path>,
        remedy: &str,
        failure: &Failure,
    ) -> Result<&'a Path, StartFailure> {
        let cwd =
            cwd.ok_or_else(|| self.refused(format_args!("no working directory for the child — {remedy}")))?;
        if cwd.is_absolute() {
            return Ok(cwd);
        }
        let cause = format!(
            "the working directory must be an absolute path: {}",
            cwd.display()
        );
        Err(self.not_spawned(failure, cause))
    }

    /// No process was started. Why is not the product's word, so the log has it with the failure.
    pub fn not_spawned(&self, failure: &Failure, why: impl Into<BoxError>) -> StartFailure {
        let why = why.into();
        self.warn(format_args!("child start failed: {failure}: {why}"));
        self.refused(failure).caused_by(why)
    }

    /// A start came to nothing.
    pub fn start_failed(&self, failure: Failure) -> StartFailure {
        self.warn(format_args!("child start failed: {failure}"));
        self.debug_cause(&failure);
        let told = self.refused(&failure);
        match failure.cause() {
            Some(cause) => told.caused_by(cause),
            None => told,
        }
    }

    /// And whether what was there by then is gone.
    pub fn with_release(&self, told: StartFailure, released: Result<(), RunFault>) -> StartFailure {
        match released {
            Ok(()) => told,
            Err(fault) => {
                let (name, provider) = (self.crate_name, &self.provider);
                tracing::error!(
                    error = &fault as &dyn Error,
                    "{name} \"{provider}\": child not released"
                );
                told.with_rollback(fault.to_string())
            }
        }
    }

    /// A run failed: its line, and what it was not permitted on the next.
    pub fn run_failed(&self, stop: StopReason, failure: &Failure, fact: Option<&str>) -> RunResult {
        self.warn(format_args!("child run failed ({stop}): {failure}"));
        self.debug_cause(failure);
        let line = failure.to_string();
        let lines = [Some(line.as_str()), fact].into_iter().flatten();
        RunResult::failed(stop, Diagnostic::new(lines.collect::<Vec<_>>().join("\n")))
    }

    /// Something of a product is left, or may be.
    pub fn unreleased(&self, error: ReleaseError, exit: Option<LeaderExit>) -> RunFault {
        let failure = Failure::new(self.subject, "teardown", "unknown").with_exit(exit);
        RunFault::new(format!("{}: {failure}", self.crate_name)).caused_by(error)
    }

    fn warn(&self, what: fmt::Arguments<'_>) {
        tracing::warn!("{} \"{}\": {what}", self.crate_name, self.provider);
    }

    fn debug_cause(&self, failure: &Failure) {
        if let Some(cause) = failure.cause() {
            tracing::debug!("{} \"{}\": {cause}", self.crate_name, self.provider);
        }
    }
}

#[cfg(test)]
mod tests {
    use dsh_testkit::LogCapture;

    use super::*;

    const ROBOT: Subject = Subject::Product("Robot");

    fn reports() -> Reports {
        Reports::new("subagent-robot", ROBOT, "my-robot")
    }

    #[test]
    fn s206_s250_what_could_not_be_released_is_named_by_the_source_alone() {
        let left = ReleaseError::Survivors("4242 cat /private/secret.txt".to_owned());
        let fault = reports().unreleased(left.clone(), Some(LeaderExit::Code(3)));
        let line = "subagent-robot: Product subagent failure (product: Robot; stage: teardown; category: unknown; exit code: 3)";
        assert_eq!(fault.to_string(), line);
        let cause = fault.source().expect("what is behind it");
        assert_eq!(cause.to_string(), left.to_string());

        let failure = Failure::new(ROBOT, "start", "unknown").caused_by("SECRET_TOKEN");
        let told = reports().with_release(reports().start_failed(failure), Err(fault));
        assert_eq!(
            told.to_string(),
            format!(
                "subagent-robot: Product subagent failure (product: Robot; stage: start; category: unknown); {line}"
            )
        );
        assert_eq!(told.rollback(), Some(line));
        assert_eq!(
            told.source().expect("what is behind it").to_string(),
            "SECRET_TOKEN"
        );
    }

    #[test]
    fn s161_s201_a_directory_is_there_and_absolute_and_only_the_log_names_another() {
        let logged = LogCapture::start();
        let failure = Failure::new(ROBOT, "start", "unknown");
        let directory = |cwd| reports().directory(cwd, "give it one", &failure);
        assert_eq!(directory(Some(Path::new("/w"))).expect("it is one"), "/w");
        assert_eq!(
            directory(None).expect_err("none").to_string(),
            "subagent-robot: no working directory for the child — give it one"
        );
        let relative = directory(Some(Path::new("private/secret"))).expect_err("not absolute");
        let line = "Product subagent failure (product: Robot; stage: start; category: unknown)";
        assert_eq!(relative.to_string(), format!("subagent-robot: {line}"));
        let why = "the working directory must be an absolute path: private/secret";
        assert_eq!(relative.source().expect("why").to_string(), why);
        assert!(logged.contains(&format!(
            "subagent-robot \"my-robot\": child start failed: {line}: {why}"
        )));
    }
}
