//! A place at which a procedure waits until a test lets it go on.

use hotrow::sync::atomic::{AtomicBool, Ordering};
use hotrow::sync::{Arc, thread};

#[derive(Default)]
pub(crate) struct Gate {
    pub(crate) arrived: AtomicBool,
    pub(crate) open: AtomicBool,
}

impl Gate {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    pub(crate) fn open() -> Arc<Self> {
        let gate = Self::default();
        gate.open.store(true, Ordering::SeqCst);
        Arc::new(gate)
    }

    pub(crate) fn wait(&self) {
        self.arrived.store(true, Ordering::SeqCst);
        until(|| self.open.load(Ordering::SeqCst));
    }
}

pub(crate) fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}
