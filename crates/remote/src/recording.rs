//! Recorded histories, for the checker.
//!
//! Attempts are noted as they end. When the recording is finished, their events are written with the numbers that a history wants:
//! a write has the version of its commit and its place in it; a range read at R lies between the writes of R and those of the next
//! commit; beginnings and ends are counted by a counter of this process, behind all versions.

use crate::layout::Layout;
use crate::store::{Span, Version};
use hotrow_core::Reason;
use hotrow_core::history::{Ended, Event, History, KeyName, ReadKind, WorkerEvents, WriteKind};
use hotrow_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use hotrow_sync::{Arc, instrument, thread};
use std::collections::BTreeMap;
use std::ops::Bound;

/// The numbers of the writes of a commit. No commit has more.
const WRITES_MAX: u64 = 1 << 16;

/// The first number of beginnings and ends.
const MOMENTS: u64 = 1 << 62;

/// An attempt that has ended, or a transaction that was committed with others.
#[derive(Debug, Clone)]
pub(crate) struct Attempted {
    pub(crate) number: u32,
    pub(crate) began: u64,
    /// True if it may have read an old state. Then it has no place in real time.
    pub(crate) may_be_old: bool,
    pub(crate) read_at: Version,
    /// Keys that were read, their versions, and if a row was there.
    pub(crate) reads: Vec<(Vec<u8>, Version, bool)>,
    pub(crate) spans: Vec<Span>,
    pub(crate) writes: Vec<(Vec<u8>, WriteKind)>,
    pub(crate) end: AttemptEnd,
}

/// The end of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptEnd {
    /// It has read only, and has ended well.
    ReadOnly,
    /// It has made the state of this version.
    Committed(Version),
    Conflict,
    RolledBack,
    /// Nobody knows if it has committed.
    Unknown,
}

/// Notes attempts.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    moment: AtomicU64,
    is_closed: AtomicBool,
    attempts: instrument::Mutex<Vec<(u64, u64, Attempted)>>,
}

impl Recorder {
    /// The number of this moment.
    pub(crate) fn moment(&self) -> u64 {
        // Sequentially consistent: an attempt that ended before another one began has a smaller number.
        self.moment.fetch_add(1, Ordering::SeqCst)
    }

    /// Notes an attempt of this thread that has ended.
    pub(crate) fn note(&self, attempted: Attempted) {
        if !self.is_closed.load(Ordering::Acquire) {
            let ended = self.moment();
            instrument::lock(&self.attempts).push((thread::number(), ended, attempted));
        }
    }
}

/// The recording of a cluster's history, in this process: the transactions of the handle that has begun it, and of those that
/// [record with it](crate::Cluster::record_with). Others' are not recorded, and none may run meanwhile.
#[derive(Debug)]
pub struct Recording {
    recorder: Arc<Recorder>,
    layout: Layout,
    names: Box<dyn Names>,
}

/// Names of tables.
pub(crate) trait Names: std::fmt::Debug + Send + Sync {
    fn name_of(&self, table: u32) -> String;
}

impl Recording {
    pub(crate) fn new(recorder: Arc<Recorder>, layout: Layout, names: Box<dyn Names>) -> Self {
        Self { recorder, layout, names }
    }

    pub(crate) fn recorder(&self) -> Arc<Recorder> {
        Arc::clone(&self.recorder)
    }

    /// Ends the recording, and returns the history of all attempts that have ended. It is incomplete if the outcome of a
    /// transaction is unknown.
    pub fn finish(self) -> History {
        self.recorder.is_closed.store(true, Ordering::Release);
        let attempts = std::mem::take(&mut *instrument::lock(&self.recorder.attempts));
        let mut writer = HistoryWriter::new(self.layout, self.names, &attempts);
        for (worker, ended, attempted) in &attempts {
            writer.attempt(*worker, *ended, attempted);
        }
        writer.history
    }
}

/// Writes the events of a history.
struct HistoryWriter {
    history: History,
    layout: Layout,
    names: Box<dyn Names>,
    objects: BTreeMap<u32, u32>,
    keys: BTreeMap<Vec<u8>, u32>,
    /// The versions of each key, the places of their writes, and if they are deletions; in the order of versions.
    versions: BTreeMap<Vec<u8>, Vec<(Version, u64, bool)>>,
    /// The lowest version of the history's commits. Rows with lower ones are of the state before it.
    first: Version,
    /// The places of an attempt's writes, in the order of attempts and their writes.
    places: std::vec::IntoIter<u64>,
    /// The number of attempts so far that may have read an old state.
    old: u32,
}

impl HistoryWriter {
    fn new(layout: Layout, names: Box<dyn Names>, attempts: &[(u64, u64, Attempted)]) -> Self {
        let is_known = |(_, _, attempted): &(u64, u64, Attempted)| attempted.end != AttemptEnd::Unknown;
        let complete = attempts.iter().all(is_known);
        let history = History { protocol: "remote".to_owned(), strict: true, complete, ..History::default() };
        let mut counts: BTreeMap<Version, u64> = BTreeMap::new();
        let mut versions: BTreeMap<Vec<u8>, Vec<(Version, u64, bool)>> = BTreeMap::new();
        let mut places = Vec::new();
        for (_, _, attempted) in attempts {
            let AttemptEnd::Committed(version) = attempted.end else { continue };
            for (key, kind) in &attempted.writes {
                let count = counts.entry(version).or_default();
                assert!(*count < WRITES_MAX, "a commit has more writes than a history can number");
                places.push(*count);
                let is_deletion = *kind == WriteKind::Delete;
                versions.entry(key.clone()).or_default().push((version, *count, is_deletion));
                *count += 1;
            }
        }
        versions.values_mut().for_each(|versions| versions.sort_unstable());
        let (objects, keys) = (BTreeMap::new(), BTreeMap::new());
        let first = counts.keys().next().copied().unwrap_or(Version::MAX);
        Self { history, layout, names, objects, keys, versions, first, places: places.into_iter(), old: 0 }
    }

