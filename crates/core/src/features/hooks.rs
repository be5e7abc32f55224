//! Hooks: closures that run when it is certain how something ends. One list has those of an attempt, each with the moment for which it
//! is meant:
//!
//! | moment | left by | runs | order |
//! |---|---|---|---|
//! | undone | [`on_undo`](ObjectAccess::on_undo) | an attempt, or a part of its body, is undone; before any lock is released | the last first |
//! | ended | [`at_end`](ObjectAccess::at_end) | an attempt has ended, and the protocol has released its locks | the last first |
//! | committed | [`on_commit`](Transaction::on_commit) | a transaction has committed | the first first |
//! | durable | [`on_durable`](Transaction::on_durable) | its commit is on the device | the first first |
//! | not committed | [`on_abort`](Transaction::on_abort) | a transaction has ended without a commit | the first first |
//!
//! The first two are for datatypes that bring concurrency control of their own (boosting: sto §5.3; Herlihy and Koskinen, "Transactional
//! Boosting", PPoPP 2008). Such a datatype has its effects at once. It keeps others away by locks of its own, which it holds to the end of
//! the attempt (strict two-phase locking), and it knows for each effect how to take it back. If the attempt commits, its locks go
//! when the protocol has released its own; if it does not, the effects are taken back first.
//!
//! The others are for bodies. A body may run several times, so it must not do what cannot be undone (send a message, say), and leaves
//! that to a hook. These hooks are kept until the next attempt begins, and dropped then, so that those of the last attempt
//! run. Nothing is held any more: no lock, no epoch, not the thread's mark against nesting. Therefore a hook may begin a transaction. (The
//! worker is in use, so that transaction runs on another one, which the thread keeps.)
//!
//! The hooks of a part of the body that is undone go with it, except for those of ended attempts, because locks stay.

use crate::features::durability::Later;
use crate::features::region::UNFIT;
use crate::features::retries::TransactionEnd;
use crate::kernel::abort::NotDurable;
use crate::kernel::attempt::Attempt;
use crate::kernel::object_access::{AttemptOutcome, ObjectAccess};
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::Moments;
use crate::kernel::transaction::Transaction;
use crate::kernel::worker::Worker;
use crate::memory::thread_mark::outside;
use crate::memory::users_code::{Panics, contained};
use hotrow_sync::atomic::{Ordering, unfollowed::AtomicU64};
use hotrow_sync::region;
use hotrow_sync::work::charge_block;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The moment for which a hook is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookMoment {
    Undone,
    Ended,
    Committed,
    Durable,
    NotCommitted,
}

impl HookMoment {
    /// True if the hooks are those of datatypes, for one attempt.
    fn is_of_attempt(self) -> bool {
        matches!(self, Self::Undone | Self::Ended)
    }
}

struct Hook {
    moment: HookMoment,
    /// Is told if the attempt has committed.
    code: Box<dyn FnOnce(bool) + Send>,
}

/// The hooks of an attempt, or of its transaction. Most have none.
#[derive(Default)]
pub(crate) struct Hooks {
    list: Vec<Hook>,
    /// The number of the attempt as the owner of a datatype's locks; 0 until somebody asks for it.
    owner: u64,
}

/// The owner numbered last.
static OWNERS: AtomicU64 = AtomicU64::new(0);

impl Hooks {
    /// The number of hooks so far, for [`undo_part`](Self::undo_part).
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Takes hooks that have come since there were so many.
    fn take(&mut self, since: usize, is_taken: impl Fn(HookMoment) -> bool) -> Self {
        Self { list: self.list.extract_if(since.., |hook| is_taken(hook.moment)).collect(), owner: 0 }
    }

    /// Takes those of the body.
    pub(crate) fn take_of_body(&mut self) -> Self {
        self.take(0, |moment| !moment.is_of_attempt())
    }

    /// Runs those of a moment that have come since there were so many.
    fn run(&mut self, moment: HookMoment, since: usize, committed: bool, panics: &mut Panics) {
        let mut hooks = std::mem::take(&mut self.take(since, |of| of == moment).list);
        if moment.is_of_attempt() {
            hooks.reverse();
        }
        for hook in hooks {
            panics.contain(|| (hook.code)(committed));
        }
    }

    /// Takes back the effects since there were so many hooks.
    pub(crate) fn undo(&mut self, since: usize) {
        // The panic hook has reported a panic, and the others must be taken back.
        self.run(HookMoment::Undone, since, false, &mut Panics::default());
    }

    /// Undoes a part of the body, which began when there were so many.
    pub(crate) fn undo_part(&mut self, since: usize) {
        if self.len() > since {
            self.undo(since);
            self.take(since, |moment| moment != HookMoment::Ended);
        }
    }

    /// Ends the attempt, whose effects stay or have been taken back.
    pub(crate) fn end_attempt(&mut self, committed: bool, panics: &mut Panics) {
        if !self.is_empty() {
            self.take(0, |moment| moment == HookMoment::Undone);
            self.run(HookMoment::Ended, 0, committed, panics);
        }
    }

    /// Runs those for a commit, or for an end without one.
    pub(crate) fn run_at_end(&mut self, committed: bool, panics: &mut Panics) {
        let moment = if committed { HookMoment::Committed } else { HookMoment::NotCommitted };
        self.run(moment, 0, committed, panics);
    }

    /// Runs those for a commit that is durable: now, or when the log says so. Then there is nobody to pass their panics on to.
    pub(crate) fn run_when_durable(&mut self, later: Option<Later>, panics: &mut Panics) {
        let Some(later) = later else { return self.run(HookMoment::Durable, 0, true, panics) };
        let mut hooks = self.take(0, |moment| moment == HookMoment::Durable);
        if !hooks.is_empty() {
            later.run(Box::new(move || hooks.run(HookMoment::Durable, 0, true, &mut Panics::default())));
        }
    }

