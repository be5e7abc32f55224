//! TicToc: optimistic, with a commit timestamp computed from what was read and written.
//!
//! # Algorithm (Yu, Pavlo, Sanchez, Devadas, "TicToc: Time Traveling Optimistic Concurrency Control", SIGMOD 2016)
//!
//! Time is logical. Each version is valid from its write timestamp to its read timestamp. The read timestamp may be
//! moved up as long as the version is the latest. Reads keep both timestamps and lock nothing. Writes are buffered
//! until commit. Then the commit
//!
//! 1. locks every segment to be written, in the order of first write, with bounded spinning. Predicates are checked
//!    and become reads;
//! 2. takes as commit timestamp the earliest logical time that is not before the write timestamp of any version read
//!    and is after the read timestamp of every version to be overwritten;
//! 3. makes every version read valid at the commit timestamp. An earlier read timestamp is moved up, and the commit
//!    fails if the version was replaced or is locked. If the timestamps as read include the commit timestamp, the
//!    version is not loaded again, though it may have been replaced since: the commit then comes before the
//!    replacement in logical time, if not in real time. Then buckets and leaves are checked;
//! 4. installs the writes and unlocks them with the commit timestamp as write and read timestamp.
//!
//! # Why it is serializable
//!
//! Order commits by timestamp, and commits with the same timestamp by the moment when they take it. A version is
//! read at its write timestamp or later, and after it was installed. It is overwritten later than it is read: its
//! writer locks it, so that nobody moves the read timestamp any more, and then takes a timestamp above that. So
//! every dependency between items goes forward in the order, whatever the memory does: a check that loads an old
//! word finds a read timestamp that the next writer has respected. (Those for which a word has no room: [`late_reads`].)
//!
//! The order need not be that of real time ([`Variants::STRICT`](hotrow_core::Variants::STRICT) is false). `docs/protocols/tictoc.md` and the tests
//! have an example.
//!
//! # Structure
//!
//! Buckets and leaves have no timestamps. Their versions are compared at commit, which puts absence in the order of
//! real time. The two orders may contradict each other: T1 finds a key absent and commits at 100, having overwritten
//! y; T2 then inserts the key at 5; T3 reads the key, and a version of y before T1 that is valid at 50.
//!
//! So each object has two more words ([`absences`]): the latest timestamp of a commit that *observed* an absence in it, by
//! a failed lookup or a scan, and the latest of one that *deleted* a key. A commit
//!
//! - takes no timestamp below `deleted` of the objects in which it has observed an absence or inserts, and none below
//!   `observed` of those in which it inserts. It loads them after its observations and after its insertions went into the
//!   index;
//! - raises `observed` and `deleted` of the objects in which it has observed or deletes to its own timestamp, before it
//!   checks buckets and leaves, and before it installs anything.
//!
//! This suffices. Besides the dependencies between items, the absence of a key makes three kinds of dependency:
//!
//! - *absence observed, then ended by an insertion.* The observer checked the node before the insertion changed it.
//!   So it had raised `observed` before the inserter loaded it. (All four accesses are sequentially consistent.)
//! - *deletion, then absence observed or ended.* The deleter raised `deleted` before it installed, so before anybody
//!   took the dead record out. A transaction that found the key absent loads `deleted` later.
//! - *absence observed, then a record found dead.* The second case applies; the dead record was read besides.
//!
//! In each case the later commit's timestamp is not below the earlier one's, and if both are the same the later
//! commit takes it later. An insertion that is rolled back makes nothing present, and need not raise anything. One that its
//! own transaction has deleted again was an observation: the key was absent before and is so afterwards. Until its commit
//! it has kept others from inserting the key, as its record was in the index. A lookup
//! that finds a record depends on the record only, and so does a deletion. Insertions into one object are in no order
//! unless they are of the same key, and then there is a deletion between them. An empty leaf whose
//! range goes to its neighbour is checked by its observers before it is retired, and an insertion into the neighbour
//! comes after that.
//!
//! With one word for the whole engine, which every insertion raised, TPC-C's transactions had no freedom left: each
//! New-Order had to come after the last Payment, because that had inserted into the history.
//!
//! # Snapshots
//!
//! A snapshot is a cut through the commits by their stamps, which follow real time (`core/src/features/snapshot`). A commit that comes
//! before another one in logical time but after it in real time would spoil that: the snapshot could see the later one alone. So
//! while commits are stamped, each commit (also one that writes nothing: it may stand between two others) makes sure besides that
//! every version read is still the latest, with no writer on it, after it has drawn its stamp. Then whoever replaces one of
//! them locks it, and draws its stamp, later. A commit that has seen a write of a stamped one sees that commits are stamped.
//!
//! # Deviations
//!
//! - TicToc sorts the write set; without sorting it gives up at the first taken lock. Here, as in `occ`, an attempt
//!   waits for a taken lock within bounds, and nothing is sorted.
//! - TicToc says nothing about phantoms; the timestamps of absences are Hotrow's own.
//! - TicToc moves a write timestamp up if the read timestamp is too far from it for the word. Here only a write does: the name of a
//!   version does not change while it is there, so nobody's extension is a conflict, least of all one's own ([`late_reads`]).
//! - There is no history of write timestamps (TicToc §4.1 calls it optional), and no check before the locks are
//!   taken.

