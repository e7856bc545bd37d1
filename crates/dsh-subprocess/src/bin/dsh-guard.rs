//! The guard as a program of its own, for programs that cannot start themselves again.

fn main() -> std::process::ExitCode {
    dsh_subprocess::guard_entry();
    eprintln!("dsh-guard is started by a program that runs commands under its guard; it does nothing else");
    std::process::ExitCode::from(2)
}
