//! The registry of holders, and the looks of threads at it.

use super::limit::{MemoryLimit, NO_LIMIT};
use super::tally::totals;
use super::{HolderKind, MemoryHolder};
use crate::memory::identity::EngineId;
use crossbeam_utils::CachePadded;
use hotrow_sync::atomic::instrument::{AtomicBool, AtomicU64, Ordering};
use hotrow_sync::event::Event;
use hotrow_sync::instrument::{Mutex, MutexGuard, lock};
use hotrow_sync::{Arc, clock, thread};
use std::time::Duration;

/// One worker's entry in the registry: the attempt that may hold memory.
#[derive(Debug)]
pub(crate) struct Holder {
    /// For an open attempt: bit 0, 23 bits of its number, and 40 bits of a serial number, new for each attempt that this holder shows.
    /// Otherwise 0.
    word: AtomicU64,
    /// The number of attempts that it has shown.
    serial: AtomicU64,
    /// The word of the attempt that was told to end; 0 for none. It may be an earlier attempt's.
    told: AtomicU64,
    /// The word of the attempt that was cancelled, and so told to end; 0 for none.
    cancelled: AtomicU64,
    /// The name of the thread that began the attempt.
    thread: Mutex<String>,
}

const OPEN: u64 = 1;
const NUMBER: u64 = (1 << 23) - 1;
const SERIAL: u64 = 1 << 24;

/// Stands for attempts that are never shown, and never opened.
pub(crate) static NOBODY: Holder = Holder::new();

impl Holder {
    const fn new() -> Self {
        let [word, serial, told, cancelled] = [const { AtomicU64::new(0) }; 4];
        Self { word, serial, told, cancelled, thread: Mutex::new(String::new()) }
    }

    /// Shows an attempt as open.
    #[inline(always)]
    pub(crate) fn begin(&self, number: u32) {
        // Relaxed throughout: no other memory depends on the words, and only the owner counts.
        let serial = self.serial.load(Ordering::Relaxed).wrapping_add(1);
        self.serial.store(serial, Ordering::Relaxed);
        let number = (u64::from(number) & NUMBER) << 1;
        self.word.store(serial.wrapping_mul(SERIAL) | number | OPEN, Ordering::Relaxed);
    }

    /// Shows no attempt.
    #[inline(always)]
    pub(crate) fn end(&self) {
        self.word.store(0, Ordering::Relaxed);
    }

    /// True if the open attempt was told to end.
    #[inline(always)]
    pub(crate) fn is_told(&self) -> bool {
        let told = self.told.load(Ordering::Relaxed);
        told != 0 && told == self.word.load(Ordering::Relaxed)
    }

    /// The word of the open attempt.
    pub(crate) fn word(&self) -> u64 {
        self.word.load(Ordering::Relaxed)
    }

    /// Tells the attempt that has this word to end, if it is still open.
    #[cold]
    pub(crate) fn cancel(&self, word: u64) {
        // Under the lock: the flag that makes attempts look is changed by looks only, and no later attempt was told before this look.
        let mut registry = lock(&REGISTRY);
        if self.word() != word {
            return;
        }
        self.cancelled.store(word, Ordering::Relaxed);
        self.told.store(word, Ordering::Relaxed);
        registry.look();
        let mine = registry.entries.iter().find(|entry| std::ptr::eq(entry.holder, self));
        let idles_at = mine.and_then(|entry| entry.idles_at.clone());
        // Whoever wakes and ends looks at the registry, and frees nothing if somebody else does.
        drop(registry);
        if let Some(event) = idles_at {
            event.notify_all();
        }
    }

    /// True if the open attempt was cancelled.
    fn is_cancelled(&self) -> bool {
        let cancelled = self.cancelled.load(Ordering::Relaxed);
        cancelled != 0 && cancelled == self.word.load(Ordering::Relaxed)
    }

    /// Notes the calling thread's name.
    #[cold]
    pub(crate) fn name_thread(&self) {
        *lock(&self.thread) = thread::name();
    }
}

/// A holder, and the last observation of it.
struct Entry {
    holder: &'static Holder,
    engine: EngineId,
    kind: HolderKind,
    /// The event at which a session's thread waits for the next statement.
    idles_at: Option<Arc<Event>>,
    seen: u64,
    seen_at_ns: u64,
    /// Bytes that had been retired when the word was first seen.
    retired_before: u64,
}

