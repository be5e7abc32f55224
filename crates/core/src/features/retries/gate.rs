//! The gate: it prevents the starvation of a transaction that keeps losing, under every protocol.
//!
//! # Algorithm
//!
//! A transaction that was aborted too often becomes an *elder*. An elder that begins an attempt opens a *window* of its
//! own: while it lasts, no other attempt begins. Attempts in progress end, and then the elder runs alone.
//!
//! - The window ends when the elder's transaction ends, or when its time is up. Within it the elder may make several
//!   attempts.
//! - A worker that comes to the gate waits for one window at most: for the one that it finds, not for later ones. So
//!   each of the others makes at least one attempt between two windows.
//! - A window that was too short is followed by a longer one: four times as long, but no longer than the elder has
//!   shown to need, which is twice the longest of its attempts for each worker. Between the two there is a pause, as
//!   long as the first one. An attempt of the elder that is still in progress may fill the pause; otherwise the elder
//!   waits.
//! - Elders that wait for a window get theirs in the order in which they came.
//!
//! # Every elder gets through
//!
//! Let `D` be the time that an undisturbed attempt of the elder takes, and `n` the number of the other workers. In one
//! window each of them disturbs the elder at most once: by the attempt that it had in progress, or by the one for which
//! it had waited before. So of `n + 1` attempts in a window one is not disturbed. If the window is over and the elder
//! has not got through, one of these took at least its `n + 1`th part. So the bound of the next window, `2 (n + 1)`
//! times that, is twice the length of this one, and windows grow until they are longer than `(n + 1) D`. That takes a
//! number of windows that is logarithmic in `D`.
//!
//! This leaves out locks that an attempt in progress holds for longer than a window: while it does, the elder may lose
//! any number of times.
//!
//! # Waits are bounded
//!
//! A window is as long as the elder has shown to need, or [`WINDOW_MIN`]. So an elder that never gets through (because
//! a thread that has died holds its lock) stops others for a bounded time, after which it leaves the gate to them for
//! as long. An elder that falls asleep in its body opens no other window: it costs each of the others one wait.
//!
//! No worker holds locks while it waits here.

use hotrow_sync::atomic::{AtomicU64, Ordering};
use hotrow_sync::clock::{self, Duration, Instant};
use hotrow_sync::event::Event;
use hotrow_sync::{Mutex, MutexGuard, lock};
use std::collections::VecDeque;

/// The minimum length of a window.
pub(super) const WINDOW_MIN: Duration = Duration::from_millis(if cfg!(test) { 2 } else { 100 });
/// The factor by which a window may be longer than the one before, which was too short.
const GROWTH: u32 = 4;

/// The gate of an engine.
#[derive(Debug, Default)]
pub(crate) struct StarvationGate {
    /// The number of the window that is open; 0 for none.
    window: AtomicU64,
    state: Mutex<State>,
    event: Event,
}

#[derive(Debug, Default)]
struct State {
    current: Option<Window>,
    /// Number of windows so far.
    windows: u64,
    /// Number of elders so far.
    tickets: u64,
    /// Elders that wait for a window, in the order of their arrival.
    queue: VecDeque<u64>,
}

/// A time in which only one elder begins attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    number: u64,
    since: Instant,
    until: Instant,
}

