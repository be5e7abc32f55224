//! The table of superseded values, by segment.
//!
//! # Shape
//!
//! A hash table of lists, found by the segment's address. The lists are read without a lock: an entry is complete before it is
//! put at the head of its list, and is freed through the epoch after it was taken out. Entries are put in by commits, which
//! hold their segment's lock, and taken out by sweeps, one at a time in each list: a mutex for several lists, which nobody
//! waits for.
//!
//! The table grows by another, larger level, which new entries go to. A segment's entries may so be in several lists, in no
//! order; those who look for one look at all. What virtual cores of a simulation keep has a level of its own, whose lists do not
//! depend on addresses, and which is found from outside, too, as they find what was kept outside.
//!
//! # The address is not enough
//!
//! A segment's memory may be used again by another segment. If that is of another object, the entry's object number differs. If it
//! is of the same object, the old segment was freed when no snapshot could reach it any more, which is when no snapshot needs its
//! entries: what is found for a snapshot's number is of the new segment, and of the same type.

mod chunks;
mod handing_over;
mod own_epochs;

pub(crate) use chunks::Chunks;
pub use handing_over::{Keeper, Redo};
pub(crate) use own_epochs::{Found, note_epoch};

use crate::memory::held_back::made_in_region;
use crate::memory::pin::Pin;
use chunks::Chunk;
use hotrow_sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use hotrow_sync::prefetch::prefetch;
use hotrow_sync::thread::quietly;
use hotrow_sync::work::{Work, charge, charge_block, charge_times};
use hotrow_sync::{Mutex, OnceLock, thread, try_lock};
use std::array;
use std::collections::VecDeque;
use std::mem::{ManuallyDrop, MaybeUninit, needs_drop};
use std::ptr::{NonNull, null_mut};

/// The number of lists in the first level, and by how much each further one has more, as powers of two.
const FIRST_BITS: u32 = if cfg!(test) { 1 } else { 12 };
const STEP_BITS: u32 = if cfg!(test) { 1 } else { 4 };
const LEVELS: usize = 5;

/// The level for what is kept in a simulation: in it addresses must not decide what is freed first, and so where later allocations lie.
const SIMULATED: usize = LEVELS - 1;

/// The number of entries for each list at which the next level is used.
const LOAD_MAX: usize = if cfg!(test) { 1 } else { 2 };

/// The number of places of a sweep by which the first entry of a list is fetched ahead.
const AHEAD: usize = 4;

/// The number of mutexes for the lists.
const STRIPES: usize = if cfg!(test) { 2 } else { 64 };

/// A segment: its address and its object's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentId {
    pub(crate) address: usize,
    pub(crate) object: u32,
}

/// The part of an entry that does not depend on its type.
#[repr(C)]
pub(crate) struct EntryHead {
    next: AtomicPtr<EntryHead>,
    segment: SegmentId,
    /// The stamp of the commit that has replaced the value. It changes if a transaction in pieces that comes before that
    /// commit makes its change later ([`Versions::split`]).
    superseded: AtomicU64,
    /// The stamp of the commit that has superseded the version before; 0 if there was none in the table.
    since: u64,
    /// The version in the history, if one is recorded.
    pub(crate) history: u64,
    bytes: usize,
    /// True if the value was not replaced after all.
    is_void: AtomicBool,
    /// The chunk that it lies in; `None` if it has a box of its own.
    chunk: Option<NonNull<Chunk>>,
    /// Retires the box, or lets go of the place in the chunk.
    retire: unsafe fn(NonNull<EntryHead>, &Pin),
}

/// An entry with its value.
#[repr(C)]
struct Entry<V> {
    head: EntryHead,
    value: ManuallyDrop<V>,
}