struct Registry {
    entries: Vec<Entry>,
    /// Holders that can be used again.
    free: Vec<&'static Holder>,
    /// The limits of engines that have one.
    limits: Vec<(EngineId, u64)>,
}

static REGISTRY: Mutex<Registry> =
    Mutex::new(Registry { entries: Vec::new(), free: Vec::new(), limits: Vec::new() });

/// Flags that transactions read when they begin and at each operation. They hardly ever change.
#[derive(Debug)]
pub(super) struct Pressure {
    /// True if more was retained at the last look than some engine's limit.
    pub(super) is_over: AtomicBool,
    /// True if some open attempt was told to end at the last look. All operations then check if it is theirs.
    is_told: AtomicBool,
    /// True if some open attempt was told to end, or was seen to retain much. Those that end then look again.
    is_noticed: AtomicBool,
    /// The lowest limit of an engine; [`NO_LIMIT`] if none has one.
    bytes_max: AtomicU64,
}

pub(super) static PRESSURE: CachePadded<Pressure> = CachePadded::new(Pressure {
    is_over: AtomicBool::new(false),
    is_told: AtomicBool::new(false),
    is_noticed: AtomicBool::new(false),
    bytes_max: AtomicU64::new(NO_LIMIT),
});

/// True if some open attempt was told to end.
#[inline(always)]
pub(crate) fn is_anybody_told() -> bool {
    PRESSURE.is_told.load(Ordering::Relaxed)
}

/// True if some open attempt was told to end, or was seen to retain much.
#[inline(always)]
pub(crate) fn is_anybody_noticed() -> bool {
    PRESSURE.is_noticed.load(Ordering::Relaxed)
}

/// The bytes from which on a holder that ends collects what it has retained.
const KEPT_MIN: u64 = 1 << 20;

/// The time of the last look.
static LOOKED_AT_NS: CachePadded<AtomicU64> = CachePadded::new(AtomicU64::new(0));

/// The bytes that were retained at the last look.
static RETAINED_SEEN: CachePadded<AtomicU64> = CachePadded::new(AtomicU64::new(0));

/// True if this many bytes or more were retained at the last look.
pub(crate) fn was_seen_to_retain(bytes: u64) -> bool {
    RETAINED_SEEN.load(Ordering::Relaxed) >= bytes
}

/// The shortest time between two looks while no engine has a limit.
const LOOK_EVERY_NS: u64 = 5_000_000;

/// A holder first seen this long ago is open because its transaction takes long, and not because its thread does not
/// run.
const LONG_NS: u64 = 100_000_000;

/// Registers a new holder.
pub(crate) fn register(engine: EngineId, kind: HolderKind) -> &'static Holder {
    let mut registry = lock(&REGISTRY);
    let holder = registry.free.pop().unwrap_or_else(|| {
        let holder: &'static Holder = Box::leak(Box::new(CachePadded::new(Holder::new())));
        holder
    });
    let idles_at = None;
    registry.entries.push(Entry {
        holder,
        engine,
        kind,
        idles_at,
        seen: 0,
        seen_at_ns: 0,
        retired_before: 0,
    });
    holder
}

