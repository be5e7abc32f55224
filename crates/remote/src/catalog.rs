//! The catalog: the tables of a cluster, with the schemas of their keys and rows.

use crate::error::ClusterError;
use crate::marker::{unique_number, until};
use crate::shared::Shared;
use crate::store::{At, Commit, Mutation, Outcome, Span, StoreError};
use hotrow_core::column_groups::GROUPS_MAX;
use hotrow_stored::{Change, Malformed, Reader, Schema, Stored, Writer};
use hotrow_sync::clock::now;
use hotrow_sync::lock;
use hotrow_tables::TableMisuse;
use std::fmt;

/// A name, and the value of its key.
pub(crate) type Named = (String, Vec<u8>);

/// A table as the catalog has it.
#[derive(Debug, Clone, PartialEq, Eq, Stored)]
#[hotrow(crate = "hotrow_stored::facade")]
pub(crate) struct Shape {
    pub(crate) number: u32,
    pub(crate) form: Form,
    pub(crate) key: Schema,
    pub(crate) row: Schema,
    /// The part of each column, if rows have several.
    pub(crate) parts: Vec<u32>,
    /// The full names of the indexes, in their order.
    pub(crate) indexes: Vec<String>,
    /// The name of the table that an index is of. Empty for others.
    pub(crate) of: String,
}

/// The use of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Stored)]
#[hotrow(crate = "hotrow_stored::facade")]
pub(crate) enum Form {
    /// Users' rows.
    Rows,
    /// The entries of a secondary index.
    Secondary,
    /// The entries of a unique index.
    Unique,
    /// Users' rows, whole, that were copied from a directory, which says nothing of groups and indexes: the first program that opens the
    /// table declares them ([`crate::converting`]).
    Copied,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, row, parts, indexes, of, .. } = self;
        match self.form {
            Form::Rows | Form::Copied => write!(f, "a table of {row} by {key}")?,
            Form::Secondary => write!(f, "a secondary index of table {of} by {key}")?,
            Form::Unique => write!(f, "a unique index of table {of}, {row} by {key}")?,
        }
        if let Some(most) = parts.iter().max() {
            let names: Vec<&str> = row.field_names().map(Iterator::collect).unwrap_or_default();
            let columns = |part: u32| {
                let columns = names.iter().zip(parts).filter(|(_, of)| **of == part);
                columns.map(|(name, _)| *name).collect::<Vec<_>>().join(" + ")
            };
            write!(f, " with groups {}", (1..=*most).map(columns).collect::<Vec<_>>().join(", "))?;
        }
        match indexes.is_empty() {
            true => Ok(()),
            false => write!(f, " with indexes {}", indexes.join(", ")),
        }
    }
}

impl Shape {
    /// A table without groups and indexes.
    pub(crate) fn new(form: Form, (key, row): (Schema, Schema)) -> Self {
        Self { number: 0, form, key, row, parts: Vec::new(), indexes: Vec::new(), of: String::new() }
    }

    /// An index of a table.
    pub(crate) fn index(form: Form, schemas: (Schema, Schema), table: &str) -> Self {
        Self { of: table.to_owned(), ..Self::new(form, schemas) }
    }

    /// True if it is no index.
    pub(crate) fn has_users_rows(&self) -> bool {
        matches!(self.form, Form::Rows | Form::Copied)
    }

    /// A table with parts and indexes.
    pub(crate) fn with(self, parts: Vec<u32>, mut indexes: Vec<String>) -> Self {
        indexes.sort_unstable();
        Self { parts, indexes, ..self }
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        Writer::write(&mut bytes, |to| self.put(to))?;
        Ok(bytes)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let shape = Reader::read(bytes, Self::get)?;
        shape.key.check()?;
        shape.row.check()?;
        let columns = shape.parts.len();
        if shape.parts.iter().any(|part| *part as usize > columns.min(GROUPS_MAX)) {
            return Err(Malformed::new("a column is of a part that there cannot be"));
        }
        Ok(shape)
    }

    /// True if keys and rows of the earlier shape are those of this one.
    pub(crate) fn can_read(&self, earlier: &Self) -> bool {
        let same = |change: Result<Change, _>| matches!(change, Ok(Change::None | Change::Names));
        same(self.key.change_from(&earlier.key, "key")) && same(self.row.change_from(&earlier.row, "row"))
    }

