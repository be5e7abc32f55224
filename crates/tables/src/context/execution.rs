//! The execution of procedures: the choice of a context, and one transaction.

use super::{Eager, Recording, Tracing};
use crate::chopping::ProcedurePlan;
use crate::database::Database;
use crate::procedure::Procedure;
use crate::trace::ProcedureTrace;
use hotrow_core::{Abort, Error, Isolation, Protocol, Worker};

impl<P: Protocol> Database<P> {
    /// Runs a procedure as a transaction, on the calling thread's own worker. See [`execute_on`](Self::execute_on).
    ///
    /// # Errors
    ///
    /// As [`execute_on`](Self::execute_on), and [`Misuse::TooManyWorkers`](hotrow_core::Misuse::TooManyWorkers).
    pub fn execute<T: Procedure>(&self, procedure: &T) -> Result<T::Output, Error> {
        self.with_worker(|worker| self.execute_on(worker, procedure))
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
    pub fn execute_on<T: Procedure>(
        &self,
        worker: &mut Worker<P>,
        procedure: &T,
    ) -> Result<T::Output, Error> {
        let worker = &mut *worker.named(procedure.name());
        // The constants are conditions of their own, so that other protocols do not compile the procedure for these contexts.
        if const { P::DEFERS || P::ALLOWS_STEALING } {
            let records = self.allows_deferral() || self.allows_stealing();
            if records && !procedure.profile().only_reads() {
                return self.execute_recorded(worker, procedure);
            }
        }
        if const { P::ALLOWS_CHOPPING }
            && let Some(plan) = self.plan_of(procedure)
        {
            return self.execute_in_pieces(worker, procedure, plan);
        }
        self.execute_eagerly(worker, procedure)
    }

    /// Runs a procedure as a transaction whose operations are recorded, unless the attempt defers nothing.
    fn execute_recorded<T: Procedure>(
        &self,
        worker: &mut Worker<P>,
        procedure: &T,
    ) -> Result<T::Output, Error> {
        worker.try_transact_deferred(procedure.profile(), |tx| {
            if self.allows_deferral() && !tx.defers() {
                let output = procedure.run(&mut Eager::new(self, tx))?;
                return Ok(tx.known(output));
            }
            let mut context = Recording::sole_user(self, tx);
            let output = procedure.run(&mut context)?;
            Ok(context.defer(output))
        })
    }

    /// Runs a procedure as a transaction, each operation at once, under every protocol. One that only reads runs [on a
    /// snapshot](Self::set_readers_isolation).
    ///
    /// # Errors
    ///
    /// As [`execute_on`](Self::execute_on).
    #[inline]
    pub fn execute_eagerly<T: Procedure>(
        &self,
        worker: &mut Worker<P>,
        procedure: &T,
    ) -> Result<T::Output, Error> {
        let mut profile = procedure.profile();
        if profile.read_only && profile.isolation == Isolation::Serializable {
            profile.isolation = self.readers_isolation();
        }
        let mut worker = worker.named(procedure.name());
        worker.try_transact_as(profile, |tx| procedure.run(&mut Eager::new(self, tx)))
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
    pub fn trace<T: Procedure>(&self, procedure: &T) -> Result<ProcedureTrace, Error> {
        self.with_worker(|worker| self.trace_on(worker, procedure))
    }

    /// As [`trace`](Self::trace), with this worker.
    ///
    /// # Errors
    ///
    /// As [`trace`](Self::trace).
    pub fn trace_on<T: Procedure>(
        &self,
        worker: &mut Worker<P>,
        procedure: &T,
    ) -> Result<ProcedureTrace, Error> {
        let mut trace = ProcedureTrace::default();
        let result = worker.transact(|tx| {
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

    /// Returns the plan of a procedure that is executed in pieces.
    #[inline]
    fn plan_of<T: Procedure>(&self, procedure: &T) -> Option<&ProcedurePlan> {
        // One that reads on a snapshot is in nobody's way, and one without isolation is known to no analysis.
        if !self.allows_chopping() || procedure.profile().isolation != Isolation::Serializable {
            return None;
        }
        let plan = self.chopped()?.find(procedure.name())?;
        Some(plan).filter(|plan| !plan.on_snapshot)
    }
}
