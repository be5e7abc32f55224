//! The contexts: interpreters of procedures.

mod deferred;
mod eager;
mod graph;
mod tracing;

pub use deferred::{Deferring, Later};
pub use eager::Eager;
pub use graph::Graph;
pub use tracing::Tracing;
