//! A store with the faults of networks and of stores that are far away.

use crate::store::{
    At, Commit, Freshness, Hold, Limits, Outcome, Page, Read, Span, Store, StoreError, Version,
};
use hotrow_sync::clock::{Duration, Instant, now};
use hotrow_sync::random::Random;
use hotrow_sync::{Arc, Mutex, lock, thread};
use std::collections::{BTreeMap, VecDeque};

/// Probabilities of faults, 0 to 1, for each call that can have them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Faults {
    /// A call is delayed before it reaches the store, and again before its answer arrives.
    pub delay: f64,
    /// The longest delay.
    pub delay_max: Duration,
    /// A read, a watch or a hold does not reach the store.
    pub lost_read: f64,
    /// A commit does not reach the store, and the client knows it.
    pub refused_commit: f64,
    /// A commit does not reach the store, and the client does not know.
    pub lost_commit: f64,
    /// A commit reaches the store, and its answer does not reach the client.
    pub lost_reply: f64,
    /// A commit reaches the store after its client has given up: with one of the next calls of any client.
    pub late_commit: f64,
    /// A part of a range has fewer keys than were asked for.
    pub short_page: f64,
    /// A version that may be old is old.
    pub old_version: f64,
    /// All states before the newest are forgotten, as far as none is held.
    pub compaction: f64,
}

impl Faults {
    /// Everything at once, often: for tests.
    pub fn wild() -> Self {
        Self {
            delay: 0.1,
            delay_max: Duration::from_micros(300),
            lost_read: 0.02,
            refused_commit: 0.02,
            lost_commit: 0.05,
            lost_reply: 0.05,
            late_commit: 0.05,
            short_page: 0.5,
            old_version: 0.5,
            compaction: 0.01,
        }
    }
}

/// A fault of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitFault {
    /// None.
    None,
    /// It does not reach the store, and the client knows it.
    Refused,
    /// It does not reach the store, and the client does not know.
    Lost,
    /// It reaches the store, and the client does not know.
    LostReply,
    /// It reaches the store later, and the client does not know.
    Late,
}

/// A store around another one, which does what the contract of [`Store`] allows at the worst.
///
/// The same seed and the same calls, one after the other, give the same faults.
#[derive(Debug)]
pub struct FaultyStore<S> {
    inner: S,
    faults: Faults,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    random: Random,
    /// Commits that are still on their way.
    late: Vec<Commit>,
    /// Faults of the next commits.
    planned: VecDeque<CommitFault>,
    /// Versions that were the newest once.
    seen: Vec<Version>,
    /// The lowest version that can be read.
    oldest: Version,
    held: BTreeMap<Version, usize>,
    /// The number of calls that still reach the store, if not all do.
    calls_left: Option<u64>,
    counts: FaultCounts,
}

/// Numbers of faults that have happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultCounts {
    /// Calls, those that were lost included.
    pub calls: u64,
    /// Reads that were lost.
    pub lost_reads: u64,
    /// Commits of which the client does not know the outcome.
    pub unknown_commits: u64,
    /// Of these, commits that were applied when nobody waited for them any more.
    pub late_commits: u64,
    /// Versions that were old.
    pub old_versions: u64,
    /// Compactions.
    pub compactions: u64,
}

impl<S: Store> FaultyStore<S> {
    /// A store with these faults, drawn from a seed.
    pub fn new(inner: S, seed: u64, faults: Faults) -> Self {
        let state = State {
            random: Random::seeded(seed),
            late: Vec::new(),
            planned: VecDeque::new(),
            seen: Vec::new(),
            oldest: 0,
            held: BTreeMap::new(),
            calls_left: None,
            counts: FaultCounts::default(),
        };
        Self { inner, faults, state: Arc::new(Mutex::new(state)) }
    }

    /// The store without faults.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// The numbers of faults so far.
    pub fn counts(&self) -> FaultCounts {
        lock(&self.state).counts
    }

