//! A database's log, its durable tables, and the rows that no table has claimed yet.

use super::checkpoint::PutRows;
use super::error::CheckpointError;
use super::fields::with_newer;
use hotrow_core::{Misuse, Protocol};
use hotrow_log::{CatalogEntry, Log, OpenReport, RecoveredRow};
use hotrow_sync::hashing::KeyHashing;
use hotrow_sync::{Arc, Mutex, OnceLock, lock, thread};
use std::collections::HashMap;
use std::hash::BuildHasher;

/// The state of a durable database.
pub(crate) struct Durable<P: Protocol> {
    pub(super) log: Log,
    pub(super) report: OpenReport,
    tables: Mutex<Tables<P>>,
    /// Held while an object is made or found.
    pub(super) objects: Mutex<()>,
    /// Held while a checkpoint is made: one at a time. True once the database is closed.
    pub(super) checkpoint: Arc<Mutex<bool>>,
    /// The error of the last checkpoint that the database made by itself.
    pub(super) checkpoint_error: Mutex<Option<Arc<CheckpointError>>>,
}

/// The durable tables of a database, by their numbers in the log.
struct Tables<P: Protocol> {
    /// Numbers and shapes, by name.
    known: HashMap<String, (u32, String)>,
    next: u32,
    /// The rows of tables that the program has not made.
    recovered: HashMap<u32, Arc<RecoveredRows>>,
    /// The tables that it has made.
    made: Vec<Arc<dyn PutRows<P>>>,
}

/// The content of a checkpoint.
pub(super) struct ToWrite<P: Protocol> {
    pub(super) tables: Vec<Arc<dyn PutRows<P>>>,
    pub(super) unread: Vec<(u32, Arc<RecoveredRows>)>,
}

impl<P: Protocol> Durable<P> {
    pub(super) fn new(
        log: Log,
        report: OpenReport,
        catalog: &[CatalogEntry],
        recovered: HashMap<u32, Arc<RecoveredRows>>,
    ) -> Self {
        let known: HashMap<_, _> =
            catalog.iter().map(|entry| (entry.name.clone(), (entry.structure, shape_of(entry)))).collect();
        let next = known.values().map(|(number, _)| number + 1).max().unwrap_or(0);
        let tables = Mutex::new(Tables { known, next, recovered, made: Vec::new() });
        let (objects, checkpoint) = (Mutex::new(()), Arc::new(Mutex::new(false)));
        Self { log, report, tables, objects, checkpoint, checkpoint_error: Mutex::new(None) }
    }

    /// Returns the number of a table in the log, and what was recovered of it. A new table is entered in the catalogue.
    ///
    /// # Errors
    ///
    /// [`Misuse::OtherTypes`], if its shape is another one; [`Misuse::Unsupported`], if the log cannot keep it.
    pub(super) fn register(
        &self,
        table: &str,
        shape: String,
    ) -> Result<(u32, Option<Arc<RecoveredRows>>), Misuse> {
        let mut tables = lock(&self.tables);
        if let Some((structure, kept)) = tables.known.get(table) {
            if *kept == shape {
                return Ok((*structure, tables.recovered.get(structure).cloned()));
            }
            let (name, made_as) = (table.to_owned(), kept.clone());
            return Err(Misuse::OtherTypes { name, made_as, wanted: shape });
        }
        let structure = tables.next;
        let entry = CatalogEntry { structure, name: table.to_owned(), shape: shape.clone().into_bytes() };
        // A short write that nobody waits for but who makes tables.
        self.log.put_catalog(entry).map_err(|failure| Misuse::Unsupported(failure.to_string()))?;
        tables.next += 1;
        tables.known.insert(table.to_owned(), (structure, shape));
        Ok((structure, None))
    }

    /// Notes that a table has its rows: checkpoints write them from it.
    pub(super) fn claim(&self, structure: u32, table: Arc<dyn PutRows<P>>) {
        let mut tables = lock(&self.tables);
        tables.made.push(table);
        let rows = tables.recovered.remove(&structure);
        drop(tables);
        drop(rows);
    }