mod absences;
mod late_reads;
mod word;

use word::{TimestampWord, Timestamps};

use crate::host::{Algorithm, Host};
use crate::reads;
use crate::stable::StableWord;
use absences::{AbsenceUse, Absences};
use hotrow_core::{
    Attempt, Before, ConflictCause, Flags, Item, ItemId, LoggedReads, Look, Prepared, Reason, Steps,
    TouchedSegment, Variant, Variants,
};
use hotrow_sync::profile;
use late_reads::LateReads;

/// TicToc: timestamps computed at commit, without a clock. Yu et al., SIGMOD 2016; plor §6.
///
/// Serializable, but not in real time: see [`Variants::STRICT`](hotrow_core::Variants::STRICT). Not opaque: see [`Occ`](crate::Occ).
#[derive(Debug)]
pub struct TicToc {
    absences: Absences,
    late: LateReads,
}

/// State that a worker keeps.
#[derive(Debug, Default)]
pub struct TicTocLocal {
    /// The latest write timestamp that its current attempt has read.
    latest: u64,
    /// The current commit's timestamp.
    commit_ts: u64,
}

impl TicToc {
    /// Phase 1: locks the segments to be written. Returns the earliest timestamp after all their reads.
    #[inline]
    fn lock_writes<H: Host<Self>>(&self, attempt: &mut Attempt<H>) -> Result<u64, ConflictCause> {
        let mut earliest = 0;
        for (id, item) in attempt.items.writes_mut() {
            if !item.is(Flags::INSERTED) {
                let expected = item.is(Flags::READ).then_some(H::mark(item.mark));
                let below = H::header(item.header())
                    .lock(expected)
                    .map_err(|reason| ConflictCause::item(reason, id))?;
                item.set(Flags::LOCKED);
                earliest = earliest.max(self.late.last_read(H::header(item.header()), below) + 1);
            }
        }
        Ok(earliest)
    }

    /// Phase 1, predicates (sto §3.5): checks each on a stable version and turns it into a read of that version.
    #[inline]
    fn upgrade_predicates<H: Host<Self>>(attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        attempt.check_predicates(|attempt, id| {
            let item = attempt.items.get(id);
            if item.is(Flags::LOCKED) {
                return Ok(attempt.predicate_holds(id));
            }
            let stable = H::header(item.header()).stable(|| attempt.predicate_holds(id));
            let (version, holds) = stable.map_err(|reason| ConflictCause::item(reason, id))?;
            Self::keep(attempt.items.get_mut(id), id, version, H::local_mut(&mut attempt.local))?;
            Ok(holds)
        })
    }

    /// Keeps the version that was read. An item's segment must not be read in two versions, even if both are valid at some
    /// moment. (If two logged reads have two versions, the later one was written after the time to which the earlier one is valid, and so
    /// the commit, which comes after both, cannot make the earlier one valid.)
    #[inline]
    fn keep<H: Host<Self>>(
        item: &mut Item<H>,
        id: ItemId,
        version: Timestamps,
        local: &mut TicTocLocal,
    ) -> Result<(), ConflictCause> {
        if item.is(Flags::READ) && !H::mark(item.mark).same_version(version) {
            return Err(ConflictCause::item(Reason::ReadChanged, id));
        }
        // A second read may find a later read timestamp.
        (*H::mark_mut(&mut item.mark)) = version;
        item.set(Flags::READ);
        local.latest = local.latest.max(version.write());
        Ok(())
    }

    /// The second half of a read without an item: returns its mark.
    #[inline(always)]
    fn mark_loaded<H: Host<Self>>(
        attempt: &mut Attempt<H>,
        segment: &TouchedSegment<H>,
        before: Before,
    ) -> Result<H::Mark, ConflictCause> {
        let version = reads::after_logged::<Self, H>(segment, before)?;
        let local = H::local_mut(&mut attempt.local);
        local.latest = local.latest.max(version.write());
        Ok(H::new_mark(version))
    }

    /// Phases 2 and 3: takes the commit timestamp and makes every version read valid at it.
    #[inline(always)]
    fn validate<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        earliest: u64,
        is_stamped: bool,
    ) -> Result<(), ConflictCause> {
        let uses = AbsenceUse::of(attempt);
        let commit_ts = earliest.max(H::local(&attempt.local).latest).max(self.absences.earliest(uses));
        self.extend_reads(attempt, commit_ts)?;
        if is_stamped {
            Self::check_latest(attempt)?;
        }
        self.absences.note(uses, commit_ts);
        attempt.check_structures()?;
        H::local_mut(&mut attempt.local).commit_ts = commit_ts;
        Ok(())
    }

    /// Phase 3: makes every version read valid at `commit_ts`.
    #[inline(always)]
    fn extend_reads<H: Host<Self>>(&self, attempt: &Attempt<H>, commit_ts: u64) -> Result<(), ConflictCause> {
        for (id, item) in attempt.items.entries() {
            // A locked segment was locked in the version read.
            if item.is(Flags::READ) && H::mark(item.mark).read() < commit_ts && !item.is(Flags::LOCKED) {
                let extended = H::header(item.header()).extend(H::mark(item.mark), commit_ts, &self.late);
                extended.map_err(|reason| ConflictCause::item(reason, id))?;
            }
        }
        for (position, read) in attempt.reads.iter().enumerate() {
            if H::mark(read.mark()).read() < commit_ts
                && let Err(reason) = H::header(read.segment().header()).extend(H::mark(read.mark()), commit_ts, &self.late)
                // The version is there still, and the lock may be the attempt's own.
                && !(reason == Reason::ReadLocked && reads::is_locked_since(attempt, read))
            {
                return Err(attempt.reads.lost(position, reason));
            }
        }
        Ok(())
    }
}

