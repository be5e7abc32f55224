//! Tables and objects of a directory as bytes, for programs that do not know their types, and copy them.

use crate::checkpoint::put_raw;
use crate::error::OpenError;
use crate::opening::{Recovered, recover};
use crate::shape::Shape;
use crate::state::{IN_THE_MAKING, RecoveredRows};
use crate::storage::Storage;
use crate::{Failure, LogOptions, Progress};
use hotrow_core::Misuse;
use hotrow_log::{Buffer, CatalogEntry, Epochs, Log, RecoveredRow, Stamp};
use hotrow_stored::Schema;
use hotrow_sync::{Arc, Mutex, OnceLock, lock, thread};

/// The kind of structures that are tables.
pub const TABLE: &str = crate::shape::TABLE;

/// The kind of structures that are sequences. Each has one row, or none: the number below which all are taken.
pub const SEQUENCE: &str = crate::sequence::KIND;

/// The key of the row of a sequence.
pub const SEQUENCE_KEY: u64 = crate::sequence::KEY;

/// A table or an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Structure {
    /// The name.
    pub name: String,
    /// The kind: [`TABLE`], or `box`, `counter`, `array` or `sequence`.
    pub kind: String,
    /// The schema of keys.
    pub key: Schema,
    /// The schema of rows.
    pub row: Schema,
}

/// The tables and objects of a storage with their rows, as its last opening would find them. Nothing is changed.
pub struct Structures {
    list: Vec<(Structure, Arc<RecoveredRows>)>,
}

impl std::fmt::Debug for Structures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.list.iter().map(|(structure, _)| &structure.name)).finish()
    }
}

impl Structures {
    /// Reads all of them. Needs as much memory as an opening does.
    ///
    /// # Errors
    ///
    /// Those of an [opening](crate::DurableBuilder::open_in).
    pub fn read(storage: Arc<dyn Storage>, tell: &(dyn Fn(Progress) + Sync)) -> Result<Self, OpenError> {
        let mut opened = Log::open(storage, LogOptions::default())?;
        let Recovered { known, mut rows, .. } = recover(&mut opened, thread::parallelism(), tell)?;
        let mut list: Vec<_> = known
            .into_iter()
            .filter_map(|(name, (number, shape))| {
                let Shape { kind, key, row } = Arc::unwrap_or_clone(shape);
                Some((Structure { name, kind, key, row }, rows.remove(&number)?))
            })
            .collect();
        list.sort_unstable_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        Ok(Self { list })
    }

    /// The structures, in the order of their names.
    pub fn list(&self) -> impl ExactSizeIterator<Item = &Structure> {
        self.list.iter().map(|(structure, _)| structure)
    }

    /// Visits all keys and rows of a structure, in any order, until a visit fails.
    ///
    /// # Errors
    ///
    /// That of the visit; the fault of a row that does not hold together.
    pub fn for_each_row<E: From<String>>(
        &self,
        structure: usize,
        visit: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some((_, rows)) = self.list.get(structure) else { return Ok(()) };
        match rows.fault() {
            Some(fault) => Err(fault.clone().into()),
            None => rows.for_each(visit),
        }
    }
}

/// Writes tables and objects to a storage, in steps that survive one after the other, each whole.
///
/// A *bookmark*, bytes of the caller's choice, is written with each step, so that a writing that was ended can go on behind the last step that has
/// survived. As long as there is one, the storage is not for use: an opening would find some of the rows.
pub struct StructuresWriter {
    log: Log,
    buffer: Buffer,
    clock: Clock,
    order: u64,
}

impl std::fmt::Debug for StructuresWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StructuresWriter").field("order", &self.order).finish_non_exhaustive()
    }
}

/// The structure that has the bookmark as its only row. An opening takes it for one in the making, and passes over it.
const BOOKMARK: u32 = 0;

/// The epoch of the records that are appended. It changes while none is.
#[derive(Clone)]
struct Clock(Arc<Mutex<u64>>);

