//! Boosting: transactions over a concurrent map that knows nothing of them (sto §5.3; Herlihy and Koskinen, "Transactional
//! Boosting", PPoPP 2008).
//!
//! # How
//!
//! An operation takes the *abstract lock* of its key, works on the map at once, and notes how its effect is taken back. If
//! the transaction does not commit, the effects are taken back, the last one first. The locks are held to its end (strict
//! two-phase locking), so that operations on different keys run at the same time, and those on the same key one after the
//! other.
//!
//! The map is not modified: any that implements [`ConcurrentMap`] will do.
//!
//! Each abstract lock is a segment, too, which an operation reads under it, and writes if it changes the map. A
//! transaction that has waited for the abstract lock finds the segment unlocked, because the lock is released later. So it adds no conflicts between operations
//! on the map, but tells the protocol the order of the transactions: one that commits in logical time (`tictoc`), or does not
//! validate its reads at the commit (`tl2`), may not come before a transaction whose effect it has seen in the map, and an
//! opaque one checks what it has read before.
//!
//! # Costs
//!
//! Each operation has two lookups, of the lock and in the map, and each effect a note on the heap. A lock may stand for several
//! keys. A transaction that finds a lock taken waits for a moment only, and then starts over, so that there is no deadlock.
//! Reads take the lock, too: the paper's have a shared mode.
//!
//! [`THashMap`](https://docs.rs/hotrow/latest/hotrow/type.THashMap.html) under a protocol that locks (`wait-die`, say) is the
//! pessimistic hash table of the same section.

use hotrow_core::{Abort, Engine, ObjectMeta, Protocol, Reason, SegmentArray, Transaction};
use hotrow_protocols::Occ;
use hotrow_sync::Arc;
use hotrow_sync::atomic::{AtomicU64, Ordering};
use hotrow_sync::hashing::KeyHashing;
use hotrow_sync::spin::Spin;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;

/// A concurrent map that can be boosted. Each operation happens at one moment, whatever other threads do.
pub trait ConcurrentMap<K, V>: Send + Sync + 'static {
    /// Returns a copy of the value of a key.
    fn get(&self, key: &K) -> Option<V>;

    /// Inserts a value or replaces the one of the key, and returns that.
    fn insert(&self, key: K, value: V) -> Option<V>;

    /// Removes a key, and returns its value.
    fn remove(&self, key: &K) -> Option<V>;
}

/// A transactional map over a concurrent map that knows nothing of transactions.
///
/// ```
/// use hotrow_core::Engine;
/// use hotrow_objects::{ConcurrentMap, TBoostedMap};
/// use hotrow_protocols::Occ;
/// use std::collections::HashMap;
/// use std::sync::Mutex;
///
/// struct Guarded(Mutex<HashMap<u64, u64>>);
///
/// impl ConcurrentMap<u64, u64> for Guarded {
///     fn get(&self, key: &u64) -> Option<u64> {
///         self.0.lock().unwrap().get(key).copied()
///     }
///     fn insert(&self, key: u64, value: u64) -> Option<u64> {
///         self.0.lock().unwrap().insert(key, value)
///     }
///     fn remove(&self, key: &u64) -> Option<u64> {
///         self.0.lock().unwrap().remove(key)
///     }
/// }
///
/// let engine = Engine::<Occ>::new();
/// let stock = TBoostedMap::new(&engine, Guarded(Mutex::default()));
/// engine.transact(|tx| stock.insert(tx, 1, 10).map(drop))?;
/// let undone = engine.transact(|tx| {
///     stock.insert(tx, 1, 11)?;
///     tx.ensure(false, "no")
/// });
/// assert!(undone.is_err());
/// assert_eq!(engine.transact(|tx| stock.get(tx, &1))?, Some(10));
/// # Ok::<(), hotrow_core::Error>(())
/// ```
pub struct TBoostedMap<K, V, M, P: Protocol = Occ> {
    shared: Arc<Boosted<M>>,
    /// One for each abstract lock.
    segments: SegmentArray<(), P>,
    meta: ObjectMeta,
    hasher: KeyHashing,
    content: PhantomData<fn(K, V, P)>,
}

/// The map and the abstract locks. Effects that may have to be taken back refer to it.
struct Boosted<M> {
    map: M,
    /// For each group of keys, the [owner](hotrow_core::ObjectAccess::owner) of its lock; 0 if it is free.
    locks: Box<[AtomicU64]>,
}

/// An abstract lock that is released at the end.
struct Freed<'l>(&'l AtomicU64);

impl Drop for Freed<'_> {
    fn drop(&mut self) {
        // Release: pairs with the acquire in `take`.
        self.0.store(0, Ordering::Release);
    }
}

/// The default number of abstract locks.
const LOCKS: usize = 1 << 12;

impl<K, V, M, P: Protocol> fmt::Debug for TBoostedMap<K, V, M, P> {
    /// Shows the name only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TBoostedMap").field("name", &self.meta.name()).finish_non_exhaustive()
    }
}

