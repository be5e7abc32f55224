//! A database's log, its durable tables, and the rows that no table has claimed yet.

use crate::error::{CheckpointError, OpenError};
use crate::rows::PutRows;
use crate::shape::{Conversion, Converted, Shape};
use crate::ticket::not_durable;
use hotrow_core::{Engine, Misuse, NotDurable, Protocol};
use hotrow_log::{CatalogEntry, Log, OpenReport, RecoveredRow};
use hotrow_stored::Plan;
use hotrow_sync::hashing::KeyHashing;
use hotrow_sync::{Arc, Mutex, OnceLock, lock, thread};
use hotrow_tables::inside;
use hotrow_tables::{Database, TableMisuse};
use std::any::Any;
use std::collections::HashMap;
use std::hash::BuildHasher;

/// The state of a durable database.
pub(crate) struct Durable<P: Protocol> {
    pub(crate) engine: Engine<P>,
    pub(crate) log: Log,
    pub(crate) report: OpenReport,
    tables: Mutex<Tables<P>>,
    /// Held while an object is made or found.
    pub(crate) objects: Mutex<()>,
    /// Held while a checkpoint is made: one at a time. True once the database is closed.
    pub(crate) checkpoint: Arc<Mutex<bool>>,
    /// The error of the last checkpoint that the database made by itself.
    pub(crate) checkpoint_error: Mutex<Option<Arc<CheckpointError>>>,
}

/// The durable tables of a database, by their numbers in the log.
struct Tables<P: Protocol> {
    /// Numbers and shapes, by name.
    known: HashMap<String, (u32, Arc<Shape>)>,
    /// The rows of tables that the program has not made.
    recovered: HashMap<u32, Arc<RecoveredRows>>,
    /// The tables that it has made.
    made: Vec<(u32, Arc<dyn PutRows<P>>)>,
}

/// The first character of the name in the log's catalog of a table that has not all of its rows yet.
pub(crate) const IN_THE_MAKING: char = '\0';

/// True if a name in the log's catalog is that of a table in the making. What is found of one at an opening is a remainder of a
/// loading that a crash has ended.
pub(crate) fn is_in_the_making(name: &str) -> bool {
    name.starts_with(IN_THE_MAKING)
}

/// A table or an object in the log.
pub(crate) struct Registered {
    pub(crate) structure: u32,
    pub(crate) shape: Arc<Shape>,
    pub(crate) found: Found,
    pub(crate) recovered: Option<Arc<RecoveredRows>>,
}

/// The finding under a name in the log.
pub(crate) enum Found {
    /// Nothing.
    New,
    /// The structure, with the same bytes. True if its shape has changed otherwise.
    Same(bool),
    /// One of an earlier type, whose rows have to be written anew.
    Earlier(Earlier),
}

/// A structure whose rows are written anew under another number.
pub(crate) struct Earlier {
    pub(crate) structure: u32,
    pub(crate) way: Way,
}

/// The way from rows of an earlier type to those of the present one.
pub(crate) enum Way {
    Conversion(Conversion),
    /// One of the migrations that the program has: its number. Its earlier type may have changed as well.
    Migration(usize, Conversion),
}

impl Registered {
    /// True if the log has nothing under the name.
    pub(crate) fn is_new(&self) -> bool {
        matches!(self.found, Found::New)
    }

    /// True if the rows have to be written anew, because the log has those of an earlier type.
    pub(crate) fn is_rewritten(&self) -> bool {
        matches!(self.found, Found::Earlier(_))
    }
}

/// The content of a checkpoint.
pub(crate) struct ToWrite<P: Protocol> {
    pub(crate) tables: Vec<Arc<dyn PutRows<P>>>,
    pub(crate) unread: Vec<(u32, Arc<RecoveredRows>)>,
}

/// The structures of a catalog that count, by name. Neither do those in the making, nor those in whose place a later one has come.
pub(crate) fn known_of(catalog: &[CatalogEntry]) -> Result<HashMap<String, (u32, Arc<Shape>)>, OpenError> {
    let mut known: HashMap<String, (u32, Arc<Shape>)> = HashMap::new();
    for entry in catalog.iter().filter(|entry| !is_in_the_making(&entry.name)) {
        if known.get(&entry.name).is_some_and(|(later, _)| *later > entry.structure) {
            continue;
        }
        let shape = Shape::from_bytes(&entry.shape)
            .map_err(|reason| OpenError::Schema { name: entry.name.clone(), reason: reason.to_string() })?;
        known.insert(entry.name.clone(), (entry.structure, Arc::new(shape)));
    }
    Ok(known)
}

impl<P: Protocol> Durable<P> {
    pub(crate) fn new(
        engine: &Engine<P>,
        log: Log,
        report: OpenReport,
        known: HashMap<String, (u32, Arc<Shape>)>,
        recovered: HashMap<u32, Arc<RecoveredRows>>,
    ) -> Self {
        let tables = Mutex::new(Tables { known, recovered, made: Vec::new() });
        let (objects, checkpoint) = (Mutex::new(()), Arc::new(Mutex::new(false)));
        let (engine, checkpoint_error) = (engine.clone(), Mutex::new(None));
        Self { engine, log, report, tables, objects, checkpoint, checkpoint_error }
    }

