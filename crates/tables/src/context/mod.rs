//! The contexts: interpreters of procedures.

mod eager;
mod recording;

pub use eager::Eager;
pub use recording::Recording;
