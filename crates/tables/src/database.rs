//! Databases: tables that procedures name independently of the protocol.

use crate::context::{Deferring, Eager, Graph, Tracing};
use crate::key::Key;
use crate::procedure::Procedure;
use crate::reference::{IndexRef, PartId, TableRef};
use crate::secondary::SecondaryIndex;
use crate::table::{Table, TableBuilder};
use crate::trace::ProcedureTrace;
use hotrow_core::{Abort, Engine, Error, Protocol, Value, Worker};
use hotrow_sync::atomic::{Ordering, unfollowed::AtomicU64};
use std::any::Any;
use std::fmt;

/// A function called before operations.
pub(crate) type OperationHook = dyn Fn() + Send + Sync;

/// Tables and secondary indexes of one engine.
///
/// Add all tables first; then share the database between the threads that run procedures on it.
pub struct Database<P: Protocol> {
    engine: Engine<P>,
    number: u64,
    parts: Vec<Box<dyn Any + Send + Sync>>,
    hook: Option<Box<OperationHook>>,
}

impl<P: Protocol> fmt::Debug for Database<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database")
            .field("engine", &self.engine)
            .field("parts", &self.parts.len())
            .finish_non_exhaustive()
    }
}

impl<P: Protocol> Database<P> {
    /// An empty database.
    pub fn new(engine: &Engine<P>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Relaxed: only uniqueness matters.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { engine: engine.clone(), number, parts: Vec::new(), hook: None }
    }

    /// The engine.
    pub fn engine(&self) -> &Engine<P> {
        &self.engine
    }

    /// Calls `hook` before each operation of a procedure (a read, change, insertion, deletion or scan), on the thread
    /// that runs it: to delay the operations, or to count or stop them in tests. It is not called before operations of
    /// closures on the tables, or before commits. Without a hook an operation pays for one comparison.
    ///
    /// The hook runs within the transaction, so it must not begin another one. A panic in it is a panic of the
    /// procedure.
    pub fn before_operations(&mut self, hook: impl Fn() + Send + Sync + 'static) {
        self.hook = Some(Box::new(hook));
    }

    /// The function to call before each operation of a procedure.
    #[inline(always)]
    pub(crate) fn hook(&self) -> Option<&OperationHook> {
        self.hook.as_deref()
    }

    /// Starts a builder for a table; pass the result of `build` to [`add_table`](Self::add_table).
    pub fn builder<K: Key, R: Value>(&self, name: impl Into<String>) -> TableBuilder<'_, K, R, P> {
        Table::builder(&self.engine, name)
    }

    /// Adds a table.
    pub fn add_table<K: Key, R: Value>(&mut self, table: Table<K, R, P>) -> TableRef<K, R> {
        TableRef::new(self.push(Box::new(table)))
    }

    /// Adds a secondary index of a table that was or will be added.
    pub fn add_index<S: Key, K: Key, R: Value>(
        &mut self,
        index: SecondaryIndex<S, K, R, P>,
    ) -> IndexRef<S, K, R> {
        IndexRef::new(self.push(Box::new(index)))
    }

    fn push(&mut self, part: Box<dyn Any + Send + Sync>) -> PartId {
        self.parts.push(part);
        PartId { database: self.number, number: self.parts.len() as u32 - 1 }
    }

    #[inline(always)]
    fn part<T: Any>(&self, id: PartId) -> &T {
        assert!(id.database == self.number, "the reference belongs to another database");
        let part = &*self.parts[id.number as usize];
        debug_assert!(part.is::<T>());
        // SAFETY: only `add_table` and `add_index` make references, with the types of the part with this number, and the
        // fields are private. The database's number shows that this database made the reference.
        unsafe { &*std::ptr::from_ref(part).cast::<T>() }
    }

    /// Returns a table, for closures and for loading.
    ///
    /// # Panics
    ///
    /// If the reference is another database's.
    #[inline(always)]
    pub fn table<K: Key, R: Value>(&self, table: TableRef<K, R>) -> &Table<K, R, P> {
        self.part(table.part)
    }

    /// Returns a secondary index.
    ///
    /// # Panics
    ///
    /// If the reference is another database's.
    #[inline(always)]
    pub fn secondary<S: Key, K: Key, R: Value>(
        &self,
        index: IndexRef<S, K, R>,
    ) -> &SecondaryIndex<S, K, R, P> {
        self.part(index.part)
    }

    /// Runs a procedure as a transaction. Operations run at once, with two exceptions unless the procedure only
    /// reads: under a protocol that [defers](Protocol::Deferral), they run when the transaction commits; under one that
    /// lets others [steal](Protocol::Stealing) operations, other workers may run them after the first conflict.
    ///
    /// # Errors
    ///
    /// As [`Worker::run`]; [`Error::Rollback`] if the procedure requested a rollback
    /// ([`Context::rollback`](crate::Context::rollback), [`Context::require`](crate::Context::require));
    /// [`Error::Panicked`] if an operation panicked that was deferred. Any other panic passes on.
    #[inline]
    pub fn execute<T: Procedure>(&self, worker: &mut Worker<P>, procedure: &T) -> Result<T::Output, Error> {
        if P::DEFERS && !procedure.profile().read_only {
            return worker.try_run_deferred(procedure.profile(), |tx| {
                if !tx.defers() {
                    let output = procedure.run(&mut Eager::new(self, tx))?;
                    return Ok(tx.known(output));
                }
                let mut context = Deferring::new(self, tx);
                let output = procedure.run(&mut context)?;
                Ok(context.defer(output))
            });
        }
        // The constant comes first, so that other protocols do not compile the procedure for this context.
        if P::ALLOWS_STEALING && self.engine.allows_stealing() && !procedure.profile().read_only {
            return worker.try_run_deferred(procedure.profile(), |tx| {
                let mut context = Graph::sole_user(self, tx);
                let output = procedure.run(&mut context)?;
                Ok(context.defer(output))
            });
        }
        self.execute_eagerly(worker, procedure)
    }

    /// Runs a procedure as a transaction, each operation at once, under every protocol.
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute).
    #[inline]
    pub fn execute_eagerly<T: Procedure>(
        &self,
        worker: &mut Worker<P>,
        procedure: &T,
    ) -> Result<T::Output, Error> {
        worker.try_run_as(procedure.profile(), |tx| procedure.run(&mut Eager::new(self, tx)))
    }

    /// Runs a procedure on the current state, traces its operations, and rolls everything back.
    ///
    /// The trace is valid for this input and this state. A procedure whose operations depend on forced values
    /// must be traced once for each of its paths.
    ///
    /// # Errors
    ///
    /// As [`Worker::run`], except that a rollback that the procedure requests only ends the trace
    /// ([`ProcedureTrace::rolls_back`]).
    pub fn trace<T: Procedure>(
        &self,
        worker: &mut Worker<P>,
        procedure: &T,
    ) -> Result<ProcedureTrace, Error> {
        let mut trace = ProcedureTrace::default();
        let result = worker.run(|tx| {
            let mut context = Tracing::new(Eager::new(self, tx));
            let result = procedure.run(&mut context);
            trace = context.finish(result.as_ref().ok());
            match result {
                Ok(_) => Err(Abort::rollback()),
                Err(abort) => {
                    trace.rolls_back = abort.is_rollback();
                    Err::<(), _>(abort)
                }
            }
        });
        match result {
            Ok(()) | Err(Error::Rollback(_)) => Ok(trace),
            Err(error) => Err(error),
        }
    }
}
