//! Datatypes of a user's own, written through `hotrow::object` only: one over segments, without `unsafe`, and one that merges
//! its writes.

use crate::support;
use crate::support::for_each_protocol;
use hotrow::object::{
    EpochBox, Item, Keeper, Object, ObjectAccess, ObjectMeta, Pin, SavedWrite, Saver, SegmentArray,
    SingleSegment,
};
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::thread;
use hotrow::{Abort, Engine, Error, Misuse, Protocol, Transaction};
use std::ptr::NonNull;

/// The highest value so far, and the last ones that raised it.
struct HighWater<P: Protocol> {
    mark: SingleSegment<(u64, String), P>,
    recent: SegmentArray<u64, P>,
}

impl<P: Protocol> HighWater<P> {
    fn new(engine: &Engine<P>) -> Self {
        Self {
            mark: SingleSegment::new(engine, "mark", (0, String::from("nobody"))),
            recent: SegmentArray::new(engine, "recent", [0; 3]),
        }
    }

    fn mark(&self, tx: &mut Transaction<'_, P>) -> Result<u64, Abort> {
        self.mark.enter(tx)?.read(|(mark, _)| *mark)
    }

    fn raise(&self, tx: &mut Transaction<'_, P>, value: u64, who: &str) -> Result<bool, Abort> {
        let before = self.mark(tx)?;
        if value <= before {
            return Ok(false);
        }
        self.recent.enter(tx, before as usize % self.recent.len())?.write(before)?;
        self.mark.enter(tx)?.update(|mark| *mark = (value, who.to_owned()))?;
        Ok(true)
    }

    fn recent(&self, tx: &mut Transaction<'_, P>) -> Result<Vec<u64>, Abort> {
        (0..self.recent.len()).map(|at| self.recent.enter(tx, at)?.read(|value| *value)).collect()
    }
}

/// The highest value so far. Raising it does not read it: the commit takes the higher one.
struct Peak<P: Protocol>(EpochBox<PeakShared<P>>);

#[repr(C)]
struct PeakShared<P: Protocol> {
    header: P::Header,
    value: AtomicU64,
    meta: ObjectMeta,
}

impl<P: Protocol> Peak<P> {
    fn new(engine: &Engine<P>) -> Self {
        let meta = ObjectMeta::new(engine.id(), "peak");
        Self(EpochBox::new(PeakShared { header: P::Header::default(), value: AtomicU64::new(0), meta }))
    }

    fn raise(&self, tx: &mut Transaction<'_, P>, value: u64) -> Result<(), Abort> {
        let tx = tx.enter(&self.0.meta)?;
        // SAFETY: the segment is this object's, both are in an `EpochBox`, and `tx` has entered it. Items of peaks have
        // payloads of type `u64`.
        unsafe {
            let (id, pending) = tx.write(&*self.0, self.0.segment())?;
            if pending {
                let raised = tx.payload::<u64>(id);
                *raised = (*raised).max(value);
            } else {
                tx.set_write(id, value);
            }
        }
        Ok(())
    }

    fn get(&self, tx: &mut Transaction<'_, P>) -> Result<u64, Abort> {
        let tx = tx.enter(&self.0.meta)?;
        // SAFETY: as in `raise`; `load` looks at the segment.
        unsafe {
            let id = tx.item(&*self.0, self.0.segment());
            let value = tx.read_beside_write(id, || self.0.load())?;
            Ok(value.max(own(tx, id)))
        }
    }
}

/// # Safety
///
/// The item is a peak's.
unsafe fn own<P: Protocol>(tx: &mut ObjectAccess<'_, P>, id: hotrow::object::ItemId) -> u64 {
    // SAFETY: the caller's promise: items of peaks have payloads of this type.
    if tx.has_write(id) { unsafe { *tx.payload::<u64>(id) } } else { 0 }
}

impl<P: Protocol> PeakShared<P> {
    fn segment(&self) -> NonNull<P::Header> {
        // The header is the first field of a `repr(C)` struct.
        NonNull::from(self).cast()
    }

    fn load(&self) -> u64 {
        // Relaxed: ordered by the header.
        self.value.load(Ordering::Relaxed)
    }
}

// SAFETY: all items are for the one segment, with payloads of type `u64`, which needs no drop; the shared state is in an
// `EpochBox`; operations enter with `meta`.
unsafe impl<P: Protocol> Object<P> for PeakShared<P> {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    unsafe fn describe(&self, _: NonNull<P::Header>) -> String {
        String::from("peak")
    }

    unsafe fn identify(&self, _: NonNull<P::Header>) -> u64 {
        0
    }

