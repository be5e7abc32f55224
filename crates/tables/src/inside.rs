//! The inside of tables that crates above need, and users do not.
//!
//! | item | is needed for |
//! |---|---|
//! | [`Shared`], [`shared`] | the hidden methods of [operations](crate::operations), by which contexts of procedures apply them |
//! | [`table_number`], [`index_number`] | traces of operations, and the classes into which chopping divides them |
//! | [`last_byte_of`] | the part of rows that a procedure has fetched ahead |
//! | [`extension`] | the state that procedures keep with each database |

pub use crate::database::Extension;
pub use crate::record::last_byte_of;
pub use crate::storage::Shared;

use crate::database::Database;
use crate::key::Key;
use crate::reference::{IndexRef, TableRef};
use crate::table::Table;
use hotrow_core::{Protocol, Value};

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

/// The place for what a crate above keeps with a database.
#[inline(always)]
pub fn extension<P: Protocol>(database: &Database<P>) -> &Extension {
    database.extension()
}
