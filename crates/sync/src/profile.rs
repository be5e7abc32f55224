//! Announcements for the profile of a simulation: what a thread waits for, which lock it holds, whose memory it accesses.
//!
//! Does nothing in other builds, and nothing in a simulation without a profile.

/// A wait in progress. It ends when this is dropped.
#[derive(Debug)]
#[must_use = "the wait ends when this is dropped"]
pub struct Waiting {
    #[cfg(all(feature = "sim", not(loom)))]
    began: bool,
}

/// Begins a wait of a kind for the thing at an address; 0 if it has none. All that the thread does until the result is dropped
/// counts as the wait. Inside another wait it changes nothing.
#[inline(always)]
pub fn waiting(kind: &'static str, at: usize) -> Waiting {
    #[cfg(all(feature = "sim", not(loom)))]
    return Waiting { began: hotrow_sim::profile::wait_begins(kind, at) };
    #[cfg(any(loom, not(feature = "sim")))]
    {
        let _ = (kind, at);
        Waiting {}
    }
}

#[cfg(all(feature = "sim", not(loom)))]
impl Drop for Waiting {
    fn drop(&mut self) {
        if self.began {
            hotrow_sim::profile::wait_ends();
        }
    }
}

/// A label in force. The label before it comes back when this is dropped.
#[derive(Debug)]
#[must_use = "the label is in force until this is dropped"]
pub struct Labelled {
    #[cfg(all(feature = "sim", not(loom)))]
    before: &'static str,
}

/// Labels what the thread does until the result is dropped; see [`label`](crate::thread::label).
#[inline(always)]
pub fn labelled(label: &'static str) -> Labelled {
    #[cfg(all(feature = "sim", not(loom)))]
    return Labelled { before: hotrow_sim::label(label) };
    #[cfg(any(loom, not(feature = "sim")))]
    {
        let _ = label;
        Labelled {}
    }
}

#[cfg(all(feature = "sim", not(loom)))]
impl Drop for Labelled {
    fn drop(&mut self) {
        hotrow_sim::label(self.before);
    }
}

/// The thread begins an attempt.
#[inline(always)]
pub fn attempt_begins() {
    #[cfg(all(feature = "sim", not(loom)))]
    hotrow_sim::profile::attempt_begins();
}

/// The thread's attempt has ended, if it was in one.
#[inline(always)]
pub fn attempt_ends(committed: bool) {
    #[cfg(all(feature = "sim", not(loom)))]
    hotrow_sim::profile::attempt_ends(committed);
    #[cfg(any(loom, not(feature = "sim")))]
    let _ = committed;
}

/// The thread will access the object at an address. `name` is asked for once.
#[inline(always)]
pub fn enter_object(object: usize, name: impl FnOnce() -> String) {
    #[cfg(all(feature = "sim", not(loom)))]
    hotrow_sim::profile::enter_object(object, name);
    #[cfg(any(loom, not(feature = "sim")))]
    let _ = (object, name);
}

/// The thread accesses no object's memory from now on.
#[inline(always)]
pub fn leave_objects() {
    #[cfg(all(feature = "sim", not(loom)))]
    hotrow_sim::profile::leave_objects();
}

/// The thread will access the segment at an address, of the object that it entered last. `key` is asked for at most once.
#[inline(always)]
pub fn touch(segment: usize, key: impl FnOnce() -> String) {
    #[cfg(all(feature = "sim", not(loom)))]
    hotrow_sim::profile::touch(segment, false, key);
    #[cfg(any(loom, not(feature = "sim")))]
    let _ = (segment, key);
}

/// As [`touch`], for a segment that the thread has made.
#[inline(always)]
pub fn touch_new(segment: usize, key: impl FnOnce() -> String) {
    #[cfg(all(feature = "sim", not(loom)))]
    hotrow_sim::profile::touch(segment, true, key);
    #[cfg(any(loom, not(feature = "sim")))]
    let _ = (segment, key);
}

/// The thread holds the lock of the segment at an address from now on, with others or alone.
#[inline(always)]
pub fn hold(segment: usize) {
    #[cfg(all(feature = "sim", not(loom)))]
    hotrow_sim::profile::hold(segment);
    #[cfg(any(loom, not(feature = "sim")))]
    let _ = segment;
}

/// The thread does not hold the lock of the segment at an address any more.
#[inline(always)]
pub fn release(segment: usize) {
    #[cfg(all(feature = "sim", not(loom)))]
    hotrow_sim::profile::release(segment);
    #[cfg(any(loom, not(feature = "sim")))]
    let _ = segment;
}

/// The thread holds no segment's lock any more.
#[inline(always)]
pub fn release_all() {
    #[cfg(all(feature = "sim", not(loom)))]
    hotrow_sim::profile::release_all();
}

/// Names the memory of a value that threads share.
#[inline(always)]
pub fn name_memory<T>(value: &T, name: impl FnOnce() -> String) {
    name_slice(std::slice::from_ref(value), name);
}

/// Names the memory of values that threads share.
#[inline(always)]
pub fn name_slice<T>(values: &[T], name: impl FnOnce() -> String) {
    #[cfg(all(feature = "sim", not(loom)))]
    hotrow_sim::profile::name_memory(values.as_ptr().addr(), size_of_val(values), name());
    #[cfg(any(loom, not(feature = "sim")))]
    let _ = (values, name);
}
