//! Memory: cells and columns, pins and epochs, structure versions, and what is retained for whom. No protocol.

pub(crate) mod address_index;
pub(crate) mod address_map;
pub(crate) mod arena;
pub mod cell;
pub(crate) mod column;
pub mod column_groups;
pub(crate) mod course;
pub(crate) mod held_back;
pub(crate) mod identity;
pub(crate) mod pin;
pub(crate) mod retained;
pub(crate) mod structure;
pub(crate) mod thread_mark;
pub(crate) mod users_code;
pub(crate) mod versions;
