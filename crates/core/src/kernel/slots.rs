//! The slots of features: the state that only some transactions need, and the moments of an attempt's life of which it hears.
//!
//! The kernel knows no feature. It owns their state, calls each [moment](Slots), and asks one word ([`Moments`]) at those that come with
//! every transaction if anybody hears of it: what is not used costs one test.

use crate::kernel::attempt::{Attempt, ReadPath};
use crate::kernel::item::ItemId;
use crate::kernel::object_access::{ObjectAccess, Stop};
use crate::kernel::protocol::Protocol;
use crate::kernel::statistics::Counters;
use crate::kernel::statistics::Named;
use crate::memory::users_code::Panics;
use hotrow_sync::Mutex;

/// A set of moments of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Moments(u16);

impl Moments {
    pub(crate) const NONE: Self = Self(0);
    /// A read of a segment, an observation of a bucket or leaf, the answer of a predicate.
    pub(crate) const READ: Self = Self(1);
    /// A read that somebody hears of, or on which the transaction does not depend.
    pub(crate) const READ_APART: Self = Self(1 << 1);
    /// The end of the body.
    pub(crate) const BODY_ENDED: Self = Self(1 << 2);
    /// Before the first half of the commit.
    pub(crate) const PREPARING: Self = Self(1 << 3);
    /// Between the halves.
    pub(crate) const BETWEEN: Self = Self(1 << 4);
    /// Before and after the installation of each write.
    pub(crate) const INSTALLING: Self = Self(1 << 5);
    /// The end, after the protocol has released everything.
    pub(crate) const ENDED: Self = Self(1 << 6);
    /// The attempt forgets all that it has touched.
    pub(crate) const FORGETTING: Self = Self(1 << 7);
    /// The attempt has let its epoch go.
    pub(crate) const CLOSED: Self = Self(1 << 8);
    /// All of them, for an attempt in which the protocol takes no part.
    pub(crate) const ALONE: Self = Self(1 << 9);
    /// Objects check their pending writes at the end of the body ([`Object::check`](crate::Object::check)).
    pub(crate) const CHECK: Self = Self(1 << 10);
    /// Objects settle changes to be made at the commit, between the halves ([`Object::settle`](crate::Object::settle)).
    pub(crate) const SETTLE: Self = Self(1 << 11);
    /// Objects clean up at the end ([`Object::cleanup`](crate::Object::cleanup)).
    pub(crate) const CLEANUP: Self = Self(1 << 12);
    /// The body has ended between the first and the last change of an operation whose changes belong together: if that has failed, and
    /// nobody has undone it, the attempt cannot commit.
    pub(crate) const HALF_CHANGED: Self = Self(1 << 13);

    /// Those of which objects hear, because of the items that the attempt has.
    pub(crate) const OF_OBJECTS: Self =
        Self(Self::CHECK.0 | Self::SETTLE.0 | Self::CLEANUP.0 | Self::HALF_CHANGED.0);

    /// True if some of these are in the set.
    #[inline(always)]
    pub(crate) fn have(self, moments: Self) -> bool {
        self.0 & moments.0 != 0
    }

    /// Those that are in both sets.
    pub(crate) fn of(self, moments: Self) -> Self {
        Self(self.0 & moments.0)
    }

    #[inline(always)]
    pub(crate) const fn and(self, moments: Self) -> Self {
        Self(self.0 | moments.0)
    }

    /// These, if the condition holds.
    #[inline(always)]
    pub(crate) fn when(self, holds: bool) -> Self {
        if holds { self } else { Self::NONE }
    }

    #[inline(always)]
    pub(crate) fn add(&mut self, moments: Self) {
        self.0 |= moments.0;
    }

    #[inline(always)]
    pub(crate) fn remove(&mut self, moments: Self) {
        self.0 &= !moments.0;
    }

    /// Adds them or removes them.
    #[inline(always)]
    pub(crate) fn set(&mut self, moments: Self, are_in: bool) {
        self.remove(moments);
        self.add(moments.when(are_in));
    }
}

/// A protocol whose attempts have slots for features: every one. The features implement it once, for all.
///
/// A moment that names a set in [`Moments`] is called only if the attempt hears of it.
pub(crate) trait Slots: Protocol {
    /// The state of all features in one attempt.
    type State: Default;
    /// What they share in one engine.
    type Shared;
    /// Their state for the workers of one number, one after the other.
    type Place;
    /// A worker's operations that others may run.
    type Board: Default;

