//! The system calls that no safe library offers. The only module of the workspace with unsafe code.

#![expect(
    unsafe_code,
    reason = "posix_spawn attributes, dispositions and descriptor flags have no safe wrapper"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_short};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use rustix::process::Pid;

#[cfg(target_os = "linux")]
pub(crate) mod fork;

/// Everything a new process gets. Nothing else reaches it.
pub(crate) struct Launch<'a> {
    /// The path to execute; not searched for.
    pub(crate) program: &'a CStr,
    /// The complete argument vector, `argv[0]` included.
    pub(crate) argv: &'a [CString],
    /// The complete environment, `NAME=VALUE` each.
    pub(crate) env: &'a [CString],
    /// Where it starts.
    pub(crate) directory: BorrowedFd<'a>,
    /// Its descriptors 0, 1 and 2. Their own numbers must be 3 or higher.
    pub(crate) stdio: [BorrowedFd<'a>; 3],
    /// What else it gets: as descriptor 3.
    pub(crate) socket: Option<BorrowedFd<'a>>,
    /// What it leads.
    pub(crate) leads: Leads,
    /// What happens to the other descriptors of this program.
    pub(crate) others: Others,
}

/// What a new process is the leader of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leads {
    Group,
    #[cfg(target_os = "linux")]
    Session,
}

/// The descriptors that a new process is not meant to get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Others {
    /// Some may have been opened without close-on-exec.
    Close,
    /// All are close-on-exec. Spares a fresh fork the search for the function that closes them.
    #[cfg(target_os = "linux")]
    CloseThemselves,
}

/// Starts a process.
///
/// Default dispositions, an empty signal mask, descriptors 0 to 2 only. The call returns when the new
/// program runs, so a failure to execute it is the returned error and leaves no process behind.
pub(crate) fn spawn(launch: &Launch<'_>) -> io::Result<Pid> {
    let actions = Actions::new(launch)?;
    let attributes = Attributes::new(launch.leads)?;
    let argv = pointers(launch.argv);
    let env = pointers(launch.env);
    let mut pid: libc::pid_t = 0;
    // SAFETY: `actions` and `attributes` are initialised and outlive the call; `argv` and `env` are
    // null-terminated arrays of pointers to NUL-terminated strings that `launch` keeps alive; `pid` is
    // written by the call alone. The callee promises not to write through the string pointers.
    let errno = unsafe {
        libc::posix_spawn(
            &raw mut pid,
            launch.program.as_ptr(),
            &raw const *actions.0,
            &raw const *attributes.0,
            argv.as_ptr(),
            env.as_ptr(),
        )
    };
    check(errno)?;
    Pid::from_raw(pid).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
}

/// How this thread is scheduled, without what a deadline scheduler adds: such a thread cannot fork.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Scheduling {
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    utilization: [u32; 2],
}

/// All zeros where the kernel does not tell.
#[cfg(target_os = "linux")]
pub(crate) fn scheduling() -> Scheduling {
    /// The second version of the kernel's `struct sched_attr`; an older kernel leaves what it does not know.
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        deadline: [u64; 3],
        utilization: [u32; 2],
    }
    let mut attributes = Attributes::default();
    // SAFETY: the call writes at most the size that it is told to memory of that size, in which every value is valid.
    unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            0,
            &raw mut attributes,
            size_of::<Attributes>(),
            0,
        )
    };
    Scheduling {
        policy: attributes.policy,
        flags: attributes.flags,
        nice: attributes.nice,
        priority: attributes.priority,
        utilization: attributes.utilization,
    }
}

/// The I/O priority of this thread, or what the kernel says instead.
#[cfg(target_os = "linux")]
pub(crate) fn io_priority() -> i64 {
    const PROCESS: c_int = 1;
    // SAFETY: the call takes two numbers and gives one.
    unsafe { libc::syscall(libc::SYS_ioprio_get, PROCESS, 0) }
}

/// The number of the keyring of this process's session, or what the kernel says instead.
#[cfg(target_os = "linux")]
pub(crate) fn session_keyring() -> i64 {
    const GET_KEYRING_ID: c_int = 0;
    const SESSION_KEYRING: c_int = -3;
    // SAFETY: the call takes three numbers, of which the last says that none is to be made, and gives one.
    unsafe { libc::syscall(libc::SYS_keyctl, GET_KEYRING_ID, SESSION_KEYRING, 0) }
}

