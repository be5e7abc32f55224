//! The kit: what authors of datatypes build with.

pub mod column_groups;
pub(crate) mod commit_time;
pub(crate) mod commuting;
pub(crate) mod segment;
pub(crate) mod segment_object;
pub(crate) mod slots;
