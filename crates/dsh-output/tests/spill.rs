//! The spill file and its directory, with real processes and real disk errors.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper of tests fails its test"
)]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use common::{in_memory, sections, spilling, whole};
use dsh_output::{OutputConfig, OutputLog, OutputSource, SpillConfig, SpillDir, Stream};

/// Names the role of a test that runs itself as a child process; holds the directory to use.
const ROLE: &str = "DSH_OUTPUT_TEST_CHILD";

/// The base directory, if this process is the child.
fn as_child() -> Option<PathBuf> {
    std::env::var_os(ROLE).map(PathBuf::from)
}

/// This test again in another process, behind `shell` code.
fn child(test: &str, base: &Path, shell: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("{shell} exec \"$0\" \"$@\"")]);
    command
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"]);
    command
        .env(ROLE, base)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// The rest of the first line of the child's output that begins with `marker`.
fn read_marker(child: &mut Child, marker: &str) -> String {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let found = lines
        .map_while(Result::ok)
        .find_map(|line| Some(line.split_once(marker)?.1.to_owned()));
    found.expect("the child ended without its marker")
}

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

fn entries(dir: &Path) -> usize {
    std::fs::read_dir(dir).unwrap().count()
}

#[test]
fn files_are_private_and_their_names_are_not_predictable() {
    let first = spilling(4, 100);
    first.log.append(Stream::Stdout, b"secret");
    let path = first.log.spill_path().unwrap();
    assert_eq!((mode(first.dir.path()), mode(&path)), (0o700, 0o600));
    assert_eq!(path.parent(), Some(first.dir.path()));
    assert_eq!(mode(&first.dir.path().join("lock")), 0o600);

    let spill = Some(SpillConfig {
        dir: first.dir.clone(),
        max_bytes: 100,
    });
    let second = OutputLog::new(OutputConfig {
        memory_bytes: 4,
        spill,
    });
    second.append(Stream::Stdout, b"secret");
    assert_ne!(second.spill_path(), Some(path));
}

#[test]
fn a_file_goes_with_the_last_handle_and_the_directory_after_the_last_file() {
    let common::Spilling { log, dir, base } = spilling(4, 100);
    log.append(Stream::Stdout, b"0123456789");
    log.close();
    let path = log.spill_path().unwrap();
    let reader = sections(&log);
    drop((log, dir));
    assert!(path.exists());
    assert_eq!(reader.read_from(0, 100).text, "0123456789");
    drop(reader);
    assert!(!path.exists());
    assert_eq!(entries(base.path()), 0);
}

#[test]
fn a_directory_whose_owner_is_dead_is_removed_and_others_are_left_alone() {
    const NAME: &str = "a_directory_whose_owner_is_dead_is_removed_and_others_are_left_alone";
    if let Some(base) = as_child() {
        let dir = SpillDir::create_in(&base, u64::MAX).unwrap();
        let spill = Some(SpillConfig {
            dir: dir.clone(),
            max_bytes: 100,
        });
        let log = OutputLog::new(OutputConfig {
            memory_bytes: 1,
            spill,
        });
        log.append(Stream::Stdout, b"0123456789");
        println!("holds:{}", dir.path().display());
        // Until the parent kills this process, or is gone itself.
        let _ = std::io::stdin().read(&mut [0]);
        return;
    }
    let base = tempfile::tempdir().unwrap();
    std::fs::create_dir(base.path().join("dsh-output-without-lock")).unwrap();
    std::fs::create_dir(base.path().join("unrelated")).unwrap();
    std::fs::write(base.path().join("unrelated/lock"), "").unwrap();
    std::os::unix::fs::symlink(base.path().join("unrelated"), base.path().join("dsh-output-link")).unwrap();

    let mut owner = child(NAME, base.path(), "").spawn().unwrap();
    let theirs = PathBuf::from(read_marker(&mut owner, "holds:"));
    assert_eq!(entries(&theirs), 2);

    let first = SpillDir::create_in(base.path(), u64::MAX).unwrap();
    assert_eq!(entries(&theirs), 2, "its owner lives");
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert!(theirs.exists());
    let second = SpillDir::create_in(base.path(), u64::MAX).unwrap();
    assert!(!theirs.exists());
    assert!(first.path().exists() && second.path().exists());
    assert!(base.path().join("unrelated/lock").exists());
    assert!(base.path().join("dsh-output-link").symlink_metadata().is_ok());
    assert!(!base.path().join("dsh-output-without-lock").exists());
}

#[test]
fn processes_that_start_together_each_get_a_directory() {
    let base = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let dir = SpillDir::create_in(base.path(), u64::MAX).unwrap();
                    assert!(dir.path().join("lock").exists());
                }
            });
        }
    });
    assert_eq!(entries(base.path()), 0);
}

