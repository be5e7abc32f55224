//! Procedures in pieces, executed: one transaction for each piece.

use super::in_pieces::{InPieces, KeptResults, Stopped};
use crate::chopping::ProcedurePlan;
use crate::chopping::publishing::SetMarks;
use crate::procedure::Procedure;
use crate::state;
use hotrow_core::{Abort, Error, Misuse, Pieces, Protocol, Worker};
use hotrow_tables::Database;

/// Executes a procedure in pieces; as one if it has no more, or none may be in pieces now. `None` if it has strayed from its traces.
pub(super) fn execute_in_pieces<P: Protocol, T: Procedure>(
    database: &Database<P>,
    worker: &mut Worker<P>,
    procedure: &T,
    plan: &ProcedurePlan,
) -> Result<Option<T::Output>, Error> {
    let ended = worker.in_pieces(|pieces| run_pieces(database, pieces, procedure, plan));
    match ended {
        Ok(output) => Ok(Some(output)),
        Err(Error::Rollback(Stopped::Strayed)) => Ok(None),
        Err(error) => Err(error.map_rollback(|stopped| match stopped {
            Stopped::Aborted(abort) => abort,
            Stopped::Strayed | Stopped::Barred => Abort::rollback(),
        })),
    }
}

/// Runs the pieces.
fn run_pieces<P: Protocol, T: Procedure>(
    database: &Database<P>,
    pieces: &mut Pieces<'_, P>,
    procedure: &T,
    plan: &ProcedurePlan,
) -> Result<T::Output, Error<Stopped>> {
    let profile = procedure.profile();
    let mut results = KeptResults::new();
    let all_marks = state::of(database).and_then(|state| state.marks.get());
    // Taken away when the last piece has committed.
    let marks = all_marks.map(SetMarks::new);
    let count = plan.count();
    for piece in 0..if count > 1 { count } else { 0 } {
        let (ranks, is_last) = (plan.ranks(piece), piece + 1 == count);
        let ended = pieces.piece(profile, ranks, is_last, |tx| {
            if piece == 0 {
                marks.iter().for_each(SetMarks::clear);
                if tx.must_be_whole() {
                    return Err(Stopped::Barred);
                }
            }
            let context = InPieces::new(database, tx, plan, Some(piece), &mut results, all_marks);
            procedure.run(&mut context.setting(marks.as_ref()))?.at_end_of(piece, count)
        });
        match ended {
            Ok(Some(output)) => return Ok(output),
            Ok(None) => {}
            Err(Error::Rollback(Stopped::Barred)) => {
                marks.iter().for_each(SetMarks::clear);
                break;
            }
            Err(error) if piece == 0 => return Err(error),
            Err(error) => return Err(after_first_piece(procedure.name(), error)),
        }
    }
    // A known procedure as one transaction is in the way of no other in pieces, or ordered with them.
    pieces.piece(profile, plan.all_ranks(), true, |tx| {
        let mut context = InPieces::new(database, tx, plan, None, &mut results, all_marks);
        procedure.run(&mut context)?.value()
    })
}

/// The error of a procedure that has failed when pieces of it had committed. Its first run went through the whole procedure, and the
/// later ones do the same.
fn after_first_piece(procedure: &str, error: Error<Stopped>) -> Error<Stopped> {
    match error {
        Error::Rollback(_) => Error::Misuse(Misuse::Unsupported(format!(
            "procedure {procedure} rolled back, or did other operations, when its first piece had committed"
        ))),
        other => other,
    }
}
