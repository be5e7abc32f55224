//! The execution of procedures: the choice of a context, and one transaction.

use super::execution_in_pieces::execute_in_pieces;
use super::{Eager, Recording, Tracing};
use crate::chopping::publishing::Marks;
use crate::chopping::{Chopping, ChoppingError, ProcedurePlan};
use crate::procedure::Procedure;
use crate::state;
use crate::trace::ProcedureTrace;
use hotrow_core::{Abort, Error, Isolation, Protocol, Worker};
use hotrow_tables::Database;
use std::borrow::Borrow;

/// The methods by which a [`Database`] executes procedures.
pub trait Procedures<P: Protocol>: Borrow<Database<P>> {
    /// Runs a procedure as a transaction, on the calling thread's own worker. See [`execute_on`](Self::execute_on).
    ///
    /// # Errors
    ///
    /// As [`execute_on`](Self::execute_on), and [`Misuse::TooManyWorkers`](hotrow_core::Misuse::TooManyWorkers).
    fn execute<T: Procedure>(&self, procedure: &T) -> Result<T::Output, Error> {
        self.borrow().with_worker(|worker| self.execute_on(worker, procedure))
    }

    /// Runs a procedure as a transaction. Operations run at once, with two exceptions unless the procedure only
    /// reads: under a protocol that [defers](Protocol::Deferral), they run when the transaction commits; under one that
    /// lets others [steal](Protocol::Stealing) operations, other workers may run them after the first conflict.
    ///
    /// # Errors
    ///
    /// As [`Worker::transact`]; [`Error::Rollback`] if the procedure requested a rollback
    /// ([`Operations::rollback`](crate::Operations::rollback), [`Context::require`](crate::Context::require));
    /// [`Error::Panicked`] if an operation panicked that was deferred. Any other panic passes on.
    #[inline]
    fn execute_on<T: Procedure>(&self, worker: &mut Worker<P>, procedure: &T) -> Result<T::Output, Error> {
        let database = self.borrow();
        let worker = &mut *worker.named(procedure.name());
        // The constants are conditions of their own, so that other protocols do not compile the procedure for these contexts.
        if const { P::DEFERS || P::ALLOWS_STEALING } {
            let records = database.allows_deferral() || database.allows_stealing();
            if records && !procedure.profile().only_reads() {
                return execute_recorded(database, worker, procedure);
            }
        }
        if const { P::ALLOWS_CHOPPING }
            && let Some(plan) = plan_of(database, procedure)
            && let Some(output) = execute_in_pieces(database, worker, procedure, plan)?
        {
            return Ok(output);
        }
        self.execute_eagerly(worker, procedure)
    }

    /// Runs a procedure as a transaction, each operation at once, under every protocol. One that only reads runs [on a
    /// snapshot](Self::set_readers_isolation).
    ///
    /// # Errors
    ///
    /// As [`execute_on`](Self::execute_on).
    #[inline]
    fn execute_eagerly<T: Procedure>(
        &self,
        worker: &mut Worker<P>,
        procedure: &T,
    ) -> Result<T::Output, Error> {
        let mut profile = procedure.profile();
        if profile.read_only && profile.isolation == Isolation::Serializable {
            profile.isolation = state::readers_isolation(self.borrow());
        }
        let mut worker = worker.named(procedure.name());
        worker.try_transact_as(profile, |tx| procedure.run(&mut Eager::new(self.borrow(), tx)))
    }

    /// Runs a procedure on the current state, traces its operations, and rolls everything back.
    ///
    /// The trace is valid for this input and this state. A procedure whose operations depend on forced values
    /// must be traced once for each of its paths.
    ///
    /// # Errors
    ///
    /// As [`Worker::transact`], except that a rollback that the procedure requests only ends the trace
    /// ([`ProcedureTrace::rolls_back`]).
    fn trace<T: Procedure>(&self, procedure: &T) -> Result<ProcedureTrace, Error> {
        self.borrow().with_worker(|worker| self.trace_on(worker, procedure))
    }

