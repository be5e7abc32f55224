//! Hotrow's concurrency-control protocols, one module each, and the registry that names them.
//!
//! A protocol knows headers, marks and items; it names no datatype. All protocols follow the one path that
//! [`hotrow_core::Protocol`] describes, so a reader who knows one can read them all.

mod crowd;
mod drp;
mod lock_wait;
mod locking;
mod mocc;
mod occ;
mod per_worker;
mod plor;
mod queue_place;
mod reads;
mod registry;
mod removals;
mod serial;
mod stable;
mod steal;
mod striped;
mod tictoc;
mod tl2;
mod version;
mod worker_states;

pub use drp::{Drp, DrpLocal, DrpMark, DrpOptions, TicketLock};
pub use locking::{LockWords, LockingLocal, Policy, TwoPhaseLocking};
pub use mocc::{HeatedVersion, HeatedWord, Mocc, MoccLocal, MoccMark};
pub use occ::{FallbackLocks, Occ, OccLocal, OccOptions};
pub use plor::{Locker, Plor, PlorLocal, PlorOptions};
pub use registry::{
    PROTOCOLS, ProtocolInfo, UnknownProtocol, Visitor, find, for_each_concurrent_protocol,
    for_each_deferring_protocol, for_each_protocol, for_each_recording_protocol, names, with_protocol,
};
pub use serial::{Serial, SerialLocal, SerialOptions};
pub use steal::{McsLocking, McsLockingLocal, McsLockingOptions, QueueLock, StealingMode};
pub use tictoc::{TicToc, TicTocLocal, TimestampWord, Timestamps};
pub use tl2::{Tl2, Tl2Local};
pub use version::{Version, VersionWord};
