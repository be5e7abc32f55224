//! The trait object behind an erased database, and what is behind it: a typed database.

use super::array::Array;
use super::calls::{Calls, ErasedKey};
use super::keys::{BytesKey, WordKey};
use super::row::Row;
use super::table::{KeyKind, Properties, Table};
use crate::catalog::{Part, PartId};
use crate::database::Database;
use crate::index::Direction;
use crate::loading::ReservedNames;
use crate::misuse::TableMisuse;
use crate::table as typed;
use hotrow_core::history::Recording;
use hotrow_core::{
    Abort, ContextAccess, Error, HotKey, Misuse, Profile, Protocol, RetainedMemory, Snapshot, SnapshotKind,
    SnapshotReport, Statistics, Transaction, Worker, WorkerId,
};
use hotrow_objects::TArray;
use std::any::Any;
use std::ops::{Bound, ControlFlow};
use std::panic::Location;
use std::time::Duration;

/// The body of a transaction, which keeps its result itself.
pub(super) type Body<'b> = dyn FnMut(&mut (dyn Operations + '_)) -> Result<(), Abort> + 'b;

/// The place of a user's call.
type Place = &'static Location<'static>;

/// A database under one of the protocols.
pub(super) trait Backend: Send + Sync {
    fn protocol(&self) -> &str;
    fn is_opaque(&self) -> bool;
    fn names(&self) -> Vec<String>;
    fn create(&self, name: String, properties: Properties) -> Result<Table, Misuse>;
    fn open(&self, name: String) -> Result<Table, Misuse>;
    fn drop_table(&self, table: &Table) -> Result<(), Error>;
    fn create_array(&self, name: &str, length: usize) -> Result<Array, Misuse>;
    fn open_array(&self, name: &str) -> Result<Array, Misuse>;
    fn transact(&self, profile: Profile, place: Place, body: &mut Body<'_>) -> Result<(), Error>;
    fn worker(&self) -> Result<Box<dyn BackendWorker>, Misuse>;
    fn statistics(&self) -> Statistics;
    fn hot_keys(&self, limit: usize) -> Vec<HotKey>;
    fn report_both_sides(&self, on: bool);
    fn record_history(&self, bytes_max: usize) -> Result<Recording, Misuse>;
    fn snapshot(&self, is_strict: bool, place: Place) -> Result<Box<dyn BackendSnapshot>, Misuse>;
    fn snapshots(&self) -> SnapshotReport;
    fn retained_memory(&self) -> RetainedMemory;
    fn collect(&self) -> u64;
    fn set_retained_bytes_max(&self, bytes_max: Option<u64>);
}

/// A snapshot of such a database.
pub(super) trait BackendSnapshot: Send + Sync {
    fn number(&self) -> u64;
    fn staleness(&self) -> Duration;
    fn transact(&self, body: &mut Body<'_>) -> Result<(), Error>;
}

/// A worker of such a database.
pub(super) trait BackendWorker: Send {
    fn id(&self) -> WorkerId;
    fn transact(&mut self, profile: Profile, place: Place, body: &mut Body<'_>) -> Result<(), Error>;
}

/// A transaction in progress. What finds its row, or inserts it, returns true.
pub(super) trait Operations {
    fn read(&mut self, table: &Table, key: &[u8], look: &mut dyn FnMut(&Row)) -> Result<bool, Abort>;
    fn update(&mut self, table: &Table, key: &[u8], change: &mut dyn FnMut(&mut Row)) -> Result<bool, Abort>;
    fn insert(&mut self, table: &Table, key: &[u8], row: Row) -> Result<bool, Abort>;
    fn replace(&mut self, table: &Table, key: &[u8], row: Row) -> Result<bool, Abort>;
    fn upsert(&mut self, table: &Table, key: &[u8], row: Row) -> Result<bool, Abort>;
    fn delete(&mut self, table: &Table, key: &[u8]) -> Result<bool, Abort>;
    fn scan(
        &mut self,
        table: &Table,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &Row) -> ControlFlow<()>,
    ) -> Result<(), Abort>;
    fn get_word(&mut self, array: &Array, index: usize) -> Result<u64, Abort>;
    fn set_word(&mut self, array: &Array, index: usize, word: u64) -> Result<(), Abort>;
    fn update_word(
        &mut self,
        array: &Array,
        index: usize,
        change: &mut dyn FnMut(&mut u64),
    ) -> Result<(), Abort>;
    fn missing(&mut self, table: &Table, key: &[u8]) -> Abort;
    fn exists(&mut self, table: &Table, key: &[u8]) -> Abort;
    /// Runs a part that can fail alone. `part` returns true if it has succeeded.
    fn savepoint(&mut self, part: &mut dyn FnMut(&mut (dyn Operations + '_)) -> bool) -> Result<(), Abort>;
    fn worker(&self) -> WorkerId;
    fn attempt_number(&self) -> u32;
}

/// The table or array that is this part of the database.
///
/// # Safety
///
/// As for [`Catalog::find_part`](crate::catalog::Catalog::find_part).
#[inline(always)]
unsafe fn find<T: Any, P: Protocol>(database: &Database<P>, part: PartId) -> Result<&T, Misuse> {
    // SAFETY: the caller's promise.
    unsafe { database.catalog().find_part(part) }.ok_or_else(|| foreign(part))
}

#[cold]
fn foreign(part: PartId) -> Misuse {
    Misuse::ForeignObject { object: format!("table or array {}", part.number()) }
}

/// The typed table to which a handle refers, whose keys are of type `K` as the handle tells.
#[inline(always)]
fn find_table<'d, K: ErasedKey, P: Protocol>(
    database: &'d Database<P>,
    table: &Table,
) -> Result<&'d typed::Table<K, Row, P>, Misuse> {
    // SAFETY: handles are made in this file only, with the type of the table's keys.
    unsafe { find(database, table.part) }
}

/// Calls a method of the typed table to which a handle refers: of the one type or the other.
macro_rules! call {
    ($self:ident, $table:ident, $method:ident($($argument:expr),*)) => {
        match $table.keys {
            KeyKind::Word => $self.on::<WordKey>($table)?.$method($($argument),*),
            KeyKind::Bytes => $self.on::<BytesKey>($table)?.$method($($argument),*),
        }
    };
}

/// A typed transaction, and its database.
struct Running<'t, 'w, P: Protocol> {
    database: &'t Database<P>,
    tx: &'t mut Transaction<'w, P>,
}

impl<'w, P: Protocol> Running<'_, 'w, P> {
    /// Begins an operation on a table.
    #[inline(always)]
    fn on<K: ErasedKey>(&mut self, table: &Table) -> Result<Calls<'_, 'w, K, P>, Abort> {
        match find_table(self.database, table) {
            Ok(table) => Ok(Calls { table, tx: self.tx }),
            Err(misuse) => Err(self.tx.misuse(misuse)),
        }
    }

