//! The protocol: what happens when transactions meet on a segment.

use crate::abort::Reason;
use crate::attempt::{Attempt, WorkerId};
use crate::commit::Prepared;
use crate::graph::Board;
use crate::item::{Item, ItemId};
use crate::object::Label;
use crate::range::{RangeId, RangeUse};
use std::fmt;

/// What an attempt lost, as a protocol reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Why.
    pub reason: Reason,
    /// Over what.
    pub over: Over,
}

/// What an attempt lost over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// An item's segment.
    Item(ItemId),
    /// The observation of a bucket or leaf with this number.
    Structure(u32),
}

impl Lost {
    /// Lost over an item.
    #[inline]
    pub fn item(reason: Reason, item: ItemId) -> Self {
        Self { reason, over: Over::Item(item) }
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
/// [`finish`](Self::finish), or, if any of them returned [`Lost`] or the body gave up, [`abort`](Self::abort). The caller
/// does the rest in the same order for every protocol:
///
/// - commit: `P::prepare`, [what stands between the halves](crate::CommitSteps), `P::finish` (which installs each write),
///   cleanup, then `P::over`;
/// - abort: undo of pending writes, `P::abort`, cleanup, then `P::over`. If the body gave up,
///   `P::validate_before_rollback` comes before it.
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
///   [`born_locked`](Self::born_locked).
/// - **The attempt stays as it is.** It moves, swaps and replaces neither the attempt nor its items. What it changes of an
///   item is the mark and the flags that [`Item::set`] lets it.
///
/// It may rely on being called in the order above, by the core, with an attempt that has begun, and with the numbers of
/// items of that attempt.
///
/// ```compile_fail,E0200
/// struct Careless;
/// impl hotrow_core::Protocol for Careless {}
/// ```
pub unsafe trait Protocol: Sized + Send + Sync + 'static {
    /// The variants that lists show and tests run, the recommended one first.
    const VARIANTS: &'static [Variant];
    /// Whether aborted and unfinished attempts have seen one consistent state too (sto §3.6), in every variant:
    /// see [`is_opaque`](Self::is_opaque).
    const OPAQUE: bool;
    /// Whether the serial order agrees with real time: a transaction comes before those that begin after it has
    /// ended. Without it the committed transactions have the effect of some serial order all the same.
    ///
    /// Whoever claims [`OPAQUE`](Self::OPAQUE) claims this too.
    const STRICT: bool = true;
    /// The most workers an engine may have at a time.
    const WORKERS_MAX: u32;
    /// Whether a read must leave an item. A protocol without concurrency control has no use for them.
    const TRACKS_READS: bool = true;

    /// Whether operations can be deferred until the commit: see [`deferred`](crate::deferred). Where not, a deferred
    /// operation runs at once.
    const DEFERS: bool = false;

    /// Whether others may run a transaction's operations while they wait for it: see [`graph`](crate::graph).
    const SHARES: bool = false;

    /// Whether buckets and leaves are locked before they are observed or changed: see [`RangeUse`]. Their versions are
    /// checked at commit all the same.
    const LOCKS_RANGES: bool = false;

    /// What tells one variant from another; `()` if there is but one.
    type Options: Clone + fmt::Debug + Send + Sync + 'static;
    /// What is kept beside each value. The default is an unlocked segment that nobody has written.
    type Header: Default + Send + Sync + 'static;
    /// What a read leaves in its item beside its flags: a version, two timestamps; `()` if the flags say enough, as
    /// for a lock.
    type Mark: Copy + Default + Send + 'static;
    /// What a worker keeps from one transaction to the next.
    type Local: Default + Send + 'static;

    /// The options that a name stands for. `None` if it is no name of this protocol's.
    ///
    /// Each of [`VARIANTS`](Self::VARIANTS) has a name; there may be more (`plor+deadline=7`).
    fn options(name: &str) -> Option<Self::Options>;

    /// The name that stands for these options. A protocol of one variant has but one.
    fn name(_options: &Self::Options) -> String {
        Self::VARIANTS[0].name.to_owned()
    }

    /// Whether the variant with these options is [opaque](Self::OPAQUE), where that is a question of the variant.
    fn is_opaque(_options: &Self::Options) -> bool {
        Self::OPAQUE
    }

    /// The shared state for a new engine.
    fn new(options: &Self::Options) -> Self;

    /// Begins an attempt: the transaction's first if [`Attempt::number`] is 0. What the transaction has said of
    /// itself is in [`Attempt::profile`].
    fn begin(&self, attempt: &mut Attempt<Self>);

    /// Reads a segment: runs `load` until its result is stable as the protocol understands it, and leaves
    /// in the item what `commit` needs to know. Also called for an item that was read before. It may wait for other
    /// transactions, but no longer than [`Attempt::wait_max`] says; so may the other operations.
    fn read<V>(&self, attempt: &mut Attempt<Self>, item: ItemId, load: impl FnMut() -> V) -> Result<V, Lost>;

    /// Reads a segment that will be written next. Protocols that lock at reads lock for writing at once.
    #[inline(always)]
    fn read_for_update<V>(
        &self,
        attempt: &mut Attempt<Self>,
        item: ItemId,
        load: impl FnMut() -> V,
    ) -> Result<V, Lost> {
        let value = self.read(attempt, item, load)?;
        self.write(attempt, item)?;
        Ok(value)
    }

    /// Announces the first write of a segment.
    fn write(&self, attempt: &mut Attempt<Self>, item: ItemId) -> Result<(), Lost>;

    /// Looks at a segment without depending on its value: as `read`, but leaves no mark, and no lock. For a predicate
    /// that is checked at commit (sto §3.5), and for reads at [`Isolation::ReadCommitted`](crate::Isolation).
    fn peek<V>(&self, attempt: &mut Attempt<Self>, item: ItemId, load: impl FnMut() -> V) -> Result<V, Lost>;

    /// The header of a segment that this attempt makes: locked by it from the start.
    fn born_locked(&self, attempt: &Attempt<Self>) -> Self::Header;

    /// A key, or keys of a range, of `object` were found absent: a bucket or leaf was observed, or an insertion succeeded.
    /// `None`: rows were looked at, too, without their versions.
    ///
    /// Also called if the bucket or leaf was observed before: a leaf's range may have grown since, its version
    /// unchanged, and so it may stand for the absence of a key that was elsewhere then.
    #[inline(always)]
    fn observed(&self, _attempt: &mut Attempt<Self>, _object: Option<&Label>) -> Result<(), Lost> {
        Ok(())
    }

    /// Locks a bucket or leaf until the attempt [is over](Self::over), where
    /// [ranges are locked](Self::LOCKS_RANGES). Also called for one that the attempt has locked, in this way or the
    /// other.
    fn lock_range(
        &self,
        _attempt: &mut Attempt<Self>,
        _range: RangeId,
        _how: RangeUse,
    ) -> Result<(), Reason> {
        Ok(())
    }

    /// As [`lock_range`](Self::lock_range), if that is possible without waiting. False if it is not.
    fn try_lock_range(&self, _attempt: &Attempt<Self>, _range: RangeId, _how: RangeUse) -> bool {
        true
    }

    /// Whether the attempt has locked a bucket or leaf in this way.
    fn holds_range(&self, _attempt: &Attempt<Self>, _range: RangeId, _how: RangeUse) -> bool {
        true
    }

    /// The first operation on a segment is deferred. `rank` is its [`Object::rank`](crate::Object::rank).
    #[inline(always)]
    fn deferred(&self, _attempt: &mut Attempt<Self>, _item: ItemId, _rank: u64) {}

    /// Takes a place in line on every segment with [deferred](crate::Flags::DEFERRED) operations or a pending write
    /// whose [rank](crate::Object::rank) is below a border, if there is one. Called before [`prepare`](Self::prepare), if
    /// anything was deferred: with growing borders as long as there are operations whose segments are not known yet,
    /// and at last without one. After an `Err`, [`abort`](Self::abort) follows.
    fn line_up(&self, _attempt: &mut Attempt<Self>, _below: Option<u64>) -> Result<(), Lost> {
        Ok(())
    }

    /// Whether it is the attempt's turn on a segment: then it may run its intentions there. False if it has not lined
    /// up for it yet; otherwise waits for the turn if told so.
    fn turn(&self, _attempt: &mut Attempt<Self>, _item: ItemId, _wait: bool) -> Result<bool, Lost> {
        Ok(true)
    }

    /// Says that all intentions on a segment have run.
    fn ran(&self, _attempt: &mut Attempt<Self>, _item: ItemId) {}

    /// Whether this variant [shares](Self::SHARES).
    fn shares(&self) -> bool {
        Self::SHARES
    }

    /// The board on which a worker's operations are found, if the protocol [shares](Self::SHARES).
    fn board(&self, _worker: WorkerId) -> Option<&Board<Self>> {
        None
    }

    /// Whether somebody waits for the attempt, who could run its operations.
    fn is_awaited(&self, _attempt: &Attempt<Self>) -> bool {
        false
    }

    /// Says that operations of the attempt are on its board: so many of them can be stolen.
    fn published(&self, _attempt: &mut Attempt<Self>, _batch: u64, _stealable: u32) {}

    /// As [`published`](Self::published), to the attempt's own worker only, which may run them as a thief would.
    fn published_ahead(&self, _attempt: &mut Attempt<Self>, _batch: u64, _stealable: u32) {}

    /// Whether the attempt runs operations while it waits for its first lock.
    fn runs_ahead(&self, _attempt: &Attempt<Self>) -> bool {
        false
    }

    /// What is kept for a worker, for who runs an operation of its current attempt. Locks that it takes are the worker's;
    /// it must not wait for one ([`Attempt::may_put_off`]).
    fn lend(&self, _worker: WorkerId) -> Self::Local {
        Self::Local::default()
    }

    /// The attempt makes an item its own that somebody else has made for it, who may hold the lock that it holds. Flags and
    /// mark will be joined to those of its own item.
    fn adopt(&self, _attempt: &mut Attempt<Self>, _mine: ItemId, _lent: &Item<Self>) {}

    /// The first half of a commit: takes the locks that are missing, [draws the stamp](Attempt::draw_stamp) of an attempt
    /// that writes, and validates reads, predicates and structure. After an `Ok` the commit cannot fail any more, and every
    /// segment to be written is this attempt's alone; [`finish`](Self::finish) follows, or [`abort`](Self::abort) after all.
    /// After an `Err`, [`abort`](Self::abort) follows.
    fn prepare(&self, attempt: &mut Attempt<Self>) -> Result<(), Lost>;

    /// The second half of a commit: installs each write and releases everything.
    fn finish(&self, prepared: Prepared<'_, Self>);

    /// Validates the attempt's reads before a rollback, an error or a panic of its body, or of one of its intentions, is
    /// reported: an attempt that has seen what never was together makes another attempt instead. [`abort`](Self::abort)
    /// follows in any case.
    #[cold]
    fn validate_before_rollback(&self, attempt: &mut Attempt<Self>) -> Result<(), Lost> {
        self.prepare(attempt)
    }

    /// Releases everything that the attempt still holds. Pending writes have been undone before.
    fn abort(&self, attempt: &mut Attempt<Self>);

    /// The attempt is over: it has committed or aborted, and its cleanup, which may take from an index, has run, or was
    /// cut short by a panic.
    #[inline(always)]
    fn over(&self, _attempt: &mut Attempt<Self>) {}
}