    /// As [`trace`](Self::trace), with this worker.
    ///
    /// # Errors
    ///
    /// As [`trace`](Self::trace).
    fn trace_on<T: Procedure>(&self, worker: &mut Worker<P>, procedure: &T) -> Result<ProcedureTrace, Error> {
        let mut trace = ProcedureTrace::default();
        let result = worker.transact(|tx| {
            let mut context = Tracing::new(Eager::new(self.borrow(), tx));
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

    /// Calls `hook` before each operation of a procedure (a read, change, insertion, deletion or scan), on the thread
    /// that runs it: to delay the operations, or to count or stop them in tests. It is not called before operations of
    /// closures on the tables, or before commits. Without a hook an operation pays for one comparison.
    ///
    /// The hook runs within the transaction, so it must not begin another one. A panic in it is a panic of the
    /// procedure.
    ///
    /// # Panics
    ///
    /// If the database has a hook.
    fn before_operations(&self, hook: impl Fn() + Send + Sync + 'static) {
        let hook: Box<state::OperationHook> = Box::new(hook);
        assert!(state::made_for(self.borrow()).hook.set(hook).is_ok(), "a database has one hook");
    }

    /// Sets the isolation of procedures that only read, and whose [profile](Procedure::profile) names no other: a
    /// [strict snapshot](Isolation::StrictSnapshot) unless it is set. [`Isolation::Serializable`] lets them read the present
    /// state, by the protocol.
    fn set_readers_isolation(&self, isolation: Isolation) {
        state::made_for(self.borrow()).set_readers_isolation(isolation);
    }

    /// Chops procedures: from now on they are executed in pieces, under a protocol that [allows](hotrow_core::Engine::allows_chopping) it
    /// (`chop`); under others the call only checks the declarations. Call it before transactions run.
    ///
    /// Procedures that are not among them, closures, and procedures that do what no trace of theirs shows run whole: while one is in
    /// progress, the others run as one piece each. Closures of the operations after the first piece must not panic: what has committed
    /// stays. An insertion whose result the procedure does not use must have a key of its own.
    /// Changes that are [published later](Chopping::publish) are made in the last piece; procedures that read them in between are
    /// aborted and made again.
    ///
    /// # Errors
    ///
    /// As [`Chopping::analyse`]; [`ChoppingError::Chopped`] if the database has chopped procedures.
    fn chop(&self, chopping: &Chopping) -> Result<(), ChoppingError> {
        let database = self.borrow();
        let state = state::made_for(database);
        let plan = if database.orders_pieces() { chopping.ranked_plan()? } else { chopping.plan()? };
        if plan.publishes() {
            let _ = state.marks.set(Marks::new(database.id()));
        }
        state.chopping.set(plan).map_err(|_| ChoppingError::Chopped)?;
        if database.allows_chopping() {
            database.begin_chopping();
        }
        Ok(())
    }
}

impl<P: Protocol> Procedures<P> for Database<P> {}

/// Runs a procedure as a transaction whose operations are recorded, unless the attempt defers nothing.
fn execute_recorded<P: Protocol, T: Procedure>(
    database: &Database<P>,
    worker: &mut Worker<P>,
    procedure: &T,
) -> Result<T::Output, Error> {
    worker.try_transact_deferred(procedure.profile(), |tx| {
        if database.allows_deferral() && !tx.defers() {
            let output = procedure.run(&mut Eager::new(database, tx))?;
            return Ok(tx.known(output));
        }
        let mut context = Recording::sole_user(database, tx);
        let output = procedure.run(&mut context)?;
        Ok(context.defer(output))
    })
}

/// Returns the plan of a procedure that is executed in pieces.
#[inline]
fn plan_of<'d, P: Protocol, T: Procedure>(
    database: &'d Database<P>,
    procedure: &T,
) -> Option<&'d ProcedurePlan> {
    // One that reads on a snapshot is in nobody's way, and one without isolation is known to no analysis.
    if !database.allows_chopping() || procedure.profile().isolation != Isolation::Serializable {
        return None;
    }
    let plan = state::of(database)?.chopping.get()?.find(procedure.name())?;
    Some(plan).filter(|plan| !plan.on_snapshot)
}