impl<V> Drop for Entry<V> {
    fn drop(&mut self) {
        // Relaxed: `&mut self` proves that no other thread uses the entry.
        if !self.head.is_void.load(Ordering::Relaxed) {
            // SAFETY: dropped here only. The value owns what it does, because it was replaced.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

impl EntryHead {
    /// Returns the value.
    ///
    /// # Safety
    ///
    /// The entry was made with a value of this type, and was found under a pin that lives as long as the reference.
    pub(crate) unsafe fn value<'a, V>(entry: NonNull<Self>) -> &'a V {
        // SAFETY: the head is the first field of a `repr(C)` struct; the rest is the caller's promise.
        unsafe { &entry.cast::<Entry<V>>().as_ref().value }
    }

    /// The bytes of an entry, and of what its value owns.
    pub(crate) fn bytes(entry: NonNull<Self>) -> usize {
        // SAFETY: the caller has made the entry in its commit, which is pinned.
        unsafe { entry.as_ref() }.bytes
    }

    /// The stamp of the commit that has replaced the value.
    fn superseded(&self) -> u64 {
        // Relaxed: `Versions::split` says why either value is right.
        self.superseded.load(Ordering::Relaxed)
    }

    /// Takes back an entry whose value was not replaced after all. The caller holds the segment's lock, and the value is still
    /// the segment's.
    pub(crate) fn make_void(&self) {
        // Release: pairs with the acquire in `find`.
        self.is_void.store(true, Ordering::Release);
    }
}

/// In place of an entry's version in the history: no version there has the entry's value, because the changes in it are not those
/// up to a version.
pub(crate) const UNRECORDED: u64 = u64::MAX;

/// Where an entry is, and for which snapshots.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    level: u32,
    list: u32,
    since: u64,
    superseded: u64,
}

/// The numbers of the snapshots that are open or may be opened. They may be used at any later time: what is kept meanwhile is needed.
pub(crate) struct OpenNumbers {
    /// Snapshots with this number or a greater one may come at any time.
    pub(crate) coming: u64,
    /// Sorted.
    pub(crate) numbers: Vec<u64>,
}

impl OpenNumbers {
    /// The lowest of them.
    pub(crate) fn oldest(&self) -> u64 {
        let numbers = self.numbers.iter().copied().filter(|number| *number != 0);
        numbers.fold(self.coming, u64::min)
    }

    /// True if a value that was current for the snapshots with numbers above `from` and up to `to` may still be read.
    pub(crate) fn may_need(&self, from: u64, to: u64) -> bool {
        let first = self.numbers.partition_point(|number| *number <= from);
        to >= self.coming || self.numbers.get(first).is_some_and(|number| *number <= to)
    }
}

type List = AtomicPtr<EntryHead>;

pub(crate) struct Versions {
    levels: [OnceLock<Box<[List]>>; LEVELS],
    /// The number of entries in each level.
    counts: [AtomicUsize; LEVELS],
    bytes: AtomicUsize,
    /// The list that the next bounded sweep begins with.
    cursor: AtomicUsize,
    stripes: [Mutex<()>; STRIPES],
}

impl Versions {
    pub(crate) fn new() -> Self {
        Self {
            levels: array::from_fn(|_| OnceLock::new()),
            counts: array::from_fn(|_| AtomicUsize::new(0)),
            bytes: AtomicUsize::new(0),
            cursor: AtomicUsize::new(0),
            stripes: array::from_fn(|_| Mutex::new(())),
        }
    }

    /// The number of entries, and their bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        // Relaxed: counts.
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        // An entry may be swept before its bytes are counted.
        let bytes = self.bytes.load(Ordering::Relaxed).cast_signed().max(0).cast_unsigned();
        (counts.sum(), bytes)
    }

    /// The levels that have entries.
    fn filled_levels(&self) -> impl Iterator<Item = (usize, &[List])> {
        self.used_levels().filter(|(level, _)| self.counts[*level].load(Ordering::Relaxed) > 0)
    }

    fn bits(level: usize) -> u32 {
        if level == SIMULATED { FIRST_BITS } else { FIRST_BITS + STEP_BITS * level as u32 }
    }

    /// Returns a segment's position among the lists of a level.
    fn position(segment: SegmentId, level: usize) -> usize {
        let address = if level == SIMULATED { segment.object as usize } else { segment.address >> 3 };
        // Segments are aligned to eight bytes. The multiplier is that of Fibonacci hashing.
        let hash = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash >> (64 - Self::bits(level))) as usize
    }

    fn used_levels(&self) -> impl Iterator<Item = (usize, &[List])> {
        let levels = self.levels.iter().enumerate();
        levels.filter_map(|(level, lists)| lists.get().map(|lists| (level, &**lists)))
    }