    unsafe fn install(&self, item: &mut Item<P>, _: &Pin) {
        // SAFETY: the item has a pending write of this object.
        let raised = unsafe { *item.payload::<u64>() };
        self.value.store(self.load().max(raised), Ordering::Relaxed);
    }

    /// It has no snapshots.
    unsafe fn keep(&self, _: &Item<P>, _: &mut Keeper<'_>) {}

    unsafe fn save(&self, item: &Item<P>, saver: &Saver<'_, P>) -> SavedWrite {
        // SAFETY: the item has a pending write of this object.
        saver.plain(unsafe { &*item.payload::<u64>() })
    }

    unsafe fn restore(&self, item: &mut Item<P>, saved: Option<SavedWrite>, _: &Pin) {
        // SAFETY: as in `save`, and so is what was saved.
        unsafe { *item.payload_mut::<u64>() = saved.map_or(0, |saved| saved.take::<P, u64>()) };
    }
}

const THREADS: u64 = 3;
const RAISES: u64 = 60;

#[test]
fn threads_raise_both_to_the_highest_value() {
    for_each_protocol!(THREADS as u32, |P| {
        let engine = support::engine::<P>();
        let (water, peak) = (HighWater::new(&engine), Peak::new(&engine));
        thread::scope(|scope| {
            for number in 0..THREADS {
                let (engine, water, peak) = (&engine, &water, &peak);
                scope.spawn(move || {
                    let mut worker = engine.worker().unwrap();
                    let who = number.to_string();
                    for round in 0..RAISES {
                        let value = round * THREADS + number;
                        let seen = worker.transact(|tx| {
                            peak.raise(tx, value)?;
                            water.raise(tx, value, &who)?;
                            Ok((water.mark(tx)?, peak.get(tx)?))
                        });
                        let (mark, highest) = seen.unwrap();
                        assert!(mark == highest && mark >= value, "both have seen the same transactions");
                    }
                });
            }
        });
        let highest = THREADS * RAISES - 1;
        let ends = engine.transact(|tx| Ok((water.mark(tx)?, peak.get(tx)?, water.recent(tx)?))).unwrap();
        assert_eq!((ends.0, ends.1), (highest, highest));
        assert!(ends.2.iter().all(|recent| *recent < highest));
    });
}

#[test]
fn a_part_that_fails_takes_its_raises_back() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let (water, peak) = (HighWater::new(&engine), Peak::new(&engine));
        let seen = engine.transact(|tx| {
            let both = |tx: &mut Transaction<'_, P>| Ok::<_, Abort>((water.mark(tx)?, peak.get(tx)?));
            peak.raise(tx, 5)?;
            assert!(water.raise(tx, 5, "body")?);
            assert!(!water.raise(tx, 4, "body")?);
            let failed = tx.savepoint(|tx| {
                peak.raise(tx, 9)?;
                water.raise(tx, 9, "part")?;
                assert_eq!(both(tx)?, (9, 9));
                Err::<(), _>(Abort::rollback())
            })?;
            assert!(failed.is_err());
            both(tx)
        });
        assert_eq!(seen, Ok((5, 5)));
        assert_eq!(engine.transact(|tx| water.mark.enter(tx)?.read(|(_, who)| who.clone())).unwrap(), "body");
    });
}

#[test]
fn misuse_of_an_own_datatype_names_its_object() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let water = HighWater::new(&engine);
        let outside = engine.transact(|tx| water.recent.enter(tx, 3)?.read(|value| *value));
        let expected = Misuse::OutOfBounds { object: String::from("recent"), index: 3, length: 3 };
        assert_eq!(outside, Err(Error::Misuse(expected)));
        let foreign = HighWater::new(&support::engine::<P>());
        let expected = Misuse::ForeignObject { object: String::from("mark") };
        assert_eq!(engine.transact(|tx| foreign.mark(tx)), Err(Error::Misuse(expected)));
    });
}

#[test]
fn operations_of_segments_can_be_deferred() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let pair = SegmentArray::new(&engine, "pair", [3u64, 4]);
        let sum = engine.transact_deferred(|tx| {
            let first = pair.enter(tx, 0)?.defer_read(|value| *value)?;
            pair.enter(tx, 0)?.defer_write(7u64)?;
            pair.enter(tx, 1)?.defer_update(first, |value, first| {
                *value += first;
                *value
            })
        });
        assert_eq!(sum, Ok(7));
        assert_eq!(engine.transact(|tx| pair.enter(tx, 0)?.read(|value| *value)), Ok(7));
    });
}
