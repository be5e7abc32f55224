//! Mostly optimistic concurrency control: optimistic where it is cold, locks where it is hot.
//!
//! # Algorithm (Wang, Kimura, "Mostly-Optimistic Concurrency Control for Highly Contended Dynamic Workloads on a
//! Thousand Cores", VLDB 2016; plor §6.1: NO_WAIT or OCC, by hotness)
//!
//! Each segment has a *heat*, which rises when a commit fails because the segment was written after it was read.
//! While the heat is below [`HOT`], everything is as in `occ`. Above it,
//!
//! - a read takes a reader's lock at once and keeps it to the end of the attempt, so that its check cannot fail;
//! - a read for update, or a write, takes the writer's lock at once. A reader's lock that the attempt has becomes
//!   the writer's if there is no other reader.
//!
//! A lock that stays taken after bounded spinning aborts, so there is no deadlock. Then, at commit:
//!
//! 1. lock every segment to be written that is not locked yet: neither a writer nor a reader may have it locked.
//!    Check predicates and turn them into reads;
//! 2. check that every version read is unchanged and not locked by another writer, unless it was read under a lock
//!    that is still held, and check every bucket and leaf;
//! 3. install the writes and unlock everything, writes with their next version.
//!
//! # Heat
//!
//! An approximate counter (Morris): from heat h it rises by one with probability 2^-h, so it stands for about
//! 2^h - 1 failures, at most [`HEAT_MAX`]. Each lock that was taken because a segment was hot cools it by one, when
//! its attempt commits, with probability 1 in [`COOLS_ONE_IN`]: so a segment that is locked in vain turns cold after
//! some time, and what it costs to find out that it is still hot is few failures.
//!
//! # Why it is right
//!
//! As for `occ`: between phases 1 and 2 there is a moment at which all writes are locked and all versions read are
//! current: those read under locks because nobody could write them, the others because they are checked after it. Two
//! attempts that each write what the other reads cannot both pass: either one reads under a lock, which the other's
//! writer's lock excludes, or both check, and in the one order of all locks and checks (sequentially consistent) one
//! of them sees the other's lock.
//!
//! # Deviations
//!
//! - Heat is for each segment; MOCC has it for each page, of which it has fewer.
//! - No retrospective lock list, no canonical mode: locks are taken as they come, and what keeps them from deadlock
//!   is the bound on waiting. plor's authors ran it so, too (§6.1).
//! - A lock is a bit and a count in the word that holds the version; MOCC has queue locks (MQL) beside it. Hence one
//!   that is held for long keeps optimistic readers out as well.
//! - Cooling follows use; MOCC resets its counters.

mod word;

pub use word::{HeatedVersion, HeatedWord};

use crate::reads::{self, KeepsVersions};
use hotrow_core::{
    Absent, Attempt, ConflictCause, ConflictTarget, Flags, ItemId, Prepared, Protocol, Reason, Variant,
    Variants,
};
use hotrow_sync::atomic::{Ordering, fence};
use hotrow_sync::random::Random;

/// The heat from which a segment is locked when it is read: after some fifteen failures. The first makes it hot where
/// tests run.
const HOT: u8 = if cfg!(any(test, debug_assertions)) { 1 } else { 4 };

/// The highest heat.
const HEAT_MAX: u8 = HOT + 4;

/// One in so many locks on a hot segment cools it, when its attempt commits.
const COOLS_ONE_IN: u64 = if cfg!(any(test, debug_assertions)) { 4 } else { 64 };

/// Mostly optimistic: locks where it is hot. Wang and Kimura, VLDB 2016; plor §6.1.
///
/// Not opaque: see [`Occ`](crate::Occ).
#[derive(Debug)]
pub struct Mocc;

/// What a read leaves in its item.
#[derive(Debug, Clone, Copy, Default)]
pub struct MoccMark {
    /// The version read.
    version: HeatedVersion,
    /// Whether the attempt holds a reader's lock.
    shared: bool,
    /// Whether a lock was taken because the segment was hot.
    hot: bool,
}

/// What a worker keeps: whether its attempt holds locks before its commit, and its random numbers.
#[derive(Debug, Default)]
pub struct MoccLocal {
    locks_early: bool,
    random: Option<Random>,
}

