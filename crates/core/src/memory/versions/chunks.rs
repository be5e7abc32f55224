//! Memory for versions: *chunks*, in which a worker puts its entries one behind the other.
//!
//! To allocate each entry, and to retire it, would take longer than all else that is done for it. How long an entry is needed depends on its
//! stamps, and those of entries that a worker makes one after the other are nearly the same. So the entries of a chunk are
//! taken out of the table at nearly the same time, and then the chunk is retired as a whole. It is small, as a single entry that is
//! needed for long keeps it.
//!
//! Values that own something are dropped one by one, as soon as they may be. So they do not come here.

use crate::memory::held_back::holds_back;
use crate::memory::pin::Pin;
use hotrow_sync::atomic::{AtomicUsize, Ordering};
use hotrow_sync::prefetch::prefetch_bytes;
use hotrow_sync::work::{Work, charge};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// The bytes of a chunk that entries may take.
const ROOM: usize = if cfg!(test) { 512 } else { 2048 - 64 };

/// The size from which on an entry has memory of its own.
const ENTRY_MAX: usize = ROOM / 4;

/// The alignment of entries.
const ALIGNMENT: usize = 16;

/// The bytes of a chunk that are fetched before they are used. They were last used when the memory was another chunk, long ago; a commit
/// that links an entry waits until all of it is in the cache.
const AHEAD: usize = 256;

/// More entries than a chunk has room for.
const BIAS: usize = 1 << 16;

/// A chunk.
#[repr(C)]
pub(super) struct Chunk {
    /// The entries that were not taken out of the table, and, as long as entries may be added, more than that: [`BIAS`] less those
    /// that were added.
    left: AtomicUsize,
    room: Room,
}

#[repr(C, align(16))]
struct Room([MaybeUninit<u8>; ROOM]);
const _: () = assert!(align_of::<Room>() == ALIGNMENT);

impl Chunk {
    /// Takes so many away from what keeps a chunk. True if they were the last.
    fn let_go(left: &AtomicUsize, count: usize) -> bool {
        // Release: pairs with the acquire of the last one, so that all entries have been taken out when the chunk is retired (X9).
        left.fetch_sub(count, Ordering::AcqRel) == count
    }

    /// As [`let_go`](Self::let_go), and retires the chunk if nothing keeps it any more.
    ///
    /// # Safety
    ///
    /// The caller has so many, which keep it no more: entries that it has taken out of the table, or the bias.
    unsafe fn leave(chunk: NonNull<Self>, count: usize, pin: &Pin) {
        // SAFETY: what the caller has keeps it in memory. No reference is made to the room, in which the owner may be writing.
        if Self::let_go(unsafe { &(*chunk.as_ptr()).left }, count) {
            // SAFETY: made with `Box`; nothing keeps it, so it is retired once, and nobody finds its entries any more.
            unsafe { pin.retire(chunk.as_ptr()) };
        }
    }

    /// Lets go of an entry's place.
    ///
    /// # Safety
    ///
    /// The entry has its place in the chunk. Threads that pin from now on do not find it, and this is called once for it.
    pub(super) unsafe fn release(chunk: NonNull<Self>, pin: &Pin) {
        // SAFETY: the caller's promise.
        unsafe { Self::leave(chunk, 1, pin) };
    }
}

/// A worker's chunk to which it adds entries.
#[derive(Default)]
pub(crate) struct Chunks {
    open: Option<NonNull<Chunk>>,
    entries: usize,
    bytes: usize,
}

impl Chunks {
    /// A place for an entry that is not dropped, and its chunk, which it keeps. `None` for a large entry, and in a region if the chunk is
    /// full. The pin is the attempt's: nothing is freed before it holds no locks.
    pub(super) fn place<E>(&mut self, pin: &Pin) -> Option<(NonNull<E>, NonNull<Chunk>)> {
        let fits = const { size_of::<E>() <= ENTRY_MAX && align_of::<E>() <= ALIGNMENT };
        if !fits {
            return None;
        }
        let bytes = const { size_of::<E>().next_multiple_of(ALIGNMENT) };
        if self.open.is_none() || self.bytes + bytes > ROOM {
            if holds_back() {
                // An abort would leave the chunk behind.
                return None;
            }
            self.renew(pin);
        }
        let chunk = self.open?;
        // SAFETY: the chunk is kept by its bias, and nobody else has this part of its room.
        let place = unsafe { (&raw mut (*chunk.as_ptr()).room).byte_add(self.bytes) };
        self.entries += 1;
        self.bytes += bytes;
        prefetch_bytes(place.wrapping_byte_add(bytes), AHEAD);
        Some((NonNull::new(place.cast())?, chunk))
    }

