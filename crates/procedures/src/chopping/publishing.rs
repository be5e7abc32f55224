//! Publishing at run time: changes that commute are made in the last piece, and those who read them do not run in between (dbx-tc §3.2).
//!
//! # Marks
//!
//! A *publisher* makes its changes of a table in its last piece, although other procedures, the *subscribers*, read or overwrite what it
//! changes. A subscriber that runs between the publisher's pieces would be before the publisher by this, while others that run at that
//! moment are after it.
//!
//! So the publisher *marks* the keys that it will change, before its first piece commits, and takes the marks away when its last piece has
//! committed. A subscriber checks that its keys have no mark, and that they have had none until its commit: a mark has a version, which it
//! observes like a bucket of an index. If there is a mark, its attempt is lost.
//!
//! # Why it is serializable
//!
//! The place of each transaction in the serial order is the moment of its first piece. For two that conflict there, nothing is new. Of a
//! publisher and a subscriber of the same key, the subscriber's moment is not between the first piece and the last one of the publisher:
//! its version of the mark is unchanged at that moment, so no mark was set since it looked, and those set before were gone. So the
//! publisher's changes might as well have happened in its first piece. The same holds of stamps: the publisher's is drawn in its first piece.
//!
//! # Deviations
//!
//! The paper's publishers keep their changes until the next epoch, and tell their callers before that they have committed. Then a subscriber
//! that begins later than that may not see them: the order is serializable, but contradicts real time, which Hotrow promises. And
//! its subscribers wait for all publishers at the end of an epoch; here they meet those of their own keys only.

use hotrow_core::{
    Abort, EngineId, Item, Keeper, Object, ObjectMeta, Observed, Pin, Protocol, Reason, SavedWrite, Saver,
    StructureVersion, Transaction,
};
use hotrow_sync::atomic::{AtomicU64, Ordering};
use std::cell::RefCell;
use std::ptr::NonNull;

/// The number of marks. Keys whose hashes are equal modulo this share one.
const MARKS: usize = if cfg!(test) { 2 } else { 1_024 };

/// A mark on some keys: the number of publishers that will change one of them, and a version that changes with each that comes.
#[derive(Debug, Default)]
struct Mark {
    version: StructureVersion,
    publishers: AtomicU64,
}

/// The marks of a database.
#[derive(Debug)]
pub(crate) struct Marks {
    meta: ObjectMeta,
    marks: Box<[Mark]>,
}

/// The marks that a publisher has set. They are taken away when this is dropped.
#[derive(Debug)]
pub(crate) struct SetMarks<'m> {
    marks: &'m Marks,
    set: RefCell<Vec<usize>>,
}

impl Marks {
    pub(crate) fn new(engine: EngineId) -> Self {
        let marks = (0..MARKS).map(|_| Mark::default()).collect();
        Self { meta: ObjectMeta::new(engine, "published changes"), marks }
    }

    /// The place of a key of a table.
    pub(crate) fn place(part: u32, key_hash: u64) -> usize {
        (key_hash.wrapping_add(u64::from(part).wrapping_mul(0x9e37_79b9_7f4a_7c15)) % MARKS as u64) as usize
    }

    /// Checks, for a subscriber, that there is no mark at a place, nor will be before the transaction commits.
    pub(crate) fn check<P: Protocol>(&self, tx: &mut Transaction<'_, P>, place: usize) -> Result<(), Abort> {
        let tx = tx.enter(&self.meta)?;
        let mark = &self.marks[place];
        loop {
            // Marks are never retired. Before the count, so that a publisher that is not counted yet will change it.
            let version = mark.version.stable().unwrap_or_default();
            // Acquire: pairs with the release in `SetMarks::drop`, so that the publisher's changes are visible.
            if mark.publishers.load(Ordering::Acquire) != 0 {
                let describe = || format!("mark {place}");
                return Err(tx.conflict_over(&self.meta, Reason::ReadLocked, place as u64, describe));
            }
            let observed = Observed { node: NonNull::from(&mark.version), version };
            // SAFETY: the marks are the database's, which lives until the transaction has ended.
            if unsafe { tx.observe(self, observed) }? {
                return Ok(());
            }
        }
    }
}

impl<'m> SetMarks<'m> {
    pub(crate) fn new(marks: &'m Marks) -> Self {
        Self { marks, set: RefCell::default() }
    }

    /// Sets a mark, for a publisher whose first piece has not committed.
    pub(crate) fn set(&self, place: usize) {
        let mut set = self.set.borrow_mut();
        if set.contains(&place) {
            return;
        }
        set.push(place);
        let mark = &self.marks.marks[place];
        // Relaxed: the version orders it, which subscribers load before.
        mark.publishers.fetch_add(1, Ordering::Relaxed);
        // From here on, no subscriber commits that has found no mark.
        let _ = mark.version.lock();
        mark.version.unlock_changed();
    }

    /// Takes all marks away.
    pub(crate) fn clear(&self) {
        for place in self.set.borrow_mut().drain(..) {
            // Release: pairs with the acquire in `Marks::check`.
            self.marks.marks[place].publishers.fetch_sub(1, Ordering::Release);
        }
    }
}

impl Drop for SetMarks<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

// SAFETY: it has no segments, so no function with a contract is ever called but those of structures, which have defaults.
unsafe impl<P: Protocol> Object<P> for Marks {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    unsafe fn describe(&self, _: NonNull<P::Header>) -> String {
        String::from("a mark")
    }

    unsafe fn describe_structure(&self, _: NonNull<StructureVersion>, _: &Pin) -> String {
        String::from("a mark")
    }

    unsafe fn identify(&self, _: NonNull<P::Header>) -> u64 {
        0
    }

    unsafe fn install(&self, _: &mut Item<P>, _: &Pin) {}

    unsafe fn keep(&self, _: &Item<P>, _: &mut Keeper<'_>) {}

    unsafe fn save(&self, _: &Item<P>, saver: &Saver<'_, P>) -> SavedWrite {
        saver.nothing()
    }

    unsafe fn restore(&self, item: &mut Item<P>, saved: Option<SavedWrite>, _: &Pin) {
        // SAFETY: as the caller promises.
        saved.into_iter().for_each(|saved| unsafe { item.put_back(saved) });
    }
}
