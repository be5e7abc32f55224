//! Recording: the engine's part (keys, their words, the counter) and an attempt's part (its events so far).

use super::event::{Ended, Event, ReadKind};
use super::{History, KeyName, Keys, WorkerEvents};
use crate::features::history::Recording;
use crate::kernel::abort::Misuse;
use crate::kernel::engine::Engine;
use crate::kernel::item::ItemId;
use crate::kernel::object::WriteKind;
use crate::kernel::protocol::Protocol;
use crate::memory::identity::ObjectMeta;
use crate::memory::identity::WorkerId;
use hotrow_sync::Arc;
use hotrow_sync::atomic::instrument::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use hotrow_sync::hashing::KeyHashing;
use hotrow_sync::instrument::{Mutex, lock};
use hotrow_sync::region;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::ops::Bound;

/// A key as the recorder knows it: its number in the history, and its installed version.
#[derive(Debug)]
pub(crate) struct RecordedKey {
    key: u32,
    /// The installed version. It is loaded in the same `load` as the value and stored in the same installation, so the
    /// ordering of the value's own words orders this one too. The accesses are also acquire and release, for
    /// `HistoryAccess::observe_absence`, which has no lock: a thread that sees an insertion's version sees the earlier
    /// change of the bucket or leaf.
    version: AtomicU64,
}

impl RecordedKey {
    pub(crate) fn version(&self) -> u64 {
        region::note(&raw const self.version, false);
        self.version.load(Ordering::Acquire)
    }
}

/// A key's name, as the recorder asks for it.
pub(crate) trait Named {
    /// Appends the bytes for machines (see [`KeyName::order`]).
    fn bytes(&self, bytes: &mut Vec<u8>);
    /// The text for people; asked for only when the key is new.
    fn text(&self) -> String;
}

/// A key named by its datatype.
pub(crate) struct NamedKey<'k> {
    pub(crate) key: &'k dyn Debug,
    pub(crate) bytes: &'k dyn Fn(&mut Vec<u8>),
}

impl Named for NamedKey<'_> {
    fn bytes(&self, bytes: &mut Vec<u8>) {
        (self.bytes)(bytes);
    }

    fn text(&self) -> String {
        format!("{:?}", self.key)
    }
}

/// Number of mutexes over which keys are spread.
const SHARDS: usize = 64;

/// Memory that a key takes beside its bytes: for its word and its place in the map.
const KEY_BYTES: usize = 120;

/// An engine's recorder.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// The next version or stamp. Begins at 1: version 0 is the state before the recording.
    counter: AtomicU64,
    closed: AtomicBool,
    /// True if the history was taken.
    finished: AtomicBool,
    used: AtomicUsize,
    bound: usize,
    /// The map's order is the order in which its entries are freed, and so decides the addresses of the process's later allocations:
    /// where runs are repeated, hashes must be the same.
    shards: [Mutex<HashMap<Box<[u8]>, Arc<RecordedKey>, KeyHashing>>; SHARDS],
    names: Mutex<Names>,
    workers: Mutex<BTreeMap<u32, Arc<Mutex<Vec<u8>>>>>,
}

#[derive(Debug, Default)]
struct Names {
    objects: Vec<String>,
    /// Maps an object's number in the process to its number in the history.
    numbers: HashMap<u32, u32, KeyHashing>,
    keys: Keys,
}

impl Names {
    fn object(&mut self, meta: &ObjectMeta) -> u32 {
        let Self { objects, numbers, .. } = self;
        *numbers.entry(meta.number()).or_insert_with(|| {
            objects.push(meta.name().to_owned());
            objects.len() as u32 - 1
        })
    }
}

impl Recorder {
    pub(crate) fn new(bound: usize) -> Self {
        Self {
            counter: AtomicU64::new(1),
            closed: AtomicBool::new(false),
            finished: AtomicBool::new(false),
            used: AtomicUsize::new(0),
            bound,
            shards: std::array::from_fn(|_| Mutex::default()),
            names: Mutex::default(),
            workers: Mutex::default(),
        }
    }

    /// True if attempts that begin now are recorded.
    pub(crate) fn is_open(&self) -> bool {
        // Relaxed: one attempt more or less may be recorded.
        !self.closed.load(Ordering::Relaxed)
    }

    /// True if the history was taken: nobody asks for versions any more.
    pub(super) fn is_finished(&self) -> bool {
        // Relaxed: one version more or less may be named.
        self.finished.load(Ordering::Relaxed)
    }

