use dsh_testkit::eventually;

use super::*;

/// Below `/hung` nothing answers, as on a file system without a server, except that such a process can be killed.
const HANGING: &str = "case $0 in /hung*) exec sleep 600 ;; *) cd -- \"$0\" ;; esac";

fn asking(question: &'static str) -> Directories {
    let path = std::env::var_os("PATH");
    Directories::asking(question, Launcher::groups(), path.as_deref())
}

/// What is there was looked up a moment ago, so that the kernel knows it; what is asked for by a process is asked for here
/// directly.
#[tokio::test]
async fn both_ways_to_ask_tell_unusable_directories_in_the_same_words() {
    let scratch = tempfile::tempdir().unwrap();
    let (file, circle) = (scratch.path().join("file"), scratch.path().join("circle"));
    std::fs::write(&file, "").unwrap();
    std::os::unix::fs::symlink(&circle, &circle).unwrap();
    let directories = asking(QUESTION);
    for (path, said) in [
        (scratch.path().join("missing"), "ENOENT: no such directory"),
        (file.clone(), "ENOTDIR: not a directory"),
        (file.join("below"), "ENOTDIR: not a directory"),
        (circle, "Too many levels of symbolic links"),
    ] {
        let asked = directories.ask(&path).await.unwrap();
        assert_eq!(asked, said);
        match directories.check(&path).await.unwrap_err() {
            StartError::Workdir { path: named, error } => {
                assert_eq!(named, path);
                assert!(error.starts_with(said), "{error}");
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(directories.ask(scratch.path()).await, None);
    directories.check(scratch.path()).await.unwrap();
}

#[test]
fn a_shell_that_may_not_enter_is_told_as_the_kernel_tells_it() {
    let said = "bash: line 1: cd: /a: b: Permission denied\n";
    assert_eq!(reason(said), describe(&io::ErrorKind::PermissionDenied.into()));
    assert_eq!(reason("bash: line 1: cd: /x: Host is down\n"), "Host is down");
}

#[tokio::test]
async fn a_directory_that_does_not_answer_holds_up_nobody() {
    let directories = asking(HANGING);
    let question = directories.ask(Path::new("/hung"));
    tokio::pin!(question);
    let given_up = within(Duration::from_millis(300), &mut question).await;
    assert!(given_up.is_none());
    // The one thread of this runtime is free, and other directories are asked for meanwhile.
    assert!(directories.ask(Path::new("/no/such")).await.is_some());
    assert_eq!(directories.ask(Path::new("/")).await, None);
    assert_eq!(directories.hung.count(|_| false), 0, "somebody waits for it");
}

#[tokio::test]
async fn a_question_that_nobody_waits_for_is_ended_and_counts_until_it_is_over() {
    let directories = asking(HANGING);
    let given_up = within(Duration::from_millis(300), directories.ask(Path::new("/hung"))).await;
    assert!(given_up.is_none());
    assert_eq!(directories.hung.count(|_| false), 1);
    eventually("the process is gone", || {
        directories.hung.count(|tree| tree.leader_exited().is_some()) == 0
    })
    .await;
}

#[test]
fn what_is_over_is_counted_no_more() {
    let hung = Hung::default();
    for each in 0..5 {
        hung.keep(each);
    }
    assert_eq!(hung.count(|_| false), 5);
    assert_eq!(hung.count(|each| each % 2 == 0), 2);
    assert_eq!(hung.count(|_| false), 2);
}

/// Where it panicked when threads of the runtime were to ask.
#[test]
fn directories_are_asked_for_from_a_local_set_too() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let answers = tokio::task::LocalSet::new().block_on(&runtime, async {
        let directories = asking(QUESTION);
        (
            directories.ask(Path::new("/")).await,
            directories.ask(Path::new("/no/such")).await,
        )
    });
    assert_eq!(answers, (None, Some("ENOENT: no such directory".to_owned())));
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_was_just_used_needs_no_process() {
    let scratch = tempfile::tempdir().unwrap();
    std::fs::metadata(scratch.path().join(".")).unwrap();
    // Some sandboxes and old kernels never tell.
    if matches!(known(Path::new("/")), Known::Usable) {
        assert!(matches!(known(scratch.path()), Known::Usable));
    }
    assert!(!matches!(known(&scratch.path().join("missing")), Known::Usable));
}