/// Gives the memory that this process has freed back to the system, where the C library can do so.
#[cfg(target_os = "linux")]
pub(crate) fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: the call touches no memory that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Whether the other end of a socket has not read all that was sent to it.
#[cfg(target_os = "linux")]
pub(crate) fn has_unread(socket: BorrowedFd<'_>) -> bool {
    let mut bytes: c_int = 0;
    // SAFETY: the call writes one number, to where there is room for it.
    let asked = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    asked == 0 && bytes > 0
}

/// Has the kernel let this process go on (SIGCONT) whenever something comes over a socket, and when its other end goes: also
/// while this process is stopped.
#[cfg(target_os = "linux")]
pub(crate) fn go_on_with(socket: BorrowedFd<'_>) -> io::Result<()> {
    /// The same number on every architecture; `libc` does not have it everywhere.
    const F_SETSIG: c_int = 10;
    let socket = socket.as_raw_fd();
    // SAFETY: the calls take numbers, and change what the kernel keeps of an open descriptor.
    let done = unsafe {
        libc::fcntl(socket, libc::F_SETOWN, libc::getpid()) == 0
            && libc::fcntl(socket, F_SETSIG, libc::SIGCONT) == 0
            && libc::fcntl(socket, libc::F_SETFL, libc::O_ASYNC) == 0
    };
    if done {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Whether exit statuses of children are kept for us: not so if SIGCHLD is ignored.
pub(crate) fn exit_statuses_are_kept() -> bool {
    disposition(libc::SIGCHLD).is_none_or(|action| {
        action.sa_sigaction != libc::SIG_IGN && action.sa_flags & libc::SA_NOCLDWAIT == 0
    })
}

/// Gives every ignored signal but SIGPIPE its default disposition.
pub(crate) fn reset_ignored_signals() {
    for signal in 1..=last_signal() {
        let ignored = disposition(signal).is_some_and(|action| action.sa_sigaction == libc::SIG_IGN);
        if ignored && signal != libc::SIGPIPE {
            reset(signal);
        }
    }
}

/// Gives every signal its default disposition, for programs that are started from here by fork.
#[cfg(target_os = "linux")]
pub(crate) fn reset_signals() {
    (1..=last_signal()).for_each(reset);
}

fn reset(signal: c_int) {
    // SAFETY: SIG_DFL is a valid disposition for every signal, and the set is initialised by
    // `sigemptyset`. A refusal (a number the C library keeps for itself) changes nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = libc::SIG_DFL;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(signal, &raw const action, ptr::null_mut());
    }
}

/// Marks every descriptor from 3 on close-on-exec.
pub(crate) fn mark_descriptors_cloexec() {
    if !close_range_cloexec() {
        mark_listed_descriptors();
    }
}

struct Actions(Box<libc::posix_spawn_file_actions_t>);

impl Actions {
    fn new(launch: &Launch<'_>) -> io::Result<Actions> {
        let mut raw = Box::<libc::posix_spawn_file_actions_t>::new_uninit();
        // SAFETY: the call initialises the value it is given, and only a success is read as initialised.
        // The box keeps it at one address until `Drop`.
        let mut actions = unsafe {
            check(libc::posix_spawn_file_actions_init(raw.as_mut_ptr()))?;
            Actions(raw.assume_init())
        };
        let inner = &raw mut *actions.0;
        // SAFETY: `inner` is initialised and not shared; the numbers are open descriptors that `launch`
        // borrows until the spawn is over. No source is 0, 1 or 2, so no copy overwrites a later source
        // and every copy is a real one, which clears close-on-exec.
        unsafe {
            check(libc::posix_spawn_file_actions_addfchdir_np(
                inner,
                launch.directory.as_raw_fd(),
            ))?;
            for (target, source) in (0..).zip(launch.stdio) {
                check(libc::posix_spawn_file_actions_adddup2(
                    inner,
                    source.as_raw_fd(),
                    target,
                ))?;
            }
        }
        if let Some(socket) = launch.socket {
            // SAFETY: as above. A copy onto itself clears close-on-exec, too; whatever 3 was is copied by now.
            check(unsafe { libc::posix_spawn_file_actions_adddup2(inner, socket.as_raw_fd(), 3) })?;
        }
        if launch.others == Others::Close {
            actions.close_from(if launch.socket.is_some() { 4 } else { 3 })?;
        }
        Ok(actions)
    }

    /// Closes what the host program left open without close-on-exec, where the C library can
    /// (glibc 2.34); elsewhere close-on-exec is all there is.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn close_from(&mut self, first: c_int) -> io::Result<()> {
        type CloseFrom = unsafe extern "C" fn(*mut libc::posix_spawn_file_actions_t, c_int) -> c_int;
        let name = c"posix_spawn_file_actions_addclosefrom_np";
        // SAFETY: the name is NUL-terminated; the answer is null or the address of the function of that
        // name, whose type is `CloseFrom` wherever it exists, and `Option<fn>` has the null niche.
        let close_from = unsafe {
            std::mem::transmute::<*mut libc::c_void, Option<CloseFrom>>(libc::dlsym(
                libc::RTLD_DEFAULT,
                name.as_ptr(),
            ))
        };
        match close_from {
            // SAFETY: the actions are initialised and not shared.
            Some(close_from) => check(unsafe { close_from(&raw mut *self.0, first) }),
            None => Ok(()),
        }
    }

    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    fn close_from(&mut self, _first: c_int) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, destroyed once.
        unsafe { libc::posix_spawn_file_actions_destroy(&raw mut *self.0) };
    }
}

