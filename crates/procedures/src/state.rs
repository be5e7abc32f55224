//! The state that procedures keep with each database.

use crate::chopping::ChoppingPlan;
use crate::chopping::publishing::Marks;
use hotrow_core::{Isolation, Protocol};
use hotrow_sync::OnceLock;
use hotrow_sync::atomic::{Ordering, unfollowed::AtomicU8};
use hotrow_tables::{Database, inside};

/// A function called before operations. A context that wraps another one would do, too, but compile each procedure once more for each protocol.
pub(crate) type OperationHook = dyn Fn() + Send + Sync;

/// The state that procedures keep with a database. A database has none until it is told something of them.
pub(crate) struct State {
    pub(crate) hook: OnceLock<Box<OperationHook>>,
    /// The isolation of procedures that only read.
    readers: AtomicU8,
    /// The procedures that are executed in pieces.
    pub(crate) chopping: OnceLock<ChoppingPlan>,
    /// The marks of changes that they publish.
    pub(crate) marks: OnceLock<Marks>,
}

impl State {
    fn new() -> Self {
        let readers = AtomicU8::new(Isolation::StrictSnapshot as u8);
        Self { hook: OnceLock::new(), readers, chopping: OnceLock::new(), marks: OnceLock::new() }
    }

    pub(crate) fn set_readers_isolation(&self, isolation: Isolation) {
        // Relaxed: no other memory depends on it.
        self.readers.store(isolation as u8, Ordering::Relaxed);
    }

    fn readers_isolation(&self) -> Isolation {
        let isolations = [Isolation::Serializable, Isolation::ReadCommitted, Isolation::Snapshot];
        let number = self.readers.load(Ordering::Relaxed);
        isolations
            .into_iter()
            .find(|isolation| *isolation as u8 == number)
            .unwrap_or(Isolation::StrictSnapshot)
    }
}

/// The state of a database, if it has one.
#[inline]
pub(crate) fn of<P: Protocol>(database: &Database<P>) -> Option<&State> {
    inside::extension(database).get()?.downcast_ref()
}

/// The state of a database, which is made unless it has one.
pub(crate) fn made_for<P: Protocol>(database: &Database<P>) -> &State {
    let state = inside::extension(database).get_or_init(|| Box::new(State::new()));
    state.downcast_ref().expect("procedures alone extend databases")
}

/// The function to call before each operation of a procedure.
#[inline]
pub(crate) fn hook_of<P: Protocol>(database: &Database<P>) -> Option<&OperationHook> {
    of(database)?.hook.get().map(|hook| &**hook)
}

/// The isolation of procedures that only read.
pub(crate) fn readers_isolation<P: Protocol>(database: &Database<P>) -> Isolation {
    of(database).map_or(Isolation::StrictSnapshot, State::readers_isolation)
}