    /// Makes sure that a region finds room for some entries.
    pub(crate) fn prepare(&mut self, pin: &Pin) {
        if self.open.is_none() || self.bytes > ROOM / 2 {
            self.renew(pin);
        }
    }

    #[cold]
    fn renew(&mut self, pin: &Pin) {
        self.close(pin);
        charge(Work::Allocation);
        let mut chunk = Box::<Chunk>::new_uninit();
        // SAFETY: the rest of the chunk need not be initialized.
        unsafe { (&raw mut (*chunk.as_mut_ptr()).left).write(AtomicUsize::new(BIAS)) };
        // SAFETY: as above.
        let chunk = Box::leak(unsafe { chunk.assume_init() });
        prefetch_bytes(&raw const chunk.room, AHEAD);
        self.open = Some(NonNull::from(chunk));
    }

    /// Adds no more entries to the chunk.
    fn close(&mut self, pin: &Pin) {
        let Some(chunk) = self.open.take() else { return };
        let left = BIAS - std::mem::take(&mut self.entries);
        self.bytes = 0;
        // SAFETY: the bias is this worker's, but for the entries.
        unsafe { Chunk::leave(chunk, left, pin) };
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        if self.open.is_some() {
            self.close(&Pin::new());
        }
    }
}

// SAFETY: the chunk to which entries are added is its owner's alone, but for the count.
unsafe impl Send for Chunks {}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use hotrow_sync::Arc;
    use hotrow_sync::model::{Model, Part};
    use hotrow_sync::thread::spawn;

    #[test]
    fn whoever_lets_go_of_a_chunk_last_knows_that_all_entries_were_taken_out() {
        Model::new().needs(Part::UPDATES).check(|| {
            let (left, is_out) = (Arc::new(AtomicUsize::new(2)), Arc::new(AtomicUsize::new(0)));
            let (other_left, other_is_out) = (left.clone(), is_out.clone());
            let other = spawn(move || {
                // As the link to an entry.
                other_is_out.store(1, Ordering::Relaxed);
                Chunk::let_go(&other_left, 1)
            });
            let is_last = Chunk::let_go(&left, 1);
            if is_last {
                assert_eq!(is_out.load(Ordering::Relaxed), 1);
            }
            assert!(other.join().unwrap() != is_last);
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    type Entry = [u64; 8];

    #[test]
    fn entries_lie_apart_and_a_chunk_is_kept_by_the_last_of_them() {
        let mut chunks = Chunks::default();
        let pin = Pin::new();
        let mut places: Vec<_> = (0..40).map(|_| chunks.place::<Entry>(&pin).expect("it fits")).collect();
        for (number, (place, _)) in places.iter().enumerate() {
            assert_eq!(place.addr().get() % ALIGNMENT, 0);
            // SAFETY: the place is this test's.
            unsafe { place.write([number as u64; 8]) };
        }
        drop(chunks);
        for (number, (place, _)) in places.iter().enumerate() {
            // SAFETY: the entry keeps its chunk.
            assert_eq!(unsafe { place.read() }, [number as u64; 8]);
        }
        places.dedup_by_key(|(_, chunk)| *chunk);
        let per_chunk = ROOM / size_of::<Entry>();
        assert_eq!(places.len(), 40_usize.div_ceil(per_chunk));
        // SAFETY: as above; each chunk has all of its entries but in the last one.
        let left = |chunk: NonNull<Chunk>| unsafe { &(*chunk.as_ptr()).left }.load(Ordering::Relaxed);
        let all: usize = places.iter().map(|(_, chunk)| left(*chunk)).sum();
        assert_eq!(all, 40);
        for (_, chunk) in places {
            for _ in 0..left(chunk) {
                // SAFETY: no entry is used any more; the epoch is pinned, so that the count can be read afterwards.
                unsafe { Chunk::release(chunk, &pin) };
            }
        }
    }

    #[test]
    fn what_is_large_has_memory_of_its_own() {
        let mut chunks = Chunks::default();
        assert!(chunks.place::<[u64; ENTRY_MAX / 8 + 1]>(&Pin::new()).is_none());
        assert!(chunks.open.is_none());
    }
}
