//! The end of a connection, and what must not be there after it.

use std::time::{Duration, Instant};

use super::Connection;
use super::weather::{Ending, Weather};
use crate::chaos::wire::Wire;
use crate::chaos::{Faults, facts};

/// How long the end of a server may take: the grace, ten seconds for survivors, and a busy machine.
const DISPOSAL: Duration = Duration::from_secs(30);
/// How long what a killed server leaves may take to end.
const LEFT: Duration = Duration::from_secs(15);

impl Connection {
    /// Ends the server, and looks for what is left of it.
    pub(super) async fn after(&mut self, ending: Ending, config: &str) -> Faults {
        ending.begins(&mut self.wire, &self.room, self.server).await;
        // What is stopped must not be waited for when it was ourselves who stopped it.
        if self.weather == Weather::Stopped {
            self.weather.clears(&self.room, self.server);
        }
        let mut faults = Vec::new();
        match self.wire.ended(DISPOSAL).await {
            Ok(status) if ending.fits(status) => {}
            Ok(status) => faults.push(format!("the server ended with {status}")),
            Err(fault) => faults.push(fault),
        }
        faults.append(&mut self.wire.book().faults);
        faults.extend(self.nobody_is_left(ending).await);
        if ending == Ending::Killed {
            faults.extend(self.next_server_cleans_up(config).await);
        }
        let files = self.room.temporary_files();
        if !files.is_empty() {
            faults.push(format!("left on disk: {files:?}"));
        }
        let cgroups = facts::cgroups(self.server);
        if !cgroups.is_empty() {
            faults.push(format!("cgroups are left: {cgroups:?}"));
        }
        faults
    }

    async fn nobody_is_left(&self, ending: Ending) -> Faults {
        let limit = match ending {
            Ending::Killed => LEFT,
            // A guard may still be about to end when its supervisor already has.
            _ => Duration::from_secs(2),
        };
        let began = Instant::now();
        loop {
            let left = self.room.processes();
            if left.is_empty() {
                return Vec::new();
            }
            if began.elapsed() > limit {
                let left: Vec<String> = left.into_iter().map(facts::describe).collect();
                return vec![format!("{limit:?} after the server these live: {left:#?}")];
            }
            // sleep: the fact is polled.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Files of a server that was killed are there until the next one comes.
    async fn next_server_cleans_up(&mut self, config: &str) -> Faults {
        let Ok(mut next) = Wire::start(&self.room, config).await else {
            return vec!["the next server does not start".to_owned()];
        };
        next.close_input();
        next.ended(DISPOSAL).await.err().into_iter().collect()
    }
}
