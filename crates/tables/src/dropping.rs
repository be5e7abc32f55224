//! The dropping of tables.
//!
//! A table is dropped in three steps. First the log forgets it, by one write of its catalog: a crash leaves it whole or gone. Then the table and
//! its indexes are closed, so that operations by handles and references that are left are refused, and their names are free. At last
//! transactions which may use closed objects delete the rows. So those that had begun before, snapshots among them, still see one state or are
//! told that the table is gone, and what they read is freed when the last of them ends.

use crate::database::{Database, log};
use crate::key::Key;
use crate::table::Table;
use hotrow_core::{ContextAccess, Durability, Error, Misuse, Profile, Protocol, Value, Worker};
use hotrow_sync::Arc;

/// The number of rows that one transaction deletes.
const BATCH: usize = if cfg!(test) { 2 } else { 256 };

impl<P: Protocol> Database<P> {
    /// Drops a table with its indexes. Their names are free then, and operations by handles and references that are left end their
    /// transactions with [`Misuse::Dropped`]. Of a durable table, a crash leaves all or nothing.
    ///
    /// The call deletes the rows, and frees what nobody can see any more. A transaction or a snapshot that is open keeps the rest until
    /// it ends. The place of the table itself is kept until the database is gone, as are the rows of an immutable table. A transaction whose
    /// operation on the table had begun before the call may still commit; what it inserts is kept, too.
    ///
    /// Waits for a checkpoint in progress. The memory and time that it takes are in proportion to the number of rows.
    ///
    /// # Errors
    ///
    /// [`Misuse::Nested`] within a transaction; [`Misuse::ForeignObject`] if the table is another database's; [`Misuse::Dropped`] if it has
    /// been dropped before; [`Misuse::Unsupported`] if the log has failed. Nothing is dropped then. After any other error, that of a
    /// transaction which deletes rows, the table has been dropped, and the rest of its rows is kept until the database is gone.
    pub fn drop_table<K: Key, R: Value>(&self, table: &Table<K, R, P>) -> Result<(), Error> {
        self.with_worker(|worker| {
            self.close_table(table)?;
            if table.is_immutable() {
                return Ok(());
            }
            delete_all(worker, table)
        })?;
        self.collect();
        Ok(())
    }

    /// Drops what was recovered of a durable table or object that the program has not made since the database was opened. A crash leaves
    /// all or nothing of it.
    ///
    /// # Errors
    ///
    /// [`TableMisuse::NameTaken`](crate::TableMisuse::NameTaken) if the program has made it ([`drop_table`](Self::drop_table) drops such a table); [`TableMisuse::NoSuchName`](crate::TableMisuse::NoSuchName);
    /// [`Misuse::Unsupported`] if the log has failed.
    pub fn drop_recovered(&self, name: &str) -> Result<(), Misuse> {
        let none = || crate::TableMisuse::NoSuchName { name: name.to_owned() };
        let kept = log(self).ok_or_else(none)?;
        let _paused = kept.pause_checkpoints();
        let reserved = crate::loading::ReservedNames::reserve(self, name, &[])?;
        let is_known = kept.forget(name)?;
        drop(reserved);
        if is_known { Ok(()) } else { Err(none().into()) }
    }

    /// Has the log forget a table, closes it, and frees its names.
    fn close_table<K: Key, R: Value>(&self, table: &Table<K, R, P>) -> Result<(), Misuse> {
        // A checkpoint reads the tables that there were when it began.
        let _paused = log(self).map(|log| log.pause_checkpoints());
        let object = || table.name().to_owned();
        match self.catalog().find::<Table<K, R, P>>(table.name()) {
            Ok(found) if Arc::ptr_eq(&found.shared, &table.shared) => {}
            _ if self.id() == table.engine.id() => return Err(Misuse::Dropped { object: object() }),
            _ => return Err(Misuse::ForeignObject { object: object() }),
        }
        if let Some(log) = log(self)
            && table.shared.companions.log.is_some()
        {
            log.forget(table.name())?;
        }
        let metas = || table.shared.companions.indexes.metas().chain([&table.shared.meta]);
        self.close_objects(metas());
        self.catalog().forget(metas().map(|meta| meta.name()));
        Ok(())
    }
}

/// Deletes all rows of a closed table.
fn delete_all<K: Key, R: Value, P: Protocol>(
    worker: &mut Worker<P>,
    table: &Table<K, R, P>,
) -> Result<(), Error> {
    let mut keys = Vec::new();
    table.for_each_batch(
        &mut |body| {
            worker.transact(|tx| {
                tx.use_closed_objects();
                body(tx)
            })
        },
        false,
        &mut |batch| {
            keys.extend(batch.iter().map(|(key, _)| key.clone()));
            true
        },
    )?;
    let profile = Profile { durability: Durability::Buffered, ..Profile::UNKNOWN };
    keys.chunks(BATCH).try_for_each(|batch| {
        worker.try_transact_as(profile, |tx| {
            tx.use_closed_objects();
            batch.iter().try_for_each(|key| table.delete(tx, key).map(drop))
        })
    })
}