    /// The content of a checkpoint whose snapshot was opened before: a table that is made later has no earlier commits.
    pub(super) fn to_write(&self) -> ToWrite<P> {
        let tables = lock(&self.tables);
        let unread = tables.recovered.iter().map(|(structure, rows)| (*structure, rows.clone())).collect();
        ToWrite { tables: tables.made.clone(), unread }
    }
}

impl<P: Protocol> Drop for Durable<P> {
    /// Writes all buffered commits. [`close`](crate::Database::close) does the same, and tells if it failed.
    fn drop(&mut self) {
        let _ = self.log.close();
    }
}

/// The shapes of a table's key and row, as the log keeps them.
fn shape_of(entry: &CatalogEntry) -> String {
    String::from_utf8_lossy(&entry.shape).into_owned()
}

/// The lists among which the rows of a table are divided while they are recovered by several threads.
const LISTS: usize = 16;

/// The rows of a table, as bytes.
pub(super) struct RecoveredRows {
    pub(super) table: String,
    lists: [Mutex<Vec<u8>>; LISTS],
    /// A fault of a row, if one has newer fields that do not fit it.
    fault: OnceLock<String>,
}

impl RecoveredRows {
    pub(super) fn new(table: &str) -> Self {
        let lists = std::array::from_fn(|_| Mutex::new(Vec::new()));
        Self { table: table.to_owned(), lists, fault: OnceLock::new() }
    }

    /// Adds a row, with the fields that are newer in their places.
    pub(super) fn add(&self, row: &RecoveredRow<'_>) {
        let RecoveredRow { key, value, overlays, .. } = *row;
        let mut bytes = lock(&self.lists[(KeyHashing::of_process().hash_one(key) % LISTS as u64) as usize]);
        put_bytes(&mut bytes, key);
        if overlays.is_empty() {
            return put_bytes(&mut bytes, value);
        }
        match with_newer(value, overlays) {
            Ok(whole) => put_bytes(&mut bytes, &whole),
            Err(reason) => {
                put_bytes(&mut bytes, value);
                self.fault.get_or_init(|| reason);
            }
        }
    }

    /// The reason for which a row cannot be read, if one was recovered that does not hold together.
    pub(super) fn fault(&self) -> Option<&String> {
        self.fault.get()
    }

    /// Visits keys and rows on several threads, until a visit fails or users' code panics.
    pub(super) fn for_each_on_threads(
        &self,
        visit: &(dyn Fn(&[u8], &[u8]) -> Result<(), String> + Sync),
    ) -> Result<(), String> {
        if let Some(fault) = self.fault() {
            return Err(fault.clone());
        }
        let some = |first: usize, step: usize| {
            (first..LISTS).step_by(step).try_for_each(|list| self.for_each_of(list, visit))
        };
        // A simulated core has no threads.
        let threads = if thread::is_simulated() { 1 } else { thread::parallelism().min(LISTS) };
        if threads == 1 {
            return some(0, 1);
        }
        thread::scope(|scope| {
            let started: Vec<_> =
                (0..threads).map(|first| scope.spawn(move || some(first, threads))).collect();
            let panicked = |_| Err(String::from("users' code panicked"));
            // Each is joined: one that has panicked and is not would make this thread panic.
            let ended = started.into_iter().map(|thread| thread.join().unwrap_or_else(panicked));
            ended.fold(Ok(()), Result::and)
        })
    }

    /// Visits all keys and rows until a visit fails.
    pub(super) fn for_each<E>(&self, mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), E>) -> Result<(), E> {
        (0..LISTS).try_for_each(|list| self.for_each_of(list, &mut visit))
    }

    /// Visits keys and rows of one of the lists until a visit fails.
    fn for_each_of<E>(
        &self,
        list: usize,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let bytes = lock(&self.lists[list]);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            visit(take_bytes(&mut rest), take_bytes(&mut rest))?;
        }
        Ok(())
    }
}

fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend((bytes.len() as u32).to_le_bytes());
    to.extend(bytes);
}

fn take_bytes<'r>(rest: &mut &'r [u8]) -> &'r [u8] {
    let (length, more) = rest.split_first_chunk().expect("written by `put_bytes`");
    let (bytes, more) = more.split_at(u32::from_le_bytes(*length) as usize);
    *rest = more;
    bytes
}
