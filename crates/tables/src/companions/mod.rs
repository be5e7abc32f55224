//! Companions of a table's rows: all that belongs to a row beside its key and its value.
//!
//! A companion is asked or told at certain moments of a row's life. It knows rows and transactions, and nothing of the table's
//! [shared state](crate::storage::Shared), which has it.
//!
//! | companion | moments |
//! |---|---|
//! | [`Constraints`] | the row is loaded, or in its final state at the end of a body: judged |
//! | [`MaintainedIndexes`] | it is inserted, changed, deleted, loaded: entries move |
//! | [`SplitRows`] | it is inserted, changed, deleted: its parts are segments of their own |
//! | [`Groups`], [`Queues`] | it comes in or goes: its group is lined up for |
//! | [`RowLog`] | its change is committed: logged |
//! | [`Graveyard`] | it is dead, and a snapshot may see it: kept |

mod buried;
mod constraints;
mod graveyard;
mod groups;
mod indexes;
mod parts;
mod row_log;

pub(crate) use buried::{Buried, Name};
pub use constraints::Constraints;
pub(crate) use graveyard::Graveyard;
pub(crate) use groups::{Groups, HEADS, Queues};
pub(crate) use indexes::{MaintainedIndex, MaintainedIndexes};
pub(crate) use parts::{PartOf, SplitRows};
pub(crate) use row_log::RowLog;

use crate::key::Key;
use hotrow_core::{Engine, Protocol, Value};
use std::sync::Arc;

/// The companions of a table's rows.
pub(crate) struct Companions<K: Key, R: Value, P: Protocol> {
    /// The conditions that each row meets.
    pub(crate) constraints: Constraints<K, R>,
    pub(crate) indexes: MaintainedIndexes<K, R, P>,
    /// The groups of columns that conflict apart, if there are any.
    pub(crate) split: Option<Box<SplitRows<K, R, P>>>,
    pub(crate) groups: Groups<P>,
    /// The queues, if the groups are some.
    pub(crate) queues: Option<Queues<K>>,
    /// The way to the log, if the table is durable.
    pub(crate) log: Option<Arc<RowLog<K, R>>>,
    /// The dead records that snapshots may see.
    pub(crate) graveyard: Arc<Graveyard>,
}

impl<K: Key, R: Value, P: Protocol> Companions<K, R, P> {
    /// Those of a table without constraints, indexes and queues.
    ///
    /// Made before the table's label, so that the groups precede the table in lock order: an operation that takes the
    /// first row of a group lines up for the group first.
    pub(crate) fn new(engine: &Engine<P>, table: &str) -> Self {
        Self {
            constraints: Constraints::new(),
            indexes: MaintainedIndexes::new(),
            split: None,
            groups: Groups::new(engine.id(), table),
            queues: None,
            log: None,
            graveyard: Graveyard::new(engine.kept_segments()),
        }
    }
}
