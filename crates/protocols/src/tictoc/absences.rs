//! The logical times of absences: when keys were last observed to be absent, and when they were last deleted.

use crossbeam_utils::CachePadded;
use hotrow_core::{Attempt, Flags, Protocol};
use hotrow_sync::atomic::{AtomicU64, Ordering};

/// Number of stripes; objects beyond this number share them.
const STRIPES: usize = if cfg!(test) { 2 } else { 32 };

/// Two timestamps that only grow.
#[derive(Debug, Default)]
struct Times {
    /// The latest commit that observed an absence.
    observed: AtomicU64,
    /// The latest commit that deleted a key.
    deleted: AtomicU64,
}

/// For each object, the latest timestamps of commits that observed an absence in it or deleted a key of it. The head of
/// [`tictoc`](super) says why these suffice ("Structure").
#[derive(Debug)]
pub(super) struct Absences {
    stripes: Box<[CachePadded<Times>]>,
}

/// The effects of an attempt on absences, and its observations of them, one bit for each stripe.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct AbsenceUse {
    /// Stripes of which it has observed an absence: by a failed lookup or a scan, or by an insertion that it has taken
    /// back.
    observes: u32,
    /// Stripes in which it inserts.
    inserts: u32,
    /// Stripes in which it deletes.
    deletes: u32,
}

#[cfg(all(test, loom))]
impl AbsenceUse {
    pub(super) const OBSERVES: Self = Self { observes: 1, inserts: 0, deletes: 0 };
    pub(super) const INSERTS: Self = Self { observes: 0, inserts: 1, deletes: 0 };
    pub(super) const DELETES: Self = Self { observes: 0, inserts: 0, deletes: 1 };
}

impl AbsenceUse {
    /// Finds out what an attempt does.
    #[inline]
    pub(super) fn of<P: Protocol>(attempt: &Attempt<P>) -> Self {
        let bit = |place: u16| 1 << (usize::from(place) % STRIPES);
        let mut uses = Self::default();
        attempt.observed_objects().for_each(|meta| uses.observes |= bit(meta.place()));
        if attempt.changes_structure() {
            for item in attempt.items.writes().iter().map(|id| attempt.items.get(*id)) {
                if !item.is(Flags::CLEANUP) {
                    continue;
                }
                let place = bit(item.place());
                if !item.is(Flags::INSERTED) {
                    uses.deletes |= place;
                } else {
                    uses.inserts |= place;
                    if !item.has_effect() {
                        // It found the key absent, and leaves it so.
                        uses.observes |= place;
                    }
                }
            }
        }
        uses
    }
}

/// The numbers of the bits that are set.
fn bits(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        lowest
    })
}

// All accesses are sequentially consistent: see the head of `tictoc`, "Structure".

/// Raises a time to `commit_ts`.
pub(super) fn raise(time: &AtomicU64, commit_ts: u64) {
    // The loads, too, must be in the total order: they stand for the update by which another commit raised the time.
    let mut seen = time.load(Ordering::SeqCst);
    while seen < commit_ts {
        match time.compare_exchange(seen, commit_ts, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => return,
            Err(now) => seen = now,
        }
    }
}

impl Absences {
    pub(super) fn new() -> Self {
        Self { stripes: (0..STRIPES).map(|_| CachePadded::default()).collect() }
    }

    /// Returns the earliest timestamp that a commit with these uses may take.
    #[inline]
    pub(super) fn earliest(&self, uses: AbsenceUse) -> u64 {
        let deleted = bits(uses.observes | uses.inserts).map(|at| &self.stripes[at].deleted);
        let observed = bits(uses.inserts).map(|at| &self.stripes[at].observed);
        deleted.chain(observed).map(|time| time.load(Ordering::SeqCst)).max().unwrap_or(0)
    }

    /// Notes a commit's timestamp, before it checks what it has observed and before it installs anything.
    #[inline]
    pub(super) fn note(&self, uses: AbsenceUse, commit_ts: u64) {
        bits(uses.observes).for_each(|at| raise(&self.stripes[at].observed, commit_ts));
        bits(uses.deletes).for_each(|at| raise(&self.stripes[at].deleted, commit_ts));
    }
}
