//! SQL over Hotrow's tables: plans that are transactions, always serializable.

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