    /// Makes the state for the workers of a new number.
    fn place(shared: &Self::Shared) -> Self::Place;
    /// Makes the state for the attempts of a new worker.
    fn state(shared: &Self::Shared) -> Self::State;

    /// The counters of an engine's protocol, by place.
    fn named_counters(protocol: &Self) -> Named;

    /// True if a transaction must get to its end, whatever others do, because a part of it has committed.
    fn must_end(attempt: &Attempt<Self>) -> bool;

    /// A transaction begins: its first attempt is opened next.
    fn admitted(attempt: &mut Attempt<Self>);
    /// The attempt is pinned, and nothing else has happened. Says of which moments it hears.
    fn opened(attempt: &mut Attempt<Self>);
    /// The protocol has begun the attempt, and the body is next. Of attempts in which the protocol takes part.
    fn began(protocol: &Self, attempt: &mut Attempt<Self>);
    /// The path of logged reads that somebody hears of: [`Moments::READ`].
    fn path_of_noted_reads(attempt: &Attempt<Self>) -> ReadPath;
    /// A predicate was answered, by a value that may change now: [`Moments::READ`].
    fn judged(attempt: &Attempt<Self>, id: ItemId);
    /// The body has ended. What it has left to be done is done: [`Moments::BODY_ENDED`].
    fn body_ended(access: &mut ObjectAccess<'_, Self>);
    /// The protocol is going to prepare: [`Moments::PREPARING`]. False if the attempt was stopped.
    fn preparing(access: &mut ObjectAccess<'_, Self>) -> bool;
    /// The protocol has found that the attempt cannot commit, and has released nothing yet.
    fn refused(attempt: &mut Attempt<Self>);
    /// No other transaction can make the commit fail any more: [`Moments::BETWEEN`].
    ///
    /// # Errors
    ///
    /// The cause for which it fails all the same.
    fn between(attempt: &mut Attempt<Self>) -> Result<(), Box<Stop>>;
    /// The protocol is going to install, and nothing can fail any more.
    fn finishing(access: &mut ObjectAccess<'_, Self>);
    /// An item's write is installed next: [`Moments::INSTALLING`].
    ///
    /// # Safety
    ///
    /// The item has a pending write, which is installed next, and its segment is locked.
    unsafe fn installing(attempt: &mut Attempt<Self>, id: ItemId);
    /// An item's write was installed: [`Moments::INSTALLING`].
    fn installed(attempt: &mut Attempt<Self>, id: ItemId);
    /// All is installed and released.
    fn finished(access: &mut ObjectAccess<'_, Self>);
    /// The body gives up, and its reads are to be validated. False if the attempt has lost before, and is stopped for that.
    fn giving_up(access: &mut ObjectAccess<'_, Self>) -> bool;
    /// The attempt is going to be rolled back.
    fn rolling_back(access: &mut ObjectAccess<'_, Self>);
    /// What has had effects at once is taken back, before pending writes are: [`Moments::ENDED`].
    fn undoing(attempt: &mut Attempt<Self>);
    /// The attempt was rolled back, and the protocol has released everything.
    fn rolled_back(access: &mut ObjectAccess<'_, Self>);
    /// The attempt has ended, and nothing is locked any more: [`Moments::ENDED`].
    fn ended(attempt: &mut Attempt<Self>, committed: bool, panics: &mut Panics);
    /// The attempt forgets all that it has touched: [`Moments::FORGETTING`].
    fn forgetting(attempt: &mut Attempt<Self>, panics: &mut Panics);
    /// Closes the attempt; there are things to be done before, and others after.
    fn closing(access: &mut ObjectAccess<'_, Self>, committed: bool, close: impl FnOnce(&mut Attempt<Self>));
    /// The attempt is closed: [`Moments::CLOSED`].
    fn closed(attempt: &mut Attempt<Self>);
    /// The attempt was leaked: nothing of it may be dropped on this thread.
    fn abandoned(attempt: &mut Attempt<Self>);
}

/// The part of a worker that outlives it: its number, its counts, its protocol state.
pub(crate) struct WorkerSlot<P: Protocol> {
    pub(crate) number: u32,
    pub(crate) counters: Counters,
    /// The state of features for all workers with this number.
    pub(crate) features: <P as Slots>::Place,
    /// The protocol's state while no worker has the slot. A new worker continues from it, so that values unique per
    /// worker number (version ids) stay unique.
    pub(crate) local: Mutex<Option<P::Local>>,
}