    /// Begins an operation on an array.
    #[inline(always)]
    fn on_array(&mut self, array: &Array) -> Result<(&TArray<u64, P>, &mut Transaction<'w, P>), Abort> {
        // SAFETY: handles are made in this file only.
        match unsafe { find(self.database, array.part) } {
            Ok(array) => Ok((array, self.tx)),
            Err(misuse) => Err(self.tx.misuse(misuse)),
        }
    }

    fn error<K: ErasedKey>(
        &mut self,
        table: &Table,
        error: impl FnOnce(Calls<'_, 'w, K, P>) -> Abort,
    ) -> Abort {
        match self.on(table) {
            Ok(calls) => error(calls),
            Err(abort) => abort,
        }
    }
}

impl<P: Protocol> Operations for Running<'_, '_, P> {
    fn read(&mut self, table: &Table, key: &[u8], look: &mut dyn FnMut(&Row)) -> Result<bool, Abort> {
        call!(self, table, read(key, look))
    }

    fn update(&mut self, table: &Table, key: &[u8], change: &mut dyn FnMut(&mut Row)) -> Result<bool, Abort> {
        call!(self, table, update(key, change))
    }

    fn insert(&mut self, table: &Table, key: &[u8], row: Row) -> Result<bool, Abort> {
        call!(self, table, insert(key, row))
    }

