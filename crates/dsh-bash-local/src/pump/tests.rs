use std::io::Write;

use dsh_output::{OutputConfig, OutputLog, OutputSource, Rendering};
use tokio::net::unix::pipe::Receiver;

use super::*;

/// A pipe of which the runtime has not been told that there is anything in it.
fn pipe() -> (std::io::PipeWriter, Receiver) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let reader = Receiver::from_owned_fd(reader.into()).expect("the end that reads");
    (writer, reader)
}

#[tokio::test]
async fn what_is_in_a_pipe_is_swept_before_the_runtime_knows_of_it() {
    let log = OutputLog::new(OutputConfig::default());
    let (mut out, stdout) = pipe();
    let (err, stderr) = pipe();
    let mut pump = Pump::new(stdout, stderr, log.clone());
    out.write_all(b"last words\n").expect("room in the pipe");
    pump.sweep();
    assert_eq!(log.reader(Rendering::Sections).tail(10, 100), "last words");
    assert!(pump.is_open(), "somebody holds both");
    out.write_all(b"and more\n").expect("room in the pipe");
    drop((out, err));
    pump.sweep();
    assert!(!pump.is_open(), "both have ended");
    assert_eq!(
        log.reader(Rendering::Sections).tail(10, 100),
        "last words\nand more"
    );
}
