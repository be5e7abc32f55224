//! A database's log, its durable tables, and the rows that no table has claimed yet.

use super::checkpoint::PutRows;
use super::error::CheckpointError;
use super::fields::with_newer;
use hotrow_core::{Misuse, Protocol};
use hotrow_log::{CatalogEntry, Failure, Log, OpenReport, RecoveredRow};
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
    made: Vec<(u32, Arc<dyn PutRows<P>>)>,
}

/// The first character of the name in the log's catalog of a table that has not all of its rows yet.
const IN_THE_MAKING: char = '\0';

/// True if a name in the log's catalog is that of a table in the making. What is found of one at an opening is a remainder of a
/// loading that a crash has ended.
pub(super) fn is_in_the_making(name: &str) -> bool {
    name.starts_with(IN_THE_MAKING)
}

/// A table or an object in the log.
pub(super) struct Registered {
    pub(super) structure: u32,
    /// True if the log's catalog does not have it.
    pub(super) is_new: bool,
    pub(super) recovered: Option<Arc<RecoveredRows>>,
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
        let next = catalog.iter().map(|entry| entry.structure + 1).max().unwrap_or(0);
        let made = catalog.iter().filter(|entry| !is_in_the_making(&entry.name));
        let known = made.map(|entry| (entry.name.clone(), (entry.structure, shape_of(entry)))).collect();
        let tables = Mutex::new(Tables { known, next, recovered, made: Vec::new() });
        let (objects, checkpoint) = (Mutex::new(()), Arc::new(Mutex::new(false)));
        Self { log, report, tables, objects, checkpoint, checkpoint_error: Mutex::new(None) }
    }

    /// Returns the number of a table in the log, and what was recovered of it. One that the log does not know has a new number, and is to
    /// be [entered](Self::enter).
    ///
    /// # Errors
    ///
    /// [`Misuse::OtherTypes`], if its shape is another one; [`Misuse::Unsupported`], if the log cannot have its name.
    pub(super) fn register(&self, table: &str, shape: &str) -> Result<Registered, Misuse> {
        let mut tables = lock(&self.tables);
        if let Some((structure, kept)) = tables.known.get(table) {
            if *kept == shape {
                let recovered = tables.recovered.get(structure).cloned();
                return Ok(Registered { structure: *structure, is_new: false, recovered });
            }
            let (name, made_as, wanted) = (table.to_owned(), kept.clone(), shape.to_owned());
            return Err(Misuse::OtherTypes { name, made_as, wanted });
        }
        if is_in_the_making(table) {
            return Err(Misuse::Unsupported(format!("a durable table cannot have the name {table:?}")));
        }
        let structure = tables.next;
        tables.next += 1;
        Ok(Registered { structure, is_new: true, recovered: None })
    }

    /// Enters a new table in the log's catalog: `in_the_making` under a name by which an opening knows that it has not all of its rows, or
    /// else, finally, under its own.
    ///
    /// # Errors
    ///
    /// [`Failure`], if the log has failed.
    pub(super) fn enter(
        &self,
        structure: u32,
        table: &str,
        shape: &str,
        in_the_making: bool,
    ) -> Result<(), Failure> {
        let name = if in_the_making { format!("{IN_THE_MAKING}{table}") } else { table.to_owned() };
        // A short write that nobody waits for but who makes tables.
        let mut tables = lock(&self.tables);
        self.log.put_catalog(CatalogEntry { structure, name, shape: shape.as_bytes().to_vec() })?;
        if !in_the_making {
            tables.known.insert(table.to_owned(), (structure, shape.to_owned()));
        }
        Ok(())
    }

    /// Notes that a table has its rows: checkpoints write them from it. Returns the rows that were recovered of it.
    pub(super) fn claim(&self, structure: u32, table: Arc<dyn PutRows<P>>) -> Option<Arc<RecoveredRows>> {
        let mut tables = lock(&self.tables);
        tables.made.push((structure, table));
        tables.recovered.remove(&structure)
    }

    /// Takes back a [claim](Self::claim), which has returned these rows.
    pub(super) fn unclaim(&self, structure: u32, rows: Option<Arc<RecoveredRows>>) {
        let mut tables = lock(&self.tables);
        tables.made.retain(|(made, _)| *made != structure);
        tables.recovered.extend(rows.map(|rows| (structure, rows)));
    }

    /// The content of a checkpoint whose snapshot was opened before: a table that is made later has no earlier commits.
    pub(super) fn to_write(&self) -> ToWrite<P> {
        let tables = lock(&self.tables);
        let unread = tables.recovered.iter().map(|(structure, rows)| (*structure, rows.clone())).collect();
        ToWrite { tables: tables.made.iter().map(|(_, table)| table.clone()).collect(), unread }
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
