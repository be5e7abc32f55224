//! Procedures: transactions written once, the contexts that interpret them, and their chopping.
//!
//! A [`Procedure`] calls [`Operations`] on tables in an abstract [`Context`]. A database [executes](Procedures) it: the protocol decides which
//! context interprets it.

pub mod chopping;
pub mod context;
mod procedure;
mod scan;
mod state;
mod trace;

pub use context::Operations;
pub use context::execution::Procedures;
pub use procedure::{Context, Procedure};
pub use scan::{Ranges, Scan, ScanIndex, ScanTable};
pub use trace::{OperationId, ProcedureTrace, TracedOperation};
