//! A counter whose increments commute and whose tests are predicates (sto §3.5, §4.2 `TCounter`).
//!
//! # How conflicts are avoided
//!
//! An increment does not look at the counter: it adds to a delta kept in the item, which is applied at
//! commit under the segment's lock. Two transactions that only increment serialize on that lock but never
//! abort each other.
//!
//! A test (`is_at_least(1)`) does not depend on the value but on which side of a border it lies. The item
//! keeps the range `[low, high]` of values *of the counter itself*, the attempt's own delta taken off, for
//! which all tests so far would have come out as they did; the commit checks that the value is in the
//! range. A test that came out false, ten increments, and the same test true thus keep `[-9, 0]`, which is
//! necessary and sufficient (the example of sto §3.5).
//!
//! An exact [`TCounter::get`] depends on the value itself, as any read does.
//!
//! # Deferred operations
//!
//! They do when the counter's turn has come what the others do at once. All of the item's state is in what is kept of
//! the counter, so an operation that is not deferred first has those run that are
//! ([`Transaction::settle_before`]), and then looks.

use hotrow_core::deferred::Operand;
use hotrow_core::{
    Abort, Access, Deferred, Engine, EpochBox, Input, Item, ItemId, Label, Object, Pin, Protocol, Reason,
    Transaction,
};
use hotrow_sync::atomic::{AtomicU64, Ordering};
use std::ptr::NonNull;

/// A transactional 64-bit counter. It wraps around at the ends of its range.
pub struct TCounter<P: Protocol> {
    shared: EpochBox<Shared<P>>,
}

#[repr(C)]
struct Shared<P: Protocol> {
    header: P::Header,
    /// The value's bits.
    value: AtomicU64,
    label: Label,
}

/// What an attempt keeps of a counter.
#[derive(Debug, Clone, Copy)]
struct Kept {
    /// The value set, if any; `delta` comes on top.
    set: Option<i64>,
    /// The sum of the increments.
    delta: i64,
    /// The smallest value of the counter for which all tests come out as they did.
    low: i64,
    /// The largest.
    high: i64,
}

impl Kept {
    const NOTHING: Kept = Kept { set: None, delta: 0, low: i64::MIN, high: i64::MAX };

    fn replace(&mut self, value: i64) {
        self.set = Some(value);
        self.delta = 0;
    }

    fn applied_to(&self, base: i64) -> i64 {
        self.set.unwrap_or(base).wrapping_add(self.delta)
    }
}

impl<P: Protocol> TCounter<P> {
    /// A counter that starts at `value`.
    pub fn new(engine: &Engine<P>, value: i64) -> Self {
        Self::named(engine, "counter", value)
    }

    /// A counter with a name, for errors and conflict reports.
    pub fn named(engine: &Engine<P>, name: impl Into<String>, value: i64) -> Self {
        let label = Label::new(engine.id(), name);
        let shared =
            Shared { header: P::Header::default(), value: AtomicU64::new(value.cast_unsigned()), label };
        Self { shared: EpochBox::new(shared) }
    }

    /// Adds `amount` (which may be negative) without looking at the counter: never a reason to abort for
    /// another transaction that does the same.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    #[inline]
    pub fn add(&self, tx: &mut Transaction<'_, P>, amount: i64) -> Result<(), Abort> {
        tx.enter(&self.shared.label)?;
        // SAFETY: `enter` was called.
        let kept = unsafe { self.shared.write(tx) }?;
        kept.delta = kept.delta.wrapping_add(amount);
        Ok(())
    }

