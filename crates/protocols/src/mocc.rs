//! Mostly optimistic concurrency control: optimistic on cold segments, locking on hot ones.
//!
//! # Algorithm (Wang, Kimura, "Mostly-Optimistic Concurrency Control for Highly Contended Dynamic Workloads on a
//! Thousand Cores", VLDB 2016; plor §6.1: NO_WAIT or OCC, by hotness)
//!
//! Each segment has a *heat*. It rises when a commit fails because the segment was written after it was read. While
//! the heat is below [`HOT`], everything is as in `occ`. From [`HOT`] on,
//!
//! - a read takes the lock in shared mode at once and keeps it to the end of the attempt, so that its check cannot
//!   fail;
//! - a read for update, or a write, takes the lock in exclusive mode at once. A shared lock that the attempt holds
//!   becomes exclusive if there is no other reader.
//!
//! A lock that stays taken after bounded spinning aborts the attempt, so there is no deadlock. Then the commit
//!
//! 1. locks every segment to be written that is not locked yet: neither a writer nor a reader may have it locked.
//!    Predicates are checked and become reads;
//! 2. checks that every version read is unchanged and not locked by another writer, unless it was read under a lock
//!    that is still held. It also checks every bucket and leaf;
//! 3. installs the writes and unlocks everything; written segments get their next version.
//!
//! # Heat
//!
//! The heat is an approximate counter (Morris): from heat h it rises by one with probability 2^-h. So it stands for
//! about 2^h - 1 failures, and is at most [`HEAT_MAX`]. When an attempt commits, each lock that it took because a
//! segment was hot cools that segment by one with probability 1 in [`COOLS_ONE_IN`]. So a segment that is locked in
//! vain turns cold after some time, and few failures tell whether it is still hot.
//!
//! # Why it is serializable
//!
//! The argument is that of `occ`. Between phases 1 and 2 there is a moment at which all writes are locked and all
//! versions read are current. Versions read under locks are current because nobody could write the segments, the
//! others because they are checked after that moment. Two attempts that each write what the other reads cannot both
//! pass. Either one reads under a lock, which excludes the other's exclusive lock. Or both check: then, in the total
//! order of all locks and checks (sequentially consistent), one of them sees the other's lock.
//!
//! # Deviations
//!
//! - Each segment has its own heat. MOCC has one for each page, because it has fewer pages.
//! - There is no retrospective lock list and no canonical mode: locks are taken as they come. The bound on waiting
//!   prevents deadlock. plor's authors ran it so, too (§6.1).
//! - A lock is a bit and a count in the word that holds the version; MOCC has queue locks (MQL) beside the version.
//!   So a lock that is held for long keeps optimistic readers out as well.
//! - Use cools a segment; MOCC resets its counters.

mod word;

use word::{HeatedVersion, HeatedWord};

use crate::host::{Algorithm, Host};
use crate::reads::{self, KeepsVersions};
use hotrow_core::{
    Attempt, Before, ConflictCause, ConflictTarget, Flags, ItemId, Look, Prepared, Reason, Steps, Variant,
    Variants,
};
use hotrow_sync::atomic::{Ordering, fence};
use hotrow_sync::profile;
use hotrow_sync::random::Random;

/// The heat from which a read locks the segment: after about fifteen failures. In tests the first failure makes it
/// hot.
const HOT: u8 = if cfg!(any(test, debug_assertions)) { 1 } else { 4 };

/// The highest heat.
const HEAT_MAX: u8 = HOT + 4;

/// One in this number of locks on a hot segment cools it, when the lock's attempt commits.
const COOLS_ONE_IN: u64 = if cfg!(any(test, debug_assertions)) { 4 } else { 64 };

/// Mostly optimistic concurrency control that locks hot segments. Wang and Kimura, VLDB 2016; plor §6.1.
///
/// Not opaque: see [`Occ`](crate::Occ).
#[derive(Debug)]
pub struct Mocc;

/// The mark that a read leaves in its item.
#[derive(Debug, Clone, Copy, Default)]
pub struct MoccMark {
    /// The version read.
    version: HeatedVersion,
    /// True if the attempt holds the lock in shared mode.
    shared: bool,
    /// True if a lock was taken because the segment was hot.
    hot: bool,
}

/// State that a worker keeps: a flag that its attempt holds locks before its commit, and its random numbers.
#[derive(Debug, Default)]
pub struct MoccLocal {
    locks_early: bool,
    random: Option<Random>,
}

/// True with probability 1 in `one_in`. The random numbers are the worker's own, the same in each run.
#[cold]
fn chance<H: Host<Mocc>>(attempt: &mut Attempt<H>, one_in: u64) -> bool {
    let worker = u64::from(attempt.worker().number());
    H::local_mut(&mut attempt.local)
        .random
        .get_or_insert_with(|| Random::stream(0x40cc, worker))
        .below(one_in)
        == 0
}

