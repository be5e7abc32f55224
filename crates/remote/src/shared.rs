//! The state that the handles of a cluster share.

use crate::combining::Combiner;
use crate::layout::Layout;
use crate::marker::Markers;
use crate::recording::Recorder;
use crate::settings::Settings;
use crate::store::{Span, Store};
use hotrow_core::{Conflict, Reason};
use hotrow_sync::atomic::{AtomicU64, Ordering};
use hotrow_sync::clock::Duration;
use hotrow_sync::{Arc, Mutex, OnceLock, lock};
use hotrow_tables::inside::Elsewhere;
use std::any::Any;
use std::collections::BTreeMap;

/// A cluster as its handles share it.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) settings: Settings,
    pub(crate) layout: Layout,
    pub(crate) markers: Markers,
    pub(crate) recorder: OnceLock<Arc<Recorder>>,
    /// Numbers of tables that were opened, and their names.
    pub(crate) tables: Mutex<BTreeMap<u32, String>>,
    /// By number, the tables and indexes that were opened, by which procedures find them.
    pub(crate) handles: Mutex<BTreeMap<u32, Handle>>,
    pub(crate) elsewhere: Elsewhere,
    pub(crate) combiner: Combiner,
    pub(crate) counts: Counts,
    #[cfg(test)]
    pub(crate) mutant: Option<crate::mutants::Mutant>,
}

/// A handle of a table or index that was opened.
pub(crate) struct Handle {
    pub(crate) handle: Arc<dyn Any + Send + Sync>,
    /// The number of the table, or of the one that an index is of.
    pub(crate) table: u32,
}

/// Numbers of what happened.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) commits: AtomicU64,
    pub(crate) conflicts: AtomicU64,
    pub(crate) looked_up: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) asked: AtomicU64,
}

impl Counts {
    /// Counts one. Relaxed: the numbers order nothing.
    pub(crate) fn one(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Shared {
    /// The number of this moment, if attempts are recorded.
    pub(crate) fn moment(&self) -> Option<u64> {
        self.recorder.get().map(|recorder| recorder.moment())
    }

    /// The range that has the fence alone.
    pub(crate) fn fence(&self) -> Span {
        Span::of_key(&self.layout.fence())
    }

    /// The handle of what was opened with a number, if it is of this type.
    pub(crate) fn handle<T: Any + Clone>(&self, number: u32) -> Option<T> {
        lock(&self.handles).get(&number)?.handle.downcast_ref::<T>().cloned()
    }

    /// Keeps the handle of what was opened with a number, with the number of its table.
    pub(crate) fn keep_handle(&self, number: u32, table: u32, handle: impl Any + Send + Sync) {
        lock(&self.handles).insert(number, Handle { handle: Arc::new(handle), table });
    }

    /// The table to which a table or index belongs.
    pub(crate) fn table_behind(&self, number: u32) -> Option<u32> {
        Some(lock(&self.handles).get(&number)?.table)
    }

    /// The name of a table that was opened.
    pub(crate) fn name_of(&self, table: u32) -> String {
        lock(&self.tables).get(&table).cloned().unwrap_or_else(|| format!("table number {table}"))
    }

    /// A conflict at a key of the store.
    pub(crate) fn conflict(&self, key: Option<&[u8]>, is_validated: impl Fn(&[u8]) -> bool) -> Conflict {
        let (object, shown) = match key.map(|key| (key, self.layout.split_row(key))) {
            None => (String::new(), String::new()),
            Some((_, Some((table, image)))) => {
                let image = image.split_last().map_or(image, |(_, image)| image);
                (self.name_of(table), image.escape_ascii().to_string())
            }
            Some((key, None)) => ("store".to_owned(), key.escape_ascii().to_string()),
        };
        let reason = match key {
            Some(key) if !is_validated(key) => Reason::StructureChanged,
            _ => Reason::ReadChanged,
        };
        let (loser, winner) = (None, None);
        Conflict { reason, object, key: shown, attempts: 0, lost_time: Duration::ZERO, loser, winner }
    }

    #[cfg(test)]
    pub(crate) fn has(&self, mutant: crate::mutants::Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}