struct Attributes(Box<libc::posix_spawnattr_t>);

impl Attributes {
    fn new(leads: Leads) -> io::Result<Attributes> {
        let mut raw = Box::<libc::posix_spawnattr_t>::new_uninit();
        // SAFETY: as for the file actions: initialised by the call, boxed, read only after a success.
        let mut attributes = unsafe {
            check(libc::posix_spawnattr_init(raw.as_mut_ptr()))?;
            Attributes(raw.assume_init())
        };
        let leads = match leads {
            Leads::Group => c_int::from(libc::POSIX_SPAWN_SETPGROUP),
            #[cfg(target_os = "linux")]
            Leads::Session => c_int::from(libc::POSIX_SPAWN_SETSID),
        };
        let flags = leads | c_int::from(libc::POSIX_SPAWN_SETSIGDEF | libc::POSIX_SPAWN_SETSIGMASK);
        let inner = &raw mut *attributes.0;
        let (none, all) = (empty_set(), every_signal());
        // SAFETY: `inner` is initialised and not shared, the sets are initialised, the flags fit a short.
        unsafe {
            check(libc::posix_spawnattr_setflags(inner, flags as c_short))?;
            check(libc::posix_spawnattr_setpgroup(inner, 0))?;
            check(libc::posix_spawnattr_setsigdefault(inner, &raw const all))?;
            check(libc::posix_spawnattr_setsigmask(inner, &raw const none))?;
        }
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised in `new`, destroyed once.
        unsafe { libc::posix_spawnattr_destroy(&raw mut *self.0) };
    }
}

fn check(errno: c_int) -> io::Result<()> {
    if errno == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(errno))
    }
}

fn pointers(strings: &[CString]) -> Vec<*mut c_char> {
    strings
        .iter()
        .map(|string| string.as_ptr().cast_mut())
        .chain([ptr::null_mut()])
        .collect()
}

fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the whole set and cannot fail for a valid pointer.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Also the numbers that glibc keeps for itself: `sigfillset` leaves them out, and `posix_spawn` would then
/// start every process with 32 and 33 ignored.
fn every_signal() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is a plain array of bits (an integer on some systems) in which every value is valid.
    unsafe {
        set.as_mut_ptr().write_bytes(0xff, 1);
        set.assume_init()
    }
}

fn disposition(signal: c_int) -> Option<libc::sigaction> {
    let mut action = MaybeUninit::uninit();
    // SAFETY: with a null new action the call only writes the current one to `action`; it is read as
    // initialised only when the call says that it did so.
    unsafe { (libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) == 0).then(|| action.assume_init()) }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn last_signal() -> c_int {
    libc::SIGRTMAX()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn last_signal() -> c_int {
    31
}

/// One call for all descriptors (Linux 5.11).
#[cfg(any(target_os = "linux", target_os = "android"))]
fn close_range_cloexec() -> bool {
    // SAFETY: with this flag the call changes descriptor flags only; it closes nothing. It is made by
    // number because the C library's wrapper is younger than the oldest one we run on.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        ) == 0
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn close_range_cloexec() -> bool {
    false
}

fn mark_listed_descriptors() {
    let directory = if cfg!(target_os = "linux") {
        "/proc/self/fd"
    } else {
        "/dev/fd"
    };
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    let numbers = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<c_int>().ok());
    for fd in numbers.filter(|fd| *fd > 2).collect::<Vec<_>>() {
        // SAFETY: F_SETFD changes a flag of the descriptor and touches no memory; a number that is no
        // longer open is refused with EBADF.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}
