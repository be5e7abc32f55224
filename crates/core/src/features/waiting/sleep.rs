//! The wait between two attempts of a transaction whose body has called `retry`.

use super::Watch;
use crate::features::retries::Inside;
use crate::kernel::abort::{BlockedForever, Error, Misuse};
use crate::kernel::protocol::Protocol;
use crate::kernel::worker::Worker;
use hotrow_sync::Arc;
use hotrow_sync::clock::{self, Duration, Instant};
use hotrow_sync::profile::waiting;
use std::convert::Infallible;

/// The waits of one transaction.
#[derive(Default)]
pub(crate) struct Waits {
    /// The moment at which it waited first.
    since: Option<Instant>,
    /// True if it was woken, and has not been found to have been woken in vain.
    is_woken: bool,
}

impl Waits {
    /// The time that is left of a limit of the policy's, which counts from a moment, and of the body's own.
    pub(super) fn left(
        &mut self,
        policy: Option<(Instant, Duration)>,
        body: Option<Duration>,
    ) -> Option<Duration> {
        let since = *self.since.get_or_insert_with(clock::now);
        let policy = policy.map(|(begin, max)| max.saturating_sub(begin.elapsed()));
        let body = body.map(|max| max.saturating_sub(since.elapsed()));
        policy.into_iter().chain(body).min()
    }

    /// Notes that it was woken.
    pub(super) fn note_woken(&mut self) {
        self.is_woken = true;
    }

    /// True once if it was woken, and waits again.
    pub(super) fn was_woken(&mut self) -> bool {
        std::mem::take(&mut self.is_woken)
    }

    /// The error when the time is up.
    pub(super) fn timeout(&self) -> Error<Infallible> {
        Error::RetryTimeout { waited: self.since.map_or(Duration::ZERO, |since| since.elapsed()) }
    }
}

impl<P: Protocol> Worker<P> {
    /// Waits until something has changed that the last attempt has read. If that one has not watched, the next one will, at once.
    /// Nothing is held.
    #[cold]
    pub(crate) fn wait_for_change(
        &mut self,
        waits: &mut Waits,
        policy: Option<(Instant, Duration)>,
        body: Option<Duration>,
        inside: &mut Inside,
    ) -> Result<(), Error<Infallible>> {
        if self.attempt.features.snapshot_read != 0
            || P::ALLOWS_CHOPPING && self.attempt.features.piece.is_later()
        {
            return Err(Misuse::CannotWait.into());
        }
        if waits.was_woken() {
            self.slot.counters.woken_in_vain();
        }
        let left = waits.left(policy, body);
        let Some(watch) = self.attempt.features.watch.as_deref_mut() else {
            self.attempt.set_watch(Some(Box::new(Watch::new(&self.shared.features.waiting))));
            return Ok(());
        };
        if watch.is_empty() {
            return Err(Error::BlockedForever(BlockedForever::NothingRead));
        }
        if self.shared.workers_max() == 1 {
            return Err(Error::BlockedForever(BlockedForever::OnlyWorker));
        }
        let waiter = watch.waiter().clone();
        // Transactions in pieces go on meanwhile.
        let excluded = inside.barrier.take().is_some();
        self.slot.counters.waited();
        let is_changed = {
            let parked = self.shared.features.waiting.park(&waiter);
            // Of this worker, and of its transaction.
            if parked.is_some()
                && self.shared.features.waiting.parked() * 2 >= Arc::strong_count(&self.shared)
            {
                return Err(Error::BlockedForever(BlockedForever::AllWait));
            }
            let _waiting = waiting("a change of what it has read", 0);
            waiter.park(left)
        };
        if excluded {
            inside.barrier = self.exclude_pieces();
        }
        if !is_changed {
            return Err(waits.timeout());
        }
        waits.note_woken();
        self.attempt.start_watch_over();
        Ok(())
    }
}