/// Random numbers of the worker's own, the same ones in each run.
#[cold]
fn chance(attempt: &mut Attempt<Mocc>, one_in: u64) -> bool {
    let worker = u64::from(attempt.worker().number());
    attempt.local.random.get_or_insert_with(|| Random::stream(0x40cc, worker)).below(one_in) == 0
}

impl Mocc {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_hot(attempt: &Attempt<Self>, id: ItemId) -> bool {
        attempt.items.get(id).header().heat() >= HOT
    }

    /// Locks a segment for writing, at commit or, if it is hot, before.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn lock(attempt: &mut Attempt<Self>, id: ItemId) -> Result<(), ConflictCause> {
        let item = attempt.items.get_mut(id);
        let expected = item.is(Flags::READ).then_some(item.mark.version);
        let below = item.header().lock(expected, item.mark.shared);
        item.mark.version = below.map_err(|reason| ConflictCause::item(reason, id))?;
        item.mark.shared = false;
        item.set(Flags::LOCKED);
        Ok(())
    }

    #[cold]
    fn lock_early(attempt: &mut Attempt<Self>, id: ItemId) -> Result<(), ConflictCause> {
        Self::lock(attempt, id)?;
        attempt.local.locks_early = true;
        attempt.items.get_mut(id).mark.hot = true;
        Ok(())
    }

    /// Locks a hot segment for reading. One that was read before, without a lock, must be as it was.
    #[cold]
    fn lock_shared(attempt: &mut Attempt<Self>, id: ItemId) -> Result<(), ConflictCause> {
        let item = attempt.items.get_mut(id);
        let version = item.header().lock_shared().map_err(|reason| ConflictCause::item(reason, id))?;
        attempt.local.locks_early = true;
        let unchanged = !item.is(Flags::READ) || item.mark.version == version;
        (item.mark.shared, item.mark.hot) = (true, true);
        if unchanged {
            item.mark.version = version;
            Ok(())
        } else {
            Err(ConflictCause::item(Reason::ReadChanged, id))
        }
    }

    /// Phase 2: every version read is still there and not locked by another writer, and so is every bucket and leaf.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn validate(attempt: &Attempt<Self>) -> Result<(), ConflictCause> {
        for (id, item) in attempt.items.entries() {
            // What is locked was locked in the version read.
            if item.is(Flags::READ)
                && !item.is(Flags::LOCKED)
                && !item.mark.shared
                && !item.header().still_at(item.mark.version)
            {
                return Err(ConflictCause::item(Reason::ReadChanged, id));
            }
        }
        attempt.check_structures()
    }

    /// Counts a failure over a segment that was written after it was read.
    #[cold]
    fn warm(attempt: &mut Attempt<Self>, lost: ConflictCause) -> ConflictCause {
        if let ConflictCause { reason: Reason::ReadChanged, target: ConflictTarget::Item(id) } = lost {
            let heat = attempt.items.get(id).header().heat();
            if heat < HEAT_MAX && chance(attempt, 1 << heat) {
                attempt.items.get(id).header().set_heat(heat + 1);
            }
        }
        lost
    }

    /// Gives back the locks that were taken before the commit, and those of items that were not written after all;
    /// lets what was locked cool.
    #[cold]
    fn release_early(attempt: &mut Attempt<Self>) {
        for id in attempt.items.ids() {
            let item = attempt.items.get_mut(id);
            if !item.mark.hot {
                continue;
            }
            let shared = std::mem::take(&mut item.mark.shared);
            if chance(attempt, COOLS_ONE_IN) {
                let header = attempt.items.get(id).header();
                header.set_heat(header.heat().saturating_sub(1));
            }
            let item = attempt.items.get(id);
            if shared {
                item.header().unlock_shared();
            } else if !item.is(Flags::WRITE) {
                item.header().unlock();
            }
        }
    }
}

