//! Hooks at the end of a transaction, for bodies: what is to be done once, when it is certain how the transaction ends.
//!
//! A body may run several times, so it must not do what cannot be undone (send a message, say). It leaves that to a hook. The hooks
//! of an attempt are kept until the next attempt begins, and dropped then; those of a part of the body that is undone are dropped
//! with it. So the hooks that run are those of the last attempt. They run when nothing is held any more: no lock, no epoch, not the
//! thread's mark against nesting. Therefore a hook may begin a transaction. (The worker is in use, so that transaction runs on
//! another one, which the thread keeps.)
//!
//! [`hooks`](crate::features::hooks) has those of datatypes, which run at the end of each attempt.

use crate::features::durability::Later;
use crate::features::region::UNFIT;
use crate::features::retries::TransactionEnd;
use crate::kernel::abort::NotDurable;
use crate::kernel::attempt::Attempt;
use crate::kernel::protocol::Protocol;
use crate::kernel::transaction::{AttemptOutcome, ObjectAccess, Transaction};
use crate::kernel::worker::Worker;
use crate::memory::thread_mark::outside;
use crate::memory::users_code::{Panics, contained};
use hotrow_sync::region;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

pub(crate) type Hook = Box<dyn FnOnce() + Send>;

/// The hooks of a transaction's current attempt.
#[derive(Default)]
pub(crate) struct EndHooks {
    on_commit: Vec<Hook>,
    on_durable: Vec<Hook>,
    on_abort: Vec<Hook>,
}

/// The number of hooks at some moment.
#[derive(Clone, Copy, Default)]
pub(crate) struct HookCounts([usize; 3]);

impl EndHooks {
    pub(crate) fn counts(&self) -> HookCounts {
        HookCounts([&self.on_commit, &self.on_durable, &self.on_abort].map(Vec::len))
    }

    /// Drops those that have come since there were so many.
    pub(crate) fn truncate(&mut self, counts: HookCounts) {
        for (hooks, count) in
            [&mut self.on_commit, &mut self.on_durable, &mut self.on_abort].into_iter().zip(counts.0)
        {
            while hooks.len() > count {
                let hook = hooks.pop();
                contained(|| drop(hook));
            }
        }
    }

    /// Runs those for a commit, or for an end without one.
    pub(crate) fn run_at_end(&mut self, has_committed: bool, panics: &mut Panics) {
        run(if has_committed { &mut self.on_commit } else { &mut self.on_abort }, panics);
    }

    /// Runs those for a commit that is durable: now, or when the log says so.
    pub(crate) fn run_when_durable(&mut self, later: Option<Later>, panics: &mut Panics) {
        match later {
            None => run(&mut self.on_durable, panics),
            Some(later) => later.run(self),
        }
    }

    /// Takes those for a commit that is durable, as one. There is nobody to pass their panics on to.
    pub(crate) fn take_durable(&mut self) -> Option<Hook> {
        let mut hooks = std::mem::take(&mut self.on_durable);
        (!hooks.is_empty()).then(|| Box::new(move || run(&mut hooks, &mut Panics::default())) as Hook)
    }

    /// Drops all. They have captured users' data.
    pub(crate) fn forget(mut self) {
        self.truncate(HookCounts::default());
    }
}

/// Runs hooks, in the order in which they came.
fn run(hooks: &mut Vec<Hook>, panics: &mut Panics) {
    for hook in hooks.drain(..) {
        panics.contain(hook);
    }
}

