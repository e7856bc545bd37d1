//! Events that follow the rules, numbered and in the order of time.

use crate::{AppendError, Enclosure, Event, EventData, TurnEnd};

#[derive(Debug, Default)]
pub(crate) struct Log {
    events: Vec<Event>,
    enclosure: Enclosure,
}

impl Log {
    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    /// The number of the next event.
    pub(crate) fn len(&self) -> u64 {
        self.events.len() as u64
    }

    /// The time of the last event.
    pub(crate) fn last_time(&self) -> u64 {
        self.events.last().map_or(0, |last| last.time)
    }

    pub(crate) fn last_turn(&self) -> u64 {
        self.enclosure.last_turn()
    }

    /// Appends an event, and returns its number.
    pub(crate) fn append(&mut self, now: u64, data: EventData) -> Result<u64, AppendError> {
        self.enclosure.admit(&data)?;
        Ok(self.push(now, data))
    }

    /// Ends the open turn, and says how many events that took.
    pub(crate) fn wind_up(&mut self, now: u64, reason: TurnEnd) -> usize {
        let closers = self.enclosure.close(reason);
        let count = closers.len();
        for closer in closers {
            self.push(now, closer);
        }
        count
    }

    fn push(&mut self, now: u64, data: EventData) -> u64 {
        let seq = self.len();
        // The wall clock may be set back; the log's time is not.
        let time = self.last_time().max(now);
        self.events.push(Event { seq, time, data });
        seq
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TurnTrigger;

    #[test]
    fn a_clock_that_is_set_back_does_not_set_back_the_log() {
        let mut log = Log::default();
        let trigger = TurnTrigger::Message;
        let events = [
            (5, EventData::TurnStart { turn: 1, trigger }),
            (3, EventData::StepStart { turn: 1, step: 1 }),
            (6, EventData::StepEnd { turn: 1, step: 1 }),
        ];
        for (now, data) in events {
            log.append(now, data).unwrap();
        }
        let times: Vec<_> = log.events.iter().map(|event| event.time).collect();
        assert_eq!(times, [5, 5, 6]);
    }
}
