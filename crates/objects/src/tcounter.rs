//! A counter whose increments commute and whose tests are predicates (sto §3.5, §4.2 `TCounter`).
//!
//! # Avoiding conflicts
//!
//! An increment does not read the counter. It adds to a delta in the item, which the commit applies under the
//! segment's lock. Two transactions that only increment serialize on that lock but never abort each other.
//!
//! A test (`is_at_least(1)`) is a predicate: its outcome depends only on the side of a bound on which the value lies.
//! The item keeps a range `[low, high]`: the values *of the counter itself*, without the attempt's own delta, for
//! which every test so far has the same outcome. The commit checks that the value is in this range. For example, a
//! false test, ten increments, and the same test true keep `[-9, 0]`, which is necessary and sufficient (the example
//! of sto §3.5).
//!
//! An exact [`TCounter::get`] depends on the value itself, like any read.
//!
//! # Deferred operations
//!
//! A deferred operation does the work of an immediate one when the counter's turn has come. The item's payload holds
//! all that the attempt knows of the counter. So an immediate operation first runs the deferred ones
//! ([`ObjectAccess::settle_before`]), and then reads the item.

use hotrow_core::operations::Operand;
use hotrow_core::{
    Abort, Access, Deferred, Engine, EpochBox, Input, Item, ItemId, Object, ObjectAccess, ObjectMeta, Pin,
    Protocol, Reason, SavedWrite, Saver, Transaction,
};
use hotrow_protocols::Occ;
use hotrow_sync::atomic::{AtomicU64, Ordering};
use std::fmt;
use std::ptr::NonNull;

/// A transactional 64-bit counter. It wraps around at the ends of its range.
pub struct TCounter<P: Protocol = Occ> {
    shared: EpochBox<Shared<P>>,
}

#[repr(C)]
struct Shared<P: Protocol> {
    header: P::Header,
    /// The value's bits.
    value: AtomicU64,
    meta: ObjectMeta,
}

/// The state that an attempt keeps of a counter: its item's payload.
#[derive(Debug, Clone, Copy)]
struct Kept {
    /// The value set, if any; `delta` is added to it.
    set: Option<i64>,
    /// The sum of the increments.
    delta: i64,
    /// The smallest value of the counter for which every test so far has the same outcome.
    low: i64,
    /// The largest such value.
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

impl<P: Protocol> fmt::Debug for TCounter<P> {
    /// Shows the name only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TCounter").field("name", &self.shared.meta.name()).finish_non_exhaustive()
    }
}

impl<P: Protocol> TCounter<P> {
    /// A counter that starts at `value`.
    pub fn new(engine: &Engine<P>, value: i64) -> Self {
        Self::named(engine, "counter", value)
    }

    /// A counter with a name, for errors and conflict reports.
    pub fn named(engine: &Engine<P>, name: impl Into<String>, value: i64) -> Self {
        let meta = ObjectMeta::new(engine.id(), name);
        let shared =
            Shared { header: P::Header::default(), value: AtomicU64::new(value.cast_unsigned()), meta };
        Self { shared: EpochBox::new(shared) }
    }

    /// Adds `amount` (which may be negative) without reading the counter, so that transactions that only increment
    /// never abort each other.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    #[inline]
    pub fn add(&self, tx: &mut Transaction<'_, P>, amount: i64) -> Result<(), Abort> {
        self.enter(tx)?.add(amount)
    }