    fn replace(&mut self, table: &Table, key: &[u8], row: Row) -> Result<bool, Abort> {
        call!(self, table, replace(key, row))
    }

    fn upsert(&mut self, table: &Table, key: &[u8], row: Row) -> Result<bool, Abort> {
        call!(self, table, upsert(key, row))
    }

    fn delete(&mut self, table: &Table, key: &[u8]) -> Result<bool, Abort> {
        call!(self, table, delete(key))
    }

    fn scan(
        &mut self,
        table: &Table,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        visit: &mut dyn FnMut(&[u8], &Row) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        call!(self, table, scan(range, direction, visit))
    }

    fn get_word(&mut self, array: &Array, index: usize) -> Result<u64, Abort> {
        let (array, tx) = self.on_array(array)?;
        array.get(tx, index)
    }

    fn set_word(&mut self, array: &Array, index: usize, word: u64) -> Result<(), Abort> {
        let (array, tx) = self.on_array(array)?;
        array.set(tx, index, word)
    }

    fn update_word(
        &mut self,
        array: &Array,
        index: usize,
        change: &mut dyn FnMut(&mut u64),
    ) -> Result<(), Abort> {
        let (array, tx) = self.on_array(array)?;
        array.update(tx, index, change)
    }

    #[cold]
    fn missing(&mut self, table: &Table, key: &[u8]) -> Abort {
        match table.keys {
            KeyKind::Word => self.error::<WordKey>(table, |calls| calls.missing(key)),
            KeyKind::Bytes => self.error::<BytesKey>(table, |calls| calls.missing(key)),
        }
    }

    #[cold]
    fn exists(&mut self, table: &Table, key: &[u8]) -> Abort {
        match table.keys {
            KeyKind::Word => self.error::<WordKey>(table, |calls| calls.exists(key)),
            KeyKind::Bytes => self.error::<BytesKey>(table, |calls| calls.exists(key)),
        }
    }

