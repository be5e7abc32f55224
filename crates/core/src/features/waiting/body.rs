//! The part of waiting that bodies see.

use crate::kernel::abort::Abort;
use crate::kernel::object_access::{ObjectAccess, Stop};
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::Moments;
use crate::kernel::transaction::Transaction;
use std::time::Duration;

impl<P: Protocol> Transaction<'_, P> {
    /// Waits until something changes that the body has read, and runs the body again from its beginning. Whatever the attempt
    /// has written is undone, and nothing is held while the transaction waits.
    ///
    /// Waiting costs no processor time: a commit that changes an object, a row, a range or an absence that the body has read wakes
    /// the transaction. The body may find that it must wait again. When it waits for the first time, the body runs once more
    /// before that, to note what it reads.
    ///
    /// Pass the abort up with `?`. It passes through [savepoints](Self::savepoint), and ends at [`or_else`](Self::or_else), which
    /// then runs its second part. As with a rollback, the wish counts only if the attempt has seen one consistent state.
    ///
    /// What is not read through transactions wakes nobody: rows of immutable tables, maps that are
    /// [boosted](crate::ObjectAccess::on_undo), and variables of the program.
    ///
    /// The transaction ends with [`Error::RetryTimeout`](crate::Error::RetryTimeout) when the policy's deadline has passed, and with
    /// [`Error::BlockedForever`](crate::Error::BlockedForever) where it is certain that nothing can change. A transaction that
    /// cannot wait ends with [`Misuse::CannotWait`](crate::Misuse::CannotWait): that of a session, one on a snapshot, and a later
    /// piece of a chopped procedure.
    ///
    /// # Errors
    ///
    /// Always: the attempt ends here.
    #[cold]
    pub fn retry<T>(&mut self) -> Result<T, Abort> {
        Err(self.0.stop_to_wait(None))
    }

    /// As [`retry`](Self::retry), but the transaction waits no longer than this in all, from the first time that it waits. The
    /// limit is that of this call: where [`or_else`](Self::or_else) goes on with its second part, the limit of the first one is
    /// over, as is all else that it has done.
    ///
    /// # Errors
    ///
    /// Always: the attempt ends here.
    #[cold]
    pub fn retry_for<T>(&mut self, time_max: Duration) -> Result<T, Abort> {
        Err(self.0.stop_to_wait(Some(time_max)))
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    fn stop_to_wait(&mut self, time_max: Option<Duration>) -> Abort {
        let engine = self.engine;
        self.stop(Stop::Retry { engine, time_max })
    }

    /// Goes on after a part of the body that has called [`retry`](Transaction::retry), which is undone. False if the attempt has
    /// ended for another reason.
    #[cold]
    pub(crate) fn go_on_after_retry(&mut self, around: usize, is_half_changed: bool) -> bool {
        let Some(Stop::Retry { engine, .. }) = self.attempt.stop else { return false };
        (self.attempt.stop, self.engine) = (None, engine);
        self.attempt.hears.set(Moments::HALF_CHANGED, is_half_changed);
        self.end_marks(around, false);
        true
    }
}
