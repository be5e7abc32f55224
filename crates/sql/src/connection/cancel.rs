//! Cancellation: a running statement is told to stop, by a client or by its deadline.
//!
//! A statement looks at its [`Switch`] as it goes over rows. One that waits for a lock hears of it from its transaction. A deadline is looked at by the statement itself; for one that waits there is a thread that looks at all deadlines every few
//! milliseconds, as long as there are connections with one.

use hotrow::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use hotrow::sync::clock::{Duration, nanoseconds};
use hotrow::sync::{Arc, Mutex, OnceLock, Weak, lock, thread};
use hotrow::{Abort, Any, Transaction};

const IDLE: u8 = 0;
const RUNNING: u8 = 1;
const CANCELLED: u8 = 2;

/// The time between two looks at the deadlines.
const WATCH_EVERY: Duration = Duration::from_millis(10);

/// The nanoseconds that a statement has to notice its deadline itself. Then its block can go back to a savepoint.
const GRACE_NS: u64 = 50_000_000;

/// The deadline of a statement that has none.
pub(super) const NEVER: u64 = u64::MAX;

/// Whether a connection's statement runs, and whether it was told to stop.
pub(super) struct Switch {
    phase: AtomicU8,
    /// The deadline in nanoseconds of the clock.
    deadline: AtomicU64,
    /// Ends the statement's transaction. Its lock is held while somebody cancels.
    transaction: Mutex<hotrow::Canceller>,
    is_watched: OnceLock<()>,
}

impl Switch {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            phase: AtomicU8::new(IDLE),
            deadline: AtomicU64::new(NEVER),
            transaction: Mutex::default(),
            is_watched: OnceLock::new(),
        })
    }

    /// True if the statement was told to stop.
    #[inline]
    pub(super) fn is_cancelled(&self) -> bool {
        // Relaxed: nothing else is read because of it.
        self.phase.load(Ordering::Relaxed) == CANCELLED
    }

    pub(super) fn begin(self: &Arc<Self>, deadline: u64) {
        if deadline != NEVER {
            self.is_watched.get_or_init(|| watch(self));
            self.deadline.store(deadline, Ordering::Relaxed);
        }
        // Relaxed: only the phase itself matters.
        self.phase.store(RUNNING, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.deadline.store(NEVER, Ordering::Relaxed);
        if self.phase.swap(IDLE, Ordering::Relaxed) == CANCELLED {
            // It is used up, and no matter of the next statement's.
            *lock(&self.transaction) = hotrow::Canceller::new();
        }
    }

    /// Lets the statement's transaction be cancelled while it waits for others.
    pub(super) fn bind(&self, tx: &mut Transaction<'_, Any>) -> Result<(), Abort> {
        tx.cancelled_by(&lock(&self.transaction))
    }

    /// True if the statement's transaction was told to end. Then it has been told when this returns.
    pub(super) fn has_told_transaction(&self) -> bool {
        self.is_cancelled() && lock(&self.transaction).is_cancelled()
    }

    fn cancel(&self) {
        let transaction = lock(&self.transaction);
        let was_running =
            self.phase.compare_exchange(RUNNING, CANCELLED, Ordering::Relaxed, Ordering::Relaxed);
        if was_running.is_ok() {
            transaction.cancel();
        }
    }
}

/// Cancels a connection's running statement from any thread.
#[derive(Clone)]
pub struct Canceller {
    pub(super) switch: Arc<Switch>,
}

impl Canceller {
    /// Makes the running statement end with 57014, and does not wait for that. Has no effect if none runs.
    ///
    /// If the statement waits for a lock, its transaction ends, a block's too.
    pub fn cancel(&self) {
        self.switch.cancel();
    }
}

impl std::fmt::Debug for Canceller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Canceller").finish_non_exhaustive()
    }
}

/// The switches with deadlines, and whether a thread watches them.
#[derive(Default)]
struct Watched {
    switches: Vec<Weak<Switch>>,
    has_thread: bool,
}

fn watched() -> &'static Mutex<Watched> {
    static WATCHED: OnceLock<Mutex<Watched>> = OnceLock::new();
    WATCHED.get_or_init(Mutex::default)
}

/// Has the deadlines of a switch watched for as long as it lives.
fn watch(switch: &Arc<Switch>) {
    let mut watched = lock(watched());
    watched.switches.push(Arc::downgrade(switch));
    if !watched.has_thread {
        let started = thread::Builder::new().name("hotrow-deadlines".to_owned()).spawn(watch_all);
        // Without the thread the deadlines are looked at by the statements alone.
        watched.has_thread = started.is_ok();
    }
}

fn watch_all() {
    loop {
        thread::sleep(WATCH_EVERY);
        let now = nanoseconds();
        let mut late = Vec::new();
        let mut watched = lock(watched());
        watched.switches.retain(|switch| match switch.upgrade() {
            Some(switch) => {
                let deadline = switch.deadline.load(Ordering::Relaxed);
                if deadline != NEVER && deadline.saturating_add(GRACE_NS) <= now {
                    late.push(switch);
                }
                true
            }
            None => false,
        });
        watched.has_thread = !watched.switches.is_empty();
        let goes_on = watched.has_thread;
        drop(watched);
        late.iter().for_each(|switch| switch.cancel());
        if !goes_on {
            return;
        }
    }
}
