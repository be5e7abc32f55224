//! The contexts: interpreters of procedures. They know no [operation](hotrow_tables::operations) by name: [`Operations`] does.
//!
//! | context | runs operations |
//! |---|---|
//! | [`Eager`] | at once |
//! | [`Recording`] | when the transaction commits; or at once until the first conflict, and then with the help of waiting workers |
//! | [`Tracing`] | at once, and traces them |

mod eager;
pub(crate) mod execution;
mod execution_in_pieces;
pub(crate) mod in_pieces;
mod operations;
mod recording;
mod tracing;

pub use eager::Eager;
pub use hotrow_tables::operations::Later;
pub use operations::Operations;
pub use recording::Recording;
pub use tracing::Tracing;
