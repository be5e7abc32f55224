//! Bodies of transactions, of whatever results and errors.

use crate::kernel::abort::{Abort, Error};
use crate::kernel::attempt::Attempt;
use crate::kernel::protocol::Protocol;
use crate::kernel::transaction::Transaction;
use crate::kernel::worker::{Body, Ended, Wish};
use std::mem;

/// The return value of a body: its result, or a value that the commit will make known.
pub(crate) trait Resolve<P: Protocol>: Sized {
    type Output;
    /// True if the result is known only when the attempt has committed.
    const LATER: bool;
    /// Returns the result, which is known.
    fn known(self) -> Option<Self::Output>;
    /// Returns the result, in the attempt that has committed.
    fn resolve(self, attempt: &mut Attempt<P>) -> Self::Output;
}

/// A result that is known when the body returns.
pub(crate) struct Known<R>(pub(crate) R);

impl<P: Protocol, R> Resolve<P> for Known<R> {
    type Output = R;
    const LATER: bool = false;
    #[inline(always)]
    fn known(self) -> Option<R> {
        Some(self.0)
    }
    fn resolve(self, _: &mut Attempt<P>) -> R {
        self.0
    }
}

/// A body, and what it has returned.
pub(crate) struct Returning<F, B, E, O> {
    body: F,
    returned: Option<Result<B, E>>,
    /// Its result, if that was known only when it had committed.
    output: Option<O>,
}

impl<F, B, E: From<Abort>, O> Returning<F, B, E, O> {
    #[inline(always)]
    pub(crate) fn new<P: Protocol>(body: F) -> Self
    where
        F: FnMut(&mut Transaction<'_, P>) -> Result<B, E>,
        B: Resolve<P, Output = O>,
    {
        Self { body, returned: None, output: None }
    }

    /// The end of its transaction, as its caller is told.
    #[inline(always)]
    pub(crate) fn end<P: Protocol>(self, ended: Ended) -> Result<O, Error<E>>
    where
        B: Resolve<P, Output = O>,
    {
        match (ended, self.returned) {
            (Ended::Committed, Some(Ok(result))) if !B::LATER => Ok(result.known().expect(KNOWN)),
            (Ended::Committed, _) => Ok(self.output.expect(KNOWN)),
            (Ended::RolledBack, returned) => {
                let error = returned.and_then(Result::err);
                Err(Error::Rollback(error.unwrap_or_else(|| Abort::rollback().into())))
            }
            (Ended::Failed(error), _) => Err(error.map_rollback(E::from)),
        }
    }
}

/// Message of a panic that cannot happen.
const KNOWN: &str = "the result of a body that has committed is known";

impl<P: Protocol, F, B, E> Body<P> for Returning<F, B, E, B::Output>
where
    F: FnMut(&mut Transaction<'_, P>) -> Result<B, E>,
    B: Resolve<P>,
{
    fn run(&mut self, tx: &mut Transaction<'_, P>) -> Wish {
        let returned = (self.body)(tx);
        let wish = match &returned {
            Ok(_) if B::LATER => Wish::CommitAndResolve,
            Ok(_) => Wish::Commit,
            Err(_) => Wish::RollBack,
        };
        // Each attempt that is followed by another one has forgotten or leaked it. Said so, the compiler drops nothing here, out of line.
        if self.returned.is_some() {
            self.returned = None;
        }
        self.returned = Some(returned);
        wish
    }

    fn resolve(&mut self, attempt: &mut Attempt<P>) {
        if B::LATER
            && let Some(Ok(result)) = self.returned.take()
        {
            self.output = Some(result.resolve(attempt));
        }
    }

    fn forget(&mut self) {
        self.returned = None;
    }

    fn leak(&mut self) {
        mem::forget(self.returned.take());
    }
}
