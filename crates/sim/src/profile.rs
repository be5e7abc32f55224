//! The profile of a run: where virtual time goes, and which resource limits the run.
//!
//! # Accounts
//!
//! Each advance of a core's clock is booked once, under a [`Cause`] and under the label that the core has set. Bookings of an
//! attempt are kept apart until it ends; then they count as committed or as aborted. The rest happens between attempts. So
//! all bookings together are the cores' whole time within the [window](crate::Config::profile_from_ns).
//!
//! A cost inside a [wait](wait_begins) is the wait's, whatever it is: polling, parking, a mutex. A spin hint outside of
//! any wait is a wait for the line that the core accessed before it.
//!
//! # Resources
//!
//! A resource serves one core at a time: a line while it moves to a new owner, a lock while somebody holds it. Its busy
//! time, divided by the length of the run, is its utilization. No run can commit faster than at a utilization of one. So
//! the throughput, divided by the utilization, bounds what this resource admits as long as each commit uses it as long.
//!
//! # Names
//!
//! The code tells which segment it is about to access ([`touch`]), and which object's index. Lines get their
//! names from that; others are named by [`name_memory`], or by the label of their first transfer.

mod ledger;
mod names;

use std::collections::BTreeMap;

pub use crate::operations::{
    attempt_begins, attempt_ends, enter_object, hold, leave_objects, release, release_all, touch,
    wait_begins, wait_ends,
};
pub use ledger::{ByLabel, Cause};
pub use names::name_memory;

use ledger::Ledger;
use names::{Names, Owner};

/// The number of the entries of each list that a report keeps.
const LISTED: usize = 10;

/// A wait that a core is in: its kind, and the address that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) kind: &'static str,
    pub(crate) at: usize,
}

/// The state of one core.
#[derive(Debug, Default)]
struct CoreState {
    wait: Option<Wait>,
    /// The owner of the lines that the core accesses now.
    focus: Option<Focus>,
    /// The line that it accessed last.
    last_line: u64,
    /// The locks that it holds.
    held: Vec<usize>,
    attempt: Ledger,
    is_in_attempt: bool,
}

#[derive(Clone, Copy, Debug)]
enum Focus {
    Object(usize),
    Segment(usize),
}

/// A count and a sum of times.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    ps: u64,
}

impl Sum {
    fn add(&mut self, ps: u64) {
        self.count += 1;
        self.ps += ps;
    }
}

/// A lock: the number of its holders, the time since when there are any, and the time of earlier holders.
#[derive(Clone, Copy, Debug, Default)]
struct Lock {
    holders: u32,
    since_ps: u64,
    held: Sum,
}

/// The transfers of a line.
#[derive(Clone, Copy, Debug, Default)]
struct LineUse {
    stalls: Sum,
    busy_ps: u64,
}

/// The kind of the place that served an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    Private,
    Memory,
    Transfer,
}

/// The accounts of a run.
#[derive(Debug)]
pub(crate) struct Profiler {
    from_ps: u64,
    until_ps: u64,
    cores: Vec<CoreState>,
    names: Names,
    committed: Ledger,
    aborted: Ledger,
    between: Ledger,
    commits: u64,
    aborts: u64,
    /// Maps of an order that addresses do not change would be better still; but reports are sorted by time and name.
    lines: BTreeMap<u64, LineUse>,
    waits: BTreeMap<(&'static str, Owner), Sum>,
    locks: BTreeMap<usize, Lock>,
}

impl Profiler {
    pub(crate) fn new(cores: usize, from_ps: u64, until_ps: u64) -> Self {
        Self {
            from_ps,
            until_ps,
            cores: (0..cores).map(|_| CoreState::default()).collect(),
            names: Names::new(),
            committed: Ledger::default(),
            aborted: Ledger::default(),
            between: Ledger::default(),
            commits: 0,
            aborts: 0,
            lines: BTreeMap::new(),
            waits: BTreeMap::new(),
            locks: BTreeMap::new(),
        }
    }

    /// The part of a time that lies within the window.
    fn clip(&self, at: u64, ps: u64) -> u64 {
        (at + ps).min(self.until_ps).saturating_sub(at.max(self.from_ps))
    }

