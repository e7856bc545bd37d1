use std::io::Read;

use rustix::net::sockopt::set_socket_send_buffer_size;

use super::*;
use crate::spec::ProcessSpec;
use crate::wire::{Received, pair, receive};

/// The kernel's default may be as small as this.
const SMALL: usize = 4608;

#[test]
fn an_order_too_long_for_its_socket_goes_in_a_file() {
    let mut spec = ProcessSpec::new("/bin/true", "/");
    spec.args = vec!["#".repeat(20_000).into()];
    let prepared = Prepared::new(spec).unwrap();
    let mut message = Message::new(&prepared, None, Duration::from_secs(1), &Limits::default()).unwrap();
    let whole = message.bytes.clone();
    assert!(message.file.is_none(), "short enough for any ordinary socket");

    let (ours, theirs) = pair().unwrap();
    set_socket_send_buffer_size(&ours, SMALL).unwrap();
    assert_eq!(
        send(&ours, &whole, &[]),
        Err(Errno::MSGSIZE),
        "or this shows nothing"
    );
    message.send(&ours, None).unwrap().unwrap();

    let Ok(Received::Message(bytes, mut descriptors)) = receive(&theirs) else {
        panic!("no order")
    };
    assert!(matches!(Order::decode(&bytes), Some(Order::RunFromFile)));
    let mut content = Vec::new();
    File::from(descriptors.pop().unwrap())
        .read_to_end(&mut content)
        .unwrap();
    assert_eq!(content, whole);
}
