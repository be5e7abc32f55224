//! The protocol: concurrency control between transactions that meet on a segment.
//!
//! # The commit: two halves, and the place between them
//!
//! 1. [`Steps::prepare`] takes the locks that are missing and validates reads, predicates and structure. After it
//!    nothing can fail.
//! 2. Objects write the log's entries, and [`CommitSteps`](crate::CommitSteps) run. Then nothing can fail any more, and the record is appended to the
//!    worker's log ([`WorkerLog`](crate::WorkerLog)). A commit that draws no stamp pays only one predictable branch.
//! 3. [`Steps::finish`] installs each write, having kept the value that it replaces for snapshots that may need it (`snapshot`), and
//!    releases everything.
//!
//! [`Prepared`] is the witness that the first half has succeeded. Only the core makes one, and a write can be installed
//! only through it.

use crate::kernel::abort::Reason;
use crate::kernel::attempt::Attempt;
use crate::kernel::capabilities::{Capabilities, Deferral, Elision, PieceOrder, Reports};
use crate::kernel::capabilities::{LoggedReads, RangeLocks, Stealing};
use crate::kernel::item::{Flags, Item, ItemId};
use crate::kernel::statistics::Counter;
use crate::memory::identity::ObjectMeta;
use std::fmt;
use std::num::NonZero;

/// A lost conflict, as a protocol reports it: the reason, and where.
///
/// It is one word, so that operations return it in a register.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ConflictCause(NonZero<u64>);

/// The segment or node over which an attempt lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictTarget {
    /// An item's segment.
    Item(ItemId),
    /// The logged read with this position.
    Read(u32),
    /// The observation of a bucket or leaf with this number.
    Structure(u32),
    /// None: the attempt has touched nothing yet, and must come after a transaction that has not ended.
    Nothing,
}

impl ConflictCause {
    /// Where the kind of the target lies, above the reason; the target's number is the upper half.
    const KIND: u32 = 8;
    /// Mark: the conflict may pass.
    const PASSING: u64 = 1 << 16;

    /// Makes a loss.
    #[inline]
    pub fn new(reason: Reason, target: ConflictTarget) -> Self {
        let (kind, number) = match target {
            ConflictTarget::Item(id) => (1, id.0),
            ConflictTarget::Read(position) => (2, position),
            ConflictTarget::Structure(number) => (3, number),
            ConflictTarget::Nothing => (4, 0),
        };
        let word = reason as u64 | kind << Self::KIND | u64::from(number) << 32;
        Self(NonZero::new(word).expect("no kind is zero"))
    }

    /// Makes a loss over an item.
    #[inline]
    pub fn item(reason: Reason, item: ItemId) -> Self {
        Self::new(reason, ConflictTarget::Item(item))
    }

    /// The reason.
    #[inline]
    pub fn reason(self) -> Reason {
        Reason::ALL[(self.0.get() & 0xff) as usize]
    }

    /// The segment or node of the conflict.
    pub fn target(self) -> ConflictTarget {
        let number = (self.0.get() >> 32) as u32;
        match self.0.get() >> Self::KIND & 0xff {
            1 => ConflictTarget::Item(ItemId(number)),
            2 => ConflictTarget::Read(number),
            3 => ConflictTarget::Structure(number),
            _ => ConflictTarget::Nothing,
        }
    }

    /// Marks a conflict in a look at a segment that may pass in a moment: the caller begins the look again, within bounds.
    #[inline]
    #[must_use]
    pub fn passing(self) -> Self {
        Self(self.0 | Self::PASSING)
    }

    /// A conflict that has not passed within bounds.
    #[inline]
    pub(crate) fn settled(self) -> Self {
        Self::new(self.reason(), self.target())
    }

    /// True if the conflict may pass.
    #[inline]
    pub fn is_passing(self) -> bool {
        self.0.get() & Self::PASSING != 0
    }
}

impl fmt::Debug for ConflictCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConflictCause")
            .field("reason", &self.reason())
            .field("target", &self.target())
            .field("passing", &self.is_passing())
            .finish()
    }
}

/// The purpose of a look at a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// The transaction depends on the value.
    Read,
    /// The transaction depends on the value, and will write the segment next. Stands for the announcement of the write, too.
    ReadForUpdate,
    /// The transaction does not depend on the value: for a predicate that is checked at commit (sto §3.5), and for reads at
    /// [`Isolation::ReadCommitted`](crate::Isolation). Leaves no mark, and no lock.
    Peek,
}

