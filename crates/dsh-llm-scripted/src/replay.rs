//! From a recorded session to a script.

use dsh_session::{Event, EventData};

use crate::script::{End, Turn};

/// A turn for each answer in the log.
pub(crate) fn turns(events: &[Event]) -> Vec<Turn> {
    events.iter().filter_map(|event| turn(&event.data)).collect()
}

fn turn(data: &EventData) -> Option<Turn> {
    let EventData::AssistantMessage {
        content,
        finish,
        usage,
        interrupted,
    } = data
    else {
        return None;
    };
    let end = match (interrupted, finish) {
        (true, _) => End::Hang,
        (false, Some(reason)) => End::Finish(reason.clone()),
        (false, None) => End::Cut,
    };
    Some(Turn {
        expect: Vec::new(),
        wait_for_file: None,
        content: content.clone(),
        usage: *usage,
        end,
    })
}
