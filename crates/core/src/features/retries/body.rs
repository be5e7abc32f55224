//! Bodies of transactions, of whatever results and errors.

use crate::kernel::abort::{Abort, Error};
use crate::kernel::attempt::Attempt;
use crate::kernel::protocol::Protocol;
use crate::kernel::transaction::Transaction;
use crate::kernel::worker::{Body, Ended};
use std::mem;

/// The return value of a body: its result, or a value that the commit will make known.
pub(crate) trait Resolve<P: Protocol> {
    type Output;
    fn resolve(self, attempt: &mut Attempt<P>) -> Self::Output;
}

/// A result that is known when the body returns.
pub(crate) struct Known<R>(pub(crate) R);

impl<P: Protocol, R> Resolve<P> for Known<R> {
    type Output = R;
    #[inline(always)]
    fn resolve(self, _: &mut Attempt<P>) -> R {
        self.0
    }
}

/// A body, and what it has returned.
pub(crate) struct Returning<F, B, E, O> {
    body: F,
    returned: Option<Result<B, E>>,
    /// Its result, when it has committed.
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
    #[inline]
    pub(crate) fn end(self, ended: Ended) -> Result<O, Error<E>> {
        match ended {
            Ended::Committed => Ok(self.output.expect("its result is known")),
            Ended::RolledBack(Some(reason)) => Err(Error::Rollback(reason.into())),
            Ended::RolledBack(None) => {
                let error = self.returned.and_then(Result::err);
                Err(Error::Rollback(error.unwrap_or_else(|| Abort::rollback().into())))
            }
            Ended::Failed(error) => Err(error.of_any_body()),
        }
    }
}

impl<P: Protocol, F, B, E> Body<P> for Returning<F, B, E, B::Output>
where
    F: FnMut(&mut Transaction<'_, P>) -> Result<B, E>,
    B: Resolve<P>,
{
    fn run(&mut self, tx: &mut Transaction<'_, P>) -> bool {
        self.returned.insert((self.body)(tx)).is_ok()
    }

    fn resolve(&mut self, attempt: &mut Attempt<P>) {
        if let Some(Ok(result)) = self.returned.take() {
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