/// A note of a protocol's, made before a value is loaded, to itself after it: a version that it has seen, or that it held a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Before(pub u64);

/// The cause why an attempt cannot enter an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnterError {
    /// It lost a conflict over the lock of all objects.
    Lost(Reason),
    /// It would wait for ever, for a transaction that its own thread has begun before.
    Nested,
}

/// Facts about a variant of a protocol, known without choosing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// The name in the registry.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// Paper and section.
    pub source: &'static str,
    /// True if the variant exists to be compared with: one factor of a paper's analysis, a baseline, or a use of hardware transactions.
    /// Lists show it apart; tests run it as any other.
    pub for_comparison: bool,
}

/// The variants of a protocol: their names, their options, and the guarantees of each.
pub trait Variants: Sized + 'static {
    /// The variants that lists show and tests run, the recommended one first.
    const VARIANTS: &'static [Variant];
    /// True if aborted and unfinished attempts have seen one consistent state too (sto §3.6), in every variant:
    /// see [`is_opaque`](Self::is_opaque).
    const OPAQUE: bool;
    /// True if the serial order agrees with real time, in every variant: a transaction comes before those that begin after it has ended.
    /// Without it, the committed transactions still have the effect of some serial order.
    ///
    /// A protocol that claims [opacity](Self::OPAQUE) must claim this too.
    const STRICT: bool = true;
    /// True if transactions run at the same time, in every variant. If false, one keeps all others of its engine waiting from its first
    /// operation to its end, whatever they touch.
    const CONCURRENT: bool = true;
    /// The counters of the protocol's own, beside those of its capabilities. Statistics and reports show them. The
    /// protocol counts with [`Attempt::count`].
    const COUNTERS: &'static [Counter] = &[];

    /// The maximum number of workers of an engine at a time.
    const WORKERS_MAX: u32;

    /// The maximum number of workers under the variant with these options, where it admits fewer than the others.
    fn workers_max(_options: &Self::Options) -> u32 {
        Self::WORKERS_MAX
    }

    /// True if some variant executes procedures [in pieces](crate::Pieces).
    const ALLOWS_CHOPPING: bool = false;

    /// True if some variant uses [regions](crate::region), that is, hardware transactions.
    const ALLOWS_REGIONS: bool = false;

    /// The difference between one variant and another; `()` if there is only one.
    type Options: Clone + fmt::Debug + Send + Sync + 'static;

    /// Returns the options that a name stands for. `None` if this protocol has no such name.
    ///
    /// Each of [`VARIANTS`](Self::VARIANTS) has a name; there may be more (`plor+deadline=7`).
    fn options(name: &str) -> Option<Self::Options>;

    /// Returns the name that stands for these options. A protocol of one variant has only one.
    fn name(_options: &Self::Options) -> String {
        Self::VARIANTS[0].name.to_owned()
    }

    /// True if the variant with these options is [opaque](Self::OPAQUE), where variants differ in that.
    fn is_opaque(_options: &Self::Options) -> bool {
        Self::OPAQUE
    }

    /// True if it is [strict](Self::STRICT).
    fn is_strict(&self) -> bool {
        Self::STRICT
    }

    /// True if it is [concurrent](Self::CONCURRENT).
    fn is_concurrent(&self) -> bool {
        Self::CONCURRENT
    }

    /// True if this variant executes procedures in pieces.
    fn chops(&self) -> bool {
        false
    }

    /// True if this variant uses regions where there are any.
    fn uses_regions(&self) -> bool {
        false
    }

    /// Makes the shared state for a new engine.
    fn new(options: &Self::Options) -> Self;
}

/// The steps of a transaction under a protocol, whose header, mark and state are those of a host `P`: of itself, for a protocol that is compiled as
/// a type alone, or of one that can be any of several.
///
/// [`Protocol`] says what they must promise.
pub trait Steps<P: Protocol>: Send + Sync {
    /// Begins an attempt: the transaction's first if [`Attempt::number`] is 0. The transaction's declaration about
    /// itself is in [`Attempt::profile`].
    #[inline(always)]
    fn begin(&self, _attempt: &mut Attempt<P>) {}

    /// Called at the beginning of each operation on an object, before it looks into an index or at a segment. A protocol
    /// that locks all objects at once takes its lock here. An `Err` ends the attempt; the report names the object that
    /// was to be entered.
    #[inline(always)]
    fn enter(&self, _attempt: &mut Attempt<P>) -> Result<(), EnterError> {
        Ok(())
    }

