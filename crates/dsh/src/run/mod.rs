//! `dsh run`: an agent does something in this directory, and is gone when it is done.
//!
//! It is done when it has nothing more to say, none of its tasks lives, and no notice waits that could wake it. Then,
//! and after a failed turn, a signal, or when waiting took too long, everything is ended in order before the result is
//! told.

mod approval;
mod error;
mod follow;
mod format;
mod outcome;
mod printer;
mod prompt;
mod report;
mod session;

use std::sync::Arc;

use dsh_agent_core::{AgentCore, Config, Models};
use dsh_session::{Durability, Message};
use dsh_tools::Approver;

pub(crate) use error::RunError;

use crate::cli::RunArgs;
use crate::settings::Settings;
use crate::signals::Signals;
use crate::{Failure, services, streams};
use approval::AskOnTerminal;
use follow::{Followed, Run, follow};
use outcome::Outcome;
use printer::Printer;
use report::Report;

/// Does what was asked for, and returns the exit code: 0 if the last turn completed, else 1.
pub(crate) async fn run(mut settings: Settings, args: RunArgs, signals: &Signals) -> Result<u8, Failure> {
    let config = &mut settings.config;
    config.model = config.model.clone().overridden(args.model.clone().into())?;
    let models = Models::connect(&config.model, |name| std::env::var_os(name))?;
    let (config, preset) = (config.clone(), settings.named_preset.clone());
    let core = services::assemble(settings, models.registry()).await?;
    let worked = tokio::select! {
        worked = work(&core, &models, &config, preset.as_deref(), &args, signals) => worked,
        never = signals.hurry_when_told(&core) => match never {},
    };
    // Whatever went wrong before an agent was there.
    core.shutdown().await;
    worked.map(|outcome| outcome.code())
}

/// From the prompt to the result, before which everything is ended.
async fn work(
    core: &AgentCore,
    models: &Models,
    config: &Config,
    preset: Option<&str>,
    args: &RunArgs,
    signals: &Signals,
) -> Result<Outcome, Failure> {
    streams::block(std::io::stdout())?;
    let prompt = tokio::select! {
        biased;
        () = signals.stop.cancelled() => return Err(Failure::Stopped),
        prompt = prompt::read(args.prompt.as_deref()) => prompt?,
    };
    let context = core.context();
    let session = session::open(context, args, preset)?;
    let (approver, questions) = AskOnTerminal::new();
    let approver: Arc<dyn Approver> = Arc::new(approver);
    let led = context
        .lead(session.clone(), Some(approver))
        .await
        .map_err(RunError::Create)?;
    let printer = Printer::start()?;
    let report = Report::new(args.output_format, printer, &session, &led.model());
    let mut run = Run::new(context, &led, report, questions, args.linger).map_err(|_| Failure::Stopped)?;
    let asked = led.agent().follow_up(Message::user(prompt));
    let followed = match asked {
        Ok(()) => follow(&mut run, signals).await,
        // The services are being shut down.
        Err(_) => Followed::Signalled,
    };
    run.tell_what_ends(followed);
    if let Err(error) = led.dispose().await {
        tracing::error!("{error}");
    }
    core.shutdown().await;
    run.catch_up();
    let mut outcome = Outcome::of(followed, run.report.last_end(), config.model.max_tokens);
    if outcome == Outcome::Completed
        && let Err(misfits) = models.finish()
    {
        let misfits: Vec<String> = misfits.iter().map(ToString::to_string).collect();
        outcome = Outcome::Failed(misfits.join("\n"));
    }
    // What is told has happened, and is on disk.
    if let Err(error) = session.flush(Durability::Synced).await {
        outcome = Outcome::Failed(error.to_string());
    }
    run.report.finish(&outcome, signals).await?;
    Ok(outcome)
}