    /// Leaks the hooks of an attempt that was leaked.
    pub(crate) fn leak(&mut self) {
        std::mem::forget(std::mem::take(self));
    }
}

impl Drop for Hooks {
    /// They have captured users' data.
    fn drop(&mut self) {
        while let Some(hook) = self.list.pop() {
            contained(|| drop(hook));
        }
    }
}

impl<P: Protocol> Attempt<P> {
    fn add_hook(&mut self, moment: HookMoment, code: impl FnOnce(bool) + Send + 'static) {
        // A region may be cut off, and its memory of the hook with it.
        region::abort::<UNFIT>();
        self.hears.add(Moments::ENDED.when(moment.is_of_attempt()));
        charge_block(|| size_of_val(&code));
        self.features.hooks.list.push(Hook { moment, code: Box::new(code) });
    }

    /// True if a datatype with concurrency control of its own takes part: [`ObjectAccess::on_undo`], [`ObjectAccess::at_end`].
    pub fn has_hooks(&self) -> bool {
        self.features.hooks.list.iter().any(|hook| hook.moment.is_of_attempt())
    }

    /// Runs the hooks of a transaction that ends by a panic, which is passed on afterwards, or whose only attempt was dropped.
    #[cold]
    pub(crate) fn end_dropped(&mut self) {
        let mut hooks = self.features.hooks.take_of_body();
        outside(|| hooks.run_at_end(false, &mut Panics::default()));
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Has `undo` called if the attempt does not commit, or if the [part](crate::Transaction::savepoint) of its body is undone
    /// in which an operation has had an effect at once. The last effect is taken back first, and all before any lock is
    /// released. A panic is contained.
    pub fn on_undo(&mut self, undo: impl FnOnce() + Send + 'static) {
        self.attempt.add_hook(HookMoment::Undone, move |_| undo());
    }

    /// Has `end` called when the attempt has committed (true) or not, and the protocol has released its locks.
    pub fn at_end(&mut self, end: impl FnOnce(bool) + Send + 'static) {
        self.attempt.add_hook(HookMoment::Ended, end);
    }

    /// Returns the number of the attempt as the owner of a datatype's locks, never 0. No other attempt that may hold any has it:
    /// those of one worker have the same, one after the other, but one that was leaked keeps it, with its locks, for ever.
    pub fn owner(&mut self) -> u64 {
        let owner = &mut self.attempt.features.hooks.owner;
        if *owner == 0 {
            // Relaxed: only uniqueness matters.
            *owner = OWNERS.fetch_add(1, Ordering::Relaxed) + 1;
        }
        *owner
    }

    /// Ends a transaction that has this attempt only, by a commit or a rollback, and runs its hooks.
    pub(crate) fn end_alone(self, commits: bool, end: impl FnOnce(Self) -> AttemptOutcome) -> AttemptOutcome {
        let mut hooks = self.attempt.features.hooks.take_of_body();
        if hooks.is_empty() {
            return end(self);
        }
        let later = self.attempt.later();
        let ended = catch_unwind(AssertUnwindSafe(|| end(self)));
        let is_durable = commits && matches!(ended, Ok(AttemptOutcome::Done));
        let is_undurable = matches!(&ended, Ok(AttemptOutcome::NotDurable(failure)) if failure.has_committed);
        let run_all = |panics: &mut Panics| {
            outside(|| {
                hooks.run_at_end(is_durable || commits && is_undurable, panics);
                if is_durable {
                    hooks.run_when_durable(later, panics);
                }
            });
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
}

impl<P: Protocol> Transaction<'_, P> {
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
        self.0.attempt.add_hook(HookMoment::Committed, move |_| hook());
    }

    /// As [`on_commit`](Self::on_commit), but called when the commit is on the device, and not at all if the log fails before
    /// ([`Error::NotDurable`](crate::Error::NotDurable)). Without a log it is called when the transaction has committed.
    ///
    /// If the caller waits for the device, the hook is called on its thread, before it gets the result. Else it is called later, on a
    /// thread of the log's: where the caller is told at once ([`Durability::Buffered`](crate::Durability::Buffered), a ticket, a log that is
    /// written at intervals), and if a future is dropped that waits for the device. A panic is reported there, and passed on to nobody.
    pub fn on_durable(&mut self, hook: impl FnOnce() + Send + 'static) {
        self.0.attempt.add_hook(HookMoment::Durable, move |_| hook());
    }

    /// Has a closure called once when the transaction has ended without a commit: by a rollback, an error or a panic of its body, a
    /// limit of the retry policy. An attempt that is followed by another one is not the end. Otherwise as
    /// [`on_commit`](Self::on_commit).
    pub fn on_abort(&mut self, hook: impl FnOnce() + Send + 'static) {
        self.0.attempt.add_hook(HookMoment::NotCommitted, move |_| hook());
    }
}

impl<P: Protocol> Worker<P> {
    /// Ends a transaction that has hooks, and waits until its result is durable. Nothing is held.
    #[cold]
    pub(crate) fn end_with_hooks(&mut self, end: TransactionEnd) -> Result<(), NotDurable> {
        let mut hooks = self.attempt.features.hooks.take_of_body();
        let has_committed = end == TransactionEnd::Committed;
        Panics::passing_on(|panics| {
            hooks.run_at_end(has_committed, panics);
            let acknowledged = self.acknowledge(end);
            if has_committed && acknowledged.is_ok() {
                hooks.run_when_durable(self.attempt.later(), panics);
            }
            acknowledged
        })
    }
}
