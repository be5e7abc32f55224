//! A database's log, its durable tables, and the rows that no table has claimed yet.

use super::checkpoint::PutRows;
use hotrow_core::{Misuse, Protocol};
use hotrow_log::{CatalogEntry, Log, OpenReport, RecoveredRow};
use hotrow_sync::{Arc, Mutex, lock};
use std::collections::HashMap;

/// The state of a durable database.
pub(crate) struct Durable<P: Protocol> {
    pub(super) log: Log,
    pub(super) report: OpenReport,
    tables: Mutex<Tables<P>>,
    /// Held while a checkpoint is made: one at a time.
    pub(super) checkpoint: Mutex<()>,
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

/// What a checkpoint has to write.
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
        Self { log, report, tables, checkpoint: Mutex::new(()) }
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

    /// What a checkpoint has to write, of which a snapshot was opened before: a table that is made later has no earlier commits.
    pub(super) fn to_write(&self) -> ToWrite<P> {
        let tables = lock(&self.tables);
        let unread = tables.recovered.iter().map(|(structure, rows)| (*structure, rows.clone())).collect();
        ToWrite { tables: tables.made.clone(), unread }
    }
}

impl<P: Protocol> Drop for Durable<P> {
    /// Writes what is buffered. Whoever wants to know if that succeeds calls [`close`](crate::Database::close) before.
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
    lists: [Mutex<Vec<u8>>; LISTS],
}

/// A row of them.
pub(super) struct RawRow<'r> {
    pub(super) key: &'r [u8],
    pub(super) value: &'r [u8],
    /// Newer parts of it.
    pub(super) parts: Vec<(u32, &'r [u8])>,
}

impl RecoveredRows {
    pub(super) fn new() -> Self {
        Self { lists: std::array::from_fn(|_| Mutex::new(Vec::new())) }
    }

    /// Adds a row.
    pub(super) fn add(&self, row: &RecoveredRow<'_>) {
        let list = row.key.iter().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
        let mut bytes = lock(&self.lists[(list % LISTS as u64) as usize]);
        put_bytes(&mut bytes, row.key);
        put_bytes(&mut bytes, row.value);
        bytes.extend((row.overlays.len() as u32).to_le_bytes());
        for (part, value) in row.overlays {
            bytes.extend(part.to_le_bytes());
            put_bytes(&mut bytes, value);
        }
    }

    pub(super) fn lists(&self) -> usize {
        LISTS
    }

    /// Visits the rows of one of the [lists](Self::lists) until a visit fails.
    pub(super) fn for_each_of<E>(
        &self,
        list: usize,
        mut visit: impl FnMut(RawRow<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let bytes = lock(&self.lists[list]);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (key, value) = (take_bytes(&mut rest), take_bytes(&mut rest));
            let parts = (0..take_number(&mut rest)).map(|_| (take_number(&mut rest), take_bytes(&mut rest)));
            let parts = parts.collect();
            visit(RawRow { key, value, parts })?;
        }
        Ok(())
    }
}

fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend((bytes.len() as u32).to_le_bytes());
    to.extend(bytes);
}

fn take_number(rest: &mut &[u8]) -> u32 {
    let (number, more) = rest.split_first_chunk().expect("written by `add`");
    *rest = more;
    u32::from_le_bytes(*number)
}

fn take_bytes<'r>(rest: &mut &'r [u8]) -> &'r [u8] {
    let length = take_number(rest) as usize;
    let (bytes, more) = rest.split_at(length);
    *rest = more;
    bytes
}