    /// Sets the counter without looking at it.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn set(&self, tx: &mut Transaction<'_, P>, value: i64) -> Result<(), Abort> {
        tx.enter(&self.shared.label)?;
        // SAFETY: `enter` was called.
        unsafe { self.shared.write(tx) }?.replace(value);
        Ok(())
    }

    /// The exact value. Any concurrent change of the counter is then a conflict: prefer a test.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn get(&self, tx: &mut Transaction<'_, P>) -> Result<i64, Abort> {
        tx.enter(&self.shared.label)?;
        // SAFETY: `enter` was called.
        unsafe { self.shared.get(tx) }
    }

    /// Whether the counter is at least `bound`.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn is_at_least(&self, tx: &mut Transaction<'_, P>, bound: i64) -> Result<bool, Abort> {
        self.is_between(tx, bound, i64::MAX)
    }

    /// Whether the counter is at most `bound`.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn is_at_most(&self, tx: &mut Transaction<'_, P>, bound: i64) -> Result<bool, Abort> {
        self.is_between(tx, i64::MIN, bound)
    }

    /// Whether the counter is in `low..=high`.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn is_between(&self, tx: &mut Transaction<'_, P>, low: i64, high: i64) -> Result<bool, Abort> {
        tx.enter(&self.shared.label)?;
        // SAFETY: as in `Shared::get`.
        let id = unsafe { tx.item(&*self.shared, self.shared.address()) };
        tx.settle_before(id)?;
        let kept = kept(tx, id);
        let within = |value: i64| low <= value && value <= high;
        if kept.set.is_some() {
            return Ok(within(kept.applied_to(0)));
        }
        if tx.has_read(id) {
            return Ok(within(kept.applied_to(self.shared.read_base(tx, id)?)));
        }
        // SAFETY: `load` looks at the item's segment.
        let base = unsafe { tx.peek(id, || self.shared.load()) }?;
        let Some(value) = base.checked_add(kept.delta) else {
            // At the wrap the sides of a border are no longer ranges: depend on the value itself.
            return Ok(within(kept.applied_to(self.shared.read_base(tx, id)?)));
        };
        let holds = within(value);
        // The values for which this test comes out the same, on the side where the value lies now.
        let (least, most) = if holds {
            (low, high)
        } else if value < low {
            (i64::MIN, low - 1)
        } else {
            (high + 1, i64::MAX)
        };
        // The borders are moved by what the attempt itself has added. Moving the ends of the range leaves the
        // values out with which the sum would wrap around.
        let (low, high) = (least.saturating_sub(kept.delta), most.saturating_sub(kept.delta));
        let kept = Kept { low: kept.low.max(low), high: kept.high.min(high), ..kept };
        if kept.low > kept.high {
            // The counter has changed between two tests such that no value satisfies both.
            return Err(tx.conflict(Reason::PredicateFailed, id));
        }
        keep(tx, id, kept);
        Ok(holds)
    }

    /// Adds an amount when the transaction commits, one that may be known only then. Never a reason to abort, and
    /// never a reason to be [wild](hotrow_core::deferred).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    #[inline]
    pub fn defer_add(&self, tx: &mut Transaction<'_, P>, amount: impl Operand<i64>) -> Result<(), Abort> {
        self.defer(tx, Access::Write, amount.into_input(), |shared, tx, amount| {
            // SAFETY: `defer` entered.
            let kept = unsafe { shared.write(tx) }?;
            kept.delta = kept.delta.wrapping_add(amount);
            Ok(())
        })?;
        Ok(())
    }

    /// Sets the counter when the transaction commits, to a value that may be known only then.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn defer_set(&self, tx: &mut Transaction<'_, P>, value: impl Operand<i64>) -> Result<(), Abort> {
        self.defer(tx, Access::Write, value.into_input(), |shared, tx, value| {
            // SAFETY: `defer` entered.
            unsafe { shared.write(tx) }?.replace(value);
            Ok(())
        })?;
        Ok(())
    }

    /// The exact value when the transaction commits; it may be an input of what is deferred later.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn defer_get(&self, tx: &mut Transaction<'_, P>) -> Result<Deferred<i64>, Abort> {
        // SAFETY: `defer` entered.
        self.defer(tx, Access::Read, (), |shared, tx, ()| unsafe { shared.get(tx) })
    }

    /// Sets the counter's rank: where it stands in the order in which deferred operations line up
    /// ([`Label::set_rank`]).
    pub fn set_rank(&mut self, rank: u16) {
        self.shared.label.set_rank(rank);
    }

    #[inline]
    fn defer<I: Input, R: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        access: Access,
        inputs: I,
        work: impl FnOnce(&Shared<P>, &mut Transaction<'_, P>, I::Value) -> Result<R, Abort> + 'static,
    ) -> Result<Deferred<R>, Abort> {
        tx.enter(&self.shared.label)?;
        let shared = NonNull::from(&*self.shared);
        // SAFETY: the segment is this object's, and both are in an `EpochBox`, so they stay in memory until the
        // attempt ends; `enter` was called.
        unsafe {
            tx.defer(&*self.shared, self.shared.address(), access, inputs, move |tx, inputs| {
                work(shared.as_ref(), tx, inputs)
            })
        }
    }
}

