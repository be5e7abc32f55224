//! Transactional in-memory tables: rows, indexes, keys and databases.
//!
//! A [`Table`] is a transactional object: its rows are segments, and so are its buckets and leaves. It works with
//! every protocol.

mod builder;
mod caching;
mod catalog;
mod changing;
mod codec;
mod commit_time;
mod companions;
#[cfg(not(loom))]
#[doc(hidden)]
pub mod compiled;
mod data;
mod database;
mod database_log;
mod deferred;
mod dropping;
mod durability;
mod enqueue;
#[cfg(all(feature = "erased", not(loom)))]
pub mod erased;
mod errors;
mod index;
mod insertion;
#[doc(hidden)]
pub mod inside;
mod iterator;
pub mod key;
mod loading;
mod logging;
mod map;
mod misuse;
pub mod operations;
mod queue;
mod record;
mod record_index;
mod reference;
mod rows;
mod scan;
mod secondary;
mod snapshot;
mod split;
mod storage;
mod table;
mod text;
mod unique;
mod updating;
mod walk;

pub use builder::TableBuilder;
pub use data::{Data, KeyRange};
pub use database::{Database, DatabaseBuilder};
pub use errors::{ConstraintViolated, DuplicateKey, KeyExists, LoadError, MissingRow};
pub use index::Direction;
pub use key::{AsKey, Key, KeyBounds};
pub use loading::Loading;
pub use map::{Hashed, Sorted, THashMap, TMap, TOrderedMap};
pub use misuse::TableMisuse;
pub use operations::{Operation, OperationKind};
pub use reference::{IndexRef, TableRef};
pub use secondary::SecondaryIndex;
pub use table::{Table, TableMemory};
pub use text::{Text, TextError};
pub use unique::UniqueIndex;