impl KeepsVersions for Mocc {
    type Version = HeatedVersion;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn stable<V>(header: &HeatedWord, load: impl FnMut() -> V) -> Result<(HeatedVersion, V), Reason> {
        header.stable(load)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn version(mark: &mut MoccMark) -> &mut HeatedVersion {
        &mut mark.version
    }
}

impl Variants for Mocc {
    const VARIANTS: &'static [Variant] = &[Variant {
        name: "mocc",
        summary: "optimistic where it is cold, locks at once where it is hot",
        source: "plor §6.1, MOCC",
    }];
    const OPAQUE: bool = false;

    type Options = ();

    fn options(name: &str) -> Option<()> {
        crate::registry::only(Self::VARIANTS, name)
    }

    fn new((): &()) -> Self {
        Self
    }
}

// SAFETY: reads are stable by the version word, which is locked for writing while anything is installed, or hold the lock
// in shared mode themselves. All is installed once, after everything that can fail.
unsafe impl Protocol for Mocc {
    const WORKERS_MAX: u32 = word::READERS_MAX;
    type Header = HeatedWord;
    type Mark = MoccMark;
    type Local = MoccLocal;
    type Deferral = Absent;
    type Stealing = Absent;
    type RangeLocks = Absent;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn begin(&self, attempt: &mut Attempt<Self>) {
        attempt.local.locks_early = false;
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<V>(
        &self,
        attempt: &mut Attempt<Self>,
        id: ItemId,
        mut load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        let item = attempt.items.get(id);
        let held = item.is(Flags::LOCKED) || item.mark.shared;
        if held || Self::is_hot(attempt, id) {
            if !held {
                Self::lock_shared(attempt, id)?;
            }
            // Nobody writes the segment, and the version is in the item since it was locked.
            attempt.items.get_mut(id).set(Flags::READ);
            return Ok(load());
        }
        reads::read(attempt, id, load).map(|(_, value)| value)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read_for_update<V>(
        &self,
        attempt: &mut Attempt<Self>,
        id: ItemId,
        load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        self.write(attempt, id)?;
        self.read(attempt, id, load)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn write(&self, attempt: &mut Attempt<Self>, id: ItemId) -> Result<(), ConflictCause> {
        if Self::is_hot(attempt, id) && !attempt.items.get(id).is(Flags::LOCKED) {
            Self::lock_early(attempt, id)
        } else {
            Ok(())
        }
    }

    #[inline]
    fn peek<V>(
        &self,
        attempt: &mut Attempt<Self>,
        id: ItemId,
        mut load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        let item = attempt.items.get(id);
        if item.is(Flags::LOCKED) {
            return Ok(load());
        }
        let stable = item.header().stable(load);
        stable.map(|(_, value)| value).map_err(|reason| ConflictCause::item(reason, id))
    }

    #[inline]
    fn new_locked_header(&self, _attempt: &Attempt<Self>) -> HeatedWord {
        HeatedWord::new_locked()
    }

    #[inline]
    fn prepare(&self, attempt: &mut Attempt<Self>) -> Result<(), ConflictCause> {
        for at in 0..attempt.items.writes().len() {
            let id = attempt.items.writes()[at];
            if !attempt.items.get(id).is(Flags::LOCKED) {
                Self::lock(attempt, id).map_err(|lost| Self::warm(attempt, lost))?;
            }
        }
        attempt.draw_stamp();
        self.validate_before_rollback(attempt)
    }

    #[inline]
    fn finish(&self, prepared: Prepared<'_, Self>) {
        let attempt = prepared.install_all(|_| (), |item| item.header().unlock_changed());
        if attempt.local.locks_early {
            Self::release_early(attempt);
        }
    }

    #[inline]
    fn validate_before_rollback(&self, attempt: &mut Attempt<Self>) -> Result<(), ConflictCause> {
        reads::upgrade_predicates(attempt, |item| item.is(Flags::LOCKED) || item.mark.shared)?;
        // Orders the reads before the checks where nothing was locked in between; the reader's side of the word.
        fence(Ordering::Acquire);
        Self::validate(attempt).map_err(|lost| Self::warm(attempt, lost))
    }

    #[inline]
    fn abort(&self, attempt: &mut Attempt<Self>) {
        for item in attempt.items.iter() {
            if item.is(Flags::LOCKED) {
                item.header().unlock();
            } else if item.mark.shared {
                item.header().unlock_shared();
            }
        }
    }
}

#[cfg(all(test, loom))]
mod models;