#[test]
fn a_missing_base_is_an_error_that_names_it() {
    let base = tempfile::tempdir().unwrap();
    let error = SpillDir::create_in(&base.path().join("missing"), u64::MAX)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("/missing") && error.contains("No such file"),
        "{error}"
    );
}

#[test]
fn a_file_that_cannot_be_created_costs_only_the_middle() {
    let spilling = spilling(6, 100);
    let log = &spilling.log;
    std::fs::remove_dir_all(spilling.dir.path()).unwrap();
    log.append(Stream::Stdout, b"0123");
    log.append(Stream::Stdout, b"456789");
    log.append(Stream::Stdout, b"x");
    log.close();
    assert_eq!(log.spill_path(), None);
    assert_eq!(
        whole(log),
        "012\n[5 bytes omitted here; no longer available]\n89x"
    );
}

#[test]
fn after_a_write_error_the_file_still_serves_what_it_has() {
    const NAME: &str = "after_a_write_error_the_file_still_serves_what_it_has";
    if let Some(base) = as_child() {
        let dir = SpillDir::create_in(&base, u64::MAX).unwrap();
        let spill = Some(SpillConfig {
            dir,
            max_bytes: 1_000_000,
        });
        let log = OutputLog::new(OutputConfig {
            memory_bytes: 100,
            spill,
        });
        for index in 0..2_000 {
            log.append(Stream::Stdout, format!("line {index:04}\n").as_bytes());
        }
        log.close();
        // 2 blocks of 1,024 bytes fit; the write that crosses the limit is cut there.
        let read = sections(&log).read_from(0, usize::MAX);
        let kept = std::fs::read(log.spill_path().unwrap()).unwrap();
        assert_eq!(kept.len(), 2_048);
        assert_eq!((read.next, read.omitted), (20_000, 20_000 - 2_048 - 50));
        let note = "\n[17902 bytes omitted here; no longer available]\n";
        let expected = format!(
            "{}{note}{}",
            String::from_utf8(kept).unwrap(),
            "line 1995\nline 1996\nline 1997\nline 1998\nline 1999\n"
        );
        assert_eq!(read.text, expected);
        println!("checked:");
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let limited = child(NAME, base.path(), "trap '' XFSZ; ulimit -f 2;")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&limited.stdout);
    assert!(
        limited.status.success() && printed.contains("checked:"),
        "{printed}"
    );
}

#[test]
fn a_directory_goes_without_a_descriptor_to_look_into_it() {
    const NAME: &str = "a_directory_goes_without_a_descriptor_to_look_into_it";
    if let Some(base) = as_child() {
        let dir = SpillDir::create_in(&base, u64::MAX).unwrap();
        let all: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
        assert!(std::fs::read_dir(&base).is_err(), "none is left");
        // Its lock is a descriptor, so one is free once it has gone.
        drop(dir);
        drop(all);
        assert_eq!(std::fs::read_dir(&base).unwrap().count(), 0);
        println!("checked:");
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let limited = child(NAME, base.path(), "ulimit -n 50;").output().unwrap();
    let printed = String::from_utf8_lossy(&limited.stdout);
    assert!(
        limited.status.success() && printed.contains("checked:"),
        "{printed}"
    );
}

/// Logs that share room for so many bytes on disk; each has 6 bytes of memory and could spill 100 alone.
fn sharing(max_bytes: u64) -> (tempfile::TempDir, impl Fn() -> OutputLog) {
    let base = tempfile::tempdir().unwrap();
    let dir = SpillDir::create_in(base.path(), max_bytes).unwrap();
    let log = move || {
        OutputLog::new(OutputConfig {
            memory_bytes: 6,
            spill: Some(SpillConfig {
                dir: dir.clone(),
                max_bytes: 100,
            }),
        })
    };
    (base, log)
}

#[test]
fn the_cap_of_all_is_told_like_the_cap_of_one() {
    let (_base, new_log) = sharing(18);
    let first = new_log();
    first.append(Stream::Stdout, b"0123456789");
    assert_eq!(whole(&first), "0123456789");

    // 8 bytes are left for this one.
    let second = new_log();
    second.append(Stream::Stdout, b"abcdefghijklmnop");
    let cut = "abcdefgh\n[5 bytes omitted here; no longer available]\nnop";
    assert_eq!(whole(&second), cut);
    assert_eq!(std::fs::read(second.spill_path().unwrap()).unwrap(), b"abcdefgh");

    // Nothing is left for this one, so it has no file.
    let third = new_log();
    third.append(Stream::Stdout, b"ABCDEFGHIJ");
    third.close();
    assert_eq!(third.spill_path(), None);
    assert_eq!(
        whole(&third),
        "ABC\n[4 bytes omitted here; no longer available]\nHIJ"
    );

    // A log that goes makes room for new ones. Those that were cut stay as they are.
    drop(first);
    second.append(Stream::Stdout, b"qrs");
    assert_eq!(
        whole(&second),
        "abcdefgh\n[8 bytes omitted here; no longer available]\nqrs"
    );
    let fourth = new_log();
    fourth.append(Stream::Stdout, b"0123456789ABCDEF");
    assert_eq!(
        whole(&fourth),
        "0123456789\n[3 bytes omitted here; no longer available]\nDEF"
    );
}

#[test]
fn writers_at_the_same_time_stay_below_the_cap_of_all() {
    const ALL: u64 = 5_000;
    let base = tempfile::tempdir().unwrap();
    let dir = SpillDir::create_in(base.path(), ALL).unwrap();
    let on_disk = || -> u64 {
        std::fs::read_dir(dir.path())
            .unwrap()
            .flatten()
            .filter_map(|entry| entry.metadata().ok())
            .map(|metadata| metadata.len())
            .sum()
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let log = OutputLog::new(OutputConfig {
                        memory_bytes: 10,
                        spill: Some(SpillConfig {
                            dir: dir.clone(),
                            max_bytes: 2_000,
                        }),
                    });
                    for _ in 0..50 {
                        log.append(Stream::Stdout, &[b'x'; 61]);
                    }
                    let read = sections(&log).read_from(0, usize::MAX);
                    assert_eq!(read.text.matches('x').count() as u64 + read.omitted, 50 * 61);
                    assert!(on_disk() <= ALL);
                }
            });
        }
    });
    // All is free again: one log can have it.
    let log = OutputLog::new(OutputConfig {
        memory_bytes: 10,
        spill: Some(SpillConfig {
            dir: dir.clone(),
            max_bytes: u64::MAX,
        }),
    });
    log.append(Stream::Stdout, &[b'x'; 6_000]);
    assert_eq!(on_disk(), ALL);
}

