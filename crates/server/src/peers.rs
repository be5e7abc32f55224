//! The connections that are open: for requests to cancel, for the end of the server, and for the watch over clients
//! that vanish.

use crate::endpoint::Connected;
use crate::engine::Signal;
use hotrow_sync::atomic::{AtomicU64, Ordering::Relaxed};
use hotrow_sync::clock::{Duration, Instant, now};
use hotrow_sync::{Condvar, Mutex, MutexGuard, lock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError};

/// The watch looks this often. A statement that it finds running at two looks has run for at least as long.
const WATCH_INTERVAL: Duration = Duration::from_millis(50);
/// A statement is watched from its third look on, thus when it has run for more than 100 ms.
const LOOKS_MIN: u64 = 2;

/// Proof of the right to cancel a connection's statements.
pub(crate) struct Identity {
    /// Random bytes that only the client has been told.
    pub(crate) secret: Box<[u8]>,
    /// Ends the running statement.
    pub(crate) cancel: Signal,
}

/// A connection as other threads see it.
pub(crate) struct Peer {
    /// Its number.
    pub(crate) process: i32,
    /// Wakes its thread.
    pub(crate) wake: Signal,
    /// Its socket; none in tests without one.
    pub(crate) socket: Option<Arc<Connected>>,
    /// Known when the client is authenticated.
    pub(crate) identity: OnceLock<Identity>,
    /// Odd while a statement runs; grows by one at its beginning and its end.
    statement: AtomicU64,
}

impl Peer {
    /// A connection that is beginning.
    pub(crate) fn new(process: i32, wake: Signal, socket: Option<Arc<Connected>>) -> Self {
        Self { process, wake, socket, identity: OnceLock::new(), statement: AtomicU64::new(0) }
    }

    /// Runs a statement, so that the watch sees how long it takes.
    pub(crate) fn running<R>(&self, statement: impl FnOnce() -> R) -> R {
        // Only this thread writes, and the watch only compares two looks: no order is needed.
        let number = self.statement.load(Relaxed);
        self.statement.store(number | 1, Relaxed);
        let result = statement();
        self.statement.store((number | 1) + 1, Relaxed);
        result
    }

    /// Ends the running statement, if there is one.
    fn cancel_running(&self) -> bool {
        match self.identity.get() {
            Some(identity) if self.statement.load(Relaxed) % 2 == 1 => {
                (identity.cancel)();
                true
            }
            _ => false,
        }
    }

    /// True if the client has closed its side.
    fn is_gone(&self) -> bool {
        let Some(socket) = &self.socket else { return false };
        let mut files = [PollFd::new(&**socket, PollFlags::RDHUP)];
        let ended = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        poll(&mut files, Some(&Timespec::default())).is_ok() && files[0].revents().intersects(ended)
    }
}

/// All connections.
#[derive(Default)]
pub(crate) struct Peers {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    peers: HashMap<i32, Arc<Peer>>,
    last_process: i32,
    is_stopped: bool,
}

