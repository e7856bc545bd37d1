use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsFd;

use super::*;
use crate::sys::{Leads, Others};

const WAYS: [Bear; 2] = [bear, bear_by_fork];

/// How `sh -c script` ends when it is born in this way; with `file` as all of its standard descriptors.
fn run(bear: Bear, program: &str, script: &str, file: &File) -> Result<Option<i32>, Stillborn> {
    let [program, argument, script] = [program, "-c", script].map(|text| CString::new(text).unwrap());
    let root = File::open("/").unwrap();
    let launch = Launch {
        program: &program,
        argv: &[program.clone(), argument, script],
        env: &[c"A=b".to_owned()],
        directory: root.as_fd(),
        stdio: [file.as_fd(); 3],
        socket: None,
        leads: Leads::Session,
        others: Others::CloseThemselves,
    };
    let child = spawn_as(CloneArgs::default(), &launch, bear)?;
    let (_, status) = waitpid(Some(child), WaitOptions::empty()).unwrap().unwrap();
    Ok(status.exit_status())
}

#[test]
fn a_child_gets_what_the_launch_says() {
    for bear in WAYS {
        let mut file = tempfile::tempfile().unwrap();
        let script =
            "read -r _ _ _ _ _ session _ < /proc/$$/stat; test $session = $$ && echo $A $PWD; exit 7";
        assert!(matches!(run(bear, "/bin/sh", script, &file), Ok(Some(7))));
        let mut printed = String::new();
        io::Seek::rewind(&mut file).unwrap();
        io::Read::read_to_string(&mut file, &mut printed).unwrap();
        assert_eq!(printed, "b /\n");
    }
}

#[test]
fn a_program_that_is_not_there_is_told_and_leaves_no_child() {
    for bear in WAYS {
        let file = tempfile::tempfile().unwrap();
        let Err(Stillborn::NoProgram(error)) = run(bear, "/no/such/program", "", &file) else {
            panic!("it runs")
        };
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        let none = waitpid(None, WaitOptions::NOHANG);
        assert_eq!(none.unwrap_err(), rustix::io::Errno::CHILD);
    }
}

#[test]
fn a_child_that_cannot_be_made_is_told() {
    let not_a_cgroup = File::open("/").unwrap();
    let args = CloneArgs {
        flags: CLONE_INTO_CGROUP,
        cgroup: u64::from(not_a_cgroup.as_raw_fd().cast_unsigned()),
        ..CloneArgs::default()
    };
    let file = File::open("/dev/null").unwrap();
    let launch = Launch {
        program: c"/bin/true",
        argv: &[c"true".to_owned()],
        env: &[],
        directory: not_a_cgroup.as_fd(),
        stdio: [file.as_fd(); 3],
        socket: None,
        leads: Leads::Session,
        others: Others::CloseThemselves,
    };
    for bear in WAYS {
        let args = CloneArgs { ..args };
        let refused = spawn_as(args, &launch, bear);
        assert!(matches!(refused, Err(Stillborn::NoProcess(_))));
    }
}
