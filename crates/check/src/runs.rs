//! Runs of commuting writes: maximal sequences of consecutive versions of a key that are all [`WriteKind::Commute`].
//!
//! # Order
//!
//! The order in which the members of a run were installed says nothing about the order of their transactions. So
//! they have no edges between each other. All other dependencies hold as for other writes:
//!
//! - The write before a run comes before each member, and each member before the write after it.
//! - A read of a version in a run saw the members up to that version (write-read edges from all of them), and none
//!   after it (read-write edges to all of them).
//! - A read of the version before a run saw none of the members.
//!
//! Changes of one transaction need no order among each other, so none of these edges leads from an attempt to
//! itself. An attempt may be a member several times, may have written the version before the run or the one after
//! it, and may have read any version, before or after its own changes.
//!
//! # Auxiliary nodes
//!
//! The edges to the writes before and after a run are two per member. Those of reads would be as many as the members
//! for each read. Instead they use two chains of auxiliary nodes, made at the run's first such read:
//!
//! - The *prefix* of a place is reached from its member and from the prefix of the place before. An edge leads from
//!   it to those who read the version at this place.
//! - The *suffix* of a place leads to its member and to the suffix of the next place. An edge leads to it from those
//!   who read the version before this place.
//!
//! For a reader that is itself a member, both chains would lead back to it. Its own places divide the run into gaps.
//! Before the first place the prefix does no harm, and after the last one the suffix. The gaps between two own
//! places, or between an own place and the version read, are covered by nodes of binary trees over the run, of which
//! each represents an aligned block of members. A tree's node is made at its first use.
//!
//! Edges lead into prefixes and collecting blocks only from members, and out of them only to readers. Edges lead
//! into suffixes and distributing blocks only from readers, and out of them only to members. So a path through
//! auxiliary nodes is exactly one dependency.
//!
//! The nodes and edges are linear in the number of members and reads, with a logarithm (of the run's length) for
//! each read by a member.

use crate::attempts::Attempts;
use crate::graph::{Edges, Kind};
use crate::versions::{NONE, Versions};
use hotrow_core::history::WriteKind;
use hotrow_sync::hashing::KeyHashing;
use std::collections::HashMap;
use std::ops::Range;

/// The runs of a history that have more than one member.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    runs: Vec<Run>,
    /// Per version in a run: the number of the run, and the version's place there.
    places: HashMap<u32, (u32, u32), KeyHashing>,
    /// Auxiliary nodes of blocks: the collecting ones.
    collectors: HashMap<Block, u32, KeyHashing>,
    /// The distributing ones.
    distributors: HashMap<Block, u32, KeyHashing>,
}

/// The number of a run; a level; the number of a block of two to the power of `level` members.
type Block = (u32, u32, u32);

#[derive(Debug, Default)]
struct Run {
    /// Ranks of the versions, in the order of the chain.
    members: Vec<u32>,
    /// Writers with their places, sorted.
    writers: Vec<(u32, u32)>,
    /// Auxiliary nodes per place; empty until they are needed.
    prefixes: Vec<u32>,
    suffixes: Vec<u32>,
}

impl Run {
    /// Iterates over an attempt's places, in their order.
    fn own_places(&self, attempt: u32) -> impl Iterator<Item = u32> + '_ {
        let begin = self.writers.partition_point(|(writer, _)| *writer < attempt);
        let own = self.writers[begin..].iter().take_while(move |(writer, _)| *writer == attempt);
        own.map(|(_, place)| *place)
    }
}

/// True if the version of a rank was written by a change that commutes.
fn commutes(versions: &Versions, rank: u32) -> bool {
    versions.kind(rank) == WriteKind::Commute
}

impl Runs {
    /// Finds the runs.
    pub(crate) fn read(versions: &Versions, attempts: &Attempts) -> Self {
        let mut found = Self::default();
        for rank in versions.effective(attempts).filter(|rank| commutes(versions, *rank)) {
            if versions.before(rank).is_some_and(|before| commutes(versions, before)) {
                continue;
            }
            let next = |rank: &u32| {
                let next = versions.get(*rank).next;
                (next != NONE && commutes(versions, next)).then_some(next)
            };
            let members: Vec<u32> = std::iter::successors(Some(rank), next).collect();
            if members.len() > 1 {
                found.push(members, versions);
            }
        }
        found
    }

    fn push(&mut self, members: Vec<u32>, versions: &Versions) {
        let number = self.runs.len() as u32;
        let mut writers = Vec::with_capacity(members.len());
        for (place, rank) in (0..).zip(&members) {
            writers.push((versions.writer(*rank), place));
            self.places.insert(*rank, (number, place));
        }
        writers.sort_unstable();
        self.runs.push(Run { members, writers, ..Run::default() });
    }

