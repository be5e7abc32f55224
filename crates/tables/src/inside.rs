//! The inside of tables that crates above need, and users do not.
//!
//! Contexts of procedures need:
//!
//! | item | for |
//! |---|---|
//! | [`Shared`], [`shared`] | the hidden methods of [operations](crate::operations), by which they apply them |
//! | [`table_number`], [`index_number`] | traces of operations, and the classes into which chopping divides them |
//! | [`all_groups`] | the column groups that a scan looks at |
//! | [`last_byte_of`] | the part of rows that a procedure has fetched ahead |
//! | [`extension`] | the state that procedures keep with each database |
//!
//! Durability needs:
//!
//! | item | for |
//! |---|---|
//! | [`DatabaseLog`], [`with_log`], [`log`] | the log of a database, behind what tables see of it |
//! | [`LoggedTable`], [`Entries`], [`RowsAsBytes`], [`PutBytes`] | a table in the log, which knows bytes, and no types |
//! | [`engine_options`], [`builder_extension`] | the opening of a database with a log |
//! | [`find_or_make`], [`Codec`] | objects that have a name in their database |
//!
//! Tables over a store that is not memory need:
//!
//! | item | for |
//! |---|---|
//! | [`Elsewhere`] | references by which procedures name them |
//! | [`first_rows`] | scans of the first rows |
//! | [`GroupsOf`] | the column groups of a row's type |
//! | [`Constraints`] | the conditions that rows meet |
//! | [`entries_of`] | the range of an index's entries, which are pairs of secondary and primary key |

pub use crate::catalog::Elsewhere;
pub use crate::codec::Codec;
pub use crate::companions::Constraints;
pub use crate::database::{builder_extension, engine_options, extension, log, with_log};
pub use crate::database_log::{
    DatabaseLog, ENTRY_HEAD, Entries, EntryKind, FIELD_HEAD, LoggedTable, PutBytes, RowsAsBytes,
};
pub use crate::record::{GroupsOf, all_groups, last_byte_of};
pub use crate::scan::first_rows;
pub use crate::secondary::images as entries_of;
pub use crate::storage::Shared;

use crate::catalog::Part;
use crate::database::Database;
use crate::key::Key;
use crate::loading::ReservedNames;
use crate::misuse::TableMisuse;
use crate::reference::{IndexRef, TableRef};
use crate::table::Table;
use hotrow_core::{Misuse, Protocol, Value};
use std::any::Any;

/// The state of a table.
#[inline(always)]
pub fn shared<K: Key, R: Value, P: Protocol>(table: &Table<K, R, P>) -> &Shared<K, R, P> {
    &table.shared
}

/// The number of a table in its database.
#[inline(always)]
pub fn table_number<K, R>(table: TableRef<K, R>) -> u32 {
    table.part.number()
}

/// The number of a secondary index in its database.
#[inline(always)]
pub fn index_number<S, K, R>(index: IndexRef<S, K, R>) -> u32 {
    index.part.number()
}

/// Returns what has this name in a database, or else makes it.
///
/// # Errors
///
/// [`TableMisuse::OtherTypes`](crate::TableMisuse::OtherTypes) if it is of another type, and those of `make`.
pub fn find_or_make<T: Any + Clone + Send + Sync, P: Protocol>(
    database: &Database<P>,
    name: &str,
    make: impl FnOnce() -> Result<T, Misuse>,
) -> Result<T, Misuse> {
    match database.catalog().find::<T>(name) {
        Err(TableMisuse::NoSuchName { .. }) => {}
        found => return Ok(found?.clone()),
    }
    let reserved = ReservedNames::reserve(database, name, &[])?;
    let made = make()?;
    reserved.fill(vec![Part::new(name, made.clone())]);
    Ok(made)
}
