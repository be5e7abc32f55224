//! Cancellation: a running statement is told to stop, by a client or by its deadline.
//!
//! A statement looks at its [`Switch`] as it goes over rows, and then ends alone: its block can go back to a savepoint. One that waits for
//! others does not look. So a thread looks at all switches every few milliseconds, as long as there are connections whose statements have
//! deadlines or were cancelled, and tells the transaction of a statement that has not noticed within the time of grace; that ends the
//! transaction.

use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::clock::{Duration, nanoseconds};
use hotrow::sync::{Arc, Mutex, OnceLock, Weak, lock, thread};
use hotrow::{Abort, Any, Transaction};

const IDLE: u64 = 0;
const RUNNING: u64 = 1;
const CANCELLED: u64 = 2;
/// The bits of a phase.
const PHASE: u64 = 3;

/// The time between two looks at the switches.
const WATCH_EVERY: Duration = Duration::from_millis(10);

/// The nanoseconds that a statement has to notice by itself that it has to stop.
const GRACE_NS: u64 = 40_000_000;

/// The deadline of a statement that has none.
pub(super) const NEVER: u64 = u64::MAX;

/// Whether a connection's statement runs, and whether it was told to stop.
pub(super) struct Switch {
    /// Four times the statement's number, and its phase.
    word: AtomicU64,
    /// The time from which on its transaction is told, in nanoseconds of the clock.
    tell_at: AtomicU64,
    /// Ends the statement's transaction. Its lock is held while somebody cancels.
    transaction: Mutex<hotrow::Canceller>,
    is_watched: OnceLock<()>,
}

impl Switch {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            word: AtomicU64::new(IDLE),
            tell_at: AtomicU64::new(NEVER),
            transaction: Mutex::default(),
            is_watched: OnceLock::new(),
        })
    }

    /// True if the statement was told to stop.
    #[inline]
    pub(super) fn is_cancelled(&self) -> bool {
        // Relaxed: nothing else is read because of it.
        self.word.load(Ordering::Relaxed) & PHASE == CANCELLED
    }

    /// Begins a statement.
    pub(super) fn begin(self: &Arc<Self>, deadline: u64) {
        self.set_deadline(deadline);
        // Only the connection's own thread begins one. Release: `watch_all` sees the deadline of the statement that it sees.
        let next = (self.word.load(Ordering::Relaxed) & !PHASE).wrapping_add(PHASE + 1);
        self.word.store(next | RUNNING, Ordering::Release);
    }

    /// Gives the running statement another deadline.
    pub(super) fn set_deadline(self: &Arc<Self>, deadline: u64) {
        if deadline != NEVER {
            self.is_watched.get_or_init(|| watch(self));
        }
        if deadline != NEVER || self.tell_at.load(Ordering::Relaxed) != NEVER {
            let _transaction = lock(&self.transaction);
            if !self.is_cancelled() {
                self.tell_at.store(deadline.saturating_add(GRACE_NS), Ordering::Relaxed);
            }
        }
    }

    /// Ends the statement. True if its transaction was told to end; the next statement's was not.
    pub(super) fn end(&self) -> bool {
        let last = self.word.fetch_and(!PHASE, Ordering::AcqRel) & PHASE;
        if last != CANCELLED {
            return false;
        }
        // Whoever has cancelled it has the lock until it has told everything.
        let mut transaction = lock(&self.transaction);
        self.tell_at.store(NEVER, Ordering::Relaxed);
        let was_told = transaction.is_cancelled();
        if was_told {
            *transaction = hotrow::Canceller::new();
        }
        was_told
    }

    /// Lets the statement's transaction be told to end while it waits for others.
    pub(super) fn bind(&self, tx: &mut Transaction<'_, Any>) -> Result<(), Abort> {
        tx.cancelled_by(&lock(&self.transaction))
    }

    fn cancel(self: &Arc<Self>) {
        self.is_watched.get_or_init(|| watch(self));
        let _transaction = lock(&self.transaction);
        let word = self.word.load(Ordering::Relaxed);
        if self.cancel_statement(word) {
            self.tell_at.store(nanoseconds().saturating_add(GRACE_NS), Ordering::Relaxed);
        }
    }

    /// Cancels the statement that had this word, if it runs still.
    fn cancel_statement(&self, word: u64) -> bool {
        let cancelled = word & !PHASE | CANCELLED;
        word & PHASE == RUNNING
            && self.word.compare_exchange(word, cancelled, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Tells the transaction of the statement that had this word, if it runs still.
    fn tell(&self, word: u64) {
        let transaction = lock(&self.transaction);
        if self.cancel_statement(word)
            || (word & PHASE == CANCELLED && self.word.load(Ordering::Acquire) == word)
        {
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
    /// It ends alone, if it notices; one that waits for others is ended with its transaction, a block's too, within a tenth of a second.
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
                // Acquire: `begin`.
                let word = switch.word.load(Ordering::Acquire);
                if word & PHASE != IDLE && switch.tell_at.load(Ordering::Relaxed) <= now {
                    late.push((switch, word));
                }
                true
            }
            None => false,
        });
        watched.has_thread = !watched.switches.is_empty();
        let goes_on = watched.has_thread;
        drop(watched);
        late.iter().for_each(|(switch, word)| switch.tell(*word));
        if !goes_on {
            return;
        }
    }
}
