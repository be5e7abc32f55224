//! Objects: what a datatype tells the commit.

use crate::engine::EngineId;
use crate::history::WriteKind;
use crate::item::Item;
use crate::pin::Pin;
use crate::protocol::Protocol;
use crate::structure::StructureVersion;
use hotrow_sync::atomic::{Ordering, unfollowed::AtomicU32};
use std::ptr::NonNull;

/// Who an object is: its engine, its number, its name.
#[derive(Debug)]
pub struct ObjectMeta {
    pub(crate) engine: EngineId,
    number: u32,
    /// The object's place among its engine's, give or take 65,536.
    place: u16,
    /// 16 bits.
    rank: AtomicU32,
    name: Box<str>,
}

/// How many objects there have been in the process.
static OBJECTS: AtomicU32 = AtomicU32::new(0);

impl ObjectMeta {
    /// How many labels there have been in the process.
    pub(crate) fn count() -> u32 {
        OBJECTS.load(Ordering::Relaxed)
    }

    /// A label for a new object of an engine.
    pub fn new(engine: EngineId, name: impl Into<String>) -> Self {
        // Relaxed: only uniqueness matters.
        let number = OBJECTS.fetch_add(1, Ordering::Relaxed);
        let place = (number as u16).wrapping_sub(engine.objects_before());
        let rank = AtomicU32::new(u32::from(u16::MAX));
        Self { engine, number, place, rank, name: name.into().into_boxed_str() }
    }

    /// The object's rank: protocols that line up at commit do so on objects of a lower rank first (drp §6.3). The
    /// default is the highest.
    #[inline]
    pub fn rank(&self) -> u16 {
        // Relaxed: it is changed only while nobody goes by it.
        self.rank.load(Ordering::Relaxed) as u16
    }

    /// Changes the rank.
    ///
    /// What many transactions want is best ranked high: it is then taken last and held shortest. No transaction may
    /// be using the object meanwhile: two that go by different orders may wait for each other for ever.
    pub fn set_rank(&self, rank: u16) {
        self.rank.store(u32::from(rank), Ordering::Relaxed);
    }

    /// Where a segment of the object stands in the order in which commits line up: the object's rank in the 16
    /// highest bits, then what tells objects from each other, then what tells segments (drp §6.3).
    ///
    /// The paper has the segment's address below the rank. This number is the same in each run.
    #[inline]
    pub fn rank_of(&self, within: u32) -> u64 {
        u64::from(self.rank()) << 48 | u64::from(self.place) << 32 | u64::from(within)
    }

    /// The object's place among its engine's, give or take 65,536. The same in each run.
    #[inline]
    pub fn place(&self) -> u16 {
        self.place
    }

    /// The name used in errors and reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A number that no other object of the process has.
    pub fn number(&self) -> u32 {
        self.number
    }
}

/// What a transactional datatype does when the commit asks for it (sto §3.2, `TObject`).
///
/// Locking, validation and versions are the protocol's, on the segment's header; the datatype only knows
/// its values: how to install a write, take back what went in early, check a predicate. (STO puts lock,
/// check and unlock into the datatype, which ties each datatype to one protocol.)
///
/// # Safety
///
/// The engine calls these functions with items that the datatype itself made, so an implementation may
/// rely on the types behind `segment` and `payload` being those it stored. In turn:
///
/// - `install` and `undo` must consume the payload of an item with a pending write (exactly one of them is
///   called, once);
/// - the object and all its segments must stay in memory as long as any attempt may hold items for them:
///   they are freed through the epoch only ([`EpochBox`](crate::EpochBox), [`Pin::retire`]);
/// - each operation must begin with [`Transaction::enter`](crate::Transaction::enter).
pub unsafe trait Object<P: Protocol>: Send + Sync {
    /// Who this is.
    fn meta(&self) -> &ObjectMeta;

    /// The key of a segment, as text for errors and reports.
    ///
    /// # Safety
    ///
    /// `segment` is one of this object's, and still in memory.
    unsafe fn describe(&self, segment: NonNull<P::Header>) -> String;

    /// A number that tells a segment from the object's others: an index, a hash of the key, anything if there is only
    /// one. The same in each run, as addresses are not, for a simulation is.
    ///
    /// # Safety
    ///
    /// As for [`describe`](Self::describe).
    unsafe fn identify(&self, segment: NonNull<P::Header>) -> u64;

    /// Appends bytes that name a segment among the object's, for good: another segment that takes its place
    /// later (a record inserted again) has the same. If the object has an order, they compare as its keys do.
    ///
    /// # Safety
    ///
    /// As for [`describe`](Self::describe).
    unsafe fn name(&self, segment: NonNull<P::Header>, bytes: &mut Vec<u8>) {
        // SAFETY: the caller's promise.
        bytes.extend_from_slice(&unsafe { self.identify(segment) }.to_be_bytes());
    }

    /// Where a segment stands in the order in which commits line up, always the same for the same segment. Two
    /// segments may have the same. No code of the user's runs here.
    ///
    /// # Safety
    ///
    /// As for [`describe`](Self::describe).
    #[inline]
    unsafe fn rank(&self, segment: NonNull<P::Header>) -> u64 {
        // SAFETY: the caller's promise.
        self.meta().rank_of(unsafe { self.identify(segment) } as u32)
    }

    /// What the pending write of an item does to its key; `None` if it changes nothing that others can see.
    fn effect(&self, _item: &Item<P>) -> Option<WriteKind> {
        Some(WriteKind::Update)
    }

    /// A bucket or leaf, as text for errors and reports.
    ///
    /// # Safety
    ///
    /// `node` was observed by this object under the pin.
    unsafe fn describe_structure(&self, _node: NonNull<StructureVersion>, _pin: &Pin) -> String {
        String::from("range or absence")
    }

    /// Makes a pending write the segment's value. Called at commit while the segment is locked.
    ///
    /// # Safety
    ///
    /// The item has a pending write of this object, and the caller holds the segment's lock.
    unsafe fn install(&self, item: &mut Item<P>, pin: &Pin);

    /// Drops a pending write, and makes what the attempt put in early unreachable for others. Called when
    /// an attempt aborts, before the protocol releases what it holds.
    ///
    /// # Safety
    ///
    /// The item has a pending write of this object. Its segment is locked only if the protocol locked it.
    unsafe fn undo(&self, item: &mut Item<P>, pin: &Pin);

    /// Cleans up after a commit or an abort, when nothing is locked any more: unlink, retire, rebalance.
    /// Called for items that asked for it ([`Transaction::want_cleanup`](crate::Transaction::want_cleanup))
    /// and for segments that the attempt made.
    ///
    /// # Safety
    ///
    /// The item had a pending write of this object, which was installed or undone.
    unsafe fn cleanup(&self, _item: &mut Item<P>, _committed: bool, _pin: &Pin) {}

    /// Whether the predicate that the item holds is true of the segment's value now (sto §3.5).
    ///
    /// The protocol makes sure that the value does not change while it is looked at, or asks again.
    ///
    /// # Safety
    ///
    /// The item has a predicate of this object.
    unsafe fn predicate_holds(&self, _item: &Item<P>) -> bool {
        true
    }
}
