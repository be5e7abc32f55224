//! Savepoints: a part of a body can be undone alone.
//!
//! A part that fails leaves no write. The rest stays: what it has read is validated with all other reads, because the body may go on as it
//! does only because of what it has seen there. So a part assumes nothing that it has not read: its [additions](crate::Transaction::add)
//! read their rows.

use crate::error::Failure;
use crate::transaction::Judge;
use crate::transaction::Transaction;
use crate::writes::PartMark;
use hotrow_core::Abort;
use hotrow_sync::Arc;
use std::collections::BTreeMap;

/// A part of the body in progress. When it is dropped, the part ends: its code has returned, failed, or panicked.
struct RunningPart<'t, 'c> {
    tx: &'t mut Transaction<'c>,
    mark: PartMark,
    /// True if an operation had ended with an error for the body before.
    had_raised: bool,
    /// The rows that were to be judged before.
    judged: BTreeMap<Vec<u8>, Arc<dyn Judge>>,
    succeeded: bool,
}

impl Drop for RunningPart<'_, '_> {
    fn drop(&mut self) {
        if self.succeeded {
            self.tx.writes.keep_part();
        } else {
            self.tx.writes.undo_part(self.mark);
            self.tx.has_raised = self.had_raised;
            self.tx.judged = std::mem::take(&mut self.judged);
        }
    }
}

impl Transaction<'_> {
    /// Runs a part of the body that can fail alone (a nested transaction): if it returns an error, or panics and the body
    /// catches that, all that it has written is undone, and the body may go on. Parts may be nested.
    ///
    /// The reads of an undone part are still validated at the commit.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on: pass it up with `?`. The part's own error is inside.
    pub fn savepoint<T, E>(
        &mut self,
        part: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<Result<T, E>, Abort> {
        if self.failure.is_some() {
            return Err(self.stopped());
        }
        let (mark, had_raised) = (self.writes.begin_part(), self.has_raised);
        let judged = self.judged.clone();
        let mut running = RunningPart { tx: self, mark, had_raised, judged, succeeded: false };
        let result = part(running.tx);
        if running.tx.failure.is_some() {
            return Err(running.tx.stopped());
        }
        running.succeeded = result.is_ok();
        Ok(result)
    }

    /// Runs the second part if the first one fails, or waits for a change ([`retry`](Self::retry)); the first one is then undone.
    /// Both may pass up any error, as bodies do. If the second one waits, the transaction waits for a change of what either has
    /// read.
    ///
    /// # Errors
    ///
    /// The error of the second part; or [`Abort`] when the attempt cannot go on.
    pub fn or_else<T, E: From<Abort>>(
        &mut self,
        first: impl FnOnce(&mut Self) -> Result<T, E>,
        second: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let had_failed = self.failure.is_some();
        match self.savepoint(first) {
            Ok(Ok(result)) => return Ok(result),
            Ok(Err(_)) => {}
            Err(_) if !had_failed && matches!(self.failure, Some(Failure::Wait)) => self.failure = None,
            Err(abort) => return Err(abort.into()),
        }
        second(self)
    }

    /// Ends the attempt, and runs the body again when something that it has read has changed. It passes through
    /// [savepoints](Self::savepoint), and ends at [`or_else`](Self::or_else), which then runs its second part.
    ///
    /// # Errors
    ///
    /// Always: pass it up with `?`.
    #[cold]
    pub fn retry<T>(&mut self) -> Result<T, Abort> {
        Err(self.fail(Failure::Wait))
    }
}
