//! Builders of the tables of an erased database.

use super::database::Database;
use super::table::{KeyKind, Properties, Table};
use hotrow_core::Misuse;

/// The properties of a table to be made. See [`Database::table`].
#[derive(Debug)]
pub struct TableBuilder<'d> {
    database: &'d Database,
    name: String,
    properties: Properties,
}

impl<'d> TableBuilder<'d> {
    pub(super) fn new(database: &'d Database, name: String) -> Self {
        let properties =
            Properties { capacity: None, immutable: false, rank: u16::MAX, keys: KeyKind::Bytes };
        Self { database, name, properties }
    }

    /// Chooses an ordered index, which can be scanned. This is the default.
    #[must_use]
    pub fn ordered(mut self) -> Self {
        self.properties.capacity = None;
        self
    }

    /// Chooses a hash index with room for `expected` rows. It grows beyond that by itself. Such a table cannot be scanned.
    #[must_use]
    pub fn hash(mut self, expected: usize) -> Self {
        self.properties.capacity = Some(expected);
        self
    }

    /// Declares that all keys have eight bytes, such as [`u64::to_be_bytes`] makes. Such a table needs less memory, and
    /// finds rows faster, than one with keys of any length. A key of another length ends its transaction with
    /// [`Misuse::Unsupported`].
    #[must_use]
    pub fn word_keys(mut self) -> Self {
        self.properties.keys = KeyKind::Word;
        self
    }

    /// Declares that rows never change after loading: see [`TableBuilder::immutable`](crate::TableBuilder::immutable).
    #[must_use]
    pub fn immutable(mut self) -> Self {
        self.properties.immutable = true;
        self
    }

    /// Sets the table's position in the order of locks: see [`TableBuilder::rank`](crate::TableBuilder::rank).
    #[must_use]
    pub fn rank(mut self, rank: u16) -> Self {
        self.properties.rank = rank;
        self
    }

    /// Makes the table, which is empty.
    ///
    /// # Errors
    ///
    /// [`TableMisuse::NameTaken`](crate::TableMisuse::NameTaken) if the database has a table or index of this name.
    pub fn create(self) -> Result<Table, Misuse> {
        self.database.backend().create(self.name, self.properties)
    }

    /// Returns the table of this name, which has been made before. Its properties are those with which it was made.
    ///
    /// # Errors
    ///
    /// [`TableMisuse::NoSuchName`](crate::TableMisuse::NoSuchName); [`TableMisuse::OtherTypes`](crate::TableMisuse::OtherTypes) if it is a typed table.
    pub fn open(self) -> Result<Table, Misuse> {
        self.database.backend().open(self.name)
    }
}

impl Database {
    /// Begins to [make](TableBuilder::create) a table of this name, or to [open](TableBuilder::open) the one that has it.
    pub fn table(&self, name: impl Into<String>) -> TableBuilder<'_> {
        TableBuilder::new(self, name.into())
    }
}