    fn happens(&self, probability: f64) -> bool {
        probability > 0.0 && lock(&self.state).random.chance(probability)
    }

    fn delay(&self) {
        let longest = hotrow_sync::clock::whole_nanoseconds(self.faults.delay_max);
        if self.happens(self.faults.delay) && longest > 0 {
            let time = lock(&self.state).random.between(1, longest);
            thread::sleep(Duration::from_nanos(time));
        }
    }

    /// Plans the faults of the next commits, one for each, in place of those that are drawn.
    pub fn plan(&self, faults: impl IntoIterator<Item = CommitFault>) {
        lock(&self.state).planned.extend(faults);
    }

    /// Lets so many more calls reach the store, or all, if there is no number.
    pub fn end_after(&self, calls: Option<u64>) {
        lock(&self.state).calls_left = calls;
    }

    /// True if the next call reaches the store.
    fn goes_on(&self) -> bool {
        match &mut lock(&self.state).calls_left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    /// Forgets the faults that were planned.
    pub fn forget_plan(&self) {
        lock(&self.state).planned.clear();
    }

    /// Lets all commits arrive that are still on their way. Returns the number of those that were applied.
    pub fn deliver(&self) -> usize {
        let late = std::mem::take(&mut lock(&self.state).late);
        late.into_iter().filter(|commit| self.arrive(commit)).count()
    }

    /// Applies a late commit, if its conditions hold.
    fn arrive(&self, commit: &Commit) -> bool {
        let outcome = self.inner.commit(commit, now() + Duration::from_secs(5));
        let is_applied = matches!(outcome, Ok(Outcome::Committed(_)));
        lock(&self.state).counts.late_commits += u64::from(is_applied);
        is_applied
    }

    /// The way of a call to the store: a delay, and others' commits that arrive before.
    fn travel(&self) {
        lock(&self.state).counts.calls += 1;
        self.delay();
        let arriving = {
            let state = &mut *lock(&self.state);
            if state.late.is_empty() || self.faults.late_commit == 0.0 || !state.random.chance(0.3) {
                None
            } else {
                let chosen = state.random.below(state.late.len() as u64) as usize;
                Some(state.late.swap_remove(chosen))
            }
        };
        if let Some(commit) = arriving {
            self.arrive(&commit);
        }
    }

    /// The fault of the next commit.
    fn commit_fault(&self) -> CommitFault {
        let state = &mut *lock(&self.state);
        if let Some(planned) = state.planned.pop_front() {
            return planned;
        }
        let faults = [
            (self.faults.refused_commit, CommitFault::Refused),
            (self.faults.lost_commit, CommitFault::Lost),
            (self.faults.late_commit, CommitFault::Late),
            (self.faults.lost_reply, CommitFault::LostReply),
        ];
        let drawn = faults
            .into_iter()
            .find(|(probability, _)| *probability > 0.0 && state.random.chance(*probability));
        drawn.map_or(CommitFault::None, |(_, fault)| fault)
    }

    fn read(&self) -> Result<(), StoreError> {
        self.travel();
        if !self.goes_on() || self.happens(self.faults.lost_read) {
            lock(&self.state).counts.lost_reads += 1;
            return Err(lost());
        }
        Ok(())
    }

    /// Notes a version that is, or was, the newest.
    fn note(&self, version: Version) {
        let state = &mut *lock(&self.state);
        if state.seen.len() < 64 {
            state.seen.push(version);
        } else {
            let place = state.random.below(64) as usize;
            state.seen[place] = version;
        }
        if self.faults.compaction > 0.0 && state.random.chance(self.faults.compaction) {
            let held = state.held.keys().next().copied().unwrap_or(Version::MAX);
            let oldest = version.min(held);
            state.counts.compactions += u64::from(oldest > state.oldest);
            state.oldest = state.oldest.max(oldest);
        }
    }

    fn is_kept(&self, at: At) -> Result<(), StoreError> {
        match at {
            At::Version(version) if version < lock(&self.state).oldest => {
                Err(StoreError::Compacted { version })
            }
            _ => Ok(()),
        }
    }
}

fn lost() -> StoreError {
    StoreError::Unreachable { reason: "injected fault".to_owned() }
}

fn unknown() -> StoreError {
    StoreError::Unknown { reason: "injected fault".to_owned() }
}

impl<S: Store> Store for FaultyStore<S> {
    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn read_version(&self, freshness: Freshness, deadline: Instant) -> Result<Version, StoreError> {
        self.read()?;
        let version = self.inner.read_version(freshness, deadline)?;
        self.note(version);
        if freshness == Freshness::Any && self.happens(self.faults.old_version) {
            let state = &mut *lock(&self.state);
            let chosen = state.random.below(state.seen.len() as u64) as usize;
            state.counts.old_versions += u64::from(state.seen[chosen] < version);
            return Ok(state.seen[chosen]);
        }
        self.delay();
        Ok(version)
    }

