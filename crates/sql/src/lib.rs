//! SQL over Hotrow's tables: plans that are transactions, always serializable.
//!
//! `plan` binds a parsed statement to the catalog and chooses the ways to its rows; `run` executes it over a transaction. `connection` decides in
//! which transaction a statement runs. Nothing here knows the network, and no crate below knows SQL.
//!
//! A table is a *storage*: a table of Hotrow's from the encoded primary key (or a number behind the columns) to the row. An index is a storage from
//! encoded columns to the primary key. So a unique index is a key that exists, and a range is a scan. A definition that rewrites rows makes another
//! storage and names it; a storage that no definition names is dropped when the transaction has ended.

mod catalog;
mod connection;
mod error;
pub mod functions;
mod hashing;
mod instance;
mod outcome;
mod plan;
mod procedures;
mod row;
mod run;
pub mod values;
mod virtual_tables;

pub use connection::{Canceller, Connection, Start};
pub use error::{ErrorContent, SqlError};
pub use instance::{Instance, InstanceOptions, Metric};
pub use outcome::{BlockState, Client, Field, Notice, Outcome};
pub use procedures::Call;
pub use run::Stop;
