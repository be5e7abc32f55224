//! An embedded store to compare with: redb.

use redb::{
    Database, Durability, Key, ReadTransaction, ReadableDatabase, TableDefinition, Value, WriteTransaction,
};
use tempfile::TempDir;

/// A redb database in a directory of its own, which is removed with it. It has one writer at a time, and readers beside.
pub(crate) struct Store {
    db: Database,
    durability: Durability,
    _directory: TempDir,
}

impl Store {
    /// A store whose commits do not wait for the device.
    pub(crate) fn unsynced() -> Result<Self, Box<dyn std::error::Error>> {
        Self::create(Durability::None)
    }

    /// A store each of whose commits is on the device when it returns.
    pub(crate) fn synced() -> Result<Self, Box<dyn std::error::Error>> {
        Self::create(Durability::Immediate)
    }

    fn create(durability: Durability) -> Result<Self, Box<dyn std::error::Error>> {
        let directory = tempfile::tempdir()?;
        let db = Database::create(directory.path().join("example.redb"))?;
        Ok(Self { db, durability, _directory: directory })
    }

    /// Makes a table with its first rows.
    pub(crate) fn fill<K: Key + 'static, V: Value + 'static>(
        &self,
        table: TableDefinition<'_, K, V>,
        rows: impl IntoIterator<Item = (K::SelfType<'static>, V::SelfType<'static>)>,
    ) -> Result<(), redb::Error> {
        self.write(|tx| {
            let mut table = tx.open_table(table)?;
            for (key, value) in rows {
                table.insert(key, value)?;
            }
            Ok(Some(()))
        })?;
        Ok(())
    }

    /// Runs a transaction. It commits if its body returns something, and is undone otherwise.
    pub(crate) fn write<R>(
        &self,
        body: impl FnOnce(&WriteTransaction) -> Result<Option<R>, redb::Error>,
    ) -> Result<Option<R>, redb::Error> {
        let mut tx = self.db.begin_write()?;
        tx.set_durability(self.durability)?;
        let result = body(&tx)?;
        if result.is_some() {
            tx.commit()?;
        } else {
            tx.abort()?;
        }
        Ok(result)
    }

    /// Reads what was committed last.
    pub(crate) fn read(&self) -> Result<ReadTransaction, redb::Error> {
        Ok(self.db.begin_read()?)
    }
}