    /// Sets the counter without reading it.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn set(&self, tx: &mut Transaction<'_, P>, value: i64) -> Result<(), Abort> {
        self.enter(tx)?.set(value)
    }

    /// Returns the exact value. Any concurrent change of the counter is then a conflict: prefer a test.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn get(&self, tx: &mut Transaction<'_, P>) -> Result<i64, Abort> {
        self.enter(tx)?.get()
    }

    /// True if the counter is at least `bound`.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn is_at_least(&self, tx: &mut Transaction<'_, P>, bound: i64) -> Result<bool, Abort> {
        self.is_between(tx, bound, i64::MAX)
    }

    /// True if the counter is at most `bound`.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn is_at_most(&self, tx: &mut Transaction<'_, P>, bound: i64) -> Result<bool, Abort> {
        self.is_between(tx, i64::MIN, bound)
    }

    /// True if the counter is in `low..=high`.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn is_between(&self, tx: &mut Transaction<'_, P>, low: i64, high: i64) -> Result<bool, Abort> {
        self.enter(tx)?.between(low, high)
    }

    /// Adds an amount when the transaction commits. The amount may become known only then. The operation neither
    /// causes an abort nor makes the transaction [wild](hotrow_core::deferred).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    #[inline]
    pub fn defer_add(&self, tx: &mut Transaction<'_, P>, amount: impl Operand<i64>) -> Result<(), Abort> {
        self.defer(tx, Access::Write, amount.into_input(), |entered, amount| entered.add(amount))?;
        Ok(())
    }

    /// Sets the counter when the transaction commits. The value may become known only then.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn defer_set(&self, tx: &mut Transaction<'_, P>, value: impl Operand<i64>) -> Result<(), Abort> {
        self.defer(tx, Access::Write, value.into_input(), |entered, value| entered.set(value))?;
        Ok(())
    }

    /// Reads the exact value when the transaction commits. The result may be an input of operations deferred later.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub fn defer_get(&self, tx: &mut Transaction<'_, P>) -> Result<Deferred<i64>, Abort> {
        self.defer(tx, Access::Read, (), |entered, ()| entered.get())
    }

    /// Sets the counter's rank: its position in the order in which transactions acquire the segments of their
    /// deferred operations (*line up*; [`ObjectMeta::set_rank`]).
    pub fn set_rank(&mut self, rank: u16) {
        self.shared.meta.set_rank(rank);
    }

    /// Begins an operation.
    #[inline]
    fn enter<'t, 'w>(&'t self, tx: &'t mut Transaction<'w, P>) -> Result<Entered<'t, 'w, P>, Abort> {
        Ok(Entered { tx: tx.enter(&self.shared.meta)?, counter: &self.shared })
    }

    #[inline]
    fn defer<I: Input, R: 'static>(
        &self,
        tx: &mut Transaction<'_, P>,
        access: Access,
        inputs: I,
        work: impl FnOnce(Entered<'_, '_, P>, I::Value) -> Result<R, Abort> + 'static,
    ) -> Result<Deferred<R>, Abort> {
        let Entered { tx, counter } = self.enter(tx)?;
        let shared = NonNull::from(counter);
        // SAFETY: the segment is this object's, which has been entered, and both are in an `EpochBox`, so they stay in
        // memory until the attempt ends.
        unsafe {
            tx.defer(counter, counter.address(), access, inputs, move |tx, inputs| {
                work(Entered { tx, counter: shared.as_ref() }, inputs)
            })
        }
    }
}

/// A counter in a transaction that has entered it. Its operations consume it, because nothing may follow one that fails.
struct Entered<'t, 'w, P: Protocol> {
    /// The access of an operation of `counter`.
    tx: &'t mut ObjectAccess<'w, P>,
    /// In an `EpochBox`.
    counter: &'t Shared<P>,
}

