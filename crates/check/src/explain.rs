//! Explanation of cycles: turns cycles of the graph into anomalies with names and reasons.
//!
//! The graph's edges do not hold the keys that they come from. So the events of the attempts in cycles, which are
//! few, are decoded once more to look up each edge's reasons. All reasons are needed, because the name may depend
//! on whether all edges come from one key.

use crate::attempts::{Attempts, key_name, walk};
use crate::graph::Kind;
use crate::judge::Cycle;
use crate::ordered::within;
use crate::report::{Anomaly, AnomalyKind, Dependency, Level, Step};
use crate::runs::Runs;
use crate::versions::{Known, NONE, Source, Versions};
use hotrow_core::history::{Event, History, WriteKind};
use std::collections::{BTreeMap, HashSet};

/// Largest number of reasons looked up per edge.
const REASONS_MAX: usize = 64;

/// Reason of an edge, by numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reason {
    kind: Kind,
    key: u32,
    /// Version that was read or replaced; of a write-read edge, the version that the first wrote.
    old: u64,
    /// Version that was written; of a write-read edge, the version that the second read.
    new: u64,
    /// True if the edge is one of a run, and other changes that commute lie between the two versions.
    distant: bool,
}

/// Finds the names and reasons of cycles.
pub(crate) struct Explainer<'a> {
    history: &'a History,
    attempts: &'a Attempts,
    versions: &'a Versions,
    runs: &'a Runs,
    /// Events of the attempts in cycles. A `BTreeMap` frees them in the same order in every process: explored
    /// schedules depend on the addresses that the allocator gives out next, so these must not depend on a random
    /// hash.
    events: BTreeMap<u32, Vec<Event<'a>>>,
}

impl<'a> Explainer<'a> {
    pub(crate) fn new(
        history: &'a History,
        attempts: &'a Attempts,
        (versions, runs): (&'a Versions, &'a Runs),
        cycles: &[Cycle],
    ) -> Self {
        let nodes = cycles.iter().flat_map(|cycle| &cycle.path);
        let mut events: BTreeMap<u32, Vec<Event<'a>>> = nodes.map(|(node, _)| (*node, Vec::new())).collect();
        if !events.is_empty() {
            walk(history, |attempt, event| {
                if let Some(events) = events.get_mut(&attempt) {
                    events.push(event);
                }
            });
        }
        Explainer { history, attempts, versions, runs, events }
    }

    pub(crate) fn anomaly(&self, cycle: &Cycle) -> Anomaly {
        let path = &cycle.path;
        let ends = path.iter().skip(1).chain(path.first());
        let edges: Vec<_> = path.iter().zip(ends).map(|(from, to)| (from.0, to.0, from.1)).collect();
        let reasons: Vec<Vec<Reason>> = edges.iter().map(|edge| self.reasons(*edge)).collect();
        let key = reasons.first().and_then(|first| {
            let everywhere =
                |reason: &&Reason| reasons.iter().all(|all| all.iter().any(|r| r.key == reason.key));
            first.iter().find(everywhere).map(|reason| reason.key)
        });
        // For each edge, the reason over the one key if there is one, otherwise the first.
        let chosen: Vec<Option<Reason>> = reasons
            .iter()
            .map(|all| all.iter().find(|reason| Some(reason.key) == key).or(all.first()).copied())
            .collect();
        let kinds: Vec<Kind> = edges
            .iter()
            .zip(&chosen)
            .map(|(edge, reason)| reason.map_or(edge.2, |reason| reason.kind))
            .collect();
        let kind = self.name(cycle.violates, &edges, &kinds, key);
        let steps = edges.iter().zip(&chosen).map(|(edge, reason)| self.step(*edge, *reason)).collect();
        Anomaly { kind, violates: cycle.violates, steps }
    }

