//! Growing: the larger array and the migration to it. The protocol is described in the [module](super).

use super::array::Array;
use super::bucket::{Bucket, Pushed, free_chain};
use super::hashing::Hash64;
use super::{HashIndex, Keyed};
use crate::index::interleaving::interleaving_point;
use crate::index::tagged::Entry;
use hotrow_core::epoch::Guard;
use hotrow_core::retire_with;
use hotrow_sync::atomic::Ordering;
use std::hash::Hash;
use std::ptr::{NonNull, null_mut};

/// The number of parents that an insertion migrates besides its own.
///
/// An array grows at about five entries a bucket, and then has room for as many insertions. So half of these
/// migrations would be enough.
const HELPED: usize = 2;

impl<T> HashIndex<T>
where
    T: Keyed,
    T::Key: Hash + Eq,
{
    /// Installs an array twice as large as `array`, unless there is one or `array` is itself still filling.
    #[cold]
    pub(super) fn grow(&self, array: &Array<T>) {
        // Acquire: pairs with the release in `migrate`, after which no thread needs the parent any more.
        if !array.parent.load(Ordering::Acquire).is_null() || !array.child.load(Ordering::Relaxed).is_null() {
            return;
        }
        let parent = self.current.load(Ordering::Relaxed);
        if !std::ptr::eq(parent, array) {
            return;
        }
        let child = Box::into_raw(Box::new(Array::unready(2 * array.buckets().len(), parent)));
        // Release: pairs with the acquire in `for_each_from`.
        if array.child.compare_exchange(null_mut(), child, Ordering::Release, Ordering::Relaxed).is_err() {
            // SAFETY: made above, and no other thread has seen it.
            drop(unsafe { Box::from_raw(child) });
            return;
        }
        // Release: pairs with the acquire in `current`. Only the thread that linked the child comes here, and only
        // while `array` is current: it has no child, and no array before it is being migrated.
        self.current.store(child, Ordering::Release);
    }

    /// Migrates a few buckets if the index is growing.
    #[inline(always)]
    pub(super) fn help_to_grow(&self, guard: &Guard) {
        let array = self.current(guard);
        if !array.parent.load(Ordering::Relaxed).is_null() {
            self.migrate_some(array, guard);
        }
    }

    #[cold]
    fn migrate_some(&self, array: &Array<T>, guard: &Guard) {
        let Some(parent) = Self::parent(array, guard) else { return };
        // Relaxed: the counter only hands out numbers.
        let first = array.next_to_migrate.fetch_add(HELPED, Ordering::Relaxed);
        for at in first..(first + HELPED).min(parent.buckets().len()) {
            self.migrate(array, parent, at, guard);
        }
    }

    /// Makes bucket `at` of `array` ready.
    #[cold]
    pub(super) fn make_ready(&self, array: &Array<T>, at: usize, guard: &Guard) {
        // Without a parent all buckets are ready.
        if let Some(parent) = Self::parent(array, guard) {
            self.migrate(array, parent, at / 2, guard);
        }
    }

    fn parent<'g>(array: &Array<T>, _guard: &'g Guard) -> Option<&'g Array<T>> {
        // SAFETY: acquire pairs with the release in `grow`, which published the array and this pointer, and
        // with the one in `migrate`; a parent is freed through the epoch after the pointer became null.
        unsafe { array.parent.load(Ordering::Acquire).as_ref() }
    }

    /// Moves the entries of bucket `at` of `parent` to its two children, unless that has been done.
    fn migrate(&self, array: &Array<T>, parent: &Array<T>, at: usize, guard: &Guard) {
        let bucket = &parent.buckets()[at];
        bucket.prefetch_records(None, 1);
        let mut entries: Vec<(Entry<T>, Hash64)> = Vec::new();
        loop {
            // `None`: another thread has migrated the bucket. The acquire in `stable` shows the children ready.
            let Some(version) = bucket.version.stable() else { return };
            entries.clear();
            bucket.for_each(|record| {
                // SAFETY: found in a chain under a pinned epoch, so it has not been freed.
                let hash = Hash64::of(unsafe { record.as_ref() }.key(), &self.hashing);
                entries.push((Entry::new(record, hash.tag()), hash));
            });
            // INVARIANT 35: No key's own code runs while a latch of the hash index or of the ordered index is held.
            if bucket.version.try_lock_at(version) {
                break;
            }
        }
        let children = &array.buckets()[2 * at..2 * at + 2];
        for (child, number) in children.iter().zip(2 * at..) {
            // Until the parent is retired no other thread may touch the children. The latch is needed because an
            // overflow bucket makes a child look ready.
            let fresh = child.version.lock();
            // INVARIANT 34: A bucket and its children are never both unlatched and in use.
            debug_assert_eq!(fresh, Some(0));
            child.version.set_number(number);
        }
        for (entry, hash) in entries.drain(..) {
            // The clamp keeps the entry in one of the two children even if the key's hash is inconsistent.
            let child = array.position(hash).clamp(2 * at, 2 * at + 1);
            if children[child - 2 * at].push(entry) == Pushed::Bucket {
                array.overflow_added(child);
            }
            // Latches are held here, so that an action at this moment must not wait for the parent or the children.
            interleaving_point();
        }
        for child in children {
            child.make_ready();
            child.version.unlock_unchanged();
        }
        let overflows = bucket.overflows();
        parent.overflows_removed(at, overflows);
        let chain = bucket.take_overflow();
        bucket.version.unlock_retired();
        self.watched.changed(NonNull::from(&bucket.version));
        if let Some(chain) = chain {
            // SAFETY: taken out of the bucket, which is retired, and deferred once.
            unsafe { retire_with(guard, overflows * size_of::<Bucket<T>>(), move || free_chain(chain)) };
        }
        // Acquire and release: the thread that counts the last bucket has seen all other migrations.
        let migrated = array.migrated.fetch_add(1, Ordering::AcqRel) + 1;
        if migrated == parent.buckets().len() {
            // Release: pairs with the acquire in `parent` and `grow`. Only one thread counts the last bucket.
            let bytes = parent.memory_bytes();
            let parent = array.parent.swap(null_mut(), Ordering::AcqRel);
            // SAFETY: the parent is not current, no array links to it any more, and it is deferred once.
            unsafe { retire_with(guard, bytes, move || drop(Box::from_raw(parent))) };
        }
    }
}