/// Before a load: the attempt holds the lock. (No version is odd.)
const HELD: Before = Before(1);

impl Mocc {
    #[inline]
    fn is_hot<H: Host<Self>>(attempt: &Attempt<H>, id: ItemId) -> bool {
        H::header(attempt.items.get(id).header()).heat() >= HOT
    }

    /// Locks a segment exclusively: at commit, or earlier if it is hot.
    #[inline]
    fn lock<H: Host<Self>>(attempt: &mut Attempt<H>, id: ItemId) -> Result<(), ConflictCause> {
        let item = attempt.items.get_mut(id);
        let expected = item.is(Flags::READ).then_some(H::mark(item.mark).version);
        let below = H::header(item.header()).lock(expected, H::mark(item.mark).shared);
        H::mark_mut(&mut item.mark).version = below.map_err(|reason| ConflictCause::item(reason, id))?;
        H::mark_mut(&mut item.mark).shared = false;
        item.set(Flags::LOCKED);
        Ok(())
    }

    #[cold]
    fn lock_early<H: Host<Self>>(attempt: &mut Attempt<H>, id: ItemId) -> Result<(), ConflictCause> {
        Self::lock(attempt, id)?;
        H::local_mut(&mut attempt.local).locks_early = true;
        H::mark_mut(&mut attempt.items.get_mut(id).mark).hot = true;
        Ok(())
    }

    /// Locks a hot segment in shared mode. If it was read before without a lock, its version must be unchanged.
    #[cold]
    fn lock_shared<H: Host<Self>>(attempt: &mut Attempt<H>, id: ItemId) -> Result<(), ConflictCause> {
        let item = attempt.items.get_mut(id);
        let version =
            H::header(item.header()).lock_shared().map_err(|reason| ConflictCause::item(reason, id))?;
        H::local_mut(&mut attempt.local).locks_early = true;
        let unchanged = !item.is(Flags::READ) || H::mark(item.mark).version == version;
        let mark = H::mark_mut(&mut item.mark);
        (mark.shared, mark.hot) = (true, true);
        if unchanged {
            H::mark_mut(&mut item.mark).version = version;
            Ok(())
        } else {
            Err(ConflictCause::item(Reason::ReadChanged, id))
        }
    }

    #[inline]
    fn upgrade_predicates<H: Host<Self>>(attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        reads::upgrade_predicates::<Self, H>(attempt, |item| {
            item.is(Flags::LOCKED) || H::mark(item.mark).shared
        })
    }

    /// Phase 2, with what a failure means for the segment.
    #[inline]
    fn validate<H: Host<Self>>(attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        // Orders the reads before the checks where nothing was locked in between; the reader's side of the word.
        fence(Ordering::Acquire);
        Self::check_versions(attempt).map_err(|lost| Self::warm(attempt, lost))
    }

    /// Phase 2: checks that every version read is still there and not locked by another writer, and every bucket and
    /// leaf.
    #[inline]
    fn check_versions<H: Host<Self>>(attempt: &Attempt<H>) -> Result<(), ConflictCause> {
        for (id, item) in attempt.items.entries() {
            // A locked segment was locked in the version read.
            if item.is(Flags::READ)
                && !item.is(Flags::LOCKED)
                && !H::mark(item.mark).shared
                && !H::header(item.header()).still_at(H::mark(item.mark).version)
            {
                return Err(ConflictCause::item(Reason::ReadChanged, id));
            }
        }
        attempt.check_structures()
    }

    /// Counts a failure that a write after the read caused.
    #[cold]
    fn warm<H: Host<Self>>(attempt: &mut Attempt<H>, lost: ConflictCause) -> ConflictCause {
        if let (Reason::ReadChanged, ConflictTarget::Item(id)) = (lost.reason(), lost.target()) {
            let heat = H::header(attempt.items.get(id).header()).heat();
            if heat < HEAT_MAX && chance(attempt, 1 << heat) {
                H::header(attempt.items.get(id).header()).set_heat(heat + 1);
            }
        }
        lost
    }

    /// Releases the locks that were taken before the commit: the shared ones, and those of items that were not
    /// written after all. Cools the segments that were locked.
    #[cold]
    fn release_early<H: Host<Self>>(attempt: &mut Attempt<H>) {
        for id in attempt.items.ids() {
            let item = attempt.items.get_mut(id);
            if !H::mark(item.mark).hot {
                continue;
            }
            let shared = std::mem::take(&mut H::mark_mut(&mut item.mark).shared);
            if chance(attempt, COOLS_ONE_IN) {
                let header = H::header(attempt.items.get(id).header());
                header.set_heat(header.heat().saturating_sub(1));
            }
            let item = attempt.items.get(id);
            if shared {
                H::header(item.header()).unlock_shared();
            } else if !item.is(Flags::WRITE) {
                H::header(item.header()).unlock();
            }
        }
    }
}

