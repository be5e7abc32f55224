//! One value for each virtual core, in place of thread-locals.

use std::any::Any;
use std::mem;

use crate::engine;

/// The values of one core: for each, the static's address and the value.
#[derive(Default)]
pub(crate) struct Values {
    values: Vec<(usize, Box<dyn Any>)>,
}

impl Values {
    /// Removes the next value to be dropped: the one made last.
    pub(crate) fn pop(&mut self) -> Option<Box<dyn Any>> {
        self.values.pop().map(|(_, value)| value)
    }

    /// Leaks the values of a core that ended without running its destructors.
    pub(crate) fn forget(&mut self) {
        mem::forget(mem::take(&mut self.values));
    }
}

/// A static with one value for each virtual core of the simulation that runs in this thread.
///
/// A value is made when its core first asks for it. After the core's body has returned, the core drops its
/// values, the last made first. A core that is killed or abandoned leaks its values, as a dead thread does.
///
/// ```
/// use hotrow_sim::{Config, CoreLocal, Machine, Simulation};
/// use std::cell::Cell;
///
/// static COUNT: CoreLocal<Cell<u32>> = CoreLocal::new(|| Cell::new(0));
///
/// let simulation = Simulation::new(Config::new(Machine::named("drp").unwrap(), 3)).unwrap();
/// let outcome = simulation.run(|core| {
///     for _ in 0..=core {
///         COUNT.with(|count| count.set(count.get() + 1));
///     }
///     COUNT.with(Cell::get)
/// });
/// assert_eq!(outcome.results, [Some(Some(1)), Some(Some(2)), Some(Some(3))]);
/// assert_eq!(COUNT.with(Cell::get), None);
/// ```
#[derive(Debug)]
pub struct CoreLocal<T: 'static> {
    init: fn() -> T,
}

impl<T: 'static> CoreLocal<T> {
    /// A static that initializes each core's value with `init`.
    pub const fn new(init: fn() -> T) -> Self {
        Self { init }
    }

    /// Calls `look` with the current core's value. Returns `None` if no simulation runs in this thread.
    ///
    /// Not a step and without virtual cost. Takes time linear in the number of such statics that the core has
    /// used.
    pub fn with<R>(&'static self, look: impl FnOnce(&T) -> R) -> Option<R> {
        let engine = engine::active();
        if engine.is_null() {
            return None;
        }
        let key = std::ptr::from_ref(self) as usize;
        // SAFETY: the active engine; only this fiber runs, and the reference ends with the statement.
        let find = || unsafe {
            let engine = &*engine;
            let values = &engine.cores[engine.current].values.values;
            values.iter().find(|(owner, _)| *owner == key).map(|(_, value)| &raw const **value)
        };
        let value = find().unwrap_or_else(|| {
            let value: Box<dyn Any> = Box::new((self.init)());
            // SAFETY: as above; `init` has returned.
            unsafe {
                let engine = &mut *engine;
                let current = engine.current;
                engine.cores[current].values.values.push((key, value));
            }
            find().expect("the value was just pushed")
        });
        // SAFETY: the value is boxed, so it does not move when others are added, and it is dropped only after
        // the core's body has returned, that is, after this call.
        let value = unsafe { &*value };
        value.downcast_ref::<T>().map(look)
    }
}