impl Peers {
    fn state(&self) -> MutexGuard<'_, State> {
        // No invariant spans a panic: each change is one step.
        lock(&self.state)
    }

    /// The number of connections.
    pub(crate) fn count(&self) -> usize {
        self.state().peers.len()
    }

    /// Adds a connection under a number of its own.
    pub(crate) fn add(&self, wake: Signal, socket: Option<Arc<Connected>>) -> Arc<Peer> {
        let mut state = self.state();
        loop {
            state.last_process = state.last_process.checked_add(1).unwrap_or(1);
            let process = state.last_process;
            if let std::collections::hash_map::Entry::Vacant(place) = state.peers.entry(process) {
                let peer = Arc::clone(place.insert(Arc::new(Peer::new(process, wake, socket))));
                if state.is_stopped {
                    // Nobody will wake it later.
                    (peer.wake)();
                }
                self.changed.notify_all();
                return peer;
            }
        }
    }

    /// Removes a connection.
    pub(crate) fn remove(&self, process: i32) {
        let removed = self.state().peers.remove(&process);
        drop(removed);
        self.changed.notify_all();
    }

    /// Ends the statement of a connection for a client that knows its secret. Tells nobody whether there was one.
    pub(crate) fn cancel(&self, process: i32, secret: &[u8]) {
        let peer = self.state().peers.get(&process).cloned();
        if let Some(identity) = peer.as_ref().and_then(|peer| peer.identity.get())
            && equal_in_constant_time(&identity.secret, secret)
        {
            (identity.cancel)();
        }
    }

    /// Ends all statements and wakes all connections, so that they see that the server stops. The watch ends, too.
    pub(crate) fn stop(&self) {
        let mut state = self.state();
        state.is_stopped = true;
        let peers: Vec<_> = state.peers.values().cloned().collect();
        drop(state);
        self.changed.notify_all();
        for peer in peers {
            peer.cancel_running();
            (peer.wake)();
        }
    }

    /// Waits until no connection is left; false if there still are some at the deadline.
    pub(crate) fn wait_until_empty(&self, deadline: Instant) -> bool {
        let mut state = self.state();
        while !state.peers.is_empty() {
            let left = deadline.saturating_duration_since(now());
            if left.is_zero() {
                return false;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Closes the sockets of all connections, so that threads that read or write return.
    pub(crate) fn shut_down(&self) {
        for peer in self.state().peers.values() {
            if let Some(socket) = &peer.socket {
                socket.shut_down();
            }
        }
    }

    /// Watches over statements that run for long, and ends those whose clients have vanished, until the server stops.
    /// `lost` is told of each.
    pub(crate) fn watch(&self, lost: impl Fn()) {
        // The statement of each connection at the last look, and how often it has been seen before.
        let mut seen: HashMap<i32, (u64, u64)> = HashMap::new();
        let mut state = self.state();
        loop {
            while state.peers.is_empty() && !state.is_stopped {
                seen = HashMap::new();
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.is_stopped {
                return;
            }
            let mut long = Vec::new();
            let mut now_seen = HashMap::new();
            for (&process, peer) in &state.peers {
                let statement = peer.statement.load(Relaxed);
                if statement % 2 == 0 {
                    continue;
                }
                let looks = match seen.get(&process) {
                    Some(&(before, looks)) if before == statement => looks + 1,
                    _ => 0,
                };
                now_seen.insert(process, (statement, looks));
                if looks >= LOOKS_MIN {
                    long.push(Arc::clone(peer));
                }
            }
            seen = now_seen;
            drop(state);
            for peer in long {
                if peer.is_gone() && peer.cancel_running() {
                    lost();
                }
            }
            state = self.state();
            // Connections come and go meanwhile: the whole interval is waited for, or the server's stop.
            let deadline = now() + WATCH_INTERVAL;
            while !state.is_stopped {
                let left = deadline.saturating_duration_since(now());
                if left.is_zero() {
                    break;
                }
                state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}

/// Compares two secrets in a time that does not depend on where they differ.
pub(crate) fn equal_in_constant_time(left: &[u8], right: &[u8]) -> bool {
    let difference = left.iter().zip(right).fold(0, |difference, (left, right)| difference | (left ^ right));
    left.len() == right.len() && std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotrow_sync::atomic::AtomicUsize;

    fn counting() -> (Signal, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        (Arc::new(move || _ = counted.fetch_add(1, Relaxed)), count)
    }

    #[test]
    fn only_the_right_secret_cancels() {
        let peers = Peers::default();
        let peer = peers.add(counting().0, None);
        let (cancel, cancelled) = counting();
        let _ = peer.identity.set(Identity { secret: b"1234"[..].into(), cancel });
        for secret in [&b"1235"[..], b"123", b"12345", b""] {
            peers.cancel(peer.process, secret);
        }
        peers.cancel(peer.process + 1, b"1234");
        assert_eq!(cancelled.load(Relaxed), 0);
        peers.cancel(peer.process, b"1234");
        assert_eq!(cancelled.load(Relaxed), 1);
    }

    #[test]
    fn numbers_of_connections_are_positive_and_not_used_twice() {
        let peers = Peers::default();
        peers.state().last_process = i32::MAX - 1;
        let numbers: Vec<i32> = (0..3).map(|_| peers.add(counting().0, None).process).collect();
        assert_eq!(numbers, [i32::MAX, 1, 2]);
        peers.state().last_process = 0;
        assert_eq!(peers.add(counting().0, None).process, 3);
        peers.remove(2);
        assert_eq!(peers.count(), 3);
    }

    #[test]
    fn a_stop_cancels_what_runs_and_wakes_the_rest() {
        let peers = Peers::default();
        let (wake, woken) = counting();
        let peer = peers.add(wake, None);
        let (cancel, cancelled) = counting();
        let _ = peer.identity.set(Identity { secret: Box::default(), cancel });
        peers.stop();
        assert_eq!((cancelled.load(Relaxed), woken.load(Relaxed)), (0, 1));
        peer.running(|| peers.stop());
        assert_eq!((cancelled.load(Relaxed), woken.load(Relaxed)), (1, 2));
        peers.watch(|| unreachable!());
    }
}
