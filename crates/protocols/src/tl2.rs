//! Optimistic concurrency control with opacity.
//!
//! # Algorithm (sto §3.6; TL2's clock GV4, with revalidation instead of abort)
//!
//! A global clock counts commits. An attempt loads it when it begins: its *bound*. A version up to the bound was
//! committed before the attempt began (or rather, before it last loaded the clock), so reads of such versions are
//! consistent with one another.
//!
//! - A read that meets a later version first keeps it. Then it loads the clock, checks everything read so far
//!   (versions, predicates, buckets and leaves), and goes on with the clock as its new bound. It aborts only if a
//!   check fails. (TL2 itself aborts; revalidation gave STO 14 % on contended workloads.)
//! - Versions of buckets and leaves are not drawn from the clock ("unordered", sto §3.6). An absence that an attempt
//!   observes already held at its bound, unless a later commit has deleted a key. So everything is checked only if a
//!   commit may have deleted a key from that object ([`Removals`]).
//! - At commit, an attempt that wrote nothing is done. Others lock their writes and advance the clock (GV4: an
//!   attempt that loses the race to advance it adopts the winner's value). They check their reads unless nobody has
//!   committed since the bound, and install with the clock's value as version.
//!
//! # Why the bound is enough
//!
//! A writer locks first and then advances the clock. So an attempt whose bound includes the writer's value finds
//! each segment that the writer changes either locked (and waits) or changed already, never in its earlier state. A
//! writer that adopts another's value needs a total order for this. The writer locked, then saw the clock before the
//! winner advanced it. The reader saw the clock afterwards, then reads the segment. All four accesses are
//! sequentially consistent, so the read comes after the lock.
//!
//! # Opacity
//!
//! *All that an attempt has seen at any moment is the state after exactly the commits with clock values up to its bound.* Invariants: a
//! writer locks, and puts its insertions into the index, before it loads the clock to advance it; the clock has a value before any
//! version or word of removals carries it; an extension loads the clock before it checks.
//!
//! - *Nothing newer was seen.* A read of a later version extends the bound, and the extension finds all that was read before
//!   unchanged after it has loaded the new bound.
//! - *No commit up to the bound was missed*, by the argument above; for reads before an extension, with the check in the place of the read. For an
//!   insertion, its latch stands for the lock: the attempt finds the node latched or changed, or, if it looks again at a part of a leaf, the
//!   record, or that one was removed. A record of an insertion that has not committed is locked: the attempt waits or aborts.
//! - *A key that was present at the bound, and is missed*, was deleted by a commit with a value c above the bound. It noted c before it
//!   installed, and the record left the index after that. The attempt loads the clock, then the word of removals, after it has
//!   seen the node without the record. A clock still at the bound excludes such a commit; otherwise the attempt finds c or
//!   more in the word, and extends. Commits that insert, update, roll back, or delete from other objects do not matter.
//! - *A predicate* was evaluated on a value no newer than the bound, and each extension evaluates it again.
//!
//! # Why it is serializable
//!
//! The place of a transaction that writes nothing is its bound. Writers come in the order of their clock values; two commits may
//! share one, but never a worker and a value. Those that have checked their reads have done so with all their locks held. So of two with the same
//! value that conflict one fails, as under `occ`. The one that advanced the clock from its bound may have skipped its checks. It comes first
//! among those with its value: nobody has committed since its bound. The others took their locks before they failed to swap the clock, and check
//! after that, so they find its locks or versions wherever it writes what they have read. While commits are stamped for snapshots, it checks, too.
//!
//! # Deviations
//!
//! - The version carries the worker's number below the clock's value, because versions must be unique and clock
//!   values are not.
//! - TL2 keeps no reads of a transaction that only reads. Here, as in STO, they stay in the log, because an extension needs them.
//! - STO marks unordered versions by a bit of the word, and checks everything whenever it meets one. Here versions of buckets and leaves are
//!   of another type, and everything is checked only if a deletion may have come between. So a transaction of n insertions takes
//!   time in proportion to n, whatever others commit elsewhere.

