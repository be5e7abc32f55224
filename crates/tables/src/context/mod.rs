//! The contexts: interpreters of procedures. They know no [operation](crate::operations) by name.
//!
//! | context | runs operations |
//! |---|---|
//! | [`Eager`] | at once |
//! | [`Recording`] | when the transaction commits; or at once until the first conflict, and then with the help of waiting workers |
//! | [`Tracing`] | at once, and traces them |

mod eager;
pub(crate) mod in_pieces;
mod recording;
mod tracing;

pub use crate::operations::Later;
pub use eager::Eager;
pub use recording::Recording;
pub use tracing::Tracing;
