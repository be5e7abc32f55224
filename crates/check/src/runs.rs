//! Runs of commuting writes: consecutive versions of a key, of which each was made by a change that commutes with the others.
//!
//! The order in which the members of a run were installed says nothing about the order of their transactions. So they have no
//! edges between each other. The write before a run comes before each member, and each member before the write after it. A read of a
//! version in a run has seen the members up to that version, and none of those behind.
//!
//! The edges of a run with more than one member go over auxiliary nodes, so that their number stays linear: a chain of *prefixes*,
//! which lead from the members up to a place to the attempts after them, and a chain of *suffixes*, which lead from the attempts before
//! a place to the members from there on.

use crate::attempts::Attempts;
use crate::graph::{Edges, Kind};
use crate::versions::{NONE, Versions};
use hotrow_core::history::WriteKind;
use std::collections::HashMap;

/// The runs of a history that have more than one member.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    runs: Vec<Vec<u32>>,
    /// The run of a version, and its place there.
    places: HashMap<u32, (u32, u32)>,
    /// The auxiliary nodes of each version in a run.
    nodes: HashMap<u32, Nodes>,
}

#[derive(Debug, Clone, Copy)]
struct Nodes {
    /// Leads from all members up to this one to those who have read this version.
    read: u32,
    /// Leads to this member and all behind it.
    suffix: u32,
}

impl Runs {
    /// Finds the runs, and adds the edges of their members, those of reads excepted.
    pub(crate) fn read(versions: &Versions, attempts: &Attempts, edges: &mut Edges) -> Self {
        let mut found = Self::default();
        let commutes = |rank: u32| versions.kind(rank) == WriteKind::Commute;
        for rank in versions.effective(attempts) {
            if !commutes(rank) || versions.before(rank).is_some_and(commutes) {
                continue;
            }
            let next =
                |rank: &u32| Some(versions.get(*rank).next).filter(|next| *next != NONE && commutes(*next));
            let run: Vec<u32> = std::iter::successors(Some(rank), next).collect();
            if run.len() > 1 {
                found.add(run, versions, edges);
            }
        }
        found
    }

    fn add(&mut self, run: Vec<u32>, versions: &Versions, edges: &mut Edges) {
        let number = self.runs.len() as u32;
        let mut written = NONE;
        let mut before: Option<Nodes> = None;
        for (place, rank) in (0..).zip(&run) {
            let writer = versions.writer(*rank);
            let nodes = Nodes { read: edges.node(), suffix: edges.node() };
            let prefix = edges.node();
            edges.add(writer, nodes.read, Kind::WriteRead);
            edges.add(writer, prefix, Kind::WriteWrite);
            edges.add(nodes.suffix, writer, Kind::Wire);
            if let Some(before) = before {
                edges.add(before.read, nodes.read, Kind::Wire);
                edges.add(written, prefix, Kind::Wire);
                edges.add(before.suffix, nodes.suffix, Kind::Wire);
            } else if let Some(first) = versions.before(*rank) {
                edges.add(versions.writer(first), nodes.suffix, Kind::WriteWrite);
            }
            (written, before) = (prefix, Some(nodes));
            self.nodes.insert(*rank, nodes);
            self.places.insert(*rank, (number, place));
        }
        let last = run.last().map_or(NONE, |last| versions.get(*last).next);
        if last != NONE {
            edges.add(written, versions.writer(last), Kind::Wire);
        }
        self.runs.push(run);
    }

    /// True if the edge between two consecutive versions is that of a run.
    pub(crate) fn has(&self, before: u32, rank: u32) -> bool {
        self.places.contains_key(&before) || self.places.contains_key(&rank)
    }

    /// The node from which an edge leads to those who have read a version; `None` if it is in no run.
    pub(crate) fn read_node(&self, rank: u32) -> Option<u32> {
        self.nodes.get(&rank).map(|nodes| nodes.read)
    }

    /// The node to which an edge leads from those who have read the version before this one.
    pub(crate) fn suffix_node(&self, rank: u32) -> Option<u32> {
        self.nodes.get(&rank).map(|nodes| nodes.suffix)
    }

    /// The members of a version's run up to the version itself.
    pub(crate) fn up_to(&self, rank: u32) -> &[u32] {
        self.places.get(&rank).map_or(&[], |(run, place)| &self.runs[*run as usize][..=*place as usize])
    }

    /// The members of a version's run from the version on.
    pub(crate) fn from(&self, rank: u32) -> &[u32] {
        self.places.get(&rank).map_or(&[], |(run, place)| &self.runs[*run as usize][*place as usize..])
    }

    /// The version after a version's run, or `NONE`; the version's own successor if it is in no run.
    pub(crate) fn after(&self, versions: &Versions, rank: u32) -> u32 {
        versions.get(self.from(rank).last().copied().unwrap_or(rank)).next
    }
}
