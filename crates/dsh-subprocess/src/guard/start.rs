//! What a guard does with an order: takes it in, starts the leader, forgets it.
//!
//! What it was told is overwritten as soon as the leader runs: the next command may read the memory of its guard.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::sys::prctl::set_dumpable;
use rustix::io::Errno;
use rustix::process::{Pid, getpid};

use super::serve::Harness;
use crate::cgroup::Cgroup;
use crate::sys::fork::{Stillborn, spawn_into};
use crate::sys::{self, Launch, Leads, Others};
use crate::wire::{Limited, Order, Received, Report, Run, Script, Stage, receive};

/// An order with its descriptors.
pub(super) struct Attached {
    pub(super) run: Run,
    stdio: [OwnedFd; 3],
    directory: OwnedFd,
    script: Option<OwnedFd>,
    cgroup: Option<Cgroup>,
}

/// A leader that runs.
pub(super) struct Running {
    pub(super) leader: Pid,
    /// The shell finds it here for as long as it likes: until nobody is left.
    pub(super) script: Option<OwnedFd>,
    /// Where the leader was born.
    pub(super) cgroup: Option<Cgroup>,
}

/// What a guard that waits is told.
pub(super) enum Told {
    Run(Attached),
    /// To go; or something that makes no sense.
    Go,
    /// Nothing any more: the harness is gone.
    End,
}

/// Takes an order that is there.
pub(super) fn await_order(socket: &OwnedFd) -> Result<Told, Errno> {
    let (mut message, mut descriptors) = match receive(socket)? {
        Received::Message(message, descriptors) => (message, descriptors),
        Received::End => return Ok(Told::End),
        Received::Nothing => return Ok(Told::Go),
    };
    if let Some(Order::RunFromFile) = Order::decode(&message) {
        let Some(file) = descriptors.pop() else {
            return Ok(Told::Go);
        };
        message = Vec::new();
        let read = File::from(file).read_to_end(&mut message);
        read.map_err(|error| Errno::from_raw_os_error(number(&error)))?;
    }
    let decoded = Order::decode(&message);
    overwrite(message);
    let Some(Order::Run(run)) = decoded else {
        return Ok(Told::Go);
    };
    let mut descriptors = descriptors.into_iter();
    let mut next = || descriptors.next();
    let (Some(stdin), Some(stdout), Some(stderr), Some(directory)) = (next(), next(), next(), next()) else {
        return Ok(Told::Go);
    };
    let script = match run.script {
        Script::Attached => next(),
        Script::None => None,
    };
    Ok(Told::Run(Attached {
        run,
        stdio: [stdin, stdout, stderr],
        directory,
        script,
        cgroup: next().map(Cgroup::new),
    }))
}

/// Starts the leader.
pub(super) fn start(order: Attached, harness: &mut Harness) -> Result<Running, (Stage, i32)> {
    let Attached {
        run,
        stdio,
        directory,
        script,
        cgroup,
    } = order;
    let mut argv = run.argv;
    match (run.script, &script) {
        (Script::Attached, Some(script)) => {
            let path = format!("/proc/{}/fd/{}", getpid(), script.as_raw_fd());
            // A program that its user may execute but not read makes processes whose `/proc` others cannot open. There
            // is nothing to hide in this one. If it stays so all the same, the shell says it.
            let _ = set_dumpable(true);
            let opened = File::open(&path).map_err(|error| (Stage::Script, number(&error)));
            drop(opened?);
            argv.extend([c"-c".to_owned(), c_string(reading(&path))?]);
        }
        (Script::Attached, None) => return Err((Stage::Order, libc::EINVAL)),
        (Script::None, _) => {}
    }
    let launch = Launch {
        program: &run.program,
        argv: &argv,
        env: &run.env,
        directory: directory.as_fd(),
        stdio: stdio.each_ref().map(AsFd::as_fd),
        socket: None,
        leads: Leads::Session,
        others: Others::CloseThemselves,
    };
    let spawned = spawn(&launch, cgroup, run.limited, harness);
    argv.into_iter()
        .chain(run.env)
        .for_each(|text| overwrite(text.into_bytes()));
    let (leader, cgroup) = spawned?;
    Ok(Running {
        leader,
        script,
        cgroup,
    })
}

/// In the cgroup, if there is one that takes it; one that limits it must.
fn spawn(
    launch: &Launch<'_>,
    cgroup: Option<Cgroup>,
    limited: Limited,
    harness: &mut Harness,
) -> Result<(Pid, Option<Cgroup>), (Stage, i32)> {
    if let Some(cgroup) = cgroup {
        match (spawn_into(cgroup.as_fd(), launch), limited) {
            (Ok(leader), _) => return Ok((leader, Some(cgroup))),
            (Err(Stillborn::NoProgram(error)), _) => return Err((Stage::Spawn, number(&error))),
            (Err(Stillborn::NoProcess(error)), Limited::Yes) => return Err((Stage::Cgroup, number(&error))),
            // Not every kernel can, and not every cgroup takes processes; a shortage shows again.
            (Err(Stillborn::NoProcess(_)), Limited::No) => harness.tell(&Report::OutOfCgroup),
        }
    }
    match sys::spawn(launch) {
        Ok(leader) => Ok((leader, None)),
        Err(error) => Err((Stage::Spawn, number(&error))),
    }
}

/// For what the next command must not find in the memory of this process.
fn overwrite(mut text: Vec<u8>) {
    text.fill(0);
    // As if somebody read it: a write that nobody reads may be left out.
    std::hint::black_box(&text);
}

/// The shell text that runs what is in the file. A file that cannot be read would pass for an empty command, and functions
/// of whatever name but `builtin` may come with the environment. The variable is where `bash -c` has its command, too.
fn reading(path: &str) -> String {
    let variable = "BASH_EXECUTION_STRING";
    format!("{variable}=$(<{path}) || builtin exit 126; builtin eval -- \"${variable}\"")
}

fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

fn c_string(text: String) -> Result<CString, (Stage, i32)> {
    CString::new(text).map_err(|_| (Stage::Order, libc::EINVAL))
}
