//! Values that are known now or later.

use std::cell::RefCell;
use std::rc::Rc;

/// A value that is known, or will be when recorded operations have run.
#[derive(Clone)]
pub(crate) enum Promised<T> {
    Known(T),
    /// With the number of computations, one after the other, by which it comes from what operations say, at most.
    Later(Rc<RefCell<State<T>>>, usize),
}

/// The state of a value that was not known when it was made.
pub(crate) enum State<T> {
    /// An operation will say.
    Awaited,
    /// A computation from other values, which returns `None` while these are not known.
    Computed(Box<dyn FnMut() -> Option<T>>),
    /// It is known.
    Known(T),
}

impl<T> From<T> for Promised<T> {
    fn from(value: T) -> Self {
        Self::Known(value)
    }
}

impl<T: Clone + 'static> Promised<T> {
    /// A value that an operation will say, and the function that says it.
    pub(crate) fn awaited() -> (Self, impl FnOnce(T) + 'static) {
        let state = Rc::new(RefCell::new(State::Awaited));
        let known = Rc::clone(&state);
        (Self::Later(state, 0), move |value| *known.borrow_mut() = State::Known(value))
    }

    /// The value, if it is known or can be computed.
    pub(crate) fn get(&self) -> Option<T> {
        let state = match self {
            Self::Known(value) => return Some(value.clone()),
            Self::Later(state, _) => state,
        };
        let mut compute = match &mut *state.borrow_mut() {
            State::Known(value) => return Some(value.clone()),
            State::Awaited => return None,
            // Nobody else asks meanwhile: a value does not depend on itself.
            computed => match std::mem::replace(computed, State::Awaited) {
                State::Computed(compute) => compute,
                _ => return None,
            },
        };
        let value = compute();
        *state.borrow_mut() = match value.clone() {
            Some(value) => State::Known(value),
            None => State::Computed(compute),
        };
        value
    }

    /// The number of computations that have to be made one in another for this value, at most.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Self::Known(_) => 0,
            Self::Later(_, depth) => *depth,
        }
    }

    /// A value that is computed when it is known by what.
    fn computed(depth: usize, compute: impl FnMut() -> Option<T> + 'static) -> Self {
        Self::Later(Rc::new(RefCell::new(State::Computed(Box::new(compute)))), depth + 1)
    }

    /// Computes another value from this one, now or when it is known.
    pub(crate) fn map<O: Clone + 'static>(self, compute: impl FnOnce(T) -> O + 'static) -> Promised<O> {
        if let Some(value) = self.get() {
            return Promised::Known(compute(value));
        }
        let mut compute = Some(compute);
        Promised::computed(self.depth(), move || {
            let value = self.get()?;
            compute.take().map(|compute| compute(value))
        })
    }

    /// Joins two values.
    pub(crate) fn zip<O: Clone + 'static>(self, other: Promised<O>) -> Promised<(T, O)> {
        if let (Some(first), Some(second)) = (self.get(), other.get()) {
            return Promised::Known((first, second));
        }
        Promised::computed(self.depth().max(other.depth()), move || Some((self.get()?, other.get()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_computed_once_when_all_that_it_comes_from_is_known() {
        let (first, tell_first) = Promised::awaited();
        let (second, tell_second) = Promised::awaited();
        let calls = Rc::new(RefCell::new(0));
        let counted = Rc::clone(&calls);
        let sum = first.clone().zip(second).map(move |(first, second): (i32, i32)| {
            *counted.borrow_mut() += 1;
            first + second
        });
        let twice = sum.clone().zip(sum.clone()).map(|(one, other)| one + other);
        assert_eq!((first.get(), twice.get()), (None, None));
        tell_first(1);
        assert_eq!((first.get(), twice.get()), (Some(1), None));
        tell_second(2);
        assert_eq!((twice.get(), sum.get()), (Some(6), Some(3)));
        assert_eq!(*calls.borrow(), 1);
        assert!(matches!(first.map(|one| one + 1), Promised::Known(2)), "it needs no operation");
    }
}