    /// The database that has this log.
    pub(crate) fn database(self: Arc<Self>) -> Database<P> {
        let engine = self.engine.clone();
        inside::with_log(&engine, Some(self))
    }

    /// Waits until everything that was committed before the call is on the device.
    pub(crate) fn flush(&self) -> Result<(), NotDurable> {
        self.log.flush().map_err(|failure| not_durable(&failure))
    }

    /// Returns the number of a table in the log, and what was recovered of it. One that is to be written, or written anew, has a new number,
    /// and is to be [entered](Self::enter). `migrations` are the shapes from which the program has a way of its own.
    ///
    /// # Errors
    ///
    /// [`TableMisuse::OtherSchema`](hotrow_tables::TableMisuse::OtherSchema), if its shape is another one; [`Misuse::Unsupported`], if the log cannot have its name.
    #[inline(never)]
    pub(crate) fn register(
        &self,
        table: &str,
        shape: Shape,
        migrations: &[Shape],
    ) -> Result<Registered, Misuse> {
        let tables = lock(&self.tables);
        let shape = Arc::new(shape);
        let Some((earlier, kept)) = tables.known.get(table).cloned() else {
            if is_in_the_making(table) {
                return Err(Misuse::Unsupported(format!("a durable table cannot have the name {table:?}")));
            }
            let structure = self.log.reserve_structure();
            return Ok(Registered { structure, shape, found: Found::New, recovered: None });
        };
        let way = match shape.change_from(&kept) {
            Ok(Converted::Same(has_changed)) => {
                let recovered = tables.recovered.get(&earlier).cloned();
                let found = Found::Same(has_changed);
                return Ok(Registered { structure: earlier, shape, found, recovered });
            }
            Ok(Converted::Other(conversion)) => Way::Conversion(conversion),
            Err(difference) => {
                let way = migrations.iter().enumerate().find_map(|(number, from)| {
                    let conversion = match from.change_from(&kept).ok()? {
                        Converted::Same(_) => Conversion::default(),
                        Converted::Other(conversion) => conversion,
                    };
                    Some(Way::Migration(number, conversion))
                });
                let (name, difference) = (table.to_owned(), difference.to_string());
                way.ok_or(TableMisuse::OtherSchema { name, difference })?
            }
        };
        let found = Found::Earlier(Earlier { structure: earlier, way });
        let recovered = tables.recovered.get(&earlier).cloned();
        Ok(Registered { structure: self.log.reserve_structure(), shape, found, recovered })
    }

    /// Makes what was [registered](Self::register) a part of the log. `log` logs the rows that the log does not have; they appear at once,
    /// when all of them are there, if it `is_staged`. It then waits for the device. If it fails, the next call finds again what was
    /// recovered.
    ///
    /// # Errors
    ///
    /// That of `log`; [`Misuse::Unsupported`], if the log has failed.
    pub(crate) fn publish<E: From<Misuse>>(
        &self,
        name: &str,
        registered: &Registered,
        rows: Arc<dyn PutRows<P>>,
        is_staged: bool,
        log: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let Registered { structure, shape, found, .. } = registered;
        if !matches!(found, Found::Same(false)) {
            self.enter(*structure, name, shape, is_staged)?;
        }
        // From here on, checkpoints write it. They would delete the log of its first rows otherwise.
        let before = self.claim(*structure, rows);
        let logged = log().and_then(|()| match is_staged {
            true => Ok(self.enter(*structure, name, shape, false)?),
            false => Ok(()),
        });
        logged.inspect_err(|_| self.unclaim(*structure, before))?;
        if let Found::Earlier(earlier) = found {
            self.forget(earlier.structure)?;
        }
        Ok(())
    }

    /// Enters a table in the log's catalog: `in_the_making` under a name by which an opening knows that it has not all of its rows, or
    /// else, finally, under its own. Of two with the same name the later counts.
    ///
    /// # Errors
    ///
    /// [`Misuse::Unsupported`], if the log has failed.
    #[inline(never)]
    pub(crate) fn enter(
        &self,
        structure: u32,
        table: &str,
        shape: &Arc<Shape>,
        in_the_making: bool,
    ) -> Result<(), Misuse> {
        let name = if in_the_making { format!("{IN_THE_MAKING}{table}") } else { table.to_owned() };
        let entry = CatalogEntry { structure, name, shape: shape.to_bytes()? };
        // A short write that nobody waits for but who makes tables.
        let mut tables = lock(&self.tables);
        self.log.put_catalog(entry).map_err(|failure| Misuse::Unsupported(failure.to_string()))?;
        if !in_the_making {
            tables.known.insert(table.to_owned(), (structure, shape.clone()));
        }
        Ok(())
    }

