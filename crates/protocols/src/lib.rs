//! Hotrow's concurrency-control protocols, one module each, and the registry that names them.
//!
//! A protocol knows headers, marks and items; it names no datatype. All protocols follow the one path that
//! [`hotrow_core::Protocol`] describes, so a reader who knows one can read them all.

// Without `Any`, nothing but models reaches the protocols, and these reach parts of them.
#![cfg_attr(loom, allow(dead_code, unreachable_pub))]

#[cfg(not(loom))]
mod any;
mod chop;
#[cfg(not(loom))]
mod compiled;
mod crowd;
mod drp;
mod host;
mod ic3;
mod latch;
mod lock_wait;
mod locking;
mod mocc;
mod naive_htm;
mod none;
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

#[cfg(not(loom))]
pub use any::{Any, AnyHeader, AnyLocal, AnyMark, AnyOptions};
#[cfg(not(loom))]
#[doc(hidden)]
pub use compiled::functions;
/// In models, whose words cannot be made of zero bytes, the first protocol stands for all.
#[cfg(loom)]
pub use occ::Occ as Any;
pub use occ::{Occ, OccLocal};
pub use registry::{
    PROTOCOLS, ProtocolInfo, UnknownProtocol, Visitor, find, for_each_concurrent_protocol, for_each_protocol,
    names, with_measured_protocol, with_protocol,
};
pub use version::{Version, VersionWord};
