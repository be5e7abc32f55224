//! The word of an operation: its batch and its state. It decides which worker runs the operation (stealdb, Algorithm 2,
//! line 1, where it is the identity of the owner's transaction).

use hotrow_sync::atomic::{AtomicU64, Ordering};

/// The state of an operation, beside its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum State {
    /// Of an earlier batch, run by its owner, or adopted.
    Finished = 0,
    /// Its inputs are not known, or it is a computation.
    Waiting = 1,
    /// Any worker may take it.
    Runnable = 2,
    /// A worker runs it.
    Taken = 3,
    /// A thief has run it.
    Done = 4,
    /// The owner runs it, in its turn.
    GivenBack = 5,
}

const STATE_BITS: u32 = 3;
const STATE: u64 = (1 << STATE_BITS) - 1;

impl State {
    fn of(word: u64) -> Self {
        match word & STATE {
            1 => State::Waiting,
            2 => State::Runnable,
            3 => State::Taken,
            4 => State::Done,
            5 => State::GivenBack,
            _ => State::Finished,
        }
    }

    fn in_batch(self, batch: u64) -> u64 {
        batch << STATE_BITS | self as u64
    }
}

/// An operation's word.
#[derive(Debug, Default)]
pub(super) struct Word(AtomicU64);

impl Word {
    /// Returns the batch, as a hint: `take` compares it again.
    pub(super) fn batch(&self) -> u64 {
        // Relaxed: `take` compares the whole word.
        self.0.load(Ordering::Relaxed) >> STATE_BITS
    }

    pub(super) fn state(&self) -> State {
        // Acquire: pairs with the release in `set`; a worker that sees `Done` sees the stolen work.
        State::of(self.0.load(Ordering::Acquire))
    }

    /// Returns the state, if the word is of this batch; for the owner.
    pub(super) fn state_in(&self, batch: u64) -> Option<State> {
        // Relaxed: the owner itself has set the batch.
        let word = self.0.load(Ordering::Relaxed);
        (word >> STATE_BITS == batch).then(|| State::of(word))
    }

    /// Sets batch and state; for the owner while nobody can take the operation, and for the worker that has taken it.
    pub(super) fn set(&self, state: State, batch: u64) {
        // Release: pairs with the acquire in `state` and `take`.
        self.0.store(state.in_batch(batch), Ordering::Release);
    }

    /// Takes an operation of this batch that is in this state. Exactly one worker succeeds.
    pub(super) fn take(&self, from: State, batch: u64) -> bool {
        // INVARIANT 30: Exactly one worker runs a stealable operation, once.
        // A load first, which disturbs nobody.
        self.0.load(Ordering::Relaxed) == from.in_batch(batch) && self.change(from, State::Taken, batch)
    }

    /// Changes the state, if it is `from`.
    pub(super) fn change(&self, from: State, to: State, batch: u64) -> bool {
        let (from, to) = (from.in_batch(batch), to.in_batch(batch));
        // Acquire: pairs with the release in `set`; the worker that takes an operation sees its plan. Release: the
        // worker that makes it runnable has seen the results that it needs, and so does the one that takes it then.
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_takes_an_operation_and_nobody_one_of_another_batch() {
        let word = Word::default();
        assert_eq!((word.state(), word.take(State::Runnable, 7)), (State::Finished, false));
        word.set(State::Waiting, 7);
        assert!(!word.take(State::Runnable, 7) && !word.change(State::Waiting, State::Runnable, 6));
        assert!(word.change(State::Waiting, State::Runnable, 7));
        assert!(!word.take(State::Runnable, 8));
        assert!(word.take(State::Runnable, 7) && !word.take(State::Runnable, 7));
        assert_eq!((word.state(), word.batch()), (State::Taken, 7));
        assert_eq!((word.state_in(7), word.state_in(8)), (Some(State::Taken), None));
    }
}