impl StarvationGate {
    /// True if a worker that arrives now has to [wait](Self::wait).
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        // Relaxed: `wait` looks again.
        self.window.load(Ordering::Relaxed) != 0
    }

    /// Waits until the window that is open now is over. False if `time_max` passed before.
    #[cold]
    pub(crate) fn wait(&self, time_max: Option<Duration>) -> bool {
        let open = lock(&self.state).current;
        open.is_none_or(|window| self.wait_for(window, time_max))
    }

    fn wait_for(&self, window: Window, time_max: Option<Duration>) -> bool {
        let now = clock::now();
        let left = window.until.saturating_duration_since(now);
        let time = time_max.map_or(left, |time_max| time_max.min(left));
        // Acquire: pairs with the release in `publish`, so that the elder's actions before the end of its window are
        // visible. Nobody relies on that, but the load is free on all machines that matter.
        let ended = self.event.wait_timeout(time, || self.window.load(Ordering::Acquire) != window.number);
        if !ended && time == left {
            self.end(window);
        }
        ended || time == left
    }

    /// Makes the caller's transaction an elder until the returned value is dropped.
    pub(crate) fn escalate(&self) -> Elder<'_> {
        let mut state = lock(&self.state);
        state.tickets += 1;
        Elder {
            gate: self,
            ticket: state.tickets,
            waits: false,
            window: None,
            length: WINDOW_MIN,
            none_before: None,
            began: None,
            longest: Duration::ZERO,
        }
    }

    /// Waits for the elder's turn and opens its window. `None` if `time_max` passed before.
    fn open(&self, ticket: u64, length: Duration, time_max: Option<Duration>) -> Option<Window> {
        let last = time_max.map(|time_max| clock::now() + time_max);
        let mut state = lock(&self.state);
        loop {
            if !state.queue.contains(&ticket) {
                state.queue.push_back(ticket);
            }
            let now = clock::now();
            if state.current.is_some_and(|window| now >= window.until) {
                state.current = None;
            }
            if state.is_turn_of(ticket) {
                state.queue.pop_front();
                state.windows += 1;
                let window = Window { number: state.windows, since: now, until: now + length };
                state.current = Some(window);
                self.publish(state);
                return Some(window);
            }
            if last.is_some_and(|last| now >= last) {
                state.queue.retain(|waiting| *waiting != ticket);
                self.publish(state);
                return None;
            }
            let (seen, first) = (state.current, state.queue.front().copied());
            drop(state);
            let is_over = || {
                let state = lock(&self.state);
                state.current != seen || state.is_turn_of(ticket)
            };
            // Without a window, the first in the queue is about to open its own.
            let until = seen.map_or(now + WINDOW_MIN, |window| window.until);
            let until = last.map_or(until, |last| last.min(until));
            let is_over = self.event.wait_timeout(until.saturating_duration_since(now), is_over);
            state = lock(&self.state);
            if !is_over && seen.is_none() && state.current.is_none() && state.queue.front() == first.as_ref()
            {
                // The first is not running. It will queue again when it runs.
                state.queue.pop_front();
            }
        }
    }

    fn is_open(&self, window: Window) -> bool {
        lock(&self.state).current == Some(window)
    }

    /// Ends a window, unless it has ended already.
    fn end(&self, window: Window) {
        let mut state = lock(&self.state);
        if state.current == Some(window) {
            state.current = None;
            self.publish(state);
        }
    }

    /// Publishes the current window and wakes the waiters.
    fn publish(&self, state: MutexGuard<'_, State>) {
        let number = state.current.map_or(0, |window| window.number);
        // Release: pairs with the acquire in `wait`. Under the mutex, which orders the stores.
        self.window.store(number, Ordering::Release);
        drop(state);
        self.event.notify_all();
    }
}

impl State {
    fn is_turn_of(&self, ticket: u64) -> bool {
        self.current.is_none() && self.queue.front() == Some(&ticket)
    }
}

/// A transaction that gets windows of its own.
#[derive(Debug)]
pub(crate) struct Elder<'a> {
    gate: &'a StarvationGate,
    ticket: u64,
    /// True while it is in the queue, or may be.
    waits: bool,
    /// The last window that it opened, until that is known to have been too short.
    window: Option<Window>,
    /// The length of its next window.
    length: Duration,
    /// The end of its pause, if it had one that was too short.
    none_before: Option<Instant>,
    /// The begin of its current or last attempt.
    began: Option<Instant>,
    /// The duration of its longest attempt.
    longest: Duration,
}

impl Elder<'_> {
    /// Passes the gate before an attempt, in a window of its own if it may have one. `workers` is the number of workers
    /// that may disturb it, itself included. False if `time_max` passed before.
    pub(crate) fn pass(&mut self, workers: u32, time_max: Option<Duration>) -> bool {
        let now = clock::now();
        if let Some(began) = self.began {
            self.longest = self.longest.max(now.saturating_duration_since(began));
        }
        if let Some(window) = self.window {
            if now < window.until && self.gate.is_open(window) {
                self.began = Some(now);
                return true;
            }
            self.gate.end(window);
            self.window = None;
            self.none_before = Some(window.until + self.length);
            self.grow(workers);
        }
        let pause = self.none_before.map_or(Duration::ZERO, |then| then.saturating_duration_since(now));
        let rest = time_max.map_or(pause, |time_max| time_max.min(pause));
        if !rest.is_zero() {
            self.gate.event.wait_timeout(rest, || false);
        }
        let time_max = time_max.map(|time_max| time_max.saturating_sub(rest));
        self.waits = true;
        self.window = self.gate.open(self.ticket, self.length, time_max);
        self.waits = false;
        // From the begin of the window, even if the thread has slept since: the proof adds attempts up to its length.
        self.began = self.window.map(|window| window.since);
        self.window.is_some()
    }

    /// Lengthens the next window, because the last one was too short.
    fn grow(&mut self, workers: u32) {
        let needed = self.longest.saturating_mul(workers.max(2).saturating_mul(2));
        let length = self.length.saturating_mul(GROWTH).min(needed).max(WINDOW_MIN);
        debug_assert!(length >= self.length, "what an elder has shown to need does not become less");
        self.length = length;
    }
}

impl Drop for Elder<'_> {
    fn drop(&mut self) {
        if let Some(window) = self.window {
            self.gate.end(window);
        }
        // After a panic in its wait.
        if self.waits {
            let mut state = lock(&self.gate.state);
            state.queue.retain(|waiting| *waiting != self.ticket);
            self.gate.publish(state);
        }
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests;
