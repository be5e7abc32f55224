//! A plain engine for tests: epochs, commits, and what recovery brings back.

use hotrow_log::{CatalogEntry, Epochs, Log, OpenError, Opened, Options, Stamp, entry, storage::Storage};
use hotrow_sync::atomic::{AtomicU64, Ordering};
use hotrow_sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows by structure and key: the value, and the parts that are newer.
pub(crate) type Contents = BTreeMap<(u32, Vec<u8>), (Vec<u8>, BTreeMap<u32, Vec<u8>>)>;

/// The epoch of an engine. Commits hold the mutex from their stamp to their append, so no record is ever late.
#[derive(Clone, Default)]
pub(crate) struct Clock {
    epoch: Arc<AtomicU64>,
    commits: Arc<Mutex<u64>>,
}

impl Clock {
    pub(crate) fn new(epoch: u64) -> Self {
        let clock = Self::default();
        clock.epoch.store(epoch, Ordering::SeqCst);
        clock
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// A new stamp, and the guard that must be held until the append.
    pub(crate) fn stamp(&self) -> (Stamp, hotrow_sync::MutexGuard<'_, u64>) {
        let mut commits = lock(&self.commits);
        *commits += 1;
        (Stamp { epoch: self.epoch(), order: *commits }, commits)
    }
}

impl Epochs for Clock {
    fn advance(&mut self) -> u64 {
        let _commits = lock(&self.commits);
        self.epoch.fetch_add(1, Ordering::SeqCst) + 1
    }
}

pub(crate) fn bytes(bytes: &[u8]) -> impl FnOnce(&mut Vec<u8>) -> Result<(), ()> + '_ {
    move |out| {
        out.extend_from_slice(bytes);
        Ok(())
    }
}

pub(crate) fn put(record: &mut Vec<u8>, structure: u32, key: &[u8], value: &[u8]) {
    entry::put(record, structure, bytes(key), bytes(value)).unwrap();
}

pub(crate) fn put_part(record: &mut Vec<u8>, structure: u32, part: u32, key: &[u8], value: &[u8]) {
    entry::put_parts(record, structure, bytes(key), |parts| parts.put(part, bytes(value))).unwrap();
}

pub(crate) fn delete(record: &mut Vec<u8>, structure: u32, key: &[u8]) {
    entry::delete(record, structure, bytes(key)).unwrap();
}

/// Makes the changes of a record to `contents`.
pub(crate) fn apply(contents: &mut Contents, record: &[u8]) {
    for found in entry::read(record) {
        let found = found.unwrap();
        let id = (found.structure, found.key.to_vec());
        match found.change {
            entry::Change::Delete => drop(contents.remove(&id)),
            entry::Change::Put(value) => {
                contents.insert(id, (value.to_vec(), BTreeMap::new()));
            }
            entry::Change::PutParts(parts) => {
                let overlays = &mut contents.get_mut(&id).unwrap().1;
                overlays.extend(parts.map(|(part, value)| (part, value.to_vec())));
            }
        }
    }
}

/// The rows that a log brings back, each of them once.
pub(crate) fn replay(opened: &mut Opened, threads: usize) -> Result<(Contents, Stamp), OpenError> {
    let contents = Mutex::new(Contents::new());
    let last = opened.replay(threads, &|_| (), &|row| {
        let overlays = row.overlays.iter().map(|(part, value)| (*part, value.to_vec())).collect();
        let id = (row.structure, row.key.to_vec());
        let before = lock(&contents).insert(id, (row.value.to_vec(), overlays));
        assert!(before.is_none(), "a row came twice");
    })?;
    Ok((contents.into_inner().unwrap(), last))
}

pub(crate) fn recover(storage: Arc<dyn Storage>) -> Result<(Contents, Stamp), OpenError> {
    replay(&mut Log::open(storage, Options::default())?, 2)
}

/// Opens a log, replays and starts it.
pub(crate) fn start(
    storage: Arc<dyn Storage>,
    options: Options,
) -> Result<(Log, Clock, Contents), OpenError> {
    let mut opened = Log::open(storage, options)?;
    let (contents, last) = replay(&mut opened, 1)?;
    let clock = Clock::new(last.epoch + 1);
    let is_new = opened.catalog().is_empty();
    let log = opened.start(Box::new(clock.clone()))?;
    if is_new {
        enter_tables(&log);
    }
    Ok((log, clock, contents))
}

/// Enters the structures below 3 in the catalog.
pub(crate) fn enter_tables(log: &Log) {
    (0..3).for_each(|structure| log.put_catalog(table(structure)).unwrap());
}

pub(crate) fn table(structure: u32) -> CatalogEntry {
    CatalogEntry { structure, name: format!("table {structure}"), shape: vec![structure as u8; 3] }
}

/// An empty directory of this test's own.
pub(crate) fn directory(name: &str) -> std::path::PathBuf {
    let path =
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}