#[test]
fn a_file_that_somebody_removed_is_not_named() {
    let spilling = spilling(6, 100);
    let log = &spilling.log;
    log.append(Stream::Stdout, b"0123456789");
    std::fs::remove_file(log.spill_path().unwrap()).unwrap();
    assert_eq!(
        whole(log),
        "012\n[4 bytes omitted here; no longer available]\n789"
    );
}

#[test]
fn a_file_that_somebody_cut_short_is_missing_bytes_not_an_error() {
    let spilling = spilling(6, 100);
    let log = &spilling.log;
    log.append(Stream::Stdout, b"0123456789");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(log.spill_path().unwrap())
        .unwrap();
    file.set_len(4).unwrap();
    let read = sections(log).read_from(0, 100);
    assert_eq!((read.omitted, read.next), (4, 10));
    assert!(read.text.starts_with("012\n[4 bytes omitted here;") && read.text.ends_with("\n789"));
}

/// Whether this process has the spill file of `log` open.
fn holds_file(log: &OutputLog) -> bool {
    let path = log.spill_path().unwrap();
    dsh_testkit::process::open_fds()
        .iter()
        .any(|(_, target)| Path::new(target) == path)
}

#[test]
fn a_finished_log_keeps_no_descriptor() {
    let grown = spilling(4, 100);
    grown.log.append(Stream::Stdout, b"0123456789");
    assert!(holds_file(&grown.log));
    grown.log.close();
    assert!(!holds_file(&grown.log));
    assert_eq!(whole(&grown.log), "0123456789");
    assert!(!holds_file(&grown.log));

    let skipped = spilling(100, 100);
    skipped.log.append(Stream::Stdout, b"0123456789");
    skipped.log.close();
    assert_eq!(sections(&skipped.log).read_from(0, 4).omitted, 6);
    assert!(!holds_file(&skipped.log));
    assert_eq!(
        std::fs::read(skipped.log.spill_path().unwrap()).unwrap(),
        b"0123456789"
    );
}

#[test]
fn what_comes_after_the_end_is_dropped() {
    let log = in_memory(100);
    log.append(Stream::Stdout, b"a");
    log.close();
    log.close();
    log.append(Stream::Stdout, b"b");
    assert!(log.is_closed());
    assert_eq!((log.len(), whole(&log).as_str()), (1, "a"));
}

#[test]
fn a_debug_line_shows_no_output() {
    let log = in_memory(100);
    log.append(Stream::Stdout, b"secret");
    assert_eq!(
        format!("{log:?}"),
        "OutputLog { len: 6, spilled: 0, closed: false, .. }"
    );
}

#[test]
fn the_child_role_of_these_tests_ends_when_its_input_does() {
    const NAME: &str = "a_directory_whose_owner_is_dead_is_removed_and_others_are_left_alone";
    let base = tempfile::tempdir().unwrap();
    let mut owner = child(NAME, base.path(), "").spawn().unwrap();
    owner.stdin.as_mut().unwrap().flush().unwrap();
    drop(owner.stdin.take());
    assert!(owner.wait().unwrap().success());
    assert_eq!(
        entries(base.path()),
        0,
        "an owner that ends by itself leaves nothing"
    );
}