    /// The first half of a look at a segment; its value is loaded next. Protocols that lock do so here. It may wait for other
    /// transactions, but no longer than [`Attempt::wait_max`] allows; so may the other functions.
    ///
    /// A conflict that may pass in a moment is marked as [passing](ConflictCause::passing), here and in the second half: the look begins
    /// again, within bounds, so that what was taken for it is not taken twice. The second half does not follow if what loads the value
    /// panics: [`abort`](Self::abort) does, or further steps, if the body has caught that.
    fn before_load(
        &self,
        attempt: &mut Attempt<P>,
        item: ItemId,
        look: Look,
    ) -> Result<Before, ConflictCause>;

    /// The second half: returns `Ok` if the value that was loaded is stable as the protocol understands it, and leaves in the item what
    /// `prepare` needs to know. Also called for an item that was read before; it fails if the segment has changed since, or if a
    /// commit is about to change it that may have installed another segment.
    fn after_load(
        &self,
        attempt: &mut Attempt<P>,
        item: ItemId,
        look: Look,
        before: Before,
    ) -> Result<(), ConflictCause>;

    /// Announces the first write of a segment.
    #[inline(always)]
    fn write(&self, _attempt: &mut Attempt<P>, _item: ItemId) -> Result<(), ConflictCause> {
        Ok(())
    }

    /// Returns the header of a segment that this attempt makes; the attempt holds its lock from the start.
    fn new_locked_header(&self, attempt: &Attempt<P>) -> P::Header;

    /// Notes that a key, or keys of a range, of `object` were found absent: a bucket or leaf was observed, or an
    /// insertion succeeded. `None`: rows were read, too, without their versions.
    ///
    /// Also called if the bucket or leaf was observed before. A leaf's range may have grown since, its version
    /// unchanged, so that it may now stand for the absence of a key that was elsewhere then.
    #[inline(always)]
    fn observed(&self, _attempt: &mut Attempt<P>, _object: Option<&ObjectMeta>) -> Result<(), ConflictCause> {
        Ok(())
    }

    /// The first half of a commit: takes the locks that are missing, checks predicates, [draws the
    /// stamp](Attempt::draw_stamp) of an attempt that writes, and validates reads and structure. After an `Ok` the commit can
    /// no longer fail, and every segment to be written is this attempt's alone; [`finish`](Self::finish) follows, or
    /// [`abort`](Self::abort) after all. After an `Err`, [`abort`](Self::abort) follows.
    fn prepare(&self, attempt: &mut Attempt<P>) -> Result<(), ConflictCause>;