    /// Returns the counter: a moment after all numbers already taken, and before all later ones.
    pub(crate) fn stamp(&self) -> u64 {
        // Sequentially consistent, like `next`: an attempt whose end took a smaller number has ended before.
        self.counter.load(Ordering::SeqCst)
    }

    /// Takes a number that nobody else has.
    fn next(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::SeqCst)
    }

    fn use_memory(&self, bytes: usize) {
        // Relaxed: the bound is not exact.
        if self.used.fetch_add(bytes, Ordering::Relaxed) + bytes > self.bound {
            self.closed.store(true, Ordering::Relaxed);
        }
    }

    /// Makes a key's bytes, and returns its shard.
    fn shard_of(meta: &ObjectMeta, bytes: &mut Vec<u8>, key: &dyn Named) -> usize {
        bytes.clear();
        bytes.extend_from_slice(&meta.number().to_be_bytes());
        key.bytes(bytes);
        // Keys differ most in their last bytes.
        bytes.iter().rev().take(4).fold(0, |sum, byte| sum * 31 + usize::from(*byte)) % SHARDS
    }

    /// Returns the installed version of a key; 0, the initial one, of a key that is not known.
    pub(super) fn version_of(&self, meta: &ObjectMeta, key: &dyn Named) -> u64 {
        let mut bytes = Vec::new();
        let shard = Self::shard_of(meta, &mut bytes, key);
        lock(&self.shards[shard]).get(bytes.as_slice()).map_or(0, |recorded| recorded.version())
    }

    fn recorded_key(&self, meta: &ObjectMeta, bytes: &mut Vec<u8>, key: &dyn Named) -> Arc<RecordedKey> {
        let shard = Self::shard_of(meta, bytes, key);
        if let Some(recorded) = lock(&self.shards[shard]).get(bytes.as_slice()) {
            return recorded.clone();
        }
        // Users' code runs here, so not under the lock.
        let text = key.text();
        let mut shard = lock(&self.shards[shard]);
        if let Some(recorded) = shard.get(bytes.as_slice()) {
            return recorded.clone();
        }
        let order = &bytes[4..];
        let mut names = lock(&self.names);
        let object = names.object(meta);
        let key = names.keys.push(KeyName { object, order, text: text.as_bytes() });
        drop(names);
        self.use_memory(KEY_BYTES + bytes.len() + order.len() + text.len());
        let recorded = Arc::new(RecordedKey { key, version: AtomicU64::new(0) });
        shard.insert(bytes.as_slice().into(), recorded.clone());
        recorded
    }

    fn worker(&self, worker: WorkerId) -> Arc<Mutex<Vec<u8>>> {
        lock(&self.workers).entry(worker.number()).or_default().clone()
    }

    /// Ends the recording and returns the history, with the protocol's name and guarantees.
    pub(crate) fn finish(&self, protocol: &str, opaque: bool, strict: bool) -> History {
        let complete = !self.closed.swap(true, Ordering::Relaxed);
        self.finished.store(true, Ordering::Relaxed);
        let workers = lock(&self.workers)
            .iter()
            .map(|(worker, bytes)| WorkerEvents { worker: *worker, bytes: std::mem::take(&mut lock(bytes)) })
            .collect();
        // Taken after the events, so that every key that they name is there.
        let Names { objects, keys, .. } = std::mem::take(&mut *lock(&self.names));
        History { protocol: protocol.to_owned(), opaque, strict, complete, objects, keys, workers }
    }
}

/// The recording of one attempt.
#[derive(Debug)]
pub(crate) struct Log {
    recorder: Arc<Recorder>,
    /// The events of the worker. They belong to the recorder as soon as they happen, so that an attempt is in the
    /// history even if it never ends.
    events: Arc<Mutex<Vec<u8>>>,
    /// True if reads are recorded.
    reads_count: bool,
    /// Bytes of the attempt's events.
    used: usize,
    /// Bytes of the worker's events when the attempt's current piece began.
    piece_begins: usize,
    /// Bytes of the last read.
    last_read: usize,
    /// The key and version of the last read.
    last_found: (u32, u64),
    /// The place of the operation whose events are being recorded.
    place: u32,
    /// Predicates evaluated; the last evaluation of each counts. Interior mutability, because they are evaluated in a
    /// `load`.
    predicates: RefCell<Vec<(ItemId, u32, u64)>>,
    /// Pending writes to be installed, sorted once the commit begins.
    writes: Vec<(ItemId, Arc<RecordedKey>, WriteKind)>,
    bytes: RefCell<Vec<u8>>,
}

