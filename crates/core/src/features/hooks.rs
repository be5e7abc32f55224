//! Hooks at the end of an attempt, for datatypes that bring concurrency control of their own (boosting: sto §5.3; Herlihy and
//! Koskinen, "Transactional Boosting", PPoPP 2008).
//!
//! Such a datatype has its effects at once. It keeps others away by locks of its own, which it holds to the end of the attempt
//! (strict two-phase locking), and it knows for each effect how to take it back. If the attempt commits, its locks go when the
//! protocol has released its own; if it does not, the effects are taken back first, the last one first.

use crate::features::region::UNFIT;
use crate::kernel::attempt::Attempt;
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::Moments;
use crate::kernel::transaction::ObjectAccess;
use crate::memory::users_code::{Panics, contained};
use hotrow_sync::atomic::{Ordering, unfollowed::AtomicU64};
use hotrow_sync::region;

/// The hooks of a worker's attempts. Most workers have none.
#[derive(Default)]
pub(crate) struct Hooks(Option<Box<Lists>>);

#[derive(Default)]
struct Lists {
    undos: Vec<Box<dyn FnOnce()>>,
    ends: Vec<Box<dyn FnOnce(bool)>>,
    /// The number of those whose hooks they are; 0 until somebody asks for it.
    owner: u64,
}

/// The owner numbered last.
static OWNERS: AtomicU64 = AtomicU64::new(0);

impl Hooks {
    fn lists(&mut self) -> &mut Lists {
        self.0.get_or_insert_default()
    }

    /// The number of effects so far, for [`undo_since`](Self::undo_since).
    pub(crate) fn effects(&self) -> usize {
        self.0.as_ref().map_or(0, |lists| lists.undos.len())
    }

    /// True if there are any.
    pub(crate) fn are_any(&self) -> bool {
        self.0.as_ref().is_some_and(|lists| !(lists.undos.is_empty() && lists.ends.is_empty()))
    }

    /// Takes back the effects since there were so many.
    #[inline]
    pub(crate) fn undo_since(&mut self, effects: usize) {
        if let Some(lists) = &mut self.0 {
            while lists.undos.len() > effects {
                let undo = lists.undos.pop().expect("there are more");
                // The panic hook has reported a panic, and the others must be taken back.
                let _ = contained(undo);
            }
        }
    }

    /// Ends the attempt, whose effects stay or have been taken back.
    #[inline]
    pub(crate) fn end(&mut self, committed: bool, panics: &mut Panics) {
        if let Some(lists) = &mut self.0 {
            // The closures of effects that stay have captured users' data.
            panics.contain(|| lists.undos.clear());
            while let Some(end) = lists.ends.pop() {
                panics.contain(|| end(committed));
            }
        }
    }

    /// Leaks the hooks of an attempt that was leaked.
    pub(crate) fn leak(&mut self) {
        std::mem::forget(self.0.take());
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    fn hooks(&mut self) -> &mut Lists {
        self.attempt.hears.add(Moments::ENDED);
        self.attempt.features.savepoints.hooks.lists()
    }

    /// Has `undo` called if the attempt does not commit, or if the [part](crate::Transaction::savepoint) of its body is undone
    /// in which an operation has had an effect at once. The last effect is taken back first, and all before any lock is
    /// released. A panic is contained.
    pub fn on_undo(&mut self, undo: impl FnOnce() + 'static) {
        region::abort::<UNFIT>();
        self.hooks().undos.push(Box::new(undo));
    }

    /// Has `end` called when the attempt has committed (true) or not, and the protocol has released its locks.
    pub fn at_end(&mut self, end: impl FnOnce(bool) + 'static) {
        region::abort::<UNFIT>();
        self.hooks().ends.push(Box::new(end));
    }

    /// Returns the number of the attempt as the owner of a datatype's locks, never 0. No other attempt that may hold any has it:
    /// those of one worker have the same, one after the other, but one that was leaked keeps it, with its locks, for ever.
    pub fn owner(&mut self) -> u64 {
        let owner = &mut self.attempt.features.savepoints.hooks.lists().owner;
        if *owner == 0 {
            // Relaxed: only uniqueness matters.
            *owner = OWNERS.fetch_add(1, Ordering::Relaxed) + 1;
        }
        *owner
    }
}

impl<P: Protocol> Attempt<P> {
    /// True if a datatype with concurrency control of its own takes part: [`ObjectAccess::on_undo`], [`ObjectAccess::at_end`].
    pub fn has_hooks(&self) -> bool {
        self.features.savepoints.hooks.are_any()
    }
}