use crate::host::{Algorithm, Host};
use crate::reads;
use crate::registry;
use crate::removals::Removals;
use crate::stable::StableWord;
use crate::version::{self, Version, VersionWord, Versioned};
use crossbeam_utils::CachePadded;
use hotrow_core::{
    Attempt, Before, ConflictCause, Flags, ItemId, LoggedReads, Look, ObjectMeta, Prepared, Reason, Reports,
    Rival, Steps, TouchedSegment, Variant, Variants,
};
use hotrow_sync::atomic::{AtomicU64, Ordering};

/// Opaque optimistic concurrency control: TL2 with revalidation, sto §3.6.
#[derive(Debug)]
pub struct Tl2 {
    clock: CachePadded<AtomicU64>,
    removals: Removals,
}

/// State that a worker keeps of its current attempt.
#[derive(Debug, Default)]
pub struct Tl2Local {
    /// The bound of its current attempt.
    bound: u64,
    /// The clock's value for the current commit.
    commit: u64,
    /// One more than the position of the last item that was read.
    reads_end: usize,
}

/// Rounds of revalidation. A round starts over if a predicate's value is newer than the bound that it took.
const ROUNDS: usize = 4;

impl Tl2 {
    #[inline]
    fn now(&self) -> u64 {
        // Sequentially consistent: see the module's "Why the bound is enough".
        self.clock.load(Ordering::SeqCst)
    }

    /// Moves the bound to the clock if everything observed so far still holds.
    #[cold]
    fn extend<H: Host<Self>>(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        for _ in 0..ROUNDS {
            let bound = self.now();
            version::validate_first::<Self, H>(attempt, H::local(&attempt.local).reads_end)?;
            if Self::predicates_hold::<H>(attempt, bound)? {
                H::local_mut(&mut attempt.local).bound = bound;
                return Ok(());
            }
        }
        let culprit = attempt.items.ids().find(|id| attempt.items.get(*id).is(Flags::PREDICATE));
        Err(ConflictCause::item(
            Reason::PredicateFailed,
            culprit.expect("only a predicate starts a round over"),
        ))
    }

