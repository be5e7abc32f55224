//! The kernel: segment words, items, objects, protocols, and the one path of a transaction.

pub(crate) mod abort;
pub(crate) mod attempt;
pub(crate) mod capabilities;
pub(crate) mod engine;
pub(crate) mod item;
mod loading;
pub(crate) mod loss;
pub(crate) mod object;
pub(crate) mod object_access;
pub(crate) mod observations;
pub(crate) mod profile;
pub(crate) mod protocol;
pub(crate) mod read_log;
pub(crate) mod slots;
pub(crate) mod statistics;
pub(crate) mod transaction;
pub(crate) mod worker;
