//! Starting a process in a group of its own.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Access, AtFlags};
use tokio::sync::watch;

use crate::error::SpawnError;
use crate::group::Group;
use crate::keeper;
use crate::limits::LimitError;
use crate::prepare::{Asked, Prepared};
use crate::spec::ProcessSpec;
use crate::sys;
use crate::tree::{ProcessTree, Shared, Status};

/// A started process, before a runtime watches its pipes.
pub(crate) struct Launched {
    pub(crate) tree: ProcessTree,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

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
    .map_err(|source| blame(source, &prepared.asked, prepared.directory.as_fd()))?;
    let (status, _) = watch::channel(Status::default());
    let shared = Arc::new(Shared {
        group: Group::new(leader),
        status,
        kill_bound,
    });
    keeper.watch_group(Arc::clone(&shared), prepared.feed);
    Ok(Launched {
        tree: ProcessTree::of_group(shared),
        stdout: prepared.stdout,
        stderr: prepared.stderr,
    })
}

/// `posix_spawn` has one error number for all its steps; says which of them it means.
pub(crate) fn blame(source: io::Error, asked: &Asked, directory: BorrowedFd<'_>) -> SpawnError {
    // The directory was opened, but entering it needs one more permission.
    let enter = rustix::fs::accessat(directory, ".", Access::EXEC_OK, AtFlags::empty());
    if let (Some(libc::EACCES), Err(refusal)) = (source.raw_os_error(), enter) {
        return SpawnError::directory(&asked.cwd, refusal);
    }
    asked.refused(source)
}