impl<P: Protocol> Transaction<'_, P> {
    fn end_hooks(&mut self) -> &mut EndHooks {
        // A region may be cut off, and its memory of the hook with it.
        region::abort::<UNFIT>();
        self.0.attempt.features.end_hooks.get_or_insert_default()
    }

    /// Has a closure called once when the transaction has committed: its writes are visible, and nothing is held any more. Not
    /// called if the transaction ends otherwise. Where commits are logged, it is called before the transaction is durable; see
    /// [`on_durable`](Self::on_durable).
    ///
    /// Hooks of an attempt that is followed by another one are dropped, and so are those of a [part](Self::savepoint) that is
    /// undone. The others run in their order, on the thread that runs the transaction, before its caller gets the result. A hook may
    /// begin a transaction of its own, if the protocol admits a second worker beside the one that is in use
    /// ([`Engine::workers_max`](crate::Engine::workers_max)). A panic of a hook undoes nothing: the others run, and then the first panic is passed on
    /// instead of the result.
    pub fn on_commit(&mut self, hook: impl FnOnce() + Send + 'static) {
        self.end_hooks().on_commit.push(Box::new(hook));
    }

    /// As [`on_commit`](Self::on_commit), but called when the commit is on the device, and not at all if the log fails before
    /// ([`Error::NotDurable`](crate::Error::NotDurable)). Without a log it is called when the transaction has committed.
    ///
    /// If the caller waits for the device, the hook is called on its thread, before it gets the result. Else it is called later, on a
    /// thread of the log's: where the caller is told at once ([`Durability::Buffered`](crate::Durability::Buffered), a ticket, a log that is
    /// written at intervals), and if a future is dropped that waits for the device. A panic is reported there, and passed on to nobody.
    pub fn on_durable(&mut self, hook: impl FnOnce() + Send + 'static) {
        self.end_hooks().on_durable.push(Box::new(hook));
    }

    /// Has a closure called once when the transaction has ended without a commit: by a rollback, an error or a panic of its body, a
    /// limit of the retry policy. An attempt that is followed by another one is not the end. Otherwise as
    /// [`on_commit`](Self::on_commit).
    pub fn on_abort(&mut self, hook: impl FnOnce() + Send + 'static) {
        self.end_hooks().on_abort.push(Box::new(hook));
    }
}

impl<P: Protocol> Attempt<P> {
    /// Drops the hooks of an attempt that is followed by another one.
    pub(crate) fn forget_hooks(&mut self) {
        if let Some(hooks) = self.features.end_hooks.take() {
            hooks.forget();
        }
    }
}

impl<P: Protocol> Worker<P> {
    /// Ends a transaction that has hooks, and waits until its result is durable. Nothing is held.
    #[cold]
    pub(crate) fn end_with_hooks(&mut self, end: TransactionEnd) -> Result<(), NotDurable> {
        let mut hooks = self.attempt.features.end_hooks.take().unwrap_or_default();
        let has_committed = end == TransactionEnd::Committed;
        Panics::passing_on(|panics| {
            hooks.run_at_end(has_committed, panics);
            let acknowledged = self.acknowledge(end);
            if has_committed && acknowledged.is_ok() {
                hooks.run_when_durable(self.attempt.later(), panics);
            }
            hooks.forget();
            acknowledged
        })
    }

    /// Runs the hooks of a transaction that a panic ends, which is passed on afterwards.
    #[cold]
    pub(crate) fn end_by_panic(&mut self) {
        if let Some(mut hooks) = self.attempt.features.end_hooks.take() {
            outside(|| run(&mut hooks.on_abort, &mut Panics::default()));
            hooks.forget();
        }
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Ends a transaction that has this attempt only, by a commit or a rollback, and runs its hooks.
    pub(crate) fn end_alone(self, commits: bool, end: impl FnOnce(Self) -> AttemptOutcome) -> AttemptOutcome {
        let Some(mut hooks) = self.attempt.features.end_hooks.take() else { return end(self) };
        let later = self.attempt.later();
        let ended = catch_unwind(AssertUnwindSafe(|| end(self)));
        let is_durable = commits && matches!(ended, Ok(AttemptOutcome::Done));
        let is_undurable = matches!(&ended, Ok(AttemptOutcome::NotDurable(failure)) if failure.has_committed);
        let has_committed = is_durable || commits && is_undurable;
        let run_all = |panics: &mut Panics| {
            outside(|| {
                hooks.run_at_end(has_committed, panics);
                if is_durable {
                    hooks.run_when_durable(later, panics);
                }
            });
            hooks.forget();
        };
        match ended {
            Ok(outcome) => {
                Panics::passing_on(run_all);
                outcome
            }
            Err(panic) => {
                run_all(&mut Panics::default());
                resume_unwind(panic)
            }
        }
    }

    /// Runs the hooks of a transaction whose only attempt was dropped.
    #[cold]
    pub(crate) fn end_dropped(&mut self) {
        if let Some(mut hooks) = self.attempt.features.end_hooks.take() {
            outside(|| run(&mut hooks.on_abort, &mut Panics::default()));
            hooks.forget();
        }
    }
}
