//! The contexts: interpreters of procedures.

mod deferred;
mod eager;
mod recording;

pub use deferred::{Deferring, Later};
pub use eager::Eager;
pub use recording::Recording;
