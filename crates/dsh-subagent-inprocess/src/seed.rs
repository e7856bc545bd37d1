//! What a fork begins with.

use dsh_session::{Event, EventData};

/// What happened up to the end of the last turn: the turn that is open is not the child's.
pub(crate) fn completed_turns(events: &[Event]) -> Vec<EventData> {
    let is_end = |event: &Event| matches!(event.data, EventData::TurnEnd { .. });
    let length = events.iter().rposition(is_end).map_or(0, |last| last + 1);
    events[..length].iter().map(|event| event.data.clone()).collect()
}