    /// Returns a version's run and place. The version's kind is looked up first, because hashing is slower.
    fn place(&self, versions: &Versions, rank: u32) -> Option<(u32, u32)> {
        if self.runs.is_empty() || rank == NONE || !commutes(versions, rank) {
            return None;
        }
        self.places.get(&rank).copied()
    }

    /// True if a version is in a run.
    pub(crate) fn has(&self, versions: &Versions, rank: u32) -> bool {
        self.place(versions, rank).is_some()
    }

    /// Adds all write-write edges between a version and the one that it replaced. The edges of a run are those of
    /// its members.
    pub(crate) fn add_write(&self, versions: &Versions, (before, rank): (u32, u32), edges: &mut Edges) {
        let (first, second) = (versions.writer(before), versions.writer(rank));
        match (self.place(versions, before), self.place(versions, rank)) {
            (None, None) => edges.add(first, second, Kind::WriteWrite),
            (None, Some((run, _))) => {
                for (member, _) in &self.runs[run as usize].writers {
                    edges.add(first, *member, Kind::WriteWrite);
                }
            }
            (Some((run, _)), None) => {
                for (member, _) in &self.runs[run as usize].writers {
                    edges.add(*member, second, Kind::WriteWrite);
                }
            }
            (Some(_), Some(_)) => {}
        }
    }

    /// Adds the edges from the attempts whose changes a read of a version saw. Returns false, and adds none, if the
    /// version is in no run.
    pub(crate) fn add_seen(
        &mut self,
        versions: &Versions,
        rank: u32,
        reader: u32,
        edges: &mut Edges,
    ) -> bool {
        let Some((number, place)) = self.place(versions, rank) else { return false };
        let run = &mut self.runs[number as usize];
        if run.prefixes.is_empty() {
            run.prefixes = run.members.iter().map(|_| edges.node()).collect();
            for (at, rank) in run.members.iter().enumerate() {
                edges.add(versions.writer(*rank), run.prefixes[at], Kind::WriteRead);
                if let Some(before) = at.checked_sub(1) {
                    edges.add(run.prefixes[before], run.prefixes[at], Kind::Wire);
                }
            }
        }
        let mut gap = 0;
        let mut between = Vec::new();
        for own in run.own_places(reader).take_while(|own| *own <= place).chain([place + 1]) {
            if gap > 0 {
                between.push(gap..own);
            } else if own > 0 {
                edges.add(run.prefixes[own as usize - 1], reader, Kind::Wire);
            }
            gap = own + 1;
        }
        for (level, block) in between.into_iter().flat_map(blocks) {
            let (node, kind) = self.collector(versions, (number, level, block), edges);
            edges.add(node, reader, kind);
        }
        true
    }

    /// Adds the edges to the attempts whose changes, from a version on, a read of the version before it did not see.
    /// Returns false, and adds none, if the version is in no run.
    pub(crate) fn add_unseen(
        &mut self,
        versions: &Versions,
        rank: u32,
        reader: u32,
        edges: &mut Edges,
    ) -> bool {
        let Some((number, place)) = self.place(versions, rank) else { return false };
        let run = &mut self.runs[number as usize];
        if run.suffixes.is_empty() {
            run.suffixes = run.members.iter().map(|_| edges.node()).collect();
            for (at, rank) in run.members.iter().enumerate() {
                edges.add(run.suffixes[at], versions.writer(*rank), Kind::Wire);
                if let Some(next) = run.suffixes.get(at + 1) {
                    edges.add(run.suffixes[at], *next, Kind::Wire);
                }
            }
        }
        let mut gap = place;
        let mut between = Vec::new();
        for own in run.own_places(reader).filter(|own| *own >= place) {
            between.push(gap..own);
            gap = own + 1;
        }
        if let Some(suffix) = run.suffixes.get(gap as usize) {
            edges.add(reader, *suffix, Kind::ReadWrite);
        }
        for (level, block) in between.into_iter().flat_map(blocks) {
            let node = self.distributor(versions, (number, level, block), edges);
            edges.add(reader, node, Kind::ReadWrite);
        }
        true
    }

    /// Returns the node that all members of a block lead to, with the kind of an edge that leaves it.
    fn collector(&mut self, versions: &Versions, block: Block, edges: &mut Edges) -> (u32, Kind) {
        let (run, level, number) = block;
        if level == 0 {
            return (versions.writer(self.runs[run as usize].members[number as usize]), Kind::WriteRead);
        }
        if let Some(node) = self.collectors.get(&block) {
            return (*node, Kind::Wire);
        }
        let node = edges.node();
        for half in [number * 2, number * 2 + 1] {
            let (from, kind) = self.collector(versions, (run, level - 1, half), edges);
            edges.add(from, node, kind);
        }
        self.collectors.insert(block, node);
        (node, Kind::Wire)
    }