impl Epochs for Clock {
    fn advance(&mut self) -> u64 {
        let mut epoch = lock(&self.0);
        *epoch += 1;
        *epoch
    }
}

impl StructuresWriter {
    /// Opens a storage that is empty, or has been written to and not [ended](Self::end). Returns its last bookmark, too.
    ///
    /// # Errors
    ///
    /// Those of an [opening](crate::DurableBuilder::open_in); [`Misuse`] if the storage has a database.
    pub fn open(storage: Arc<dyn Storage>) -> Result<(Self, Option<Vec<u8>>), OpenError> {
        let mut opened = Log::open(storage, LogOptions::default())?;
        let name = format!("{IN_THE_MAKING}bookmark");
        let entry = CatalogEntry { structure: BOOKMARK, name, shape: Vec::new() };
        if !opened.catalog().is_empty() && !opened.catalog().contains(&entry) {
            let reason = "the directory has a database, and no unfinished copy".to_owned();
            return Err(Misuse::Unsupported(reason).into());
        }
        let bookmark = OnceLock::new();
        let keep = |row: RecoveredRow<'_>| {
            if row.structure == BOOKMARK {
                bookmark.get_or_init(|| row.value.to_vec());
            }
        };
        let last = opened.replay(1, &|_| (), &keep)?;
        let clock = Clock(Arc::new(Mutex::new(last.epoch + 1)));
        let log = opened.start(Box::new(clock.clone()))?;
        let failed = |failure: Failure| OpenError::Misuse(Misuse::Unsupported(failure.to_string()));
        log.put_catalog(entry).map_err(failed)?;
        let buffer = log.buffer();
        Ok((Self { log, buffer, clock, order: 0 }, bookmark.into_inner()))
    }

    /// Enters a structure under a number above 0, or finds the same one that was entered before.
    ///
    /// # Errors
    ///
    /// The log's failure; a schema that cannot be written.
    pub fn enter(&mut self, number: u32, structure: &Structure) -> Result<(), WriteError> {
        let Structure { name, kind, key, row } = structure.clone();
        let shape = Shape { kind, key, row }.to_bytes().map_err(WriteError::Refused)?;
        Ok(self.log.put_catalog(CatalogEntry { structure: number, name, shape })?)
    }

    /// Appends a step: rows, each with the number of its structure and its key, and the bookmark. Waits if the device is slower.
    ///
    /// # Errors
    ///
    /// The log's failure; more bytes than a record takes.
    pub fn step<'r>(
        &mut self,
        rows: impl IntoIterator<Item = (u32, &'r [u8], &'r [u8])>,
        bookmark: &[u8],
    ) -> Result<(), WriteError> {
        let mut record = Vec::new();
        for (structure, key, row) in rows {
            put_raw(&mut record, structure, key, row);
        }
        put_raw(&mut record, BOOKMARK, &[], bookmark);
        crate::table::fits(&record).map_err(|reason| WriteError::Refused(Misuse::Unsupported(reason)))?;
        self.buffer.admit()?;
        self.order += 1;
        let epoch = lock(&self.clock.0);
        self.buffer.append(Stamp { epoch: *epoch, order: self.order }, &record);
        Ok(())
    }

    /// Waits until all steps are on the device.
    ///
    /// # Errors
    ///
    /// The log's failure.
    pub fn flush(&self) -> Result<(), WriteError> {
        Ok(self.log.flush()?)
    }

    /// Deletes the bookmark: the storage has a database for use.
    ///
    /// # Errors
    ///
    /// The log's failure.
    pub fn end(self) -> Result<(), WriteError> {
        self.log.flush()?;
        self.log.drop_structure(BOOKMARK)?;
        Ok(self.log.close()?)
    }
}

/// The reason for which a structure or its rows could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The log has failed: the disk is full, say.
    #[error(transparent)]
    Log(#[from] Failure),
    /// The log does not take it.
    #[error("{0}")]
    Refused(Misuse),
}
