//! Places in queues, which their waiters leave whatever ends a wait.

/// A waiter's place in a queue. If the wait ends by a panic, or the request fails, it is dropped and `leave` is called; otherwise
/// the waiter [keeps](Self::keep) what it has got. So nobody waits behind a place that its waiter has left.
pub(crate) struct QueuePlace<L: FnMut()> {
    leave: L,
}

impl<L: FnMut()> QueuePlace<L> {
    /// A place that was taken just now.
    pub(crate) fn new(leave: L) -> Self {
        Self { leave }
    }

    /// Ends the wait without a call of `leave`.
    pub(crate) fn keep(self) {
        std::mem::forget(self);
    }
}

impl<L: FnMut()> Drop for QueuePlace<L> {
    fn drop(&mut self) {
        (self.leave)();
    }
}