/// Registers a new holder for the owner of this one, which stays as it is.
#[cold]
pub(crate) fn replace(holder: &'static Holder) -> &'static Holder {
    let registry = lock(&REGISTRY);
    let entry = registry.entries.iter().find(|entry| std::ptr::eq(entry.holder, holder));
    let (engine, kind) = entry.map(|entry| (entry.engine, entry.kind.clone())).expect("it is in use");
    drop(registry);
    register(engine, kind)
}

/// Makes a holder that of a session. If it is told to end while the session idles, its thread is woken.
pub(crate) fn make_session(holder: &'static Holder, kind: HolderKind, idles_at: Arc<Event>) {
    let mut registry = lock(&REGISTRY);
    if let Some(entry) = registry.entries.iter_mut().find(|entry| std::ptr::eq(entry.holder, holder)) {
        entry.kind = kind;
        entry.idles_at = Some(idles_at);
    }
}

/// Unregisters a holder that is not open.
pub(crate) fn release(holder: &'static Holder) {
    // INVARIANT 22: A holder is released only when no attempt of it is open.
    debug_assert_eq!(holder.word.load(Ordering::Relaxed) & OPEN, 0, "it has ended");
    let mut registry = lock(&REGISTRY);
    if let Some(at) = registry.entries.iter().position(|entry| std::ptr::eq(entry.holder, holder)) {
        registry.entries.swap_remove(at);
        registry.free.push(holder);
    }
}

/// Sets an engine's limit, or removes it.
pub(super) fn set_limit(engine: EngineId, bytes_max: u64) {
    let mut registry = lock(&REGISTRY);
    registry.limits.retain(|(limited, _)| *limited != engine);
    if bytes_max != NO_LIMIT {
        registry.limits.push((engine, bytes_max));
    }
    let lowest = registry.limits.iter().map(|(_, bytes_max)| *bytes_max).min();
    PRESSURE.bytes_max.store(lowest.unwrap_or(NO_LIMIT), Ordering::Relaxed);
    registry.look();
}

/// Looks, if it is time; for threads that have just asked for a collection.
pub(crate) fn watch() {
    if cfg!(loom) || thread::is_simulated() {
        return;
    }
    let bytes_max = PRESSURE.bytes_max.load(Ordering::Relaxed);
    if bytes_max == NO_LIMIT {
        let now_ns = clock::nanoseconds();
        if now_ns.saturating_sub(LOOKED_AT_NS.load(Ordering::Relaxed)) < LOOK_EVERY_NS {
            return;
        }
    }
    drop(try_look());
}

/// Looks, unless another thread does. That thread may not be running, having seen too little: so transactions that begin now must wait
/// for it if too much is retained.
fn try_look() -> Option<(MutexGuard<'static, Registry>, Look)> {
    if let Ok(mut registry) = REGISTRY.try_lock() {
        let look = registry.look();
        return Some((registry, look));
    }
    if totals().retained() > PRESSURE.bytes_max.load(Ordering::Relaxed) {
        PRESSURE.is_over.store(true, Ordering::Relaxed);
    }
    None
}

/// Looks. True if this many bytes are retained and the oldest holder was first seen only a moment ago: its thread may
/// not be running because others are.
pub(crate) fn is_worth_yielding(bytes: u64) -> bool {
    if cfg!(loom) || thread::is_simulated() {
        return false;
    }
    let Some((registry, look)) = try_look() else { return false };
    let oldest = registry.oldest().map_or(0, |oldest| look.now_ns.saturating_sub(oldest.seen_at_ns));
    look.retained >= bytes && oldest < LONG_NS
}

/// Looks again, for an attempt or a walk that has just ended and unpinned: the attempt that was told to end may have ended. If this one was
/// seen to retain much, its memory is freed, which may run users' code.
#[cold]
pub(crate) fn after_holder(holder: &'static Holder) {
    // A simulation must not depend on memory that others of the process retain.
    if thread::is_simulated() && !is_anybody_told() {
        return;
    }
    let Ok(mut registry) = REGISTRY.try_lock() else { return };
    let before = registry.entries.iter().find(|entry| std::ptr::eq(entry.holder, holder));
    let (seen, retired_before) = before.map_or((0, 0), |entry| (entry.seen, entry.retired_before));
    let look = registry.look();
    drop(registry);
    if seen & OPEN != 0 && look.retired.saturating_sub(retired_before) >= KEPT_MIN {
        super::collect();
    }
}

/// Returns the retained bytes, and the open holders, the oldest first.
pub(super) fn report() -> (u64, Vec<MemoryHolder>) {
    let mut registry = lock(&REGISTRY);
    let look = registry.look();
    let mut open: Vec<&Entry> = registry.entries.iter().filter(|entry| entry.is_open()).collect();
    open.sort_by_key(|entry| entry.seen_at_ns);
    (look.retained, open.into_iter().map(|entry| entry.describe(look)).collect())
}

/// The cause for which an open attempt was told to end.
#[derive(Debug)]
pub(crate) enum Told {
    /// It retained too much memory.
    MemoryLimit(Box<MemoryLimit>),
    /// Somebody has cancelled it: it is the transaction of the session with this name.
    Cancelled { session: String },
}

/// Returns the cause for which an open attempt was told to end.
#[cold]
pub(crate) fn told_cause(holder: &'static Holder) -> Told {
    // A cancellation in progress holds the lock.
    let registry = lock(&REGISTRY);
    if !holder.is_cancelled() {
        drop(registry);
        return Told::MemoryLimit(told_error(holder));
    }
    let mine = registry.entries.iter().find(|entry| std::ptr::eq(entry.holder, holder));
    let session = match mine.map(|entry| &entry.kind) {
        Some(HolderKind::Session { name, .. }) => name.clone(),
        _ => String::new(),
    };
    Told::Cancelled { session }
}

/// The error of an open transaction or walk that was told to end because it retained too much memory.
#[cold]
pub(crate) fn told_error(holder: &'static Holder) -> Box<MemoryLimit> {
    let mut registry = lock(&REGISTRY);
    let look = registry.look();
    let mine = registry.entries.iter().find(|entry| std::ptr::eq(entry.holder, holder));
    Box::new(MemoryLimit {
        retained_bytes: look.retained,
        // The limit may have been removed meanwhile.
        retained_bytes_max: mine.and_then(|entry| registry.limit_of(entry)).unwrap_or(NO_LIMIT),
        was_told: true,
        oldest: mine.map(|entry| entry.describe(look)),
    })
}

/// The result of one look at the registry and the sums.
#[derive(Clone, Copy)]
struct Look {
    now_ns: u64,
    retired: u64,
    retained: u64,
}

impl Registry {
    /// Notes new words of holders, and tells the oldest to end if it retains too much.
    fn look(&mut self) -> Look {
        let totals = totals();
        let look =
            Look { now_ns: clock::nanoseconds(), retired: totals.retired, retained: totals.retained() };
        for entry in &mut self.entries {
            let word = entry.holder.word.load(Ordering::Relaxed);
            if word != entry.seen {
                entry.seen = word;
                entry.seen_at_ns = look.now_ns;
                entry.retired_before = look.retired;
            }
        }
        let is_over = self.limits.iter().any(|(_, bytes_max)| look.retained > *bytes_max);
        let is_cancelled = self.entries.iter().any(|entry| entry.holder.is_cancelled());
        let is_told = is_over && self.tell_oldest(look) || is_cancelled;
        let keeps_much = |entry: &Entry| entry.is_open() && entry.kept_bytes(look) >= KEPT_MIN;
        let is_noticed = is_told || self.entries.iter().any(keeps_much);
        let flags =
            [(&PRESSURE.is_over, is_over), (&PRESSURE.is_told, is_told), (&PRESSURE.is_noticed, is_noticed)];
        for (word, now) in flags {
            // Most of the time nothing changes, and all threads read it.
            if word.load(Ordering::Relaxed) != now {
                word.store(now, Ordering::Relaxed);
            }
        }
        LOOKED_AT_NS.store(look.now_ns, Ordering::Relaxed);
        RETAINED_SEEN.store(look.retained, Ordering::Relaxed);
        look
    }

    fn oldest(&self) -> Option<&Entry> {
        let open = self.entries.iter().filter(|entry| entry.is_open());
        open.min_by_key(|entry| entry.seen_at_ns)
    }

    /// The limit of a holder's engine.
    fn limit_of(&self, entry: &Entry) -> Option<u64> {
        let limit = self.limits.iter().find(|(engine, _)| *engine == entry.engine);
        limit.map(|(_, bytes_max)| *bytes_max)
    }

    /// Tells the oldest to end if it retains too much. True if it was told.
    fn tell_oldest(&self, look: Look) -> bool {
        let Some(oldest) = self.oldest() else { return false };
        if let Some(bytes_max) = self.limit_of(oldest)
            && look.retained > bytes_max
            && oldest.kept_bytes(look) >= bytes_max / 2
        {
            oldest.holder.told.store(oldest.seen, Ordering::Relaxed);
            if let Some(event) = &oldest.idles_at {
                event.notify_all();
            }
            return true;
        }
        false
    }
}

impl Entry {
    fn is_open(&self) -> bool {
        self.seen & OPEN != 0
    }

    fn kept_bytes(&self, look: Look) -> u64 {
        look.retired.saturating_sub(self.retired_before)
    }

    fn describe(&self, look: Look) -> MemoryHolder {
        let mut kind = self.kind.clone();
        if let HolderKind::Transaction { attempt, .. } = &mut kind {
            *attempt = (self.seen >> 1 & NUMBER) as u32;
        }
        MemoryHolder {
            engine: self.engine,
            kind,
            thread: lock(&self.holder.thread).clone(),
            open_for: Duration::from_nanos(look.now_ns.saturating_sub(self.seen_at_ns)),
            kept_bytes: self.kept_bytes(look),
        }
    }
}
