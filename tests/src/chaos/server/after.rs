//! The end of a connection, and what must not be there after it.

use super::Connection;
use crate::chaos::Faults;
use crate::chaos::ending::{Client, Ending};
use crate::chaos::left::{self, AFTERWARDS, DISPOSAL, LEFT};
use crate::chaos::weather::Weather;
use crate::chaos::wire::Wire;

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
        let limit = match ending {
            Ending::Killed => LEFT,
            _ => AFTERWARDS,
        };
        faults.extend(left::processes(&self.room, limit).await);
        if ending == Ending::Killed {
            faults.extend(self.next_server_cleans_up(config).await);
        }
        faults.extend(left::things(&self.room, self.server));
        faults
    }

    /// Files of a server that was killed are there until the next one comes.
    async fn next_server_cleans_up(&mut self, config: &str) -> Faults {
        let Ok(mut next) = Wire::start(&self.room, config, Weather::Fair).await else {
            return vec!["the next server does not start".to_owned()];
        };
        next.close_input();
        next.ended(DISPOSAL).await.err().into_iter().collect()
    }
}