impl Log {
    pub(crate) fn new(recorder: Arc<Recorder>, worker: WorkerId) -> Self {
        let events = recorder.worker(worker);
        Self::with(recorder, events)
    }

    fn with(recorder: Arc<Recorder>, events: Arc<Mutex<Vec<u8>>>) -> Self {
        Self {
            recorder,
            events,
            reads_count: true,
            used: 0,
            piece_begins: 0,
            last_read: 0,
            last_found: (0, 0),
            place: 0,
            predicates: RefCell::default(),
            writes: Vec::new(),
            bytes: RefCell::default(),
        }
    }

    /// Makes a log for a part of an attempt; the whole attempt will [absorb](Self::absorb) its events.
    pub(crate) fn detached(recorder: Arc<Recorder>) -> Self {
        Self::with(recorder, Arc::default())
    }

    pub(crate) fn recorder(&self) -> Arc<Recorder> {
        self.recorder.clone()
    }

    /// Sets whether reads are recorded.
    pub(crate) fn reads_count(&mut self, count: bool) {
        self.reads_count = count;
    }

    /// Forgets all events; nobody has seen them yet.
    pub(crate) fn clear(&mut self) {
        lock(&self.events).clear();
        self.used = 0;
    }

    /// Adds the events of a part of the attempt.
    pub(crate) fn absorb(&mut self, part: &mut Log) {
        lock(&self.events).append(&mut lock(&part.events));
        self.used += std::mem::take(&mut part.used);
        self.last_read = 0;
        let looks = part.predicates.get_mut();
        self.predicates.get_mut().append(looks);
    }

    /// Adds an event and returns its length in bytes.
    fn add(&mut self, event: Event<'_>) -> usize {
        let mut events = lock(&self.events);
        let before = events.len();
        event.encode(&mut events);
        let bytes = events.len() - before;
        self.used += bytes;
        bytes
    }

    /// Records the begin of an attempt, at `begun` if that is not now. Its reads are recorded only if it is serializable.
    pub(crate) fn begin(&mut self, attempt: u32, reads_count: bool, begun: Option<u64>) {
        self.reads_count = reads_count;
        self.place = 0;
        let stamp = begun.unwrap_or_else(|| self.recorder.stamp());
        self.add(Event::Begin { attempt, stamp });
    }

    pub(crate) fn end(&mut self, outcome: Ended) {
        let stamp = self.recorder.next();
        self.add(Event::End { outcome, stamp });
    }

    /// Ends a piece of the attempt, which goes on.
    pub(crate) fn end_piece(&mut self) {
        self.predicates.get_mut().clear();
        self.writes.clear();
        self.last_read = 0;
        self.piece_begins = lock(&self.events).len();
    }

    /// Forgets the events since the end of the last piece.
    pub(crate) fn undo_piece(&mut self) {
        let mut events = lock(&self.events);
        self.used -= events.len() - self.piece_begins;
        events.truncate(self.piece_begins);
        drop(events);
        self.end_piece();
    }

    /// Closes the log of an attempt that has ended, so that another may use it.
    pub(crate) fn close(&mut self) {
        self.recorder.use_memory(std::mem::take(&mut self.used));
        self.predicates.get_mut().clear();
        self.writes.clear();
    }

    /// Returns the word of a key.
    pub(crate) fn recorded_key(&self, meta: &ObjectMeta, key: &dyn Named) -> Arc<RecordedKey> {
        self.recorder.recorded_key(meta, &mut self.bytes.borrow_mut(), key)
    }

    pub(crate) fn read(&mut self, recorded: &RecordedKey, version: u64, kind: ReadKind) {
        self.last_found = (recorded.key, version);
        self.last_read = match self.reads_count {
            true => self.add(Event::Read { key: recorded.key, version, kind }),
            false => 0,
        };
    }

    /// Records that a key was found, with a value of no version: only that range reads need not have found it.
    pub(crate) fn find_unrecorded(&mut self, recorded: &RecordedKey) {
        self.intend(recorded);
        self.last_read = 0;
    }

    /// Takes the last read back, because the datatype does not use its result.
    pub(crate) fn forget_read(&mut self) {
        let mut events = lock(&self.events);
        let length = events.len().saturating_sub(std::mem::take(&mut self.last_read));
        events.truncate(length);
    }