    /// True if all predicates hold of values no newer than `bound`; false if some value is newer.
    fn predicates_hold<H: Host<Self>>(attempt: &Attempt<H>, bound: u64) -> Result<bool, ConflictCause> {
        if !attempt.items.has_predicates() {
            return Ok(true);
        }
        for id in attempt.items.ids() {
            let item = attempt.items.get(id);
            if item.is(Flags::PREDICATE) {
                let stable = H::header(item.header()).stable(|| attempt.predicate_holds(id));
                let (version, holds) = stable.map_err(|reason| ConflictCause::item(reason, id))?;
                if !holds {
                    return Err(ConflictCause::item(Reason::PredicateFailed, id));
                }
                if version.number() > bound {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Advances the clock (GV4). Returns the commit's value, and true if nobody else has committed since `bound`.
    #[inline]
    fn advance(&self, bound: u64) -> (u64, bool) {
        let seen = self.now();
        match self.clock.compare_exchange(seen, seen + 1, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => (seen + 1, seen == bound),
            Err(adopted) => (adopted, false),
        }
    }
}

impl Variants for Tl2 {
    const VARIANTS: &'static [Variant] = &[Variant {
        name: "tl2",
        summary: "optimistic and opaque: a global clock, revalidation instead of abort",
        source: "sto §3.6",
        for_comparison: false,
    }];
    const OPAQUE: bool = true;
    const WORKERS_MAX: u32 = version::WORKERS_MAX;

    type Options = ();

    fn options(name: &str) -> Option<()> {
        registry::only(Self::VARIANTS, name)
    }

    fn new((): &()) -> Self {
        Self { clock: CachePadded::new(AtomicU64::new(0)), removals: Removals::new() }
    }
}

// SAFETY: reads are stable by the version word, which is locked for writing while anything is installed
// (`StableWord`, `version::lock_writes`). Each write is installed once, after everything that can fail.
unsafe impl Algorithm for Tl2 {
    type Header = VersionWord;
    type Mark = Version;
    type Local = Tl2Local;
}

impl<H: Host<Tl2>> Steps<H> for Tl2 {
    #[inline]
    fn begin(&self, attempt: &mut Attempt<H>) {
        H::local_mut(&mut attempt.local).bound = self.now();
        H::local_mut(&mut attempt.local).reads_end = 0;
    }

    #[inline(always)]
    fn before_load(
        &self,
        attempt: &mut Attempt<H>,
        id: ItemId,
        _look: Look,
    ) -> Result<Before, ConflictCause> {
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
        if look == Look::Peek {
            let version = reads::after_peek::<Self, H>(attempt, id, before)?;
            if version.number() > H::local(&attempt.local).bound && attempt.keeps_reads() {
                // The value is not kept, so it is checked at once under the new bound.
                self.extend(attempt)?;
                let version = reads::after_peek::<Self, H>(attempt, id, before)?;
                if version.number() > H::local(&attempt.local).bound {
                    return Err(ConflictCause::item(Reason::ReadChanged, id).passing());
                }
            }
            return Ok(());
        }
        let version = reads::after_read::<Self, H>(attempt, id, before)?;
        H::local_mut(&mut attempt.local).reads_end =
            H::local(&attempt.local).reads_end.max(id.position() + 1);
        if version.number() > H::local(&attempt.local).bound { self.extend(attempt) } else { Ok(()) }
    }

    #[inline]
    fn new_locked_header(&self, _attempt: &Attempt<H>) -> H::Header {
        H::new_header(VersionWord::new_locked())
    }

    #[inline]
    fn observed(&self, attempt: &mut Attempt<H>, object: Option<&ObjectMeta>) -> Result<(), ConflictCause> {
        let bound = H::local(&attempt.local).bound;
        if self.now() == bound || !self.removals.any_after(bound, object) {
            return Ok(());
        }
        self.extend(attempt)
    }

    #[inline]
    fn prepare(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        if attempt.items.writes().is_empty() {
            return Ok(());
        }
        version::lock_writes::<Self, H>(attempt)?;
        version::upgrade_predicates::<Self, H>(attempt)?;
        // INVARIANT 12: A commit draws its stamp under all its locks and before it validates, so that no successor has a smaller stamp.
        let stamped = attempt.draw_stamp();
        let (clock, alone) = self.advance(H::local(&attempt.local).bound);
        H::local_mut(&mut attempt.local).commit = clock;
        // Whoever is going to replace what was read may have its stamp, and the lock that the validation finds, but not yet
        // have advanced the clock.
        if !alone || stamped {
            version::validate_beside_locks::<Self, H>(attempt)?;
        }
        Ok(())
    }

    #[inline]
    fn finish(&self, mut prepared: Prepared<'_, H>) {
        let attempt = prepared.attempt();
        let version = Version::new(H::local(&attempt.local).commit, attempt.worker());
        self.removals.note(attempt, H::local(&attempt.local).commit);
        version::install_writes::<Self, H>(prepared, version);
    }

    #[inline]
    fn abort(&self, attempt: &mut Attempt<H>) {
        version::release::<Self, H>(attempt);
    }
}

impl<H: Host<Tl2>> LoggedReads<H> for Tl2 {
    #[inline(always)]
    fn of(protocol: &H) -> Option<&Self> {
        protocol.algorithm()
    }

    #[inline(always)]
    fn before_load(&self, segment: &TouchedSegment<H>) -> Result<Before, ConflictCause> {
        reads::before_logged::<Self, H>(segment)
    }

    #[inline(always)]
    fn after_load(
        &self,
        attempt: &mut Attempt<H>,
        segment: &TouchedSegment<H>,
        before: Before,
    ) -> Result<(), ConflictCause> {
        let version = reads::log::<Self, H>(attempt, segment, before)?;
        if version.number() > H::local(&attempt.local).bound { self.extend(attempt) } else { Ok(()) }
    }
}

impl Versioned for Tl2 {}

impl<H: Host<Tl2>> Reports<H> for Tl2 {
    #[inline(always)]
    fn of(protocol: &H) -> Option<&Self> {
        protocol.algorithm()
    }

    fn rival(&self, attempt: &Attempt<H>, header: &H::Header) -> Option<Rival> {
        version::rival::<Tl2, H>(attempt, header)
    }

    #[inline]
    fn commit_number(&self, attempt: &Attempt<H>) -> u64 {
        H::local(&attempt.local).commit
    }
}

#[cfg(all(test, loom))]
mod models;