impl<'t, P: Protocol> Entered<'t, '_, P> {
    #[inline]
    fn add(self, amount: i64) -> Result<(), Abort> {
        let kept = self.write()?;
        kept.delta = kept.delta.wrapping_add(amount);
        Ok(())
    }

    #[inline]
    fn set(self, value: i64) -> Result<(), Abort> {
        self.write()?.replace(value);
        Ok(())
    }

    fn get(mut self) -> Result<i64, Abort> {
        let (id, kept) = self.kept()?;
        if kept.set.is_some() {
            return Ok(kept.applied_to(0));
        }
        Ok(kept.applied_to(self.read_base(id)?))
    }

    fn between(mut self, low: i64, high: i64) -> Result<bool, Abort> {
        let (id, kept) = self.kept()?;
        let within = |value: i64| low <= value && value <= high;
        if kept.set.is_some() {
            return Ok(within(kept.applied_to(0)));
        }
        if self.tx.has_read(id) {
            return Ok(within(kept.applied_to(self.read_base(id)?)));
        }
        // SAFETY: `load` looks at the item's segment.
        let base = unsafe { self.tx.peek(id, || self.counter.load()) }?;
        let Some(value) = base.checked_add(kept.delta) else {
            // The value with the delta wraps around, so the values on one side of a bound are no single range: depend
            // on the value itself.
            return Ok(within(kept.applied_to(self.read_base(id)?)));
        };
        let holds = within(value);
        // The values with the same outcome of this test, on the side of the bound on which the value lies now.
        let (least, most) = if holds {
            (low, high)
        } else if value < low {
            (i64::MIN, low - 1)
        } else {
            (high + 1, i64::MAX)
        };
        // The range is of the counter itself, so the attempt's own delta shifts the bounds. Shifting the ends of the
        // type's range excludes the values that would wrap around with the delta.
        let (low, high) = (least.saturating_sub(kept.delta), most.saturating_sub(kept.delta));
        let kept = Kept { low: kept.low.max(low), high: kept.high.min(high), ..kept };
        if kept.low > kept.high {
            // The counter changed between two tests, so that no single value explains both outcomes.
            return Err(self.tx.conflict(Reason::PredicateFailed, id));
        }
        self.keep(id, kept);
        Ok(holds)
    }

    /// Returns the counter's item, and what the attempt keeps in it.
    fn kept(&mut self) -> Result<(ItemId, Kept), Abort> {
        // SAFETY: the segment is the counter's, which has been entered, and both are in an `EpochBox`.
        let id = unsafe { self.tx.item(self.counter, self.counter.address()) };
        self.tx.settle_before(id)?;
        if self.tx.has_write(id) || self.tx.has_predicate(id) {
            // SAFETY: items of counters have payloads of type `Kept`.
            Ok((id, unsafe { *self.tx.payload::<Kept>(id) }))
        } else {
            Ok((id, Kept::NOTHING))
        }
    }

    /// Replaces what the attempt keeps, by which the commit will check all tests so far.
    fn keep(self, id: ItemId, kept: Kept) {
        // SAFETY: items of counters have payloads of type `Kept`, which `predicate_holds` expects.
        unsafe {
            if self.tx.has_write(id) || self.tx.has_predicate(id) {
                *self.tx.payload::<Kept>(id) = kept;
                self.tx.set_predicate::<Kept>(id, None);
            } else {
                self.tx.set_predicate(id, Some(kept));
            }
        }
    }

    #[inline]
    fn write(self) -> Result<&'t mut Kept, Abort> {
        let Self { tx, counter } = self;
        // SAFETY: as in `kept`; items of counters have payloads of type `Kept`, which `install` expects.
        unsafe {
            let (id, pending) = tx.write(counter, counter.address())?;
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

    fn read_base(&mut self, id: ItemId) -> Result<i64, Abort> {
        // SAFETY: the item was made for this counter's segment, which `load` looks at.
        unsafe { self.tx.read_beside_write(id, || self.counter.load()) }
    }
}

impl<P: Protocol> Shared<P> {
    fn address(&self) -> NonNull<P::Header> {
        // The header is the first field of a `repr(C)` struct.
        NonNull::from(self).cast()
    }

    #[inline]
    fn load(&self) -> i64 {
        // Relaxed: ordered by the header, like the words of an inline cell. One word is never torn.
        self.value.load(Ordering::Relaxed).cast_signed()
    }
}

// SAFETY: all items of the counter are for its one segment, with payloads of type `Kept`, which needs no
// drop; the shared state is in an `EpochBox`; operations enter with `meta`.
unsafe impl<P: Protocol> Object<P> for Shared<P> {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    unsafe fn describe(&self, _: NonNull<P::Header>) -> String {
        String::from("value")
    }

    unsafe fn identify(&self, _: NonNull<P::Header>) -> u64 {
        0
    }

    unsafe fn install(&self, item: &mut Item<P>, _pin: &Pin) {
        // SAFETY: the item has a pending write of this object.
        let kept = unsafe { *item.payload::<Kept>() };
        self.value.store(kept.applied_to(self.load()).cast_unsigned(), Ordering::Relaxed);
    }

    unsafe fn undo(&self, _item: &mut Item<P>, _pin: &Pin) {}

    unsafe fn save(&self, item: &Item<P>, saver: &Saver<'_, P>) -> SavedWrite {
        // SAFETY: the item has a pending write of this object.
        saver.plain(unsafe { &*item.payload::<Kept>() })
    }

    /// The range stays: the body goes on as it does because of all tests.
    unsafe fn restore(&self, item: &mut Item<P>, saved: Option<SavedWrite>, _: &Pin) {
        // SAFETY: as in `save`, and so is what was saved.
        unsafe {
            let before = saved.map_or(Kept::NOTHING, |saved| saved.plain::<P, Kept>());
            let kept = &mut *item.payload_mut::<Kept>();
            *kept = Kept { set: before.set, delta: before.delta, ..*kept };
        }
    }

    unsafe fn predicate_holds(&self, item: &Item<P>) -> bool {
        // SAFETY: the item has a predicate of this object.
        let kept = unsafe { *item.payload::<Kept>() };
        let value = self.load();
        kept.low <= value && value <= kept.high
    }
}
