//! Traces of procedures on small databases, for chopping.

use hotrow::protocols::Occ;
use hotrow::{Database, Engine, Procedure, ProcedureTrace, Procedures, Protocol};
use hotrow_driver::{BenchError, Unobserved, WorkloadDefinition};

/// Loads a small database, on which nothing else runs.
pub(crate) fn load_small<W: WorkloadDefinition>(options: &W) -> Result<W::Loaded<Occ>, BenchError> {
    options.load(&Database::on(&Engine::<Occ>::new()), 1, 1, &Unobserved)
}

/// Traces a procedure.
pub(crate) fn trace<T: Procedure>(
    database: &Database<Occ>,
    procedure: &T,
) -> Result<ProcedureTrace, BenchError> {
    database.trace(procedure).map_err(|error| BenchError::Load(error.to_string()))
}

/// Chops procedures under a protocol that executes them in pieces.
pub(crate) fn chop_if_allowed<W: WorkloadDefinition, P: Protocol>(
    options: &W,
    database: &Database<P>,
) -> Result<(), BenchError> {
    if !database.allows_chopping() {
        return Ok(());
    }
    let Some(chopping) = options.chopping(hotrow_driver::Refinement::Full) else { return Ok(()) };
    database.chop(&chopping?).map_err(|error| BenchError::Load(error.to_string()))
}
