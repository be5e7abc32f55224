//! The protocol: what happens when transactions meet on a segment.

use crate::abort::Reason;
use crate::attempt::Attempt;
use crate::commit::Prepared;
use crate::deferred::Deferral;
use crate::graph::Stealing;
use crate::item::ItemId;
use crate::object::ObjectMeta;
use crate::range::RangeLocks;
use std::fmt;

/// What an attempt lost, as a protocol reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConflictCause {
    /// Why.
    pub reason: Reason,
    /// Over what.
    pub target: ConflictTarget,
}

/// What an attempt lost over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictTarget {
    /// An item's segment.
    Item(ItemId),
    /// The observation of a bucket or leaf with this number.
    Structure(u32),
}

impl ConflictCause {
    /// Lost over an item.
    #[inline]
    pub fn item(reason: Reason, item: ItemId) -> Self {
        Self { reason, target: ConflictTarget::Item(item) }
    }
}

/// What is known of a variant of a protocol without choosing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// The name in the registry.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// Paper and section.
    pub source: &'static str,
}

/// The variants of a protocol: their names, their options, and what each of them promises.
pub trait Variants: Sized + 'static {
    /// The variants that lists show and tests run, the recommended one first.
    const VARIANTS: &'static [Variant];
    /// True if aborted and unfinished attempts have seen one consistent state too (sto §3.6), in every variant:
    /// see [`is_opaque`](Self::is_opaque).
    const OPAQUE: bool;

    /// The difference between one variant and another; `()` if there is only one.
    type Options: Clone + fmt::Debug + Send + Sync + 'static;

    /// The options that a name stands for. `None` if it is no name of this protocol's.
    ///
    /// Each of [`VARIANTS`](Self::VARIANTS) has a name; there may be more (`plor+deadline=7`).
    fn options(name: &str) -> Option<Self::Options>;

    /// The name that stands for these options. A protocol of one variant has but one.
    fn name(_options: &Self::Options) -> String {
        Self::VARIANTS[0].name.to_owned()
    }

    /// True if the variant with these options is [opaque](Self::OPAQUE), where variants differ in that.
    fn is_opaque(_options: &Self::Options) -> bool {
        Self::OPAQUE
    }

    /// The shared state for a new engine.
    fn new(options: &Self::Options) -> Self;
}

/// A capability that a protocol does not have. There is no value of it, so the compiler removes the code that would use one.
#[derive(Debug, Clone, Copy)]
pub enum Absent {}

/// A concurrency-control protocol.
///
/// One value of the type is shared by an engine's workers and holds what the protocol shares (a clock, the
/// workers' contexts). What it keeps beside each value is its [`Header`](Self::Header); what it keeps for
/// each worker its [`Local`](Self::Local).
///
/// # One path for a transaction
///
/// [`begin`](Self::begin), then operations, each of which comes down to [`read`](Self::read),
/// [`read_for_update`](Self::read_for_update) or [`write`](Self::write) of one item, or to a structure
/// [`observed`](Self::observed); then the two halves of the commit, [`prepare`](Self::prepare) and
/// [`finish`](Self::finish), or, if any of them returned [`ConflictCause`] or the body gave up, [`abort`](Self::abort). The caller
/// does the rest in the same order for every protocol:
///
/// - commit: `P::prepare`, [what stands between the halves](crate::CommitSteps), `P::finish` (which installs each write),
///   cleanup, then `P::after_cleanup`;
/// - abort: undo of pending writes, `P::abort`, cleanup, then `P::after_cleanup`. If the body gave up,
///   `P::validate_before_rollback` comes before it.
///
/// What only some protocols can do is a capability: [`Deferral`](Self::Deferral), [`Stealing`](Self::Stealing),
/// [`RangeLocks`](Self::RangeLocks).
///
/// A protocol never sees a datatype: it moves between headers, marks and items. It must never touch a value
/// itself, only run the `load` that it is given, as often as it takes to get a stable result.
///
/// # Safety
///
/// Datatypes look into values and replace them without a check of their own, because the protocol promises:
///
/// - **Stable loads.** What [`read`](Self::read), [`read_for_update`](Self::read_for_update) and [`peek`](Self::peek) return
///   comes from a call of `load` during which no other attempt was installing in the item's segment, and it happens after
///   the last installation there. The same holds of a call of [`Attempt::predicate_holds`] whose answer counts.
/// - **One at a time.** [`prepare`](Self::prepare) returns `Ok` only if every segment to be written is the attempt's alone
///   until [`finish`](Self::finish) has installed there: no other attempt installs in it meanwhile.
/// - **All.** [`finish`](Self::finish) installs every item in [`Items::writes`](crate::Items::writes). (That each is
///   installed once is [`Prepared`]'s matter.)
/// - **New segments are their maker's.** Until the attempt that asked for the header has installed in the segment, or
///   [`abort`](Self::abort) has been called for it, no other attempt installs in a segment whose header is
///   [`new_locked_header`](Self::new_locked_header).
/// - **The attempt stays as it is.** It moves, swaps and replaces neither the attempt nor its items. What it changes of an
///   item is the mark and the flags that [`Item::set`] lets it.
///
/// Its capabilities keep the same promises.
///
/// It may rely on being called in the order above, by the core, with an attempt that has begun, and with the numbers of
/// items of that attempt.
///
/// ```compile_fail,E0200
/// struct Careless;
/// impl hotrow_core::Protocol for Careless {}
/// ```
pub unsafe trait Protocol: Variants + Send + Sync {
    /// Whether the serial order agrees with real time: a transaction comes before those that begin after it has
    /// ended. Without it the committed transactions have the effect of some serial order all the same.
    ///
    /// Whoever claims [opacity](Variants::OPAQUE) claims this too.
    const STRICT: bool = true;
    /// The most workers an engine may have at a time.
    const WORKERS_MAX: u32;
    /// Whether a read must leave an item. A protocol without concurrency control has no use for them.
    const TRACKS_READS: bool = true;