impl KeepsVersions for Mocc {
    #[inline]
    fn version(mark: &mut MoccMark) -> &mut HeatedVersion {
        &mut mark.version
    }
}

impl Variants for Mocc {
    const VARIANTS: &'static [Variant] = &[Variant {
        name: "mocc",
        summary: "optimistic on cold segments, locks hot ones at once",
        source: "plor §6.1, MOCC",
        for_comparison: false,
    }];
    const OPAQUE: bool = false;
    const WORKERS_MAX: u32 = word::READERS_MAX;

    type Options = ();

    fn options(name: &str) -> Option<()> {
        crate::registry::only(Self::VARIANTS, name)
    }

    fn new((): &()) -> Self {
        Self
    }
}

// SAFETY: reads are stable by the version word, which is locked for writing while anything is installed, or they
// hold the lock in shared mode themselves. Each write is installed once, after everything that can fail.
unsafe impl Algorithm for Mocc {
    type Header = HeatedWord;
    type Mark = MoccMark;
    type Local = MoccLocal;
}

impl<H: Host<Mocc>> Steps<H> for Mocc {
    #[inline]
    fn begin(&self, attempt: &mut Attempt<H>) {
        H::local_mut(&mut attempt.local).locks_early = false;
    }

    #[inline(always)]
    fn before_load(&self, attempt: &mut Attempt<H>, id: ItemId, look: Look) -> Result<Before, ConflictCause> {
        if look == Look::ReadForUpdate {
            Steps::<H>::write(self, attempt, id)?;
        }
        let item = attempt.items.get(id);
        if item.is(Flags::LOCKED) || H::mark(item.mark).shared {
            return Ok(HELD);
        }
        if look != Look::Peek && Self::is_hot(attempt, id) {
            Self::lock_shared(attempt, id)?;
            return Ok(HELD);
        }
        reads::before::<Self, H>(attempt, id)
    }

    #[inline(always)]
    fn after_load(
        &self,
        attempt: &mut Attempt<H>,
        id: ItemId,
        look: Look,
        before: Before,
    ) -> Result<(), ConflictCause> {
        match (before, look) {
            // Nobody writes the segment, and the item has held the version since it was locked.
            (HELD, Look::Peek) => {}
            (HELD, _) => attempt.items.get_mut(id).set(Flags::READ),
            (_, Look::Peek) => drop(reads::after_peek::<Self, H>(attempt, id, before)?),
            (_, _) => drop(reads::after_read::<Self, H>(attempt, id, before)?),
        }
        Ok(())
    }

    #[inline]
    fn write(&self, attempt: &mut Attempt<H>, id: ItemId) -> Result<(), ConflictCause> {
        if Self::is_hot(attempt, id) && !attempt.items.get(id).is(Flags::LOCKED) {
            Self::lock_early(attempt, id)
        } else {
            Ok(())
        }
    }

    #[inline]
    fn new_locked_header(&self, _attempt: &Attempt<H>) -> H::Header {
        H::new_header(HeatedWord::new_locked())
    }

    #[inline]
    fn prepare(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        for at in 0..attempt.items.writes().len() {
            let id = attempt.items.writes()[at];
            if !attempt.items.get(id).is(Flags::LOCKED) {
                Self::lock(attempt, id).map_err(|lost| Self::warm(attempt, lost))?;
            }
        }
        Self::upgrade_predicates(attempt)?;
        // INVARIANT 12: A commit draws its stamp under all its locks and before it validates, so that no successor has a smaller stamp.
        attempt.draw_stamp();
        Self::validate(attempt)
    }

    #[inline]
    fn finish(&self, prepared: Prepared<'_, H>) {
        let attempt = prepared.install_all(
            |_| (),
            |item| {
                H::header(item.header()).unlock_changed();
                profile::release(item.segment().addr().get());
            },
        );
        if H::local(&attempt.local).locks_early {
            Self::release_early(attempt);
        }
    }

    #[inline]
    fn validate_before_rollback(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        Self::upgrade_predicates(attempt)?;
        Self::validate(attempt)
    }

    #[inline]
    fn abort(&self, attempt: &mut Attempt<H>) {
        for item in attempt.items.iter() {
            if item.is(Flags::LOCKED) {
                H::header(item.header()).unlock();
            } else if H::mark(item.mark).shared {
                H::header(item.header()).unlock_shared();
            }
        }
    }
}

#[cfg(all(test, loom))]
mod models;