    /// Calls a function with each entry of a segment.
    fn visit(&self, segment: SegmentId, pin: &Pin, visit: impl FnMut(NonNull<EntryHead>, &EntryHead)) {
        // The lists depend on addresses, and so must not be a part of a simulated run that is to be had again.
        charge(Work::Hash);
        quietly(|| self.visit_quietly(segment, pin, visit));
    }

    fn visit_quietly(
        &self,
        segment: SegmentId,
        _pin: &Pin,
        mut visit: impl FnMut(NonNull<EntryHead>, &EntryHead),
    ) {
        // An entry is counted before it is in its list, and until it is taken out. So who finds a level empty would find none of those
        // there either that it must find.
        for (level, lists) in self.filled_levels() {
            // Acquire: pairs with the release in `keep`, so that the entry is complete.
            let mut at = lists[Self::position(segment, level)].load(Ordering::Acquire);
            while let Some(entry) = NonNull::new(at) {
                // SAFETY: found in the list under the pin, so it is not freed yet.
                let head = unsafe { entry.as_ref() };
                // Acquire: pairs with the release in `is_void`'s store.
                if head.segment == segment && !head.is_void.load(Ordering::Acquire) {
                    visit(entry, head);
                }
                at = head.next.load(Ordering::Acquire);
            }
        }
    }

    /// Finds the value that a segment had for a snapshot, if it was replaced since. The caller has loaded the segment before, with
    /// an acquire fence after that.
    pub(crate) fn find(&self, segment: SegmentId, snapshot: u64, pin: &Pin) -> Option<NonNull<EntryHead>> {
        let mut found: Option<(NonNull<EntryHead>, u64)> = None;
        self.visit(segment, pin, |entry, head| {
            let superseded = head.superseded();
            if superseded >= snapshot && found.is_none_or(|(_, first)| superseded < first) {
                found = Some((entry, superseded));
            }
        });
        found.map(|(entry, _)| entry)
    }

    /// The stamp at which the present value of a segment has superseded another one; 0 if the table does not know.
    pub(crate) fn latest(&self, segment: SegmentId, pin: &Pin) -> u64 {
        let mut latest = 0;
        self.visit(segment, pin, |_, head| latest = latest.max(head.superseded()));
        latest
    }

    /// The versions of a segment that commits with greater stamps have superseded.
    pub(crate) fn superseded_after(
        &self,
        segment: SegmentId,
        stamp: u64,
        pin: &Pin,
    ) -> Vec<NonNull<EntryHead>> {
        let mut found = Vec::new();
        self.visit(segment, pin, |entry, head| {
            if head.superseded() > stamp {
                found.push(entry);
            }
        });
        found
    }

    /// The stamp up to which no snapshot needs a version of a segment; the greatest of all if there is none.
    pub(crate) fn since(&self, segment: SegmentId, pin: &Pin) -> u64 {
        let mut since = u64::MAX;
        self.visit(segment, pin, |_, head| since = since.min(head.since));
        since
    }