    /// Books a cost that a core pays from the time `at` on.
    pub(crate) fn book(&mut self, core: usize, cause: Cause, label: &'static str, at: u64, ps: u64) {
        let ps = self.clip(at, ps);
        if ps == 0 {
            return;
        }
        let state = &mut self.cores[core];
        let cause = match state.wait {
            Some(wait) => {
                let owner = self.names.owner_of(wait.at);
                self.waits.entry((wait.kind, owner)).or_default().ps += ps;
                Cause::Wait
            }
            None if cause == Cause::Wait => {
                let owner = self.names.owner_of_line(state.last_line, label);
                self.waits.entry(("spinning", owner)).or_default().add(ps);
                Cause::Wait
            }
            None => cause,
        };
        let ledger = if state.is_in_attempt { &mut state.attempt } else { &mut self.between };
        ledger.add(label, cause, ps);
    }

    /// Books an access to a line that stalls the core, and keeps the line busy for `busy`.
    #[allow(clippy::too_many_arguments, reason = "one call, in the access itself")]
    pub(crate) fn access(
        &mut self,
        core: usize,
        line: u64,
        served: Served,
        label: &'static str,
        at: u64,
        ps: u64,
        busy: u64,
    ) {
        let cause = match served {
            Served::Private => Cause::PrivateCache,
            Served::Memory => Cause::Memory,
            Served::Transfer => Cause::Transfer,
        };
        let state = &mut self.cores[core];
        state.last_line = line;
        if served != Served::Private {
            match state.focus {
                Some(Focus::Segment(address)) => self.names.own_by_segment(line, address),
                Some(Focus::Object(object)) => self.names.own_by_object(line, object),
                None => {}
            }
            if served == Served::Transfer {
                self.names.label(line, label);
                let (ps, busy) = (self.clip(at, ps), self.clip(at, busy));
                if ps != 0 {
                    let line = self.lines.entry(line).or_default();
                    line.stalls.add(ps);
                    line.busy_ps += busy;
                }
            }
        }
        self.book(core, cause, label, at, ps);
    }

    pub(crate) fn wait_begins(&mut self, core: usize, wait: Wait, at: u64) -> bool {
        let state = &mut self.cores[core];
        if state.wait.is_some() {
            return false;
        }
        state.wait = Some(wait);
        if (self.from_ps..self.until_ps).contains(&at) {
            let owner = self.names.owner_of(wait.at);
            self.waits.entry((wait.kind, owner)).or_default().count += 1;
        }
        true
    }

    pub(crate) fn wait_ends(&mut self, core: usize) {
        self.cores[core].wait = None;
    }

    pub(crate) fn attempt_begins(&mut self, core: usize) {
        let state = &mut self.cores[core];
        state.attempt.clear();
        state.is_in_attempt = true;
        state.focus = None;
    }

    pub(crate) fn attempt_ends(&mut self, core: usize, committed: bool, at: u64) {
        self.release_all(core, at);
        let counts = (self.from_ps..self.until_ps).contains(&at);
        let state = &mut self.cores[core];
        state.focus = None;
        if !std::mem::take(&mut state.is_in_attempt) {
            return;
        }
        let (ledger, count) = match committed {
            true => (&mut self.committed, &mut self.commits),
            false => (&mut self.aborted, &mut self.aborts),
        };
        *count += u64::from(counts);
        ledger.take(&mut state.attempt);
    }

    pub(crate) fn enter_object(&mut self, core: usize, object: usize) -> bool {
        self.cores[core].focus = Some(Focus::Object(object));
        self.names.knows_object(object)
    }

    pub(crate) fn leave_objects(&mut self, core: usize) {
        self.cores[core].focus = None;
    }

    pub(crate) fn name_object(&mut self, object: usize, name: String) {
        self.names.name_object(object, name);
    }

    /// Returns true if the segment has no name yet and is worth one.
    pub(crate) fn touch(&mut self, core: usize, address: usize, is_new: bool) -> bool {
        let state = &mut self.cores[core];
        let object = match state.focus {
            Some(Focus::Object(object)) => object,
            Some(Focus::Segment(before)) => self.names.object_of(before),
            None => 0,
        };
        state.focus = Some(Focus::Segment(address));
        self.names.touch(address, object, is_new);
        let line = address as u64 / crate::machine::LINE_BYTES as u64;
        self.lines.contains_key(&line) && self.names.lacks_key(address)
    }

    pub(crate) fn name_segment(&mut self, address: usize, key: String) {
        self.names.name_segment(address, key);
    }

    pub(crate) fn hold(&mut self, core: usize, address: usize, at: u64) {
        if self.cores[core].held.contains(&address) {
            return;
        }
        self.cores[core].held.push(address);
        let lock = self.locks.entry(address).or_default();
        if lock.holders == 0 {
            lock.since_ps = at;
        }
        lock.holders += 1;
    }