    /// True if operations can be deferred until the commit. Follows from [`Deferral`](Self::Deferral): not to be set.
    const DEFERS: bool = <Self::Deferral as Deferral<Self>>::PRESENT;
    /// True if waiting workers can run operations of the transaction that they wait for. Follows from
    /// [`Stealing`](Self::Stealing): not to be set.
    const ALLOWS_STEALING: bool = <Self::Stealing as Stealing<Self>>::PRESENT;
    /// True if buckets and leaves are locked before they are observed or changed. Follows from
    /// [`RangeLocks`](Self::RangeLocks): not to be set.
    const LOCKS_RANGES: bool = <Self::RangeLocks as RangeLocks<Self>>::PRESENT;

    /// What is kept beside each value. The default is an unlocked segment that nobody has written.
    type Header: Default + Send + Sync + 'static;
    /// What a read leaves in its item beside its flags: a version, two timestamps; `()` if the flags say enough, as
    /// for a lock.
    type Mark: Copy + Default + Send + 'static;
    /// What a worker keeps from one transaction to the next.
    type Local: Default + Send + 'static;

    /// Operations that run after the commit point (drp); [`Absent`] if they cannot be deferred. A deferred operation then runs
    /// at once.
    type Deferral: Deferral<Self>;
    /// Operations that waiting workers run for the lock's holder (stealdb); [`Absent`] if only the owner runs them.
    type Stealing: Stealing<Self>;
    /// Locks on buckets and leaves (stealdb §5); [`Absent`] if structure is only validated. Their versions are validated at
    /// commit in any case.
    type RangeLocks: RangeLocks<Self>;

    /// Begins an attempt: the transaction's first if [`Attempt::number`] is 0. What the transaction has said of
    /// itself is in [`Attempt::profile`].
    fn begin(&self, attempt: &mut Attempt<Self>);

    /// Reads a segment: runs `load` until its result is stable as the protocol understands it, and leaves
    /// in the item what `commit` needs to know. Also called for an item that was read before. It may wait for other
    /// transactions, but no longer than [`Attempt::wait_max`] says; so may the other operations.
    fn read<V>(
        &self,
        attempt: &mut Attempt<Self>,
        item: ItemId,
        load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause>;

    /// Reads a segment that will be written next. Protocols that lock at reads lock for writing at once.
    #[inline(always)]
    fn read_for_update<V>(
        &self,
        attempt: &mut Attempt<Self>,
        item: ItemId,
        load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        let value = self.read(attempt, item, load)?;
        self.write(attempt, item)?;
        Ok(value)
    }

    /// Announces the first write of a segment.
    fn write(&self, attempt: &mut Attempt<Self>, item: ItemId) -> Result<(), ConflictCause>;

    /// Looks at a segment without depending on its value: as `read`, but leaves no mark, and no lock. For a predicate
    /// that is checked at commit (sto §3.5), and for reads at [`Isolation::ReadCommitted`](crate::Isolation).
    fn peek<V>(
        &self,
        attempt: &mut Attempt<Self>,
        item: ItemId,
        load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause>;

    /// The header of a segment that this attempt makes: locked by it from the start.
    fn new_locked_header(&self, attempt: &Attempt<Self>) -> Self::Header;

    /// A key, or keys of a range, of `object` were found absent: a bucket or leaf was observed, or an insertion succeeded.
    /// `None`: rows were looked at, too, without their versions.
    ///
    /// Also called if the bucket or leaf was observed before: a leaf's range may have grown since, its version
    /// unchanged, and so it may stand for the absence of a key that was elsewhere then.
    #[inline(always)]
    fn observed(
        &self,
        _attempt: &mut Attempt<Self>,
        _object: Option<&ObjectMeta>,
    ) -> Result<(), ConflictCause> {
        Ok(())
    }

    /// The first half of a commit: takes the locks that are missing, [draws the stamp](Attempt::draw_stamp) of an attempt
    /// that writes, and validates reads, predicates and structure. After an `Ok` the commit cannot fail any more, and every
    /// segment to be written is this attempt's alone; [`finish`](Self::finish) follows, or [`abort`](Self::abort) after all.
    /// After an `Err`, [`abort`](Self::abort) follows.
    fn prepare(&self, attempt: &mut Attempt<Self>) -> Result<(), ConflictCause>;

    /// The second half of a commit: installs each write and releases everything.
    fn finish(&self, prepared: Prepared<'_, Self>);

    /// Validates the attempt's reads before a rollback, an error or a panic of its body, or of one of its intentions, is
    /// reported: an attempt that has seen what never was together makes another attempt instead. [`abort`](Self::abort)
    /// follows in any case.
    #[cold]
    fn validate_before_rollback(&self, attempt: &mut Attempt<Self>) -> Result<(), ConflictCause> {
        self.prepare(attempt)
    }

    /// Releases everything that the attempt still holds. Pending writes have been undone before.
    fn abort(&self, attempt: &mut Attempt<Self>);

    /// The attempt is over: it has committed or aborted, and its cleanup, which may take from an index, has run, or was
    /// cut short by a panic.
    #[inline(always)]
    fn after_cleanup(&self, _attempt: &mut Attempt<Self>) {}
}