    /// Returns the node that leads to all members of a block.
    fn distributor(&mut self, versions: &Versions, block: Block, edges: &mut Edges) -> u32 {
        let (run, level, number) = block;
        if level == 0 {
            return versions.writer(self.runs[run as usize].members[number as usize]);
        }
        if let Some(node) = self.distributors.get(&block) {
            return *node;
        }
        let node = edges.node();
        for half in [number * 2, number * 2 + 1] {
            let to = self.distributor(versions, (run, level - 1, half), edges);
            edges.add(node, to, Kind::Wire);
        }
        self.distributors.insert(block, node);
        node
    }

    /// Returns the last version by an attempt in a version's run, up to the version itself.
    pub(crate) fn last_seen(&self, versions: &Versions, rank: u32, attempt: u32) -> Option<u32> {
        let (run, place) = self.place(versions, rank)?;
        let run = &self.runs[run as usize];
        let own = run.own_places(attempt).take_while(|own| *own <= place).last()?;
        Some(run.members[own as usize])
    }

    /// Returns the first version by an attempt in a version's run, from the version itself on.
    pub(crate) fn first_unseen(&self, versions: &Versions, rank: u32, attempt: u32) -> Option<u32> {
        let (run, place) = self.place(versions, rank)?;
        let run = &self.runs[run as usize];
        let own = run.own_places(attempt).find(|own| *own >= place)?;
        Some(run.members[own as usize])
    }

    /// Returns the version that replaced the last one of a version's run, or `NONE`. A version in no run counts as a
    /// run of its own.
    pub(crate) fn after(&self, versions: &Versions, rank: u32) -> u32 {
        let last = self.place(versions, rank).and_then(|(run, _)| self.runs[run as usize].members.last());
        versions.get(last.copied().unwrap_or(rank)).next
    }
}

/// Divides places into aligned blocks: levels and numbers.
fn blocks(mut places: Range<u32>) -> impl Iterator<Item = (u32, u32)> {
    std::iter::from_fn(move || {
        let length = places.end.checked_sub(places.start).filter(|length| *length > 0)?;
        let level = places.start.trailing_zeros().min(length.ilog2());
        let block = (level, places.start >> level);
        places.start += 1 << level;
        Some(block)
    })
}

#[cfg(test)]
mod tests {
    use super::{Runs, blocks};
    use crate::HistoryBuilder;
    use crate::attempts::{Attempts, walk};
    use crate::graph::{Edges, Kind};
    use crate::report::Counts;
    use crate::versions::Versions;
    use hotrow_core::history::Event;

    #[test]
    fn blocks_cover_each_place_once() {
        for begin in 0..40 {
            for end in begin..40 {
                let covered: Vec<u32> = blocks(begin..end)
                    .flat_map(|(level, number)| number << level..(number + 1) << level)
                    .collect();
                assert_eq!(covered, (begin..end).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn many_members_and_reads_have_few_edges() {
        const MEMBERS: usize = 4_000;
        let mut history = HistoryBuilder::new("test");
        let object = history.object("table");
        let key = history.key(object, &[0], "0");
        let attempts: Vec<_> = (0..MEMBERS).map(|n| history.begin(n as u32)).collect();
        for attempt in &attempts {
            history.read(*attempt, key);
            history.commute(*attempt, key);
        }
        for attempt in &attempts {
            history.read(*attempt, key);
            history.commit(*attempt);
        }
        let history = history.finish();
        let (mut attempts, written) = Attempts::read(&history, &mut Counts::default()).unwrap();
        let versions = Versions::read(&history, &mut attempts, written).unwrap();
        let mut edges = Edges::between(attempts.len());
        let mut runs = Runs::read(&versions, &attempts);
        walk(&history, |attempt, event| {
            let Event::Read { key, version, .. } = event else { return };
            let known = versions.look_up_one(&history, key, version).unwrap();
            runs.add_unseen(&versions, known.next, attempt, &mut edges);
            if let Some(rank) = versions.index.rank(version) {
                runs.add_seen(&versions, rank, attempt, &mut edges);
            }
        });
        let count: u64 =
            [Kind::WriteRead, Kind::ReadWrite, Kind::Wire].iter().map(|kind| edges.count(*kind)).sum();
        let bound = 3 * MEMBERS * MEMBERS.ilog2() as usize;
        assert!(count < bound as u64, "{count} edges, and the bound is {bound}");
    }

    #[test]
    fn a_run_of_one_is_no_run() {
        let mut history = HistoryBuilder::new("test");
        let object = history.object("table");
        let key = history.key(object, &[0], "0");
        let attempt = history.begin(1);
        history.write(attempt, key);
        history.commute(attempt, key);
        history.write(attempt, key);
        history.commit(attempt);
        let history = history.finish();
        let (mut attempts, written) = Attempts::read(&history, &mut Counts::default()).unwrap();
        let versions = Versions::read(&history, &mut attempts, written).unwrap();
        let runs = Runs::read(&versions, &attempts);
        assert!(runs.runs.is_empty() && runs.places.is_empty());
    }
}