    fn object(&mut self, table: u32) -> u32 {
        let (history, names) = (&mut self.history, &self.names);
        *self.objects.entry(table).or_insert_with(|| {
            history.objects.push(names.name_of(table));
            history.objects.len() as u32 - 1
        })
    }

    fn key(&mut self, key: &[u8]) -> Option<u32> {
        if let Some(number) = self.keys.get(key) {
            return Some(*number);
        }
        let (table, order) = self.layout.split_row(key)?;
        let (object, text) = (self.object(table), order.escape_ascii().to_string());
        let number = self.history.keys.push(KeyName { object, order, text: text.as_bytes() });
        self.keys.insert(key.to_vec(), number);
        Some(number)
    }

    /// The version of a history that a read has seen, which the store has shown as `shown`, or as absent in the state `at`.
    fn version_read(&self, key: &[u8], shown: Version, at: Version) -> u64 {
        let written = |shown| if shown < self.first { 0 } else { numbered(shown, 0) };
        let Some(versions) = self.versions.get(key) else { return written(shown) };
        if shown == 0 {
            // The key was never there, or its tombstone was collected: then it was deleted last.
            let before = versions.partition_point(|(version, ..)| *version <= at);
            return match versions[..before].last() {
                Some((version, place, true)) => numbered(*version, *place),
                _ => 0,
            };
        }
        let end = versions.partition_point(|(version, ..)| *version <= shown);
        match versions[..end].last() {
            Some((version, place, _)) if *version == shown => numbered(shown, *place),
            // Not written in this history.
            _ => written(shown),
        }
    }

    fn attempt(&mut self, worker: u64, ended: u64, attempted: &Attempted) {
        let mut bytes = Vec::new();
        let Attempted { number, read_at, .. } = *attempted;
        let began = if attempted.may_be_old { 0 } else { attempted.began };
        Event::Begin { attempt: number, stamp: MOMENTS + began }.encode(&mut bytes);
        for span in &attempted.spans {
            let Some((table, low)) = self.layout.split_row(&span.start) else { continue };
            let object = self.object(table);
            let high = match self.layout.split_row(&span.end) {
                Some((other, high)) if other == table => Bound::Excluded(high),
                _ => Bound::Unbounded,
            };
            let (from, to) = (numbered(read_at + 1, 0), numbered(read_at + 1, 0));
            Event::Range { object, low: Bound::Included(low), high, from, to }.encode(&mut bytes);
        }
        // A key that is absent has no version by which to tell if it came and went since: it is as it was in the state before the commit.
        let absent_at = match attempted.end {
            AttemptEnd::Committed(committed) => committed - 1,
            _ => read_at,
        };
        for (key, version, is_there) in &attempted.reads {
            let version = self.version_read(key, *version, absent_at);
            let Some(key) = self.key(key) else { continue };
            let kind = if *is_there { ReadKind::Value } else { ReadKind::Absent };
            Event::Read { key, version, kind }.encode(&mut bytes);
        }
        if let AttemptEnd::Committed(committed) = attempted.end {
            for (name, kind) in &attempted.writes {
                let place = self.places.next().expect("a place for each write");
                let versions = &self.versions[name];
                let own = versions.partition_point(|(version, at, _)| (*version, *at) < (committed, place));
                let replaced =
                    own.checked_sub(1).map_or(0, |before| numbered(versions[before].0, versions[before].1));
                let Some(key) = self.key(name) else { continue };
                Event::Write { key, replaced, version: numbered(committed, place), kind: *kind }
                    .encode(&mut bytes);
            }
        }
        let stamp = MOMENTS + ended;
        match attempted.end {
            AttemptEnd::ReadOnly | AttemptEnd::Committed(_) => {
                Event::End { outcome: Ended::Committed, stamp }.encode(&mut bytes);
            }
            AttemptEnd::Conflict => {
                Event::End { outcome: Ended::Aborted(Reason::ReadChanged), stamp }.encode(&mut bytes);
            }
            AttemptEnd::RolledBack => Event::End { outcome: Ended::RolledBack, stamp }.encode(&mut bytes),
            AttemptEnd::Unknown => {}
        }
        let worker = if attempted.may_be_old {
            // A worker of its own, because the attempts of one worker follow one another.
            self.old += 1;
            u32::MAX - self.old
        } else {
            u32::try_from(worker).unwrap_or(u32::MAX)
        };
        match self.history.workers.iter_mut().find(|events| events.worker == worker) {
            Some(events) => events.bytes.extend_from_slice(&bytes),
            None => self.history.workers.push(WorkerEvents { worker, bytes }),
        }
    }
}

/// The number of a write in a history.
fn numbered(version: Version, place: u64) -> u64 {
    if version == 0 { 0 } else { version * WRITES_MAX + place }
}
