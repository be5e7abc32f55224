//! Commits in regions: hardware transactions ([`hotrow_sync::region`]).
//!
//! A protocol whose variant uses regions ([`Variants::uses_regions`](crate::Variants::uses_regions)) may do both halves of a commit in
//! one of them ([`Attempt::commit_in_region`]): validation and installation happen at one moment, so no lock is taken.
//!
//! # What a region changes
//!
//! A region may be cut off at any instruction and run again. The processor undoes all that it has changed; the simulator undoes words
//! that threads share and no others. So whatever a commit in a region changes beside those words is either the same when it is done
//! again, or put back by [`Attempt::commit_in_region`]:
//!
//! | what | why it may be done again |
//! |---|---|
//! | items, their marks and payloads | are read only. An installation copies a payload out, and what it owns moves into the cell; cut off, the payload owns it again. Objects say of which writes that is true ([`Object::installs_in_regions`](crate::Object::installs_in_regions)) |
//! | values that an installation retires | are *held back*: noted in a list of the attempt's, and retired when the region has committed (below) |
//! | the stamp | it is the clock's number, which the region reads: it is aborted when the clock, or the fact that commits are stamped, changes |
//! | versions for snapshots | room is made before, entries are made inside, and are freed after an abort (`snapshot/keeper/in_region.rs`) |
//! | the history | the processor undoes it. In a simulation, versions are recorded right after the region, where nothing comes between |
//! | predicates looked at | a history records the last look at each |
//! | the protocol's own state | is the protocol's affair: the result of the region says what to change |
//!
//! Users' code in a region is that of predicates ([`Commuting::holds`](crate::Commuting)) and of
//! [`Value::heap_bytes`](crate::Value), which must not change anything, and of keys' names in a history.
//!
//! Engines with [steps between the halves](crate::CommitSteps) of their commits, those with a log among them, have no regions: a step, and
//! an append to a log, cannot be undone. What else is between the halves, the keeping of versions, is done inside.
//!
//! # Retired values
//!
//! While a region runs, what is retired, and what is made, is put into a list of the attempt's (`memory/held_back.rs`).

use crate::kernel::attempt::Attempt;
use crate::kernel::engine::Engine;
use crate::kernel::item::{Flags, Item};
use crate::kernel::protocol::{ConflictCause, Protocol};
use crate::kernel::slots::Moments;
use crate::kernel::statistics::{Counter, CounterPlace};
use crate::memory::held_back::FULL;
pub use crate::memory::held_back::{after_region, holds_back, made_in_region};
use crate::memory::users_code::Panics;
use hotrow_sync::region::{self, Abort};
use hotrow_sync::spin::Pauses;

mod whole;

/// Counters of regions.
impl Counter {
    /// Regions that committed.
    pub const REGION_COMMITS: Counter =
        Counter::count("region_commits", "hardware transactions that committed");
    /// Regions aborted by conflicts.
    pub const REGION_CONFLICTS: Counter = Counter::count(
        "region_conflicts",
        "hardware transactions aborted because another thread wanted their data",
    );
    /// Regions aborted because they did not fit.
    pub const REGION_CAPACITY: Counter =
        Counter::count("region_capacity", "hardware transactions aborted because the cache had no room");
    /// Regions that aborted themselves because of a lock.
    pub const REGION_LOCKED: Counter =
        Counter::count("region_locked", "hardware transactions that aborted themselves because of a lock");
    /// Regions aborted by anything else.
    pub const REGION_OTHER: Counter =
        Counter::count("region_other", "hardware transactions aborted by interrupts and for other causes");
    /// Commits that took locks instead.
    pub const REGION_FALLBACKS: Counter = Counter::count(
        "region_fallbacks",
        "transactions that took locks because hardware transactions failed",
    );
}

/// The counters of regions.
pub(crate) const COUNTERS: &[Counter] = &[
    Counter::REGION_COMMITS,
    Counter::REGION_CONFLICTS,
    Counter::REGION_CAPACITY,
    Counter::REGION_LOCKED,
    Counter::REGION_OTHER,
    Counter::REGION_FALLBACKS,
];

/// The code with which a region aborts itself because it has met a lock.
pub const LOCKED: u8 = 1;
/// The code with which a region aborts itself because it cannot do what the attempt needs: the attempt takes locks instead.
pub const UNFIT: u8 = 2;
/// The code with which a region aborts itself because what was looked up before it has changed.
pub(crate) const STALE: u8 = 4;
/// A version that was kept for snapshots lacks one of an attempt's changes, which needs locks.
#[derive(Debug)]
pub(crate) struct Late;

/// Tries of a region: how often, and how long to wait in between.
#[derive(Debug)]
pub struct Tries {
    left: u32,
    pauses: Pauses,
}

/// The number of times that a region is tried, if conflicts or interrupts abort it.
const TRIES: u32 = 8;

/// The pauses after conflicts, together.
const PAUSES_NS: u64 = 20_000;

impl Tries {
    /// No region was tried.
    pub fn new() -> Self {
        Self { left: TRIES, pauses: Pauses::up_to(PAUSES_NS) }
    }

    /// Counts a region that was aborted. False if another one is in vain: it would not fit either (dbx-tc §2.2), or enough were tried.
    /// After a conflict it pauses. That a lock is free again, the caller sees to.
    pub fn go_on(&mut self, abort: Abort) -> bool {
        self.left -= 1;
        match abort {
            _ if self.left == 0 => return false,
            Abort::Explicit(LOCKED | STALE) => {}
            Abort::Conflict | Abort::System => _ = self.pauses.pause(),
            _ => return false,
        }
        true
    }
}

