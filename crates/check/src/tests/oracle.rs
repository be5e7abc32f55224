//! An independent judge of small histories, which tries all orders.
//!
//! An order is right if each attempt, executed at its place, would have seen the versions that it has seen and
//! replaced those that it has replaced. Changes that commute make a key a set: the state of the key is the last
//! version that does not commute, and the set of the changes since. An attempt that commits in pieces is executed
//! as a whole. Its own changes are no part of what it must see, because the checker does not judge its own order
//! either.

use crate::ordered::within;
use hotrow_core::history::{Ended, Event, History, WriteKind};
use std::collections::{BTreeSet, HashMap};

struct Attempt<'a> {
    begin: u64,
    end: u64,
    committed: bool,
    events: Vec<Event<'a>>,
}

/// Returns the verdicts: serializable, strictly serializable, opaque.
pub(super) fn verdicts(history: &History) -> [bool; 3] {
    let oracle = Oracle::new(history);
    let committed: Vec<usize> =
        (0..oracle.attempts.len()).filter(|n| oracle.attempts[*n].committed).collect();
    let all: Vec<usize> = (0..oracle.attempts.len()).collect();
    [(&committed, false), (&committed, true), (&all, true)]
        .map(|(attempts, timely)| oracle.some_order(&mut attempts.clone(), timely, &mut State::default()))
}

/// True if an order is right. The order names the workers, of which each has made one attempt.
pub(super) fn explains(history: &History, order: &[u32]) -> bool {
    let oracle = Oracle::new(history);
    let mut state = State::default();
    order.iter().all(|worker| {
        let at = history.workers.iter().position(|events| events.worker == *worker).unwrap();
        oracle.execute(&oracle.attempts[at], &mut state)
    })
}

/// Versions of each key in their order, with the kinds of their writes.
type Chains = HashMap<u32, Vec<(u64, WriteKind)>>;

fn chains(attempts: &[Attempt<'_>]) -> Chains {
    let mut chains = Chains::new();
    for event in attempts.iter().filter(|attempt| attempt.committed).flat_map(|attempt| &attempt.events) {
        if let Event::Write { key, version, kind, .. } = *event {
            chains.entry(key).or_default().push((version, kind));
        }
    }
    chains.values_mut().for_each(|chain| chain.sort_by_key(|(version, _)| *version));
    chains
}

/// The last version of each key that does not commute, 0 if the map does not have it, and the commuting changes since.
type State = HashMap<u32, (u64, BTreeSet<u64>)>;

struct Oracle<'a> {
    history: &'a History,
    chains: Chains,
    attempts: Vec<Attempt<'a>>,
}

impl<'a> Oracle<'a> {
    fn new(history: &'a History) -> Self {
        let mut attempts = Vec::new();
        for worker in &history.workers {
            for event in worker.events() {
                match event.unwrap() {
                    Event::Begin { stamp: begin, .. } => {
                        attempts.push(Attempt { begin, end: u64::MAX, committed: false, events: Vec::new() });
                    }
                    Event::End { outcome, stamp } => {
                        let attempt: &mut Attempt<'_> = attempts.last_mut().unwrap();
                        (attempt.end, attempt.committed) = (stamp, outcome == Ended::Committed);
                    }
                    event => attempts.last_mut().unwrap().events.push(event),
                }
            }
        }
        Oracle { history, chains: chains(&attempts), attempts }
    }

    fn some_order(&self, left: &mut Vec<usize>, timely: bool, state: &mut State) -> bool {
        if left.is_empty() {
            return true;
        }
        for at in 0..left.len() {
            let next = left[at];
            let too_early = |other: &usize| self.attempts[*other].end < self.attempts[next].begin;
            if timely && left.iter().any(too_early) {
                continue;
            }
            let mut after = state.clone();
            if self.execute(&self.attempts[next], &mut after) {
                left.swap_remove(at);
                let found = self.some_order(left, timely, &mut after);
                left.push(next);
                let last = left.len() - 1;
                left.swap(at, last);
                if found {
                    return true;
                }
            }
        }
        false
    }

    /// Executes an attempt at its place. Returns false if the state is not the one that it saw.
    fn execute(&self, attempt: &Attempt<'_>, state: &mut State) -> bool {
        let written = attempt.events.iter().filter_map(|event| match event {
            Event::Write { version, .. } => Some(*version),
            _ => None,
        });
        let own: BTreeSet<u64> = written.collect();
        for event in &attempt.events {
            let fits = match *event {
                Event::Read { key, version, .. } => {
                    let (base, added) = self.seen(key, version);
                    let by_others: BTreeSet<u64> = added.difference(&own).copied().collect();
                    if own.contains(&base) {
                        // Nobody else changes the key while the attempt executes.
                        by_others.is_empty()
                    } else {
                        current(state, key) == (base, by_others)
                    }
                }
                Event::Range { .. } => self.range_fits(attempt, event, state),
                _ => true,
            };
            if !fits {
                return false;
            }
        }
        for event in attempt.events.iter().filter(|_| attempt.committed) {
            let Event::Write { key, replaced, version, kind } = *event else { continue };
            if kind == WriteKind::Commute {
                // The same value is changed, whatever was added to it before.
                let (base, _) = self.seen(key, version);
                if current(state, key).0 != base {
                    return false;
                }
                state.entry(key).or_default().1.insert(version);
            } else {
                if current(state, key) != self.seen(key, replaced) {
                    return false;
                }
                state.insert(key, (version, BTreeSet::new()));
            }
        }
        true
    }

    fn range_fits(&self, attempt: &Attempt<'_>, range: &Event<'_>, state: &State) -> bool {
        let Event::Range { object, low, high, from, to } = *range else { return true };
        (0..self.history.keys.len() as u32).all(|key| {
            let name = self.history.keys.get(key).unwrap();
            let known = attempt.events.iter().any(|event| match *event {
                Event::Read { key: k, version, .. } => k == key && version < to,
                Event::Write { key: k, .. } => k == key,
                _ => false,
            });
            if name.object != object || !within(name.order, low, high) || known {
                return true;
            }
            let chain = self.chains.get(&key).map_or(&[][..], |chain| chain);
            let at_from = chain.iter().rev().find(|(version, _)| *version < from).copied();
            // A key that was neither written nor seen is assumed to be absent.
            let absent_first = chain.first().is_none_or(|(_, kind)| *kind == WriteKind::Insert);
            let mut candidates = Vec::new();
            match at_from {
                Some((version, WriteKind::Delete)) => candidates.push(version),
                None if absent_first => candidates.push(0),
                _ => {}
            }
            let within = chain.iter().filter(|(version, _)| (from..to).contains(version));
            candidates.extend(within.filter(|(_, kind)| *kind == WriteKind::Delete).map(|(v, _)| *v));
            let (base, added) = current(state, key);
            added.is_empty() && candidates.contains(&base)
        })
    }

    /// The state of a key that whoever read this version has seen.
    fn seen(&self, key: u32, version: u64) -> (u64, BTreeSet<u64>) {
        let chain = self.chains.get(&key).map_or(&[][..], |chain| chain);
        let up_to = chain.iter().rev().skip_while(|(other, _)| *other != version);
        let mut added = BTreeSet::new();
        for (version, kind) in up_to {
            if *kind != WriteKind::Commute {
                return (*version, added);
            }
            added.insert(*version);
        }
        // A version that is not in the chain is one of an attempt without effect.
        if added.is_empty() { (version, added) } else { (0, added) }
    }
}

fn current(state: &State, key: u32) -> (u64, BTreeSet<u64>) {
    state.get(&key).cloned().unwrap_or_default()
}