fn kept<P: Protocol>(tx: &mut Transaction<'_, P>, id: ItemId) -> Kept {
    if tx.has_write(id) || tx.has_predicate(id) {
        // SAFETY: items of counters have payloads of type `Kept`.
        unsafe { *tx.payload::<Kept>(id) }
    } else {
        Kept::NOTHING
    }
}

fn keep<P: Protocol>(tx: &mut Transaction<'_, P>, id: ItemId, kept: Kept) {
    // SAFETY: items of counters have payloads of type `Kept`, which `predicate_holds` expects.
    unsafe {
        if tx.has_write(id) || tx.has_predicate(id) {
            *tx.payload::<Kept>(id) = kept;
            tx.set_predicate::<Kept>(id, None);
        } else {
            tx.set_predicate(id, Some(kept));
        }
    }
}

impl<P: Protocol> Shared<P> {
    fn address(&self) -> NonNull<P::Header> {
        // The header is the first field of a `repr(C)` struct.
        NonNull::from(self).cast()
    }

    /// # Safety
    ///
    /// `Transaction::enter` was called with the label.
    unsafe fn get(&self, tx: &mut Transaction<'_, P>) -> Result<i64, Abort> {
        // SAFETY: the segment is this object's, both are in an `EpochBox`, and the caller has called `enter`.
        let id = unsafe { tx.item(self, self.address()) };
        tx.settle_before(id)?;
        let kept = kept(tx, id);
        if kept.set.is_some() {
            return Ok(kept.applied_to(0));
        }
        Ok(kept.applied_to(self.read_base(tx, id)?))
    }

    /// # Safety
    ///
    /// As for [`get`](Self::get).
    #[inline]
    unsafe fn write<'t>(&self, tx: &'t mut Transaction<'_, P>) -> Result<&'t mut Kept, Abort> {
        // SAFETY: as in `get`; items of counters have payloads of type `Kept`, which `install` expects.
        unsafe {
            let (id, pending) = tx.write(self, self.address())?;
            if !pending {
                if tx.has_predicate(id) {
                    tx.write_payload(id);
                } else {
                    return Ok(tx.set_write(id, Kept::NOTHING));
                }
            }
            Ok(tx.payload::<Kept>(id))
        }
    }

    fn read_base(&self, tx: &mut Transaction<'_, P>, id: ItemId) -> Result<i64, Abort> {
        // SAFETY: the item was made for this object's segment, which `load` looks at.
        unsafe { tx.read_beside_write(id, || self.load()) }
    }

    #[inline]
    fn load(&self) -> i64 {
        // Relaxed: ordered by the header, like the words of an inline cell. One word is never torn.
        self.value.load(Ordering::Relaxed).cast_signed()
    }
}

// SAFETY: all items of the counter are for its one segment, with payloads of type `Kept`, which needs no
// drop; the shared state is in an `EpochBox`; operations call `enter`.
unsafe impl<P: Protocol> Object<P> for Shared<P> {
    fn label(&self) -> &Label {
        &self.label
    }

    unsafe fn describe(&self, _: NonNull<P::Header>) -> String {
        String::from("value")
    }

    unsafe fn identify(&self, _: NonNull<P::Header>) -> u64 {
        0
    }

    unsafe fn install(&self, item: &mut Item<P>, _pin: &Pin) {
        // SAFETY: the item has a pending write of this object.
        let kept = unsafe { *item.payload().cast::<Kept>() };
        self.value.store(kept.applied_to(self.load()).cast_unsigned(), Ordering::Relaxed);
    }

    unsafe fn undo(&self, _item: &mut Item<P>, _pin: &Pin) {}

    unsafe fn predicate_holds(&self, item: &Item<P>) -> bool {
        // SAFETY: the item has a predicate of this object.
        let kept = unsafe { *item.payload().cast::<Kept>() };
        let value = self.load();
        kept.low <= value && value <= kept.high
    }
}