    fn name(
        &self,
        violates: Level,
        edges: &[(u32, u32, Kind)],
        kinds: &[Kind],
        key: Option<u32>,
    ) -> AnomalyKind {
        let count = |wanted: Kind| kinds.iter().filter(|kind| **kind == wanted).count();
        let (plain, range) = (count(Kind::ReadWrite), count(Kind::RangeWrite));
        let flow = count(Kind::WriteRead) + count(Kind::WriteRange);
        match violates {
            Level::Opaque => return AnomalyKind::InconsistentState,
            Level::Strict if kinds.len() == 2 && plain + range == 1 => return AnomalyKind::StaleRead,
            Level::Strict => return AnomalyKind::RealTime,
            Level::Serializable => {}
        }
        match (plain, range) {
            (0, 0) if flow == 0 => AnomalyKind::DirtyWrite,
            (0, 0) => AnomalyKind::CircularInformationFlow,
            (0, 1) => AnomalyKind::PhantomRead,
            (1, 0) => {
                let at = kinds.iter().position(|kind| *kind == Kind::ReadWrite).unwrap_or(0);
                let reader = edges[at].0;
                // A change that commutes is made on top of others' changes, so that none is lost.
                let replaces = |event: &Event<'_>, wanted: u32| match *event {
                    Event::Write { key, kind, .. } => key == wanted && kind != WriteKind::Commute,
                    _ => false,
                };
                let writes = |key: u32| self.events(reader).iter().any(|event| replaces(event, key));
                match key {
                    Some(key) if writes(key) => AnomalyKind::LostUpdate,
                    Some(_) if kinds.len() == 2 && flow == 1 => AnomalyKind::UnrepeatableRead,
                    _ => AnomalyKind::ReadSkew,
                }
            }
            (_, 0) => AnomalyKind::WriteSkew,
            _ => AnomalyKind::Phantom,
        }
    }

    fn step(&self, (from, to, _): (u32, u32, Kind), reason: Option<Reason>) -> Step {
        let dependency = match reason {
            None => Dependency::Unexplained,
            Some(Reason { kind, key, old, new, distant }) => {
                let key = || key_name(self.history, key);
                match kind {
                    Kind::WriteWrite if distant => {
                        Dependency::WriteCommute { key: key(), first: old, second: new }
                    }
                    Kind::WriteRead if distant => {
                        Dependency::CommuteRead { key: key(), version: old, read: new }
                    }
                    Kind::ReadWrite if distant => {
                        Dependency::ReadCommute { key: key(), read: old, version: new }
                    }
                    Kind::WriteWrite => Dependency::WriteWrite { key: key(), replaced: old, version: new },
                    Kind::WriteRead => Dependency::WriteRead { key: key(), version: new },
                    Kind::ReadWrite => Dependency::ReadWrite { key: key(), read: old, version: new },
                    Kind::WriteRange => Dependency::WriteRange { key: key(), version: new },
                    Kind::RangeWrite => Dependency::RangeWrite { key: key(), version: new },
                    Kind::Time | Kind::Wire => Dependency::Time { ended: old, began: new },
                }
            }
        };
        let (first, second) = (self.attempts.transaction(from), self.attempts.transaction(to));
        Step { first, second, dependency }
    }

    fn events(&self, attempt: u32) -> &[Event<'a>] {
        self.events.get(&attempt).map_or(&[], Vec::as_slice)
    }

    /// Returns the reasons of an edge. Plain reads come first, so that a range read is blamed only if no plain read
    /// is.
    fn reasons(&self, (from, to, kind): (u32, u32, Kind)) -> Vec<Reason> {
        let mut found = Vec::new();
        match kind {
            Kind::WriteWrite => self.write_write(from, to, &mut found),
            Kind::WriteRead => self.write_read(from, to, &mut found),
            Kind::ReadWrite => self.read_write(from, to, &mut found),
            Kind::WriteRange => {
                self.write_read(from, to, &mut found);
                self.range(to, from, Kind::WriteRange, &mut found);
            }
            Kind::RangeWrite => {
                self.read_write(from, to, &mut found);
                self.range(from, to, Kind::RangeWrite, &mut found);
            }
            Kind::Time | Kind::Wire => {
                let (old, new) = (self.attempts.end[from as usize], self.attempts.begin[to as usize]);
                // No key has this number: an event with it would have been refused.
                found.push(Reason { kind: Kind::Time, key: NONE, old, new, distant: false });
            }
        }
        found.truncate(REASONS_MAX);
        found
    }

    fn write_write(&self, from: u32, to: u32, found: &mut Vec<Reason>) {
        for event in self.events(from) {
            let Event::Write { key, version, .. } = *event else { continue };
            let Ok(known) = self.versions.look_up_one(self.history, key, version) else { continue };
            let Known { source: Source::Written(rank, _), next, .. } = known else { continue };
            // The members of a run have no edges between each other.
            let second = match self.runs.has(self.versions, rank) {
                true => self.by(to, self.runs.after(self.versions, rank)),
                false => self.first_unseen(next, to),
            };
            if let Some(second) = second {
                let new = self.versions.index.version(second);
                found.push(Reason {
                    kind: Kind::WriteWrite,
                    key,
                    old: version,
                    new,
                    distant: second != next,
                });
            }
        }
    }

    fn write_read(&self, from: u32, to: u32, found: &mut Vec<Reason>) {
        for event in self.events(to) {
            let Event::Read { key, version, .. } = *event else { continue };
            let Ok(known) = self.versions.look_up_one(self.history, key, version) else { continue };
            let Source::Written(rank, _) = known.source else { continue };
            let written = self.by(from, rank).or_else(|| self.runs.last_seen(self.versions, rank, from));
            if let Some(written) = written {
                let old = self.versions.index.version(written);
                let distant = written != rank;
                found.push(Reason { kind: Kind::WriteRead, key, old, new: version, distant });
            }
        }
    }

    fn read_write(&self, from: u32, to: u32, found: &mut Vec<Reason>) {
        for event in self.events(from) {
            let Event::Read { key, version, .. } = *event else { continue };
            let Ok(known) = self.versions.look_up_one(self.history, key, version) else { continue };
            if let Some(second) = self.first_unseen(known.next, to) {
                let new = self.versions.index.version(second);
                let distant = second != known.next;
                found.push(Reason { kind: Kind::ReadWrite, key, old: version, new, distant });
            }
        }
    }

    /// Returns a version, which may be `NONE`, if an attempt has written it.
    fn by(&self, attempt: u32, rank: u32) -> Option<u32> {
        (rank != NONE && self.versions.writer(rank) == attempt).then_some(rank)
    }

    /// Returns the first version by an attempt among a version, which may be `NONE`, and those after it in its run.
    fn first_unseen(&self, rank: u32, attempt: u32) -> Option<u32> {
        self.by(attempt, rank).or_else(|| self.runs.first_unseen(self.versions, rank, attempt))
    }

    /// Adds the keys that the writer deleted or inserted in ranges that the scanner read, as far as the range reads
    /// missed them.
    fn range(&self, scanner: u32, writer: u32, kind: Kind, found: &mut Vec<Reason>) {
        let wanted = if kind == Kind::WriteRange { WriteKind::Delete } else { WriteKind::Insert };
        let read: HashSet<u32> = self.events(scanner).iter().filter_map(key_read).collect();
        // Lost keys are the last resort: they were inserted long before, and the scan missed them all the same.
        let mut lost = Vec::new();
        for event in self.events(writer) {
            let Event::Write { key, version, kind: written, .. } = *event else { continue };
            let Some(name) = self.history.keys.get(key) else { continue };
            if written != wanted || self.versions.is_odd(key) {
                continue;
            }
            for scan in self.events(scanner) {
                let Event::Range { object, low, high, from, to } = *scan else { continue };
                if object != name.object || !within(name.order, low, high) {
                    continue;
                }
                let reason = Reason { kind, key, old: 0, new: version, distant: false };
                match kind {
                    Kind::WriteRange if version >= to => {}
                    Kind::RangeWrite if version < from => lost.push(reason),
                    _ if found.contains(&reason) => {}
                    _ => found.push(reason),
                }
            }
        }
        found.extend(lost);
        // Reasons over found keys are true as well, because the blocks include these keys. Reasons over missed keys
        // explain more, so they come first.
        found.sort_by_key(|reason| reason.kind == kind && read.contains(&reason.key));
    }
}

fn key_read(event: &Event<'_>) -> Option<u32> {
    match event {
        Event::Read { key, .. } => Some(*key),
        _ => None,
    }
}
