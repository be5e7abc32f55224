//! Transactions that count when they are durable, while their worker goes on.

use super::KindCounts;
use hotrow::durable::DurableDatabase;
use hotrow::sync::clock::{self, Instant};
use hotrow::{Database, NotDurable, Protocol};
use std::collections::VecDeque;

/// The most transactions of a worker that wait for their acknowledgement at a time. Then it waits, too: as a server does that takes no
/// more requests.
const WAITING_MAX: usize = 1 << 13;

/// The transactions of one worker that have committed and are not known to be durable.
pub(super) struct Acknowledging<'d, P: Protocol> {
    database: &'d Database<P>,
    /// Epoch, type and begin.
    waiting: VecDeque<(u64, usize, Instant)>,
}

impl<'d, P: Protocol> Acknowledging<'d, P> {
    pub(super) fn new(database: &'d Database<P>) -> Self {
        Self { database, waiting: VecDeque::with_capacity(WAITING_MAX) }
    }

    /// Counts what has become durable, after a transaction of an epoch, which is counted itself if it has a type and a begin.
    pub(super) fn after(
        &mut self,
        epoch: u64,
        counted: Option<(usize, Instant)>,
        kinds: &mut [KindCounts],
    ) -> Result<(), NotDurable> {
        if let Some((kind, begin)) = counted {
            self.waiting.push_back((epoch, kind, begin));
        }
        if self.waiting.len() >= WAITING_MAX
            && let Some((first, ..)) = self.waiting.front()
        {
            self.database.ticket(*first).wait()?;
        }
        self.count(kinds);
        Ok(())
    }

    /// Waits for all, and counts them.
    pub(super) fn finish(&mut self, kinds: &mut [KindCounts]) -> Result<(), NotDurable> {
        if let Some((last, ..)) = self.waiting.back() {
            self.database.ticket(*last).wait()?;
        }
        self.count(kinds);
        Ok(())
    }

    fn count(&mut self, kinds: &mut [KindCounts]) {
        let durable = self.database.durable_epoch();
        let count = self.waiting.iter().take_while(|(epoch, ..)| *epoch <= durable).count();
        if count > 0 {
            let now = clock::now();
            for (_, kind, begin) in self.waiting.drain(..count) {
                kinds[kind].commits += 1;
                kinds[kind].latencies.record(now.nanoseconds_since(begin));
            }
        }
    }
}
