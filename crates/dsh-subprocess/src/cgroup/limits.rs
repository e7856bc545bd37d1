//! What has to be written where, so that the kernel holds a limit, and what it tells of one that was reached.

use std::os::fd::AsFd;
use std::path::Path;

use super::files::{field, read, write};
use super::find::Base;
use super::home::Home;
use crate::limits::{LimitError, Limits};

/// The controllers that these limits need.
fn controllers(limits: &Limits) -> Vec<&'static str> {
    let needed = [
        ("memory", limits.memory_bytes.is_some()),
        ("pids", limits.pids.is_some()),
    ];
    needed
        .into_iter()
        .filter_map(|(name, is_needed)| is_needed.then_some(name))
        .collect()
}

/// Makes the base able to limit what is below it.
pub(crate) fn prepare_base(base: &Base, limits: &Limits) -> Result<(), LimitError> {
    let directory = base.open().map_err(|error| LimitError::NoCgroup {
        missing: format!("{}: {error}", base.path().display()),
    })?;
    enable(&directory, base.path(), &controllers(limits))
}

/// As [`prepare_base`], for a home in a base that was prepared.
pub(crate) fn prepare_home(home: &Home, base: &Base, limits: &Limits) -> Result<(), LimitError> {
    enable(home, &base.path().join(home.name()), &controllers(limits))
}

/// Gives the controllers to the cgroups below a directory.
fn enable(directory: impl AsFd, path: &Path, wanted: &[&'static str]) -> Result<(), LimitError> {
    let listed = |name| read(&directory, name).unwrap_or_default();
    let given = listed("cgroup.subtree_control");
    let missing = missing(&listed("cgroup.controllers"), &given, wanted);
    let missing = missing.map_err(|controller| LimitError::NoController {
        controller,
        directory: path.to_owned(),
    })?;
    if missing.is_empty() {
        return Ok(());
    }
    let order: Vec<_> = missing.iter().map(|name| format!("+{name}")).collect();
    write(&directory, "cgroup.subtree_control", &order.join(" ")).map_err(|source| LimitError::NotEnabled {
        controllers: missing.join(" and "),
        directory: path.to_owned(),
        source,
    })
}

/// Which of the wanted controllers a cgroup still has to give to those below it, by what its files say; or the first
/// that it cannot give.
fn missing<'a>(available: &str, given: &str, wanted: &[&'a str]) -> Result<Vec<&'a str>, &'a str> {
    let has = |list: &str, name: &str| list.split_whitespace().any(|found| found == name);
    let missing: Vec<_> = wanted.iter().copied().filter(|name| !has(given, name)).collect();
    match missing.iter().find(|name| !has(available, name)) {
        Some(name) => Err(name),
        None => Ok(missing),
    }
}

/// What is written to the files of a command's cgroup.
struct Setting {
    file: &'static str,
    value: String,
    /// Without it the limit holds all the same.
    may_be_missing: bool,
}

fn settings(limits: &Limits) -> Vec<Setting> {
    let setting = |file, value| Setting {
        file,
        value,
        may_be_missing: false,
    };
    let mut settings = Vec::new();
    if let Some(bytes) = limits.memory_bytes {
        settings.push(setting("memory.max", bytes.to_string()));
        // Not there where the kernel accounts no swap.
        settings.push(Setting {
            may_be_missing: true,
            ..setting("memory.swap.max", "0".to_owned())
        });
    }
    settings.extend(limits.pids.map(|count| setting("pids.max", count.to_string())));
    settings
}

/// Limits a command that is not in its cgroup yet.
pub(crate) fn impose(cgroup: &impl AsFd, limits: &Limits) -> Result<(), LimitError> {
    for Setting {
        file,
        value,
        may_be_missing,
    } in settings(limits)
    {
        match write(cgroup, file, &value) {
            Ok(()) => {}
            Err(error) if may_be_missing && error.raw_os_error() == Some(libc::ENOENT) => {}
            Err(source) => return Err(LimitError::NotSet { file, value, source }),
        }
    }
    Ok(())
}

/// Which limits a command ran into.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Hits {
    pub(crate) memory: bool,
    pub(crate) pids: bool,
}

/// What the kernel counted for a command. To be asked before its cgroup is removed.
pub(crate) fn hits(cgroup: &impl AsFd) -> Hits {
    let events = |name| read(cgroup, name).unwrap_or_default();
    Hits::counted(&events("memory.events"), &events("pids.events"))
}

impl Hits {
    /// A process may also be killed because the machine has no more memory: only with `oom` it was this limit.
    fn counted(memory: &str, pids: &str) -> Hits {
        let some = |text, key| field(text, key).is_some_and(|count| count > 0);
        Hits {
            memory: some(memory, "oom") && some(memory, "oom_kill"),
            pids: some(pids, "max"),
        }
    }
}

#[cfg(test)]
mod tests;
