//! How tables become durable while they are made: their places in the log, and the rows that it has of them.

use crate::codec::Codec;
use crate::companions::RowLog;
use crate::database::{Database, log};
use crate::database_log::{LoggedTable, PutBytes, RowsAsBytes};
use crate::errors::LoadError;
use crate::key::Key;
use crate::misuse::TableMisuse;
use crate::table::Table;
use hotrow_core::{Error, Misuse, Protocol, Snapshot, SnapshotReader, Value};
use hotrow_stored::{Reader, Schema, Stored};
use std::any::type_name;
use std::fmt::{Debug, Display};
use std::sync::Arc;

/// A durable table that is being made.
pub(crate) struct DurableTable<K: Key, R: Value, P: Protocol> {
    pub(crate) place: Box<dyn LoggedTable<P>>,
    pub(crate) log: Arc<RowLog<K, R>>,
    migrations: Vec<Migration<K, R>>,
}

impl<K: Key, R: Value, P: Protocol> DurableTable<K, R, P> {
    /// Begins to make a table, by its name; `None` if its database has no log.
    ///
    /// # Errors
    ///
    /// [`TableMisuse::NotStored`](crate::TableMisuse::NotStored) if its keys or rows cannot be stored, and those of the log.
    pub(crate) fn begin(
        database: &Database<P>,
        table: &str,
        migrations: Vec<Migration<K, R>>,
    ) -> Result<Option<Self>, Misuse> {
        let Some(log) = log(database) else { return Ok(None) };
        let missing = |of: &'static str| TableMisuse::NotStored { name: table.to_owned(), of };
        let key = K::stored().ok_or_else(|| missing(type_name::<K>()))?;
        let row = R::stored().ok_or_else(|| missing(type_name::<R>()))?;
        let codec = Codec::new(key, row);
        let earlier = migrations.iter().map(|migration| (migration.schemas)()).collect();
        let place = log.clone().find(table, codec.schemas(), earlier)?;
        let log = Arc::new(RowLog::new(codec, place.entries()));
        Ok(Some(Self { place, log, migrations }))
    }

    /// Hands over what was recovered of the table, to a function that inserts a row.
    pub(crate) fn recover(
        &self,
        table: &str,
        insert: &(dyn Fn(K, R) -> Result<(), LoadError> + Sync),
    ) -> Result<(), Misuse> {
        let codec = self.log.codec();
        let take = |migration: Option<usize>, key: &[u8], row: &[u8]| {
            let (key, row) = match migration {
                None => codec.get(key, row)?,
                Some(number) => (self.migrations[number].read)(key, row)?,
            };
            self.log.note(&row);
            insert(key, row).map_err(|refused| refused.to_string())
        };
        let malformed = |reason| TableMisuse::Malformed { table: table.to_owned(), reason };
        Ok(self.place.for_each_recovered(&take).map_err(malformed)?)
    }

    /// As [`LoggedTable::end`].
    pub(crate) fn end(self, table: &Table<K, R, P>, is_loaded: bool) -> Result<(), Error> {
        self.place.end(Box::new(RowsOfTable { table: table.clone(), log: self.log }), is_loaded)
    }
}

/// The rows of a table, with the way in which they become bytes.
struct RowsOfTable<K: Key, R: Value, P: Protocol> {
    table: Table<K, R, P>,
    log: Arc<RowLog<K, R>>,
}

impl<K: Key, R: Value, P: Protocol> RowsAsBytes<P> for RowsOfTable<K, R, P> {
    fn for_each(
        &self,
        reader: &mut SnapshotReader<P>,
        snapshot: &Snapshot<P>,
        visit: &mut dyn FnMut(PutBytes<'_>, PutBytes<'_>) -> bool,
    ) -> Result<(), Error> {
        let codec = self.log.codec();
        self.table.for_each_batch(&mut |body| reader.transact_on(snapshot, body), true, &mut |batch| {
            batch.iter().all(|(key, row)| {
                self.log.note(row);
                visit(&mut |bytes| codec.put_key(key, bytes), &mut |bytes| codec.put_row(row, bytes))
            })
        })
    }
}

/// The rows of an earlier type of a table, and how they become those of the present one.
pub(crate) struct Migration<K, R> {
    /// The schemas of the earlier keys and rows.
    schemas: fn() -> (Schema, Schema),
    /// Reads a row of the earlier type.
    read: Box<dyn Fn(&[u8], &[u8]) -> Result<(K, R), String> + Send + Sync>,
}

impl<K: Key, R: Value> Migration<K, R> {
    pub(crate) fn new<OldKey: Stored + Debug, Old: Stored, E: Display>(
        migrate: impl Fn(OldKey, Old) -> Result<(K, R), E> + Send + Sync + 'static,
    ) -> Self {
        let read = move |key: &[u8], row: &[u8]| {
            let key =
                Reader::read(key, OldKey::get).map_err(|reason| format!("a key cannot be read: {reason}"))?;
            let name = format!("{key:?}");
            let row = Reader::read(row, Old::get)
                .map_err(|reason| format!("row {name} cannot be read: {reason}"))?;
            migrate(key, row).map_err(|reason| format!("row {name} cannot be migrated: {reason}"))
        };
        Self { schemas: || (Schema::of::<OldKey>(), Schema::of::<Old>()), read: Box::new(read) }
    }
}