    /// The second half of a commit: installs each write and releases everything.
    fn finish(&self, prepared: Prepared<'_, P>);

    /// Validates the attempt's reads before a rollback, an error or a panic of its body, or of one of its intentions,
    /// is reported. If they are inconsistent, the transaction makes another attempt instead. [`abort`](Self::abort)
    /// follows in any case.
    #[cold]
    fn validate_before_rollback(&self, attempt: &mut Attempt<P>) -> Result<(), ConflictCause> {
        self.prepare(attempt)
    }

    /// Releases everything that the attempt still holds. Pending writes have been undone before.
    fn abort(&self, attempt: &mut Attempt<P>);

    /// Called when the attempt is over: it has committed or aborted, and its cleanup, which may take from an index, has
    /// run, or a panic has cut it short.
    #[inline(always)]
    fn after_cleanup(&self, _attempt: &mut Attempt<P>) {}
}

/// A concurrency-control protocol.
///
/// An engine's workers share one value of the type, which holds the protocol's shared state (a clock, the workers'
/// states). Its state beside each value is its [`Header`](Self::Header), its state for each worker is its
/// [`Local`](Self::Local).
///
/// # One path for a transaction
///
/// First [`begin`](Steps::begin), then operations. Each [`enter`](Steps::enter)s an object and comes down to a look at one item
/// ([`before_load`](Steps::before_load), [`after_load`](Steps::after_load)), to a [`write`](Steps::write) of one, or to a
/// structure [`observed`](Steps::observed). Then come the two halves of the commit, [`prepare`](Steps::prepare) and
/// [`finish`](Steps::finish), or [`abort`](Steps::abort) if any of them returned [`ConflictCause`] or the body gave up.
/// The caller does the rest in the same order for every protocol:
///
/// - commit: `P::prepare`, [the steps between the halves](crate::CommitSteps), `P::finish` (which installs each write),
///   cleanup, then `P::after_cleanup`;
/// - abort: undo of pending writes, `P::abort`, cleanup, then `P::after_cleanup`. If the body gave up,
///   `P::validate_before_rollback` comes before it.
///
/// Abilities of only some protocols are capabilities: [`Deferral`](Self::Deferral), [`Stealing`](Self::Stealing),
/// [`RangeLocks`](Self::RangeLocks), [`LoggedReads`](Self::LoggedReads), [`PieceOrder`](Self::PieceOrder), [`Elision`](Self::Elision),
/// [`Reports`](Self::Reports).
///
/// A protocol never sees a datatype: it handles headers, marks and items. It never touches a value itself: the caller loads it between
/// the halves of a look, and believes it if the second half agrees.
///
/// # Safety
///
/// Datatypes look into values and replace them without a check of their own, because the protocol promises:
///
/// - **Stable loads.** If [`before_load`](Steps::before_load) and [`after_load`](Steps::after_load) have returned `Ok`, no other attempt
///   was installing in the item's segment while its value was loaded between them, and the load happens after the last
///   installation there. The same holds of a call of [`Attempt::predicate_holds`] whose answer counts.
///   Without [`TRACKS_READS`](Self::TRACKS_READS) it holds of every load after an `Ok` of [`enter`](Steps::enter).
/// - **Exclusive writes.** [`prepare`](Steps::prepare) returns `Ok` only if every segment to be written is the attempt's
///   alone until [`finish`](Steps::finish) has installed there: no other attempt installs in it meanwhile.
/// - **All writes.** [`finish`](Steps::finish) installs every item in [`Items::writes`](crate::Items::writes).
///   ([`Prepared`] makes sure that each is installed once.)
/// - **New segments belong to their maker.** Until the attempt that asked for the header has installed in the segment,
///   or [`abort`](Steps::abort) has been called for it, no other attempt installs in a segment whose header is
///   [`new_locked_header`](Steps::new_locked_header).
/// - **The attempt stays in place.** It moves, swaps and replaces neither the attempt nor its items. Of an item it
///   changes only the mark and the flags that [`Item::set`](crate::Item::set) allows.
///
/// Its capabilities keep the same promises.
///
/// It may rely on the core to call it in the order above, with an attempt that has begun, and with the numbers of items
/// of that attempt.
///
/// ```compile_fail,E0200
/// struct Careless;
/// impl hotrow_core::Protocol for Careless {}
/// ```
pub unsafe trait Protocol: Variants + Capabilities + Steps<Self> {
    /// True if others may load a segment's old value after [`prepare`](Steps::prepare) has returned `Ok`, until
    /// [`finish`](Steps::finish) installs the new one. A commit then executes a fence more, so that no transaction misses it that waits for a change.
    ///
    /// Where it is false, the lock that keeps others off is taken by a sequentially consistent access, and looked at by every
    /// load.
    const READS_PASS_PREPARED: bool = false;

    /// True if a read must leave an item. A protocol under which nothing changes from an attempt's first
    /// [`enter`](Steps::enter) to its end does not need them. If false, reads of segments that the attempt has not written
    /// load without a call of [`before_load`](Steps::before_load), and observations of buckets and leaves are not kept.
    const TRACKS_READS: bool = true;

    /// The state beside each value. The default is an unlocked segment that nobody has written.
    type Header: Default + Send + Sync + 'static;
    /// The trace of a read in its item, beside its flags: a version, two timestamps; `()` if the flags say enough, as
    /// for a lock.
    type Mark: Copy + Default + Send + 'static;
    /// A worker's state that lasts from one transaction to the next.
    type Local: Default + Send + 'static;

