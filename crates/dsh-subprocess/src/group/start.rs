//! Starting a process in a group of its own.

use std::os::fd::AsFd;
use std::sync::Arc;

use super::watch::Ward;
use super::{Group, Grouped};
use crate::error::SpawnError;
use crate::launcher::Launched;
use crate::limits::LimitError;
use crate::prepare::Prepared;
use crate::spec::ProcessSpec;
use crate::tree::ProcessTree;
use crate::{keeper, sys};

pub(crate) fn launch(mut spec: ProcessSpec) -> Result<Launched, SpawnError> {
    if !sys::exit_statuses_are_kept() {
        return Err(SpawnError::ExitsIgnored);
    }
    if !spec.limits.is_none() {
        return Err(LimitError::no_guard().into());
    }
    if let Some(command) = spec.bash_command.take() {
        // It may begin with a dash.
        spec.args.extend(["-c".into(), "--".into(), command]);
    }
    let kill_bound = spec.kill_bound;
    let prepared = Prepared::new(spec)?;
    let keeper = keeper::get().map_err(|error| SpawnError::resources("the watching thread", error))?;
    let leader = sys::spawn(&sys::Launch {
        program: &prepared.program,
        argv: &prepared.argv,
        env: &prepared.env,
        directory: prepared.directory.as_fd(),
        stdio: prepared.stdio.each_ref().map(AsFd::as_fd),
        socket: None,
        leads: sys::Leads::Group,
        others: sys::Others::Close,
    })
    .map_err(|source| prepared.blame(source))?;
    let grouped = Arc::new(Grouped::new(Group::new(leader), kill_bound));
    keeper.watch(Box::new(Ward::new(Arc::clone(&grouped), prepared.feed)));
    Ok(Launched {
        tree: ProcessTree::of_group(grouped),
        stdin: prepared.stdin,
        stdout: prepared.stdout,
        stderr: prepared.stderr,
    })
}