    /// Keeps the present value of a segment, which is going to be replaced. `since` is what [`latest`](Self::latest) says.
    /// The caller holds the segment's lock, and has a fence between this and the installation.
    pub(crate) fn keep<V: Send + 'static>(
        &self,
        segment: SegmentId,
        stamps: (u64, u64),
        history: u64,
        value: V,
        heap_bytes: usize,
    ) -> NonNull<EntryHead> {
        let entry = Self::make(None, segment, stamps, history, value, heap_bytes);
        self.put(self.make_room(1), entry);
        self.count_bytes(EntryHead::bytes(entry));
        entry
    }

    /// The place of an entry that is put in a level.
    pub(crate) fn place_of(level: usize, entry: NonNull<EntryHead>) -> Place {
        // SAFETY: the caller's commit has made it, which is pinned.
        let head = unsafe { entry.as_ref() };
        let list = Self::position(head.segment, level) as u32;
        // Nothing may come between the end of a simulated region and the last of its entries.
        let superseded = quietly(|| head.superseded());
        Place { level: level as u32, list, since: head.since, superseded }
    }

    /// Makes an entry for [`keep`](Self::keep) that is not in the table yet, in one of the worker's chunks if it is of their kind.
    pub(crate) fn make<V: Send + 'static>(
        chunks: Option<(&mut Chunks, &Pin)>,
        segment: SegmentId,
        (since, superseded): (u64, u64),
        history: u64,
        value: V,
        heap_bytes: usize,
    ) -> NonNull<EntryHead> {
        let bytes = size_of::<Entry<V>>() + heap_bytes;
        // A value that owns something is dropped as soon as it may be.
        let chunks = chunks.filter(|_| !needs_drop::<V>());
        let place = chunks.and_then(|(chunks, pin)| chunks.place::<Entry<V>>(pin));
        let head = EntryHead {
            next: AtomicPtr::new(null_mut()),
            segment,
            superseded: AtomicU64::new(superseded),
            since,
            history,
            bytes,
            is_void: AtomicBool::new(false),
            chunk: place.map(|(_, chunk)| chunk),
            retire: if place.is_some() { leave_chunk } else { retire::<V> },
        };
        let entry = Entry { head, value: ManuallyDrop::new(value) };
        let Some((place, _)) = place else {
            let entry = Box::into_raw(Box::new(entry));
            // SAFETY: if the region is aborted, nobody has the entry, and nobody uses it.
            unsafe { made_in_region(entry.cast(), free_unused::<V>) };
            charge_block(|| bytes);
            return NonNull::new(entry.cast::<EntryHead>()).expect("a box's address");
        };
        // SAFETY: the place is for this entry.
        unsafe { place.write(entry) };
        // SAFETY: as above.
        unsafe { made_in_region(place.as_ptr().cast(), leave_unused) };
        charge_times(Work::Fill, || bytes.div_ceil(64));
        place.cast()
    }

    /// Puts another value between an entry's and its successor: a commit with the stamp `at` has changed what the entry says, and
    /// makes the change only now (dbx-tc, Algorithm 1). The caller holds the segment's lock, and no snapshot that sees that commit is
    /// ready.
    ///
    /// The snapshots for which the entry is still right have numbers up to `at`: they find it at its old stamp and at the new one.
    /// Those for which it is no longer right find nothing in between, but there are none yet.
    pub(crate) fn split<V: Send + 'static>(
        &self,
        entry: NonNull<EntryHead>,
        at: u64,
        value: V,
        heap_bytes: usize,
    ) {
        // SAFETY: found under the caller's pin.
        let head = unsafe { entry.as_ref() };
        let superseded = head.superseded();
        // An entry that another change of the same stamp has put in is right for no snapshot any more, and is found by none.
        let until = if at > head.since { at } else { 0 };
        // Relaxed: see `EntryHead::superseded`.
        head.superseded.store(until, Ordering::Relaxed);
        let stamps = (at.max(head.since), superseded);
        self.keep(head.segment, stamps, UNRECORDED, value, heap_bytes);
    }

    /// Makes room for so many entries, in a level, which it returns: they count as being there.
    pub(crate) fn make_room(&self, entries: usize) -> usize {
        quietly(|| {
            // Relaxed: counts.
            let has_room =
                |level: &usize| self.counts[*level].load(Ordering::Relaxed) <= LOAD_MAX << Self::bits(*level);
            let level = if thread::is_simulated() {
                SIMULATED
            } else {
                (0..SIMULATED - 1).find(has_room).unwrap_or(SIMULATED - 1)
            };
            self.counts[level].fetch_add(entries, Ordering::Relaxed);
            let make = || (0..1 << Self::bits(level)).map(|_| AtomicPtr::new(null_mut())).collect();
            self.levels[level].get_or_init(make);
            level
        })
    }

    /// Gives back room that was not used.
    pub(crate) fn give_back(&self, level: usize, entries: usize) {
        // Relaxed: a count.
        quietly(|| self.counts[level].fetch_sub(entries, Ordering::Relaxed));
    }

    /// Counts the bytes of entries that are in the table. For those of a region, when that has committed.
    pub(crate) fn count_bytes(&self, bytes: usize) {
        // Relaxed: a count.
        quietly(|| self.bytes.fetch_add(bytes, Ordering::Relaxed));
    }

    /// Puts an entry in the table, in a level where there is room for it. One of a region: in the region, where an abort undoes that, or right after
    /// it.
    pub(crate) fn put(&self, level: usize, entry: NonNull<EntryHead>) {
        quietly(|| self.put_in(level, entry));
    }

    /// Puts an entry at the head of its list.
    fn put_in(&self, level: usize, entry: NonNull<EntryHead>) {
        // SAFETY: nobody frees it before it is in the list.
        let head = unsafe { entry.as_ref() };
        let lists = self.levels[level].get().expect("room was made");
        let list = &lists[Self::position(head.segment, level)];
        let mut first = list.load(Ordering::Relaxed);
        loop {
            head.next.store(first, Ordering::Relaxed);
            // Release: pairs with the acquire loads of those who walk along the list. It passes on the entries behind, which
            // were put in by other commits, because it is a part of their release sequence.
            match list.compare_exchange_weak(first, entry.as_ptr(), Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Takes out the entries at the first so many places that are not needed any more, with others in their lists. Other places go to the
    /// end of the queue.
    pub(crate) fn sweep_places(&self, places: &mut VecDeque<Place>, looks: usize, open: &OpenNumbers) {
        // As in `visit`.
        quietly(|| self.sweep_places_quietly(places, looks, open));
    }

    fn sweep_places_quietly(&self, places: &mut VecDeque<Place>, looks: usize, open: &OpenNumbers) {
        let pin = Pin::new();
        // Lists that were swept, by the last bits of their numbers: in a simulation all versions of an object are in one.
        let mut swept = [None; 32];
        for _ in 0..looks.min(places.len()) {
            let Some(place) = places.pop_front() else { return };
            self.prefetch(places);
            let (level, at) = (place.level as usize, place.list as usize);
            let last = &mut swept[at % 32];
            let is_gone = !open.may_need(place.since, place.superseded)
                && (*last == Some((level, at))
                    || self.levels[level]
                        .get()
                        .is_some_and(|lists| self.sweep_list(level, at, &lists[at], open, &pin)));
            if is_gone {
                *last = Some((level, at));
            } else {
                places.push_back(place);
            }
        }
    }

    /// Fetches the list of a place that comes soon, and the first entry of one that comes sooner: they lie wherever addresses have put them.
    #[inline]
    fn prefetch(&self, places: &VecDeque<Place>) {
        let list = |ahead: usize| {
            let place = places.get(ahead)?;
            self.levels[place.level as usize].get().map(|lists| &lists[place.list as usize])
        };
        if let Some(list) = list(2 * AHEAD) {
            prefetch(list);
        }
        if let Some(list) = list(AHEAD) {
            prefetch(list.load(Ordering::Relaxed));
        }
    }

    /// Takes out the entries that are not needed, in the next so many lists.
    pub(crate) fn sweep_some(&self, open: &OpenNumbers, lists: usize) {
        // As in `visit`.
        quietly(|| self.sweep_some_quietly(open, lists));
    }

    fn sweep_some_quietly(&self, open: &OpenNumbers, visited: usize) {
        let total: usize = self.filled_levels().map(|(_, lists)| lists.len()).sum();
        if total == 0 {
            return;
        }
        let pin = Pin::new();
        let first = self.cursor.fetch_add(visited, Ordering::Relaxed);
        for at in first..first + visited.min(total) {
            let mut at = at % total;
            for (level, lists) in self.filled_levels() {
                if let Some(list) = lists.get(at) {
                    self.sweep_list(level, at, list, open, &pin);
                    break;
                }
                at -= lists.len();
            }
        }
    }

    /// Takes out all entries that are not needed.
    pub(crate) fn sweep(&self, open: &OpenNumbers) {
        quietly(|| self.sweep_quietly(open));
    }

    fn sweep_quietly(&self, open: &OpenNumbers) {
        let pin = Pin::new();
        for (level, lists) in self.filled_levels() {
            for (at, list) in lists.iter().enumerate() {
                self.sweep_list(level, at, list, open, &pin);
            }
        }
    }

    /// Takes out the entries of a list that are not needed. False if somebody else is at it. Sweeps meet many empty lists, which cost no call.
    #[inline]
    fn sweep_list(&self, level: usize, at: usize, list: &List, open: &OpenNumbers, pin: &Pin) -> bool {
        list.load(Ordering::Relaxed).is_null() || self.sweep_filled(level, at, list, open, pin)
    }

    /// As [`sweep_list`](Self::sweep_list), of a list that is not empty.
    #[inline(never)]
    fn sweep_filled(&self, level: usize, at: usize, list: &List, open: &OpenNumbers, pin: &Pin) -> bool {
        let Some(_sweeping) = try_lock(&self.stripes[(level + at) % STRIPES]) else { return false };
        let (mut entries, mut bytes) = (0, 0);
        let mut link = list;
        let mut now = link.load(Ordering::Acquire);
        while let Some(entry) = NonNull::new(now) {
            // SAFETY: in the list. Only who holds the stripe's mutex takes entries out.
            let head = unsafe { entry.as_ref() };
            let next = head.next.load(Ordering::Acquire);
            let is_needed =
                !head.is_void.load(Ordering::Relaxed) && open.may_need(head.since, head.superseded());
            if is_needed {
                link = &head.next;
                now = next;
            } else if link.compare_exchange(now, next, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                entries += 1;
                bytes += head.bytes;
                // SAFETY: taken out just now, by this thread alone. Those who pin from now on do not find it.
                unsafe { (head.retire)(entry, pin) };
                now = next;
            } else {
                // Other entries have come before it.
                link = list;
                now = link.load(Ordering::Acquire);
            }
        }
        if entries > 0 {
            self.counts[level].fetch_sub(entries, Ordering::Relaxed);
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        true
    }
}

/// Lets go of an entry's place in a chunk.
///
/// # Safety
///
/// It can be found no more by threads that pin from now on, and this is called once for it.
unsafe fn leave_chunk(entry: NonNull<EntryHead>, pin: &Pin) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(chunk) = entry.as_ref().chunk {
            Chunk::release(chunk, pin);
        }
    }
}

/// As [`leave_chunk`], for an entry of a region that was aborted.
///
/// # Safety
///
/// The entry lies in a chunk. Nobody uses it.
unsafe fn leave_unused(entry: *mut ()) {
    if let Some(entry) = NonNull::new(entry.cast()) {
        // SAFETY: the caller's promise.
        unsafe { leave_chunk(entry, &Pin::new()) };
    }
}

/// Frees an entry of a region that was aborted. Its value is not the entry's, because it was not replaced.
///
/// # Safety
///
/// The entry is one with a value of this type, made with `Box`. Nobody uses it.
unsafe fn free_unused<V>(entry: *mut ()) {
    // SAFETY: the caller's promise; the layout is that of the entry, of which nothing is dropped.
    drop(unsafe { Box::from_raw(entry.cast::<MaybeUninit<Entry<V>>>()) });
}

/// # Safety
///
/// The entry is one with a value of this type, and has a box. It can be found no more by threads that pin from now on, and is retired once.
unsafe fn retire<V: Send + 'static>(entry: NonNull<EntryHead>, pin: &Pin) {
    // SAFETY: the caller's promise.
    let heap_bytes = unsafe { entry.as_ref() }.bytes - size_of::<Entry<V>>();
    // SAFETY: made with `Box`; the rest is the caller's promise.
    unsafe { pin.retire_owning(entry.cast::<Entry<V>>().as_ptr(), heap_bytes) };
}

// SAFETY: entries are `Send` (`keep`), and shared only to be looked at, by those who know their types.
unsafe impl<V: Send> Send for Entry<V> {}

impl Drop for Versions {
    fn drop(&mut self) {
        if cfg!(loom) && thread::panicking() {
            // A model's execution that has failed, as it should: loom would end the process for any access from here on.
            return;
        }
        let pin = Pin::new();
        for (_, lists) in self.used_levels() {
            for list in lists {
                let mut now = list.load(Ordering::Relaxed);
                while let Some(entry) = NonNull::new(now) {
                    // SAFETY: `&mut self`: nobody uses the table. Each entry is in one list, once.
                    unsafe {
                        now = entry.as_ref().next.load(Ordering::Relaxed);
                        (entry.as_ref().retire)(entry, &pin);
                    }
                }
            }
        }
    }
}