    pub(crate) fn release(&mut self, core: usize, address: usize, at: u64) {
        let held = &mut self.cores[core].held;
        if let Some(position) = held.iter().position(|held| *held == address) {
            held.swap_remove(position);
            self.released(address, at);
        }
    }

    pub(crate) fn release_all(&mut self, core: usize, at: u64) {
        while let Some(address) = self.cores[core].held.pop() {
            self.released(address, at);
        }
    }

    fn released(&mut self, address: usize, at: u64) {
        let (from_ps, until_ps) = (self.from_ps, self.until_ps);
        let lock = self.locks.get_mut(&address).expect("a lock that is held was taken");
        lock.holders -= 1;
        if lock.holders == 0 {
            // The clocks of the cores differ a little.
            let held = at.min(until_ps).saturating_sub(lock.since_ps.max(from_ps));
            if held != 0 {
                lock.held.add(held);
            }
        }
    }

    /// Closes the accounts.
    pub(crate) fn report(mut self) -> ProfileReport {
        for core in 0..self.cores.len() {
            self.attempt_ends(core, false, self.until_ps);
        }
        let elapsed_ps = self.until_ps.saturating_sub(self.from_ps);
        let Self { names, .. } = &self;
        let mut waits: BTreeMap<(&'static str, String), Sum> = BTreeMap::new();
        for ((kind, owner), sum) in &self.waits {
            let total = waits.entry((kind, names.name(*owner))).or_default();
            total.count += sum.count;
            total.ps += sum.ps;
        }
        let waits = waits.into_iter().map(|((kind, on), sum)| WaitShare {
            kind,
            on,
            count: sum.count,
            ns: sum.ps / 1000,
        });
        let mut lines: BTreeMap<String, LineShare> = BTreeMap::new();
        for (line, used) in &self.lines {
            let name = names.name(names.owner_of_known_line(*line));
            let total = lines.entry(name.clone()).or_insert(LineShare {
                on: name,
                lines: 0,
                transfers: 0,
                ns: 0,
                busy_ns_max: 0,
            });
            total.lines += 1;
            total.transfers += used.stalls.count;
            total.ns += used.stalls.ps / 1000;
            total.busy_ns_max = total.busy_ns_max.max(used.busy_ps / 1000);
        }
        let mut resources: Vec<Resource> = Vec::new();
        for (address, lock) in &self.locks {
            let (uses, busy_ns) = (lock.held.count, lock.held.ps / 1000);
            if busy_ns != 0 {
                let on = names.name(names.owner_of_segment(*address));
                resources.push(Resource { kind: ResourceKind::Lock, on, uses, busy_ns });
            }
        }
        for (line, used) in &self.lines {
            let (uses, busy_ns) = (used.stalls.count, used.busy_ps / 1000);
            if busy_ns != 0 {
                let on = names.name(names.owner_of_known_line(*line));
                resources.push(Resource { kind: ResourceKind::Line, on, uses, busy_ns });
            }
        }
        ProfileReport {
            cores: self.cores.len(),
            elapsed_ns: elapsed_ps / 1000,
            commits: self.commits,
            aborts: self.aborts,
            committed: self.committed.by_label(),
            aborted: self.aborted.by_label(),
            between: self.between.by_label(),
            waits: largest(waits.collect(), |wait| (wait.ns, wait.on.clone())),
            lines: largest(lines.into_values().collect(), |line| (line.ns, line.on.clone())),
            resources: largest(resources, |resource| (resource.busy_ns, resource.on.clone())),
        }
    }
}

/// The entries with the largest times, the largest first; equal ones by name.
fn largest<T>(mut entries: Vec<T>, key: impl Fn(&T) -> (u64, String)) -> Vec<T> {
    entries.sort_by_cached_key(|entry| {
        let (time, name) = key(entry);
        (std::cmp::Reverse(time), name)
    });
    entries.truncate(LISTED);
    entries
}

/// The profile of a run: where the cores' time went.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProfileReport {
    /// The number of cores.
    pub cores: usize,
    /// The length of the window, in virtual nanoseconds. All times below add up to this, times the number of cores.
    pub elapsed_ns: u64,
    /// The number of attempts that committed within the window.
    pub commits: u64,
    /// The number of attempts that ended otherwise.
    pub aborts: u64,
    /// The time of attempts that committed, by label.
    pub committed: Vec<ByLabel>,
    /// The time of attempts that did not, or were still in progress at the end, by label.
    pub aborted: Vec<ByLabel>,
    /// The time between attempts, by label.
    pub between: Vec<ByLabel>,
    /// The waits that took longest, attempts of both kinds included.
    pub waits: Vec<WaitShare>,
    /// The lines whose transfers took longest, those of one name together.
    pub lines: Vec<LineShare>,
    /// The resources that were busy longest.
    pub resources: Vec<Resource>,
}

/// The waits of one kind for one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitShare {
    /// The kind of wait.
    pub kind: &'static str,
    /// The thing that was waited for.
    pub on: String,
    /// The number of waits.
    pub count: u64,
    /// Their time, over all cores, in virtual nanoseconds.
    pub ns: u64,
}