    /// Turns the last read into one that only tests a condition.
    pub(crate) fn read_as_condition(&mut self) {
        if self.last_read > 0 {
            self.forget_read();
            let (key, version) = self.last_found;
            self.add(Event::Read { key, version, kind: ReadKind::Predicate });
        }
    }

    pub(crate) fn predicate(&self, item: ItemId, recorded: &RecordedKey, version: u64) {
        if self.reads_count {
            self.predicates.borrow_mut().push((item, recorded.key, version));
        }
    }

    /// Records the last evaluation of each predicate that `counts`.
    pub(crate) fn read_predicates(&mut self, counts: impl Fn(ItemId) -> bool) {
        for (item, key, version) in self.last_looks() {
            if counts(item) {
                self.add(Event::Read { key, version, kind: ReadKind::Predicate });
            }
        }
    }

    /// Takes the last look at each predicate.
    fn last_looks(&mut self) -> Vec<(ItemId, u32, u64)> {
        let mut looks = std::mem::take(self.predicates.get_mut());
        looks.reverse();
        looks.sort_by_key(|(item, ..)| *item);
        looks.dedup_by_key(|(item, ..)| *item);
        looks
    }

    /// Attributes the next events to the operation at this place of the attempt's program.
    pub(crate) fn operation(&mut self, place: u32) {
        if std::mem::replace(&mut self.place, place) != place {
            self.last_read = 0;
            self.add(Event::Operation { place });
        }
    }

    pub(crate) fn own_read(&mut self, recorded: &RecordedKey) {
        self.last_read = 0;
        self.add(Event::OwnRead { key: recorded.key });
    }

    /// Records a change of a key.
    pub(crate) fn change(&mut self, recorded: &RecordedKey) {
        self.last_read = 0;
        self.add(Event::Change { key: recorded.key });
    }

    pub(crate) fn intend(&mut self, recorded: &RecordedKey) {
        self.add(Event::Intend { key: recorded.key });
    }

    /// Notes the key of a pending write and its effect on the key.
    pub(crate) fn will_write(&mut self, item: ItemId, recorded: Arc<RecordedKey>, kind: WriteKind) {
        self.writes.push((item, recorded, kind));
    }

    /// Sorts the notes, when all pending writes have been noted.
    pub(crate) fn sort_writes(&mut self) {
        self.writes.sort_unstable_by_key(|(item, ..)| *item);
    }

    /// Gives a key a new version, right after its pending write was installed.
    pub(crate) fn installed(&mut self, item: ItemId) {
        let Ok(at) = self.writes.binary_search_by_key(&item, |(item, ..)| *item) else { return };
        let (_, recorded, kind) = &self.writes[at];
        region::note(&raw const recorded.version, true);
        let version = self.recorder.next();
        let replaced = recorded.version.swap(version, Ordering::AcqRel);
        let write = Event::Write { key: recorded.key, replaced, version, kind: *kind };
        self.add(write);
    }

    pub(crate) fn stamp(&self) -> u64 {
        self.recorder.stamp()
    }

    pub(crate) fn range(&mut self, meta: &ObjectMeta, low: Bound<&[u8]>, high: Bound<&[u8]>, from: u64) {
        if !self.reads_count {
            return;
        }
        let to = self.recorder.stamp();
        let object = lock(&self.recorder.names).object(meta);
        self.add(Event::Range { object, low, high, from, to });
    }
}

impl<P: Protocol> Engine<P> {
    /// Records the reads and writes of each attempt from now on, in about `bytes_max` bytes of memory at most. When
    /// they are used up, attempts in progress are still recorded whole, later ones not at all. The current contents are
    /// the initial state. See [`history`](crate::features::history).
    ///
    /// Call it when no transaction is running: an attempt in progress is not recorded, while others see its writes.
    /// Rows and values with which a table or an object is made later are not recorded either, and count as having always been there.
    ///
    /// # Errors
    ///
    /// [`Misuse::AlreadyRecorded`]: an engine is recorded once.
    pub fn record_history(&self, bytes_max: usize) -> Result<Recording, Misuse> {
        let recorder = Arc::new(Recorder::new(bytes_max));
        self.shared.features.snapshots.recorder.set(recorder.clone()).map_err(|_| Misuse::AlreadyRecorded)?;
        let protocol = self.shared.name.clone();
        Ok(Recording { recorder, protocol, opaque: self.shared.opaque, strict: self.is_strict() })
    }
}
