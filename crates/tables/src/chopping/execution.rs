//! Procedures in pieces, executed: one transaction for each piece, and all taken back where that must be.

use super::ProcedurePlan;
use super::publishing::SetMarks;
use crate::context::in_pieces::{InPieces, KeptResults, Stopped};
use crate::context::noting::Former;
use crate::database::Database;
use crate::procedure::Procedure;
use hotrow_core::{Abort, Error, Misuse, Pieces, Profile, Protocol, Worker};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

impl<P: Protocol> Database<P> {
    /// Executes a procedure in pieces; as one if it has no more, or none may be in pieces now.
    pub(crate) fn execute_in_pieces<T: Procedure>(
        &self,
        worker: &mut Worker<P>,
        procedure: &T,
        plan: &ProcedurePlan,
    ) -> Result<T::Output, Error> {
        let ended = loop {
            let ended = worker.in_pieces(|pieces| {
                if plan.decides_late {
                    return self.run_or_take_back(pieces, procedure, plan);
                }
                Some(self.run_pieces(pieces, procedure, plan, None))
            });
            if let Some(ended) = ended {
                break ended;
            }
        };
        match ended {
            Ok(output) => Ok(output),
            Err(Error::Rollback(Stopped::Strayed)) => self.execute_eagerly(worker, procedure),
            Err(error) => Err(error.map_rollback(|stopped| match stopped {
                Stopped::Aborted(abort) => abort,
                Stopped::Strayed | Stopped::Barred | Stopped::Later => Abort::rollback(),
            })),
        }
    }

    /// Runs the pieces, and takes them back after a rollback, an error or a panic. `None` if all is to be done again, because others
    /// have taken back what it has seen.
    fn run_or_take_back<T: Procedure>(
        &self,
        pieces: &mut Pieces<'_, P>,
        procedure: &T,
        plan: &ProcedurePlan,
    ) -> Option<Result<T::Output, Error<Stopped>>> {
        let (profile, mut former) = (procedure.profile(), Former::new());
        let run = || self.run_pieces(pieces, procedure, plan, Some(&mut former));
        let ended = catch_unwind(AssertUnwindSafe(run));
        let take_back = |pieces: &mut Pieces<'_, P>| {
            let profile = Profile { read_only: false, ..profile };
            pieces.take_back(profile, |tx| former.write(self, tx));
        };
        if pieces.is_void() || !matches!(ended, Ok(Ok(_))) {
            take_back(pieces);
        }
        pieces.settle();
        if pieces.is_void() {
            take_back(pieces);
            return None;
        }
        Some(ended.unwrap_or_else(|panic| resume_unwind(panic)))
    }

    /// Runs the pieces. `former`: each notes what was there before.
    fn run_pieces<T: Procedure>(
        &self,
        pieces: &mut Pieces<'_, P>,
        procedure: &T,
        plan: &ProcedurePlan,
        mut former: Option<&mut Former<P>>,
    ) -> Result<T::Output, Error<Stopped>> {
        let profile = procedure.profile();
        let mut results = KeptResults::new();
        // Taken away when the last piece has committed.
        let marks = self.marks().map(SetMarks::new);
        let count = plan.count();
        for piece in 0..if count > 1 { count } else { 0 } {
            let (ranks, is_last) = (plan.ranks(piece), piece + 1 == count);
            if former.is_some() && piece > 0 && ranks.is_none() {
                // Its changes are not noted: it is not taken back.
                pieces.settle();
                if pieces.is_void() {
                    return Err(Error::Rollback(Stopped::Later));
                }
            }
            let ended = pieces.piece(profile, ranks, is_last, |tx| {
                if piece == 0 {
                    marks.iter().for_each(SetMarks::clear);
                    if tx.must_be_whole() {
                        return Err(Stopped::Barred);
                    }
                }
                let notes = former.as_deref_mut().filter(|_| ranks.is_some()).map(Former::begin_attempt);
                let context = InPieces::new(self, tx, plan, Some(piece), &mut results);
                match procedure.run(&mut context.setting(marks.as_ref()).noting(notes)) {
                    Err(Stopped::Later) if !is_last => Ok(None),
                    ended => ended?.at_end_of(piece, count),
                }
            });
            match ended {
                Ok(Some(output)) => return Ok(output),
                Ok(None) => former.iter_mut().for_each(|former| former.commit_piece()),
                Err(Error::Rollback(Stopped::Barred)) => {
                    marks.iter().for_each(SetMarks::clear);
                    break;
                }
                Err(error) if piece == 0 || former.is_some() => return Err(error),
                Err(error) => return Err(after_first_piece(procedure.name(), error)),
            }
        }
        if count > 1 {
            // Some of its changes may commute with others, and could not be taken back.
            former = None;
            pieces.begin_for_good();
        }
        // A known procedure as one transaction is in the way of no other in pieces, or ordered with them.
        let output = pieces.piece(profile, plan.all_ranks(), true, |tx| {
            let notes = former.as_deref_mut().map(Former::begin_attempt);
            let mut context = InPieces::new(self, tx, plan, None, &mut results).noting(notes);
            procedure.run(&mut context)?.value()
        })?;
        former.iter_mut().for_each(|former| former.commit_piece());
        Ok(output)
    }
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