    /// Forgets what has this name, in the log's catalog first, and frees the name. False if there is nothing. No checkpoint may be in
    /// progress.
    ///
    /// # Errors
    ///
    /// [`Misuse::Unsupported`], if the log has failed.
    pub(crate) fn forget_name(&self, name: &str) -> Result<bool, Misuse> {
        let Some((structure, _)) = lock(&self.tables).known.get(name).cloned() else { return Ok(false) };
        self.forget(structure)?;
        let mut tables = lock(&self.tables);
        tables.known.remove(name);
        tables.made.retain(|(made, _)| *made != structure);
        Ok(true)
    }

    /// Drops a structure in whose place a later one has come, or none.
    ///
    /// # Errors
    ///
    /// [`Misuse::Unsupported`], if the log has failed.
    #[inline(never)]
    pub(crate) fn forget(&self, structure: u32) -> Result<(), Misuse> {
        let rows = lock(&self.tables).recovered.remove(&structure);
        drop(rows);
        self.log.drop_structure(structure).map_err(|failure| Misuse::Unsupported(failure.to_string()))
    }

    /// Notes that a table has its rows: checkpoints write them from it. Returns the rows that were recovered of it.
    #[inline(never)]
    pub(crate) fn claim(&self, structure: u32, table: Arc<dyn PutRows<P>>) -> Option<Arc<RecoveredRows>> {
        let mut tables = lock(&self.tables);
        tables.made.push((structure, table));
        tables.recovered.remove(&structure)
    }

    /// Takes back a [claim](Self::claim), which has returned these rows.
    fn unclaim(&self, structure: u32, rows: Option<Arc<RecoveredRows>>) {
        let mut tables = lock(&self.tables);
        tables.made.retain(|(made, _)| *made != structure);
        tables.recovered.extend(rows.map(|rows| (structure, rows)));
    }

    /// The content of a checkpoint whose snapshot was opened before: a table that is made later has no earlier commits.
    pub(crate) fn to_write(&self) -> ToWrite<P> {
        let tables = lock(&self.tables);
        let unread = tables.recovered.iter().map(|(structure, rows)| (*structure, rows.clone())).collect();
        ToWrite { tables: tables.made.iter().map(|(_, table)| table.clone()).collect(), unread }
    }
}

/// The log of a database, if it has one.
pub(crate) fn of<P: Protocol>(database: &Database<P>) -> Option<&Durable<P>> {
    let log: &dyn Any = &**inside::log(database)?;
    log.downcast_ref()
}

impl<P: Protocol> Drop for Durable<P> {
    /// Writes all buffered commits. [`close`](crate::DurableDatabase::close) does the same, and tells if it failed.
    fn drop(&mut self) {
        let _ = self.log.close();
    }
}

/// The lists among which the rows of a table are divided while they are recovered by several threads.
const LISTS: usize = 16;

/// The rows of a table, as bytes.
pub(crate) struct RecoveredRows {
    pub(crate) table: String,
    lists: [Mutex<Vec<u8>>; LISTS],
    /// Finds the fields of a row.
    fields: Plan,
    /// A fault of a row, if one has newer fields that do not fit it.
    fault: OnceLock<String>,
}

impl RecoveredRows {
    pub(crate) fn new(table: &str, shape: &Shape) -> Self {
        let lists = std::array::from_fn(|_| Mutex::new(Vec::new()));
        Self { table: table.to_owned(), lists, fields: shape.row.plan(), fault: OnceLock::new() }
    }

    /// Adds a row, with the fields that are newer in their places.
    pub(crate) fn add(&self, row: &RecoveredRow<'_>) {
        let RecoveredRow { key, value, overlays, .. } = *row;
        let mut bytes = lock(&self.lists[(KeyHashing::of_process().hash_one(key) % LISTS as u64) as usize]);
        put_bytes(&mut bytes, key);
        if overlays.is_empty() {
            return put_bytes(&mut bytes, value);
        }
        match with_newer(&self.fields, value, overlays) {
            Ok(whole) => put_bytes(&mut bytes, &whole),
            Err(reason) => {
                put_bytes(&mut bytes, value);
                self.fault.get_or_init(|| reason);
            }
        }
    }

    /// The reason for which a row cannot be read, if one was recovered that does not hold together.
    pub(crate) fn fault(&self) -> Option<&String> {
        self.fault.get()
    }

    /// Visits keys and rows on several threads, until a visit fails or users' code panics.
    pub(crate) fn for_each_on_threads(
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
    pub(crate) fn for_each<E>(&self, mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), E>) -> Result<(), E> {
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

/// Puts newer fields in the place of those of a row. `plan` is that of the row's schema.
fn with_newer(plan: &Plan, row: &[u8], newer: &[(u32, &[u8])]) -> Result<Vec<u8>, String> {
    let mut fields = plan.split(row).map_err(|malformed| malformed.to_string())?;
    for (number, field) in newer {
        *fields.get_mut(*number as usize).ok_or("there is no such field")? = field;
    }
    Ok(fields.concat())
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