    /// Operations that run in the commit, each at its turn (drp); [`Absent`](crate::Absent) if they cannot be deferred. A deferred
    /// operation then runs at once.
    type Deferral: Deferral<Self>;
    /// Operations that waiting workers run for the lock's holder (stealdb); [`Absent`](crate::Absent) if only the owner runs them.
    type Stealing: Stealing<Self>;
    /// Locks on buckets and leaves (stealdb §5); [`Absent`](crate::Absent) if structure is only validated. Their versions are
    /// validated at commit in any case.
    type RangeLocks: RangeLocks<Self>;
    /// Reads that leave two words in a log instead of an item; [`Absent`](crate::Absent) if the protocol does more with them than to
    /// check them at commit.
    type LoggedReads: LoggedReads<Self>;
    /// The order of pieces of different transactions (ic3); [`Absent`](crate::Absent) if the protocol orders none.
    type PieceOrder: PieceOrder<Self>;
    /// Attempts that are one region, without the protocol's lock (dbx-tc §2.2); [`Absent`](crate::Absent) if the lock is always taken.
    type Elision: Elision<Self>;
    /// Names of winners, for [reports](crate::Engine::report_both_sides) of lost conflicts; [`Absent`](crate::Absent) if the protocol cannot tell, or loses none.
    type Reports: Reports<Self>;
}

/// The witness that the first half of a commit has succeeded: [`Steps::finish`] installs with it.
pub struct Prepared<'a, P: Protocol> {
    attempt: &'a mut Attempt<P>,
}

impl<'a, P: Protocol> Prepared<'a, P> {
    // INVARIANT 1: Only `Prepared` installs; the core makes it right after `prepare` has returned `Ok`.
    #[inline(always)]
    pub(crate) fn new(attempt: &'a mut Attempt<P>) -> Self {
        Self { attempt }
    }

    /// The attempt.
    #[inline(always)]
    pub fn attempt(&mut self) -> &mut Attempt<P> {
        self.attempt
    }

    /// Installs all pending writes, in the order of first write, and calls `before` and `after` around each.
    #[inline(always)]
    pub fn install_all(
        self,
        before: impl FnMut(&Item<P>),
        after: impl FnMut(&Item<P>),
    ) -> &'a mut Attempt<P> {
        // SAFETY: prepared, so that the writes are the attempt's alone; `self` is consumed, so none was installed.
        unsafe { self.attempt.install_all(before, after) };
        self.attempt
    }

    /// Installs all pending writes, and calls `after` after each: first those for which `is_first` is true, the last of them first, then
    /// the others in the order of first write.
    #[inline(always)]
    pub fn install_first(
        self,
        is_first: impl Fn(&Item<P>) -> bool,
        mut after: impl FnMut(&Item<P>),
    ) -> &'a mut Attempt<P> {
        if !self.attempt.items.any_write(|item| is_first(item)) {
            return self.install_all(|_| (), after);
        }
        let attempt = self.attempt;
        let count = attempt.items.writes().len();
        for (first, at) in (0..count).rev().map(|at| (true, at)).chain((0..count).map(|at| (false, at))) {
            let id = attempt.items.writes()[at];
            let item = attempt.items.get_mut(id);
            if !item.is(Flags::INSTALLED) && (!first || is_first(item)) {
                item.mark_as(Flags::INSTALLED);
                // SAFETY: prepared, so that the write is the attempt's alone; none is installed twice, by its mark.
                unsafe { attempt.install(id) };
                after(attempt.items.get(id));
            }
        }
        attempt
    }

    /// Installs the pending writes one by one, in an order that the protocol chooses.
    #[inline(always)]
    pub fn one_by_one(self) -> OneByOne<'a, P> {
        OneByOne { attempt: self.attempt }
    }
}

/// Installs pending writes one by one, each once.
pub struct OneByOne<'a, P: Protocol> {
    attempt: &'a mut Attempt<P>,
}

impl<'a, P: Protocol> OneByOne<'a, P> {
    /// The attempt.
    #[inline(always)]
    pub fn attempt(&mut self) -> &mut Attempt<P> {
        self.attempt
    }

    /// Returns the attempt, when all writes are installed.
    #[inline(always)]
    pub fn into_attempt(self) -> &'a mut Attempt<P> {
        self.attempt
    }

    /// Installs the pending write of an item.
    ///
    /// # Panics
    ///
    /// If the item has no pending write, or it was installed before.
    #[inline(always)]
    pub fn install(&mut self, id: ItemId) {
        let item = self.attempt.items.get_mut(id);
        // INVARIANT 2: Each pending write is installed once.
        assert!(item.is(Flags::WRITE) && !item.is(Flags::INSTALLED), "each write is installed once");
        item.mark_as(Flags::INSTALLED);
        // SAFETY: prepared, so that the write is the attempt's alone; it has not been installed before, says its mark.
        unsafe { self.attempt.install(id) };
    }
}
