//! Uses of tables, and of a database's other named objects, that can never work.

use hotrow_core::{Error, Misuse};

/// A use of tables, or of a database's other named objects, that can never work: a [`Misuse`], in which
/// [`Misuse::downcast_ref`] finds it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableMisuse {
    /// An immutable table was about to be changed.
    #[error("table {table} is immutable: fill it before use, do not change it")]
    ImmutableTable {
        /// The table's name.
        table: String,
    },
    /// A table or index was to be made under a name that another one has.
    #[error("there is a table or an index named {name} already: open it, or choose another name")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// No table or index has the name.
    #[error(
        "there is no table or index named {name}: make it by `create` or `create_or_open` first, or correct the name"
    )]
    NoSuchName {
        /// The name.
        name: String,
    },
    /// The table or index of this name has other types of keys or rows.
    #[error("{name} was made as {made_as}, and is wanted as {wanted}")]
    OtherTypes {
        /// The name.
        name: String,
        /// The type as which it was made.
        made_as: String,
        /// The type as which it is wanted.
        wanted: String,
    },
    /// A durable table or object has rows of other types, which are no safe change of those wanted.
    #[error(
        "the rows of {name} were written with other types, {difference}: change the type back, or migrate them"
    )]
    OtherSchema {
        /// The name.
        name: String,
        /// The place of the first difference, and what is there.
        difference: String,
    },
    /// A table of a durable database has keys or rows that cannot be stored.
    #[error(
        "{name} cannot be durable, because {of} has no stored form: derive `Stored` for it, or say `in_memory()`"
    )]
    NotStored {
        /// The table's name.
        name: String,
        /// The type.
        of: &'static str,
    },
    /// A durable object was asked for in a database that lives in memory.
    #[error("{name} cannot be durable in a database without a directory: open the database by `open_at`")]
    NoDirectory {
        /// The object's name.
        name: String,
    },
    /// A database was given settings of a log, and was to be opened in memory.
    #[error("a log has settings and no directory: open the database by `open_at`, or leave them out")]
    NoPlaceForLog,
    /// Keys and rows that a log or a checkpoint has recovered of a table cannot be read as its types.
    #[error("{table}: {reason}")]
    Malformed {
        /// The table's name.
        table: String,
        /// The part that cannot be read, and the reason.
        reason: String,
    },
}

impl From<TableMisuse> for Misuse {
    fn from(misuse: TableMisuse) -> Self {
        Self::of(misuse)
    }
}

impl<E> From<TableMisuse> for Error<E> {
    fn from(misuse: TableMisuse) -> Self {
        Self::Misuse(misuse.into())
    }
}