    /// True if values of the earlier shape are those of this one.
    fn is_as(&self, earlier: &Self) -> bool {
        self.can_read(earlier)
            && self.form == earlier.form
            && self.parts == earlier.parts
            && self.indexes == earlier.indexes
            && self.of == earlier.of
    }
}

pub(crate) fn other_types(name: &str, made: &Shape, wanted: &Shape) -> TableMisuse {
    let (made_as, wanted) = (made.to_string(), wanted.to_string());
    TableMisuse::OtherTypes { name: name.to_owned(), made_as, wanted }
}

/// All keys and values of a range whose keys have names behind the prefix that is its beginning, in one state.
///
/// # Errors
///
/// [`StoreError::Unreachable`]; [`StoreError::Compacted`].
pub(crate) fn named(shared: &Shared, mut span: Span, mut at: At) -> Result<Vec<Named>, StoreError> {
    let (mut all, prefix, page) = (Vec::new(), span.start.len(), shared.settings.page.max(1));
    loop {
        let deadline = now() + shared.settings.deadline;
        let found = until(deadline, || shared.store.range(&span, at, page, deadline))?;
        at = At::Version(found.version);
        for (key, found) in found.rows {
            span.start = [&*key, &[0]].concat();
            all.push((String::from_utf8_lossy(&key[prefix..]).into_owned(), found.value));
        }
        if !found.has_more {
            return Ok(all);
        }
    }
}

/// The names of users' tables.
///
/// # Errors
///
/// [`TableMisuse::Malformed`] if the catalog has something else; [`ClusterError::Store`].
pub(crate) fn names(shared: &Shared) -> Result<Vec<String>, ClusterError> {
    let deadline = now() + shared.settings.deadline;
    let tables = until(deadline, || {
        named(shared, shared.layout.catalogs(), At::Newest).map_err(|error| match error {
            StoreError::Compacted { .. } => StoreError::Unreachable { reason: error.to_string() },
            error => error,
        })
    });
    let mut names = Vec::new();
    for (name, bytes) in tables.map_err(ClusterError::Store)? {
        match Shape::from_bytes(&bytes) {
            Ok(shape) if shape.has_users_rows() => names.push(name),
            Ok(_) => {}
            Err(malformed) => {
                return Err(TableMisuse::Malformed { table: name, reason: malformed.to_string() }.into());
            }
        }
    }
    Ok(names)
}

/// Opens a table, or makes it. Returns its number.
///
/// # Errors
///
/// [`TableMisuse::OtherTypes`] if it has been made with other types, groups or indexes; [`TableMisuse::Malformed`] if the catalog has something else;
/// [`StoreError::Unreachable`].
pub(crate) fn open(shared: &Shared, name: &str, mut wanted: Shape) -> Result<u32, ClusterError> {
    let deadline = now() + shared.settings.deadline;
    let (store, place) = (&*shared.store, shared.layout.catalog(name));
    let malformed = |reason: String| TableMisuse::Malformed { table: name.to_owned(), reason };
    let number = until(deadline, || {
        let read = store.get_many(std::slice::from_ref(&place), At::Newest, deadline)?;
        if let Some(found) = read.values.into_iter().next().flatten() {
            return Ok(match Shape::from_bytes(&found.value) {
                Ok(made) if wanted.is_as(&made) => Ok(made.number),
                Ok(made) => Err(other_types(name, &made, &wanted)),
                Err(reason) => Err(malformed(reason.to_string())),
            });
        }
        if wanted.number == 0 {
            let number = unique_number(store, shared.layout.numbers("table"), deadline)?;
            match u32::try_from(number) {
                Ok(number) => wanted.number = number,
                Err(_) => return Ok(Err(malformed("the store has no number for another table".to_owned()))),
            }
        }
        let value = match wanted.to_bytes() {
            Ok(value) => value,
            Err(reason) => return Ok(Err(malformed(reason))),
        };
        let put = Mutation::Put { key: place.clone(), value };
        let commit = Commit { keys: vec![(place.clone(), 0)], mutations: vec![put], ..Commit::default() };
        match store.commit(&commit, deadline) {
            Ok(Outcome::Committed(_)) => Ok(Ok(wanted.number)),
            // Another process has made it, or this one has and does not know. The next look tells.
            Ok(Outcome::Conflict(_)) | Err(StoreError::Unknown { .. }) => {
                Err(StoreError::Unreachable { reason: format!("others make table {name}") })
            }
            Err(error) => Err(error),
        }
    });
    let number = number.map_err(ClusterError::Store)??;
    lock(&shared.tables).insert(number, name.to_owned());
    Ok(number)
}