/// The transfers of the lines of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LineShare {
    /// The owner of the lines.
    pub on: String,
    /// The number of lines.
    pub lines: usize,
    /// The number of transfers.
    pub transfers: u64,
    /// The time for which they stalled cores, in virtual nanoseconds.
    pub ns: u64,
    /// The time for which the busiest of the lines was moving or being changed by who had fetched it.
    pub busy_ns_max: u64,
}

/// The kind of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourceKind {
    /// A segment, while a protocol has it locked.
    Lock,
    /// A line, while it moves.
    Line,
}

/// A resource that serves one core at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resource {
    /// The kind of the resource.
    pub kind: ResourceKind,
    /// The segment, or the owner of the line.
    pub on: String,
    /// How often it was used.
    pub uses: u64,
    /// The time for which it was busy, in virtual nanoseconds.
    pub busy_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AccessKind, Config, Machine, Simulation, access, label, now, work};
    use std::cell::Cell;

    fn profiled(cores: usize, body: impl Fn(usize)) -> ProfileReport {
        let mut config = Config::new(Machine::named("drp").unwrap(), cores);
        (config.profile_from_ns, config.until_ns) = (Some(0), Some(1_000_000));
        Simulation::new(config).unwrap().run(body).profile.expect("asked for")
    }

    fn sum(labels: &[ByLabel], cause: Cause) -> u64 {
        labels.iter().map(|label| label.of(cause)).sum()
    }

    #[test]
    fn time_is_booked_by_the_end_of_its_attempt() {
        let report = profiled(1, |_| {
            for (committed, units) in [(true, 1_000), (false, 200)] {
                attempt_begins();
                label("body");
                work(units);
                attempt_ends(committed);
            }
            work(30);
        });
        assert_eq!((report.commits, report.aborts), (1, 1));
        let [committed, aborted, between] =
            [&report.committed, &report.aborted, &report.between].map(|labels| sum(labels, Cause::Work));
        assert!(committed > 4 * aborted && aborted > 6 * between && between > 0, "{report:?}");
        assert_eq!(report.committed[0].label, "body");
    }

    #[test]
    fn a_transferred_line_gets_the_name_of_its_segment_and_a_wait_that_of_what_it_is_for() {
        let words = [Cell::new(0_u64), Cell::new(0)];
        let address = words.as_ptr().addr();
        let report = profiled(2, |core| {
            for _ in 0..100 {
                enter_object(7, || String::from("accounts"));
                touch(address, false, || String::from("a0"));
                access(address, 8, AccessKind::ReadModifyWrite);
                if core == 1 {
                    assert!(wait_begins("its lock", address));
                    assert!(!wait_begins("another", 0), "a wait inside a wait is a part of it");
                    work(10);
                    wait_ends();
                }
            }
        });
        assert_eq!(report.lines.len(), 1, "{report:?}");
        assert_eq!(report.lines[0].on, "accounts a0");
        assert!(report.lines[0].transfers > 100, "{report:?}");
        let [wait] = &report.waits[..] else { panic!("{report:?}") };
        assert_eq!((wait.kind, &*wait.on, wait.count), ("its lock", "accounts a0", 100));
        assert_eq!(report.resources[0].kind, ResourceKind::Line);
    }

    #[test]
    fn a_lock_is_busy_while_anybody_holds_it() {
        let held = Cell::new(0);
        let report = profiled(1, |_| {
            work(50);
            hold(64);
            let since = now();
            work(1_000);
            held.set(now() - since);
            release(64);
            release(64);
            work(1_000);
        });
        let [lock] = &report.resources[..] else { panic!("{report:?}") };
        assert_eq!((lock.kind, lock.uses), (ResourceKind::Lock, 1));
        assert!((held.get()..held.get() + 100).contains(&lock.busy_ns), "{lock:?} {}", held.get());
    }
}