impl TicToc {
    /// Checks that every version read is still the latest: see "Snapshots" at the module's head.
    #[cold]
    #[inline(never)]
    fn check_latest<H: Host<Self>>(attempt: &Attempt<H>) -> Result<(), ConflictCause> {
        for (id, item) in attempt.items.entries() {
            if item.is(Flags::READ) && !item.is(Flags::LOCKED) {
                let latest = H::header(item.header()).check_latest(H::mark(item.mark));
                latest.map_err(|reason| ConflictCause::item(reason, id))?;
            }
        }
        for (position, read) in attempt.reads.iter().enumerate() {
            if let Err(reason) = H::header(read.segment().header()).check_latest(H::mark(read.mark()))
                // As in `extend_reads`.
                && !(reason == Reason::ReadLocked && reads::is_locked_since(attempt, read))
            {
                return Err(attempt.reads.lost(position, reason));
            }
        }
        Ok(())
    }
}

impl Variants for TicToc {
    const VARIANTS: &'static [Variant] = &[Variant {
        name: "tictoc",
        summary: "optimistic: a commit timestamp computed from reads and writes, reads extended",
        source: "plor §6, TicToc",
        for_comparison: false,
    }];
    const OPAQUE: bool = false;
    const WORKERS_MAX: u32 = u32::MAX;
    const STRICT: bool = false;

    type Options = ();

    fn options(name: &str) -> Option<()> {
        crate::registry::only(Self::VARIANTS, name)
    }

    fn new((): &()) -> Self {
        Self { absences: Absences::new(), late: LateReads::new() }
    }
}

// SAFETY: reads are stable by the timestamp word, which is locked for writing while anything is installed
// (`StableWord`, `lock`). Each write is installed once, after everything that can fail.
unsafe impl Algorithm for TicToc {
    type Header = TimestampWord;
    type Mark = Timestamps;
    type Local = TicTocLocal;
}

impl<H: Host<TicToc>> Steps<H> for TicToc {
    #[inline]
    fn begin(&self, attempt: &mut Attempt<H>) {
        H::local_mut(&mut attempt.local).latest = 0;
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
        let version = reads::after_peek::<Self, H>(attempt, id, before)?;
        if look == Look::Peek {
            return Ok(());
        }
        let Attempt { items, local, .. } = attempt;
        Self::keep(items.get_mut(id), id, version, H::local_mut(local))
    }

    #[inline]
    fn new_locked_header(&self, _attempt: &Attempt<H>) -> H::Header {
        H::new_header(TimestampWord::new_locked())
    }

    #[inline]
    fn prepare(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        let earliest = self.lock_writes(attempt)?;
        Self::upgrade_predicates(attempt)?;
        // INVARIANT 12: A commit draws its stamp under all its locks and before it validates, so that no successor has a smaller stamp.
        let is_stamped = attempt.draw_stamp();
        self.validate(attempt, earliest, is_stamped)
    }

    #[inline]
    fn finish(&self, mut prepared: Prepared<'_, H>) {
        let timestamps = Timestamps::written_at(H::local(&prepared.attempt().local).commit_ts);
        prepared.install_all(
            |_| (),
            |item| {
                H::header(item.header()).unlock_as(timestamps);
                profile::release(item.segment().addr().get());
            },
        );
    }

    #[inline]
    fn validate_before_rollback(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        Self::upgrade_predicates(attempt)?;
        self.validate(attempt, 0, false)
    }

    #[inline]
    fn abort(&self, attempt: &mut Attempt<H>) {
        for item in attempt.items.iter() {
            if item.is(Flags::LOCKED) {
                H::header(item.header()).unlock();
                profile::release(item.segment().addr().get());
            }
        }
    }
}

impl<H: Host<TicToc>> LoggedReads<H> for TicToc {
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
        let mark = Self::mark_loaded(attempt, segment, before)?;
        attempt.reads.push(segment, mark);
        Ok(())
    }

    #[inline(always)]
    fn loads_to_write(&self) -> bool {
        true
    }

    #[inline(always)]
    fn mark_to_write(
        &self,
        attempt: &mut Attempt<H>,
        segment: &TouchedSegment<H>,
        before: Before,
    ) -> Option<H::Mark> {
        Self::mark_loaded(attempt, segment, before).ok()
    }
}

#[cfg(all(test, loom))]
mod models;
