//! Attempts that are one region from the first operation to the last change: lock elision (dbx-tc §2.2).
//!
//! The body and its commit, cleanup included, run in a region that has read the word of the lock which the protocol would take
//! ([`Elision`]). If the region commits, it is as if the attempt had held the lock at that moment.
//!
//! The region is tried again within the same attempt, which forgets what it has done (`Attempt::reopen`). In the end, and if the attempt
//! wants anything but to commit, it goes on as any other does, with the lock: so a body's error or panic comes from an attempt without a
//! region.
//!
//! # In a simulation
//!
//! An abort undoes words that threads share, and unwinds. What the attempt knows by itself is thrown away as after any abort: pending
//! writes are dropped, which own their values again. Records and nodes of indexes that it has made are freed
//! ([`made_in_region`](super::made_in_region)). Values that it has dropped or taken apart in the region are leaked.

use super::{LOCKED, Tries, UNFIT};
use crate::features::deferred::Execution;
use crate::features::history::Ended;
use crate::kernel::capabilities::Elision;
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::Protocol;
use crate::kernel::worker::{Body, Wish};
use crate::memory::thread_mark::{is_rolling_back, set_rollback};
use hotrow_sync::region::{self, Abort};

/// The number of values that a region may retire.
const RETIRED_MAX: usize = 1 << 10;

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Runs the body and the commit in a region, if the protocol does so. True if the attempt has committed then, and only has to be closed.
    /// Otherwise nothing has happened.
    #[inline]
    pub(crate) fn run_in_region(&mut self, body: &mut dyn Body<P>) -> bool {
        let elision = P::Elision::of(self.protocol).filter(|_| self.attempt.features.snapshot.is_none());
        elision.is_some_and(|elision| self.try_regions(elision, body))
    }

    /// Tries regions. True if one has committed.
    fn try_regions(&mut self, elision: &P::Elision, body: &mut dyn Body<P>) -> bool {
        let mut tries = Tries::new();
        while !self.attempt.are_commits_stamped() && elision.wait_to_elide(self.attempt) {
            let result = self.try_region(elision, body);
            if result.is_err() {
                // As all that a simulated region has dropped.
                body.leak();
            }
            self.attempt.count_region(&result);
            match result {
                Ok(()) => return true,
                Err(abort) if tries.go_on(abort) => {}
                Err(_) => break,
            }
        }
        self.attempt.count_region_fallback();
        false
    }

    fn try_region(&mut self, elision: &P::Elision, body: &mut dyn Body<P>) -> Result<(), Abort> {
        let engine = self.engine;
        let mut held_back = std::mem::take(&mut self.attempt.features.held_back);
        self.attempt.features.records_later = !region::undoes_all_memory();
        if let Some(log) = self.attempt.log() {
            log.end_piece();
        }
        let work = || {
            if !elision.enter_region(self.attempt) {
                region::abort::<LOCKED>();
                return None;
            }
            if body.run(self) != Wish::RollBack && !is_rolling_back() && self.commit_until_closed() {
                return Some(());
            }
            region::abort::<UNFIT>();
            None
        };
        let result = held_back.during(RETIRED_MAX, || region::run(work));
        // `None` does not come out of a region.
        let result = result.and_then(|result| result.ok_or(Abort::Unavailable));
        if std::mem::take(&mut self.attempt.features.records_later) && result.is_ok() {
            self.attempt.record_installed();
            self.attempt.record_end(Ended::Committed);
        }
        if result.is_err() {
            (self.engine, self.attempt.stop, self.attempt.features.execution, self.open) =
                (engine, None, Execution::new(), true);
            self.is_valid = false;
            set_rollback(false);
            self.attempt.reopen();
        }
        held_back.settle(result.is_ok(), self.attempt.pin());
        self.attempt.features.held_back = held_back;
        if result.is_err() {
            self.protocol.begin(self.attempt);
        }
        result
    }
}