impl Default for Tries {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Protocol> Attempt<P> {
    /// True if the attempt may [commit in a region](Self::commit_in_region): its pending writes can be installed there, and its commit
    /// needs no more than that.
    pub fn fits_region(&self) -> bool {
        self.features.commits.is_none()
            && self.items.writes().iter().all(|id| {
                let item = self.items.get(*id);
                // INVARIANT 20: A region installs only writes whose objects allow it, because it may be cut off and run again.
                item.object().installs_in_regions(item)
            })
    }

    /// Does both halves of a commit in one region: `validate` checks what the protocol checks and tells if the attempt has lost;
    /// if not, each write is installed, with calls of `before` and `after` around it. Of an `Ok`, nothing is left to be installed.
    ///
    /// These three run inside the region, so they only read the attempt and its items, and change headers. `validate` proves, as
    /// [`Steps::prepare`](crate::Steps::prepare) does, that the attempt may commit at one moment within the region. `word` reads the header of an item that
    /// is written, inside and before; a commit that writes the segment changes what it returns.
    ///
    /// If commits are stamped for snapshots, the region has its stamp, and keeps versions, too; then the attempt draws none.
    ///
    /// # Errors
    ///
    /// The cause why the region was aborted, or [`UNFIT`] if the attempt does not [fit](Self::fits_region). Nothing has happened then.
    pub fn commit_in_region<V>(
        &mut self,
        word: impl Fn(&Item<P>) -> u64,
        validate: impl Fn(&Self) -> Result<V, ConflictCause>,
        before: impl Fn(&Item<P>),
        after: impl Fn(&Item<P>, &V),
    ) -> Result<Result<V, ConflictCause>, Abort> {
        const { assert!(P::ALLOWS_REGIONS, "a protocol says that it uses regions") };
        if !self.fits_region() || self.plan_region(&word).is_err() {
            return Err(Abort::Explicit(UNFIT));
        }
        let mut held_back = std::mem::take(&mut self.features.held_back);
        let values_max = self.items.writes().len();
        self.features.records_later = !region::undoes_all_memory();
        let work = || {
            self.check_plan(&word);
            let valid = validate(self)?;
            if self.hears(Moments::SETTLE) && !self.changes_fit() {
                // With locks, it is found out which one does not, and the transaction rolls back.
                region::abort::<UNFIT>();
            }
            self.keep_planned();
            // SAFETY: valid at one moment, at which they are also installed, once.
            unsafe { self.install_all(|item| before(item), |item| after(item, &valid)) };
            Ok(valid)
        };
        let result = held_back.during(values_max, || region::run(work));
        let has_installed = matches!(result, Ok(Ok(_)));
        if cfg!(debug_assertions) && !has_installed {
            // In a simulation an abort does not undo flags.
            self.items.writes_mut().for_each(|(_, item)| item.unmark(Flags::INSTALLED));
        }
        self.settle_plan(has_installed);
        if has_installed {
            self.hears.remove(Moments::SETTLE);
        }
        if std::mem::take(&mut self.features.records_later) && has_installed {
            self.record_installed();
        }
        held_back.settle(has_installed, self.pin());
        self.features.held_back = held_back;
        result
    }

    /// Forgets all that it has done in a region that was aborted, and goes on as if it had begun just now. Most of it the abort has
    /// undone.
    pub(crate) fn reopen(&mut self) {
        self.undo();
        self.forget(&mut Panics::default());
        self.pin().forget_kept();
        self.features.stamp = None;
        self.end_stamped(false);
        if let Some(log) = &mut self.features.log {
            log.undo_piece();
        }
    }

    /// True if the changes that are made at the commit can be made to the present values.
    fn changes_fit(&self) -> bool {
        self.items.writes().iter().all(|id| {
            let item = self.items.get(*id);
            // SAFETY: the item has a pending write of its object, and the region is aborted if somebody changes the segment.
            unsafe { item.object().changes_fit(item, self.pin()) }
        })
    }

    /// Counts a region that has ended.
    pub fn count_region<V>(&self, result: &Result<V, Abort>) {
        self.count(match result {
            Ok(_) => const { Counter::REGION_COMMITS.place::<P>() },
            Err(Abort::Conflict | Abort::Explicit(STALE)) => const { Counter::REGION_CONFLICTS.place::<P>() },
            Err(Abort::Capacity | Abort::Explicit(FULL)) => const { Counter::REGION_CAPACITY.place::<P>() },
            Err(Abort::Explicit(LOCKED)) => const { Counter::REGION_LOCKED.place::<P>() },
            Err(_) => const { Counter::REGION_OTHER.place::<P>() },
        });
    }

    /// Counts an attempt that takes locks because regions have failed or do not fit.
    pub fn count_region_fallback(&self) {
        let place: CounterPlace = const { Counter::REGION_FALLBACKS.place::<P>() };
        self.count(place);
    }
}

impl<P: Protocol> Engine<P> {
    /// True if the engine's protocol uses hardware transactions where there are any.
    pub fn uses_regions(&self) -> bool {
        P::ALLOWS_REGIONS && self.shared.protocol.uses_regions()
    }
}
