//! The contexts: interpreters of procedures.
//!
//! | context | runs operations |
//! |---|---|
//! | [`Eager`] | at once |
//! | [`Recording`] with the executor [`InOrder`], called [`Deferring`] | when the transaction commits |
//! | [`Recording`] with the executor [`Stealable`], called [`Graph`] | at once until the first conflict, then with the help of waiting workers |
//! | [`Tracing`] | at once, and traces them |

mod eager;
mod executor;
mod in_order;
pub(crate) mod in_pieces;
mod recording;
mod stealable;
mod tracing;

pub use eager::Eager;
pub use in_order::InOrder;
pub use recording::{Deferring, Graph, Later, Recording};
pub use stealable::Stealable;
pub use tracing::Tracing;