    fn savepoint(&mut self, part: &mut dyn FnMut(&mut (dyn Operations + '_)) -> bool) -> Result<(), Abort> {
        let database = self.database;
        let ended =
            self.tx.savepoint(|tx| if part(&mut Running { database, tx }) { Ok(()) } else { Err(()) });
        // The part keeps its result or error itself.
        ended.map(|_: Result<(), ()>| ())
    }

    fn worker(&self) -> WorkerId {
        self.tx.worker()
    }

    fn attempt_number(&self) -> u32 {
        self.tx.attempt_number()
    }
}

/// Runs a transaction. Not inlined, so that an attempt is compiled once for each protocol.
#[inline(never)]
fn transact<P: Protocol>(
    database: &Database<P>,
    worker: &mut Worker<P>,
    profile: Profile,
    body: &mut Body<'_>,
) -> Result<(), Error> {
    worker.try_transact_as(profile, |tx| body(&mut Running { database, tx }))
}

/// Makes a table with keys of this type.
fn create<K: ErasedKey, P: Protocol>(
    database: &Database<P>,
    name: String,
    Properties { capacity, immutable, rank, keys }: Properties,
) -> Result<Table, Misuse> {
    let mut builder = database.table::<K, Row>(name).rank(rank);
    if let Some(capacity) = capacity {
        builder = builder.hash(capacity);
    }
    if immutable {
        builder = builder.immutable();
    }
    Ok(Table { part: builder.create()?.reference().part, keys })
}

impl<P: Protocol> Backend for Database<P> {
    fn protocol(&self) -> &str {
        (**self).protocol()
    }

    fn is_opaque(&self) -> bool {
        (**self).is_opaque()
    }

    fn names(&self) -> Vec<String> {
        self.names()
    }

    fn create(&self, name: String, properties: Properties) -> Result<Table, Misuse> {
        match properties.keys {
            KeyKind::Word => create::<WordKey, P>(self, name, properties),
            KeyKind::Bytes => create::<BytesKey, P>(self, name, properties),
        }
    }

    fn open(&self, name: String) -> Result<Table, Misuse> {
        match self.table::<WordKey, Row>(name.as_str()).open() {
            Ok(table) => Ok(Table { part: table.reference().part, keys: KeyKind::Word }),
            Err(misuse) if matches!(misuse.downcast_ref(), Some(TableMisuse::OtherTypes { .. })) => {
                let table = self.table::<BytesKey, Row>(name).open()?;
                Ok(Table { part: table.reference().part, keys: KeyKind::Bytes })
            }
            Err(misuse) => Err(misuse),
        }
    }

    fn drop_table(&self, table: &Table) -> Result<(), Error> {
        match table.keys {
            KeyKind::Word => self.drop_table(find_table::<WordKey, P>(self, table)?),
            KeyKind::Bytes => self.drop_table(find_table::<BytesKey, P>(self, table)?),
        }
    }

    fn create_array(&self, name: &str, length: usize) -> Result<Array, Misuse> {
        let array = TArray::<u64, P>::named(self, name, length, |_| 0);
        let parts = ReservedNames::reserve(self, name, &[])?.fill(vec![Part::new(name, array)]);
        Ok(Array { part: parts[0], length })
    }

    fn open_array(&self, name: &str) -> Result<Array, Misuse> {
        let (part, array) = self.catalog().find_with_id::<TArray<u64, P>>(name)?;
        Ok(Array { part, length: array.len() })
    }

    fn transact(&self, profile: Profile, place: Place, body: &mut Body<'_>) -> Result<(), Error> {
        self.with_worker(|worker| transact(self, &mut worker.called_from(place), profile, body))
    }

    fn worker(&self) -> Result<Box<dyn BackendWorker>, Misuse> {
        Ok(Box::new(OwnWorker { worker: (**self).worker()?, database: self.clone() }))
    }

    fn statistics(&self) -> Statistics {
        (**self).statistics()
    }

    fn hot_keys(&self, limit: usize) -> Vec<HotKey> {
        (**self).hot_keys(limit)
    }

    fn report_both_sides(&self, on: bool) {
        (**self).report_both_sides(on);
    }

    fn record_history(&self, bytes_max: usize) -> Result<Recording, Misuse> {
        (**self).record_history(bytes_max)
    }

    fn snapshot(&self, is_strict: bool, place: Place) -> Result<Box<dyn BackendSnapshot>, Misuse> {
        let kind = if is_strict { SnapshotKind::Strict } else { SnapshotKind::Recent };
        let snapshot = Snapshot::open(self, kind, place)?;
        Ok(Box::new(TypedSnapshot { snapshot, database: self.clone() }))
    }

    fn snapshots(&self) -> SnapshotReport {
        (**self).snapshots()
    }

    fn retained_memory(&self) -> RetainedMemory {
        (**self).retained_memory()
    }

    fn collect(&self) -> u64 {
        (**self).collect()
    }

    fn set_retained_bytes_max(&self, bytes_max: Option<u64>) {
        (**self).set_retained_bytes_max(bytes_max);
    }
}

/// A typed snapshot, and its database.
struct TypedSnapshot<P: Protocol> {
    snapshot: Snapshot<P>,
    database: Database<P>,
}

impl<P: Protocol> BackendSnapshot for TypedSnapshot<P> {
    fn number(&self) -> u64 {
        self.snapshot.number()
    }

    fn staleness(&self) -> Duration {
        self.snapshot.staleness()
    }

    fn transact(&self, body: &mut Body<'_>) -> Result<(), Error> {
        let Self { snapshot, database } = self;
        snapshot.transact(|tx| body(&mut Running { database, tx }))
    }
}

/// A typed worker, and its database.
struct OwnWorker<P: Protocol> {
    worker: Worker<P>,
    database: Database<P>,
}

impl<P: Protocol> BackendWorker for OwnWorker<P> {
    fn id(&self) -> WorkerId {
        self.worker.id()
    }

    fn transact(&mut self, profile: Profile, place: Place, body: &mut Body<'_>) -> Result<(), Error> {
        transact(&self.database, &mut self.worker.called_from(place), profile, body)
    }
}