    fn get_many(&self, keys: &[Vec<u8>], at: At, deadline: Instant) -> Result<Read, StoreError> {
        self.read()?;
        self.is_kept(at)?;
        let read = self.inner.get_many(keys, at, deadline)?;
        if at == At::Newest {
            self.note(read.version);
        }
        self.delay();
        Ok(read)
    }

    fn range(&self, span: &Span, at: At, limit: usize, deadline: Instant) -> Result<Page, StoreError> {
        self.read()?;
        self.is_kept(at)?;
        let limit = match self.happens(self.faults.short_page) {
            true => lock(&self.state).random.between(1, limit.clamp(1, 5) as u64) as usize,
            false => limit,
        };
        let page = self.inner.range(span, at, limit, deadline)?;
        if at == At::Newest {
            self.note(page.version);
        }
        self.delay();
        Ok(page)
    }

    fn commit(&self, commit: &Commit, deadline: Instant) -> Result<Outcome, StoreError> {
        self.travel();
        self.limits().check(commit).map_err(|reason| StoreError::Refused { reason })?;
        let fault = if self.goes_on() { self.commit_fault() } else { CommitFault::Lost };
        if matches!(fault, CommitFault::Lost | CommitFault::Late | CommitFault::LostReply) {
            lock(&self.state).counts.unknown_commits += 1;
        }
        match fault {
            CommitFault::Refused => return Err(lost()),
            CommitFault::Lost => return Err(unknown()),
            CommitFault::Late => {
                lock(&self.state).late.push(commit.clone());
                return Err(unknown());
            }
            CommitFault::None | CommitFault::LostReply => {}
        }
        let outcome = self.inner.commit(commit, deadline)?;
        if let Outcome::Committed(version) = outcome {
            self.note(version);
        }
        if fault == CommitFault::LostReply {
            return Err(unknown());
        }
        self.delay();
        Ok(outcome)
    }

    fn watch(
        &self,
        keys: &[Vec<u8>],
        spans: &[Span],
        from: Version,
        deadline: Instant,
    ) -> Result<Option<Version>, StoreError> {
        self.read()?;
        self.is_kept(At::Version(from))?;
        self.inner.watch(keys, spans, from, deadline)
    }

    fn hold(&self, at: Version, deadline: Instant) -> Result<Hold, StoreError> {
        self.read()?;
        let inner = self.inner.hold(at, deadline)?;
        {
            let state = &mut *lock(&self.state);
            if at < state.oldest {
                return Err(StoreError::Compacted { version: at });
            }
            *state.held.entry(at).or_default() += 1;
        }
        let state = Arc::clone(&self.state);
        Ok(Hold::new(at, move || {
            drop(inner);
            let state = &mut *lock(&state);
            if let Some(count) = state.held.get_mut(&at) {
                *count -= 1;
                if *count == 0 {
                    state.held.remove(&at);
                }
            }
        }))
    }
}
