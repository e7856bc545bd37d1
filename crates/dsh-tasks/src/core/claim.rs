//! Who is about to tell the model.

use std::sync::Arc;

use crate::{id::TaskId, snapshot::TaskSnapshot};

use super::{Dispatched, Ledger, Range, Told};

/// The right, and the duty, to tell: of an end, of a kill, of a range of output. It ends as [`deliver`](Self::deliver)
/// or by its drop, which gives everything back.
pub struct Claim<W: Clone> {
    ledger: Arc<Ledger<W>>,
    id: TaskId,
    told: Option<Told>,
    ranges: Vec<Range>,
}

impl<W: Clone> Claim<W> {
    /// `told` was counted on the record.
    pub(super) fn new(ledger: Arc<Ledger<W>>, id: TaskId, told: Option<Told>) -> Self {
        Self {
            ledger,
            id,
            told,
            ranges: Vec::new(),
        }
    }

    pub fn id(&self) -> &TaskId {
        &self.id
    }

    /// Takes a range of output.
    pub fn lease(&mut self, range: Range) {
        if range.is_empty() {
            return;
        }
        self.ledger.lease(&self.id, &range);
        self.ranges.push(range);
    }

    /// The model was told; of an end, how far its done event had come.
    pub fn deliver(mut self) -> Option<Dispatched> {
        // What is leased and not given back stays taken.
        self.ranges.clear();
        let told = self.told.take()?;
        self.ledger
            .tell(|table| table.end_claim(&self.id, |record| record.deliver(told)))
    }

    /// Ends a wait: with the end, still claimed, if it has come; otherwise without a claim, and with what is known.
    /// `None` when the record is gone.
    pub fn resolve(mut self) -> (Option<TaskSnapshot>, Self) {
        let ledger = self.ledger.clone();
        let snapshot = ledger.look(|table| {
            let record = table.record(&self.id)?;
            if !record.is_terminal()
                && let Some(told) = self.told.take()
            {
                record.abandon(told);
            }
            Some(record.snapshot())
        });
        (snapshot, self)
    }
}

impl<W: Clone> Drop for Claim<W> {
    fn drop(&mut self) {
        let (told, ranges) = (self.told.take(), std::mem::take(&mut self.ranges));
        if told.is_none() && ranges.is_empty() {
            return;
        }
        self.ledger.tell(|table| {
            if let Some(record) = table.record(&self.id) {
                for range in ranges {
                    record.cursor.abandon(range);
                }
            }
            if let Some(told) = told {
                table.end_claim(&self.id, |record| record.abandon(told));
            }
        });
    }
}
