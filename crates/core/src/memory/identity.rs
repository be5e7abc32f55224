//! Identities: the names and numbers by which memory, errors and reports know engines, workers, objects and transactions.

use hotrow_sync::atomic::{self, Ordering, unfollowed::AtomicU32, unfollowed::AtomicU64};
use std::fmt;
use std::panic::Location;
use std::ptr::NonNull;

/// The number of an engine, unique in the process, never 0.
///
/// Its 16 highest bits hold the number of objects made before it, so that objects can be counted within their engine:
/// such a count is the same in each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EngineId(pub(crate) u64);

impl EngineId {
    /// The number of objects made before the engine, modulo 65,536.
    pub(crate) fn objects_before(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// The bit that distinguishes the number which an engine's closed objects have. No engine has it: so many are never made.
    const CLOSED: u64 = 1 << 47;

    /// The number that the engine's closed objects have.
    pub(crate) fn of_closed(self) -> Self {
        Self(self.0 | Self::CLOSED)
    }

    /// The engine's number, if this is perhaps that of its closed objects.
    pub(crate) fn of_open(self) -> Self {
        Self(self.0 & !Self::CLOSED)
    }
}

/// The number of a worker among those of its engine, from 0. A number is reused once its worker is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub(crate) u32);

impl WorkerId {
    /// The number.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// The identity of an object: its engine, its number, its name, its rank.
#[derive(Debug)]
pub struct ObjectMeta {
    /// The number of its engine, or of that engine's closed objects.
    engine: AtomicU64,
    number: u32,
    /// The object's place among its engine's, modulo 65,536.
    place: u16,
    /// The rank, of which 16 bits count.
    rank: AtomicU32,
    /// The bytes from the beginning of each segment to the epoch of its newest commit, if its segments have that.
    newest_commit: Option<usize>,
    name: Box<str>,
}

/// Number of objects made in the process so far.
static OBJECTS: AtomicU32 = AtomicU32::new(0);

impl ObjectMeta {
    /// Number of objects made in the process so far.
    pub(crate) fn count() -> u32 {
        OBJECTS.load(Ordering::Relaxed)
    }

    /// Makes the identity of a new object of an engine.
    pub fn new(engine: EngineId, name: impl Into<String>) -> Self {
        // Relaxed: only uniqueness matters.
        let number = OBJECTS.fetch_add(1, Ordering::Relaxed);
        let place = (number as u16).wrapping_sub(engine.objects_before());
        let rank = AtomicU32::new(u32::from(u16::MAX));
        let engine = AtomicU64::new(engine.0);
        Self { engine, number, place, rank, newest_commit: None, name: name.into().into_boxed_str() }
    }

    /// Has commits note their epochs in the object's segments. A snapshot then knows a value that is old enough without a search, and
    /// a segment that was made later without a version that says so; and a reader knows exactly how far it must wait for the device.
    ///
    /// # Safety
    ///
    /// So many bytes behind the beginning of its header, in the same allocation, each segment has an `AtomicU64` of `hotrow_sync::atomic`, at first 0,
    /// which is used for nothing else. The object's [`install`](crate::Object::install) replaces each value that it has handed over
    /// ([`Keeper::keep_cell`](crate::Keeper::keep_cell)), and its reads on a snapshot expect [`MadeLater`](crate::OnSnapshot::MadeLater).
    #[must_use]
    pub unsafe fn noting_commits(mut self, offset: usize) -> Self {
        self.newest_commit = Some(offset);
        self
    }

    /// Where a segment has the epoch of its newest commit, if the object's segments have it.
    ///
    /// # Safety
    ///
    /// The segment is one of the object's, and in memory as long as the result is used.
    #[inline]
    pub(crate) unsafe fn newest_commit<'a, H>(&self, segment: NonNull<H>) -> Option<&'a atomic::AtomicU64> {
        // SAFETY: the caller's promise, and that of `noting_commits`.
        self.newest_commit.map(|offset| unsafe { segment.byte_add(offset).cast().as_ref() })
    }

    /// The number of its engine, or of that engine's closed objects.
    #[inline(always)]
    pub(crate) fn engine(&self) -> EngineId {
        // Relaxed: an operation that does not see that the object has been closed has begun before.
        EngineId(self.engine.load(Ordering::Relaxed))
    }

    /// True if it is one of its engine's closed objects.
    pub(crate) fn is_closed(&self) -> bool {
        self.engine() == self.engine().of_closed()
    }

    /// Makes it one of its engine's closed objects.
    pub(crate) fn close(&self) {
        self.engine.store(self.engine().of_closed().0, Ordering::Relaxed);
    }

    /// The object's rank. Protocols that acquire locks in order at commit take objects of a lower rank first (drp
    /// §6.3). The default is the highest.
    #[inline]
    pub(crate) fn rank(&self) -> u16 {
        // Relaxed: it is changed only while no transaction uses it.
        self.rank.load(Ordering::Relaxed) as u16
    }

    /// Changes the rank.
    ///
    /// Rank a contended object high: it is then acquired last and held shortest. No transaction may use the object
    /// meanwhile, because two that acquire in different orders may deadlock.
    pub fn set_rank(&self, rank: u16) {
        self.rank.store(u32::from(rank), Ordering::Relaxed);
    }

    /// The position of a segment in the order in which commits acquire: the object's rank in the 16 highest bits, then
    /// 16 bits that tell objects apart, then 32 bits that tell the object's segments apart (drp §6.3).
    ///
    /// In the paper, the segment's address comes below the rank. This number is the same in each run.
    #[inline]
    pub fn rank_of(&self, within: u32) -> u64 {
        u64::from(self.rank()) << 48 | u64::from(self.place) << 32 | u64::from(within)
    }

    /// The object's place among its engine's, modulo 65,536. The same in each run.
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

/// The code that a transaction comes from, as reports of conflicts name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// A name: a procedure's, or the user's own.
    Name(&'static str),
    /// The place of the call that ran it.
    Place(&'static Location<'static>),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Name(name) => f.write_str(name),
            Origin::Place(place) => write!(f, "{}:{}", place.file(), place.line()),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_segment_without_a_header_may_begin_with_its_epoch() {
        let epoch = atomic::AtomicU64::new(7);
        let meta = ObjectMeta::new(EngineId(1), "rows");
        // SAFETY: the only segment that is asked for is that word.
        let found = unsafe { meta.noting_commits(0).newest_commit(NonNull::from(&epoch).cast::<()>()) };
        assert_eq!(found.map(|epoch| epoch.load(Ordering::Relaxed)), Some(7));
    }
}