impl<K, V, M, P> TBoostedMap<K, V, M, P>
where
    K: Hash + Clone + fmt::Debug + Send + 'static,
    V: Clone + Send + 'static,
    M: ConcurrentMap<K, V>,
    P: Protocol,
{
    /// Boosts a map. Nobody else may change it from now on.
    pub fn new(engine: &Engine<P>, map: M) -> Self {
        Self::named(engine, "boosted map", map, LOCKS)
    }

    /// As [`new`](Self::new), with a name, for errors and conflict reports, and with this number of abstract locks, at least
    /// one. Two transactions conflict over different keys, too, if these have the same lock: take many times as many as are
    /// held at the same time. A lock takes some 24 bytes. The default is 4,096.
    pub fn named(engine: &Engine<P>, name: impl Into<String>, map: M, locks: usize) -> Self {
        let name = name.into();
        let number = locks.max(1);
        let locks = (0..number).map(|_| AtomicU64::new(0)).collect();
        Self {
            shared: Arc::new(Boosted { map, locks }),
            segments: SegmentArray::new(engine, format!("{name}'s locks"), std::iter::repeat_n((), number)),
            meta: ObjectMeta::new(engine.id(), name),
            hasher: KeyHashing::new(),
            content: PhantomData,
        }
    }

    /// Returns a copy of the value of a key; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    pub fn get(&self, tx: &mut Transaction<'_, P>, key: &K) -> Result<Option<V>, Abort> {
        if !tx.enter(&self.meta)?.keeps_reads() {
            let (lock, is_new) = self.take(tx, key)?;
            let _free = is_new.then(|| Freed(&self.shared.locks[lock]));
            return Ok(self.shared.map.get(key));
        }
        let lock = self.lock(tx, key)?;
        self.segments.enter(tx, lock)?.read(|()| ())?;
        Ok(self.shared.map.get(key))
    }

    /// Inserts a value, or replaces the one of this key, and returns what was replaced.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn insert(&self, tx: &mut Transaction<'_, P>, key: K, value: V) -> Result<Option<V>, Abort> {
        let before = self.begin_change(tx, &key)?;
        self.shared.map.insert(key, value);
        Ok(before)
    }

    /// Removes a key, and returns its value.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn remove(&self, tx: &mut Transaction<'_, P>, key: &K) -> Result<Option<V>, Abort> {
        let before = self.begin_change(tx, key)?;
        self.shared.map.remove(key);
        Ok(before)
    }

    /// Changes the value of a key, and returns what the change returns; `None` if the map has no such key.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn update<R>(
        &self,
        tx: &mut Transaction<'_, P>,
        key: &K,
        change: impl FnOnce(&mut V) -> R,
    ) -> Result<Option<R>, Abort> {
        let Some(mut value) = self.begin_change(tx, key)? else { return Ok(None) };
        let result = change(&mut value);
        self.shared.map.insert(key.clone(), value);
        Ok(Some(result))
    }

    /// Takes the abstract lock of a key until the transaction ends, and returns its number.
    fn lock(&self, tx: &mut Transaction<'_, P>, key: &K) -> Result<usize, Abort> {
        let (at, is_new) = self.take(tx, key)?;
        if is_new {
            let shared = self.shared.clone();
            tx.enter(&self.meta)?.at_end(move |_| drop(Freed(&shared.locks[at])));
        }
        Ok(at)
    }

    /// Takes the abstract lock of a key, unless the transaction has it, and returns its number, and true if it was taken now.
    fn take(&self, tx: &mut Transaction<'_, P>, key: &K) -> Result<(usize, bool), Abort> {
        let hash = self.hasher.hash_one(key);
        let tx = tx.enter(&self.meta)?;
        if tx.is_on_snapshot() {
            return Err(tx.snapshot_mut().no_snapshots(&self.meta));
        }
        let at = hash as usize % self.shared.locks.len();
        let (lock, owner) = (&self.shared.locks[at], tx.owner());
        let mut spin = Spin::new();
        loop {
            // Acquire: pairs with the release in `Freed`, so that what the holder before has done to the map is visible.
            match lock.compare_exchange(0, owner, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Ok((at, true)),
                // The attempt itself: no other one has this number.
                Err(holder) if holder == owner => return Ok((at, false)),
                Err(_) if spin.turn() => {}
                Err(_) => {
                    return Err(
                        tx.conflict_over(&self.meta, Reason::WriteLocked, hash, || format!("{key:?}"))
                    );
                }
            }
        }
    }

    /// Locks a key, notes how it gets its present value again, and returns that.
    fn begin_change(&self, tx: &mut Transaction<'_, P>, key: &K) -> Result<Option<V>, Abort> {
        let lock = self.lock(tx, key)?;
        // Read, too: under an opaque protocol what is found in the map must be of the same state as all seen before.
        self.segments.enter(tx, lock)?.update(|()| ())?;
        let (shared, key) = (self.shared.clone(), key.clone());
        let before = shared.map.get(&key);
        let found = before.clone();
        tx.enter(&self.meta)?.on_undo(move || {
            match before {
                Some(value) => shared.map.insert(key, value),
                None => shared.map.remove(&key),
            };
        });
        Ok(found)
    }
}
