//! Rules 1 and 2 of [`crate::ranges`] for many keys at once.
//!
//! A queue is scanned from its least key to the first one that is there, over all the keys that were taken long
//! ago. With an edge for each of them, a hundred thousand scans of a hundred thousand keys would be ten billion
//! edges. Instead, blocks of 64 positions are the leaves of a binary tree, a long range is covered by
//! O(log n) of its nodes, and each node that is used has two chains of auxiliary nodes of the graph over its
//! keys' events, made when it is first used:
//!
//! - The collector has one for each deletion, in the order of versions. Edges lead to it from who deleted and
//!   from the one before. So one edge from the last one below `from` to the scanner stands for all deletions
//!   below `from` (rule 1).
//! - The distributor has one for each insertion. Edges lead from it to who inserted and to the next one. So one
//!   edge from the scanner to the first one not below `to` stands for all insertions from there on (rule 2).
//!
//! Edges lead into collectors from writers and to scanners only, into distributors from scanners and to writers
//! only, so a path through auxiliary nodes is one edge of rule 1 or one of rule 2, and never anything else. No
//! path leads from an attempt to itself: positions that a scanner has written are not in the blocks it uses.
//!
//! An event is in at most as many chains as the tree has levels. Short ranges, and what is left at both ends of
//! long ones, are gone through key by key.

use crate::graph::{Edges, Kind};
use crate::ordered::Ordered;
use crate::ranges::Scan;
use crate::versions::Versions;
use hotrow_core::history::WriteKind;
use std::collections::BTreeMap;

/// Positions in a block.
const BLOCK: u32 = if cfg!(test) { 2 } else { 16 };

/// The longest range that is gone through key by key.
const SHORT: u32 = 2 * BLOCK;

/// The tree over the blocks, as far as it was used.
#[derive(Debug)]
pub(crate) struct Cover {
    positions: u32,
    /// By level and number of a tree node.
    chains: BTreeMap<(u32, u32), Chains>,
}

/// The auxiliary nodes of one tree node.
#[derive(Debug)]
struct Chains {
    /// Of each deletion: its rank, and its node.
    collector: Vec<(u32, u32)>,
    /// Of each insertion.
    distributor: Vec<(u32, u32)>,
}

impl Cover {
    pub(crate) fn new(positions: u32) -> Self {
        Cover { positions, chains: BTreeMap::new() }
    }

    /// Adds what rules 1 and 2 say of a scan's positions.
    pub(crate) fn add(&mut self, ordered: &Ordered, versions: &Versions, scan: Scan, edges: &mut Edges) {
        let (begin, end) = scan.keys;
        let (mut block, last) = (begin.div_ceil(BLOCK), end / BLOCK);
        if end - begin <= SHORT || block >= last {
            return add_each(ordered, versions, scan, edges);
        }
        add_each(ordered, versions, Scan { keys: (begin, block * BLOCK), ..scan }, edges);
        add_each(ordered, versions, Scan { keys: (last * BLOCK, end), ..scan }, edges);
        while block < last {
            let level = block.trailing_zeros().min((last - block).ilog2());
            self.add_node(ordered, versions, (level, block >> level), scan, edges);
            block += 1 << level;
        }
    }

    fn add_node(
        &mut self,
        ordered: &Ordered,
        versions: &Versions,
        node: (u32, u32),
        scan: Scan,
        edges: &mut Edges,
    ) {
        let positions = self.positions;
        let chains = self.chains.entry(node).or_insert_with(|| {
            let begin = (node.1 << node.0) * BLOCK;
            let end = begin.saturating_add(BLOCK << node.0).min(positions);
            Chains::new(ordered.events(begin, end), versions, edges)
        });
        let deleted = chains.collector.partition_point(|(rank, _)| *rank < scan.window.0);
        if let Some(last) = deleted.checked_sub(1) {
            edges.add(chains.collector[last].1, scan.attempt, Kind::Wire);
        }
        let inserted = chains.distributor.partition_point(|(rank, _)| *rank < scan.window.1);
        if let Some((_, first)) = chains.distributor.get(inserted) {
            edges.add(scan.attempt, *first, Kind::RangeWrite);
        }
    }
}

impl Chains {
    fn new(events: &[u32], versions: &Versions, edges: &mut Edges) -> Self {
        let mut events = events.to_vec();
        events.sort_unstable();
        let mut chains = Chains { collector: Vec::new(), distributor: Vec::new() };
        for rank in events {
            let node = edges.node();
            let deletion = versions.kind(rank) == WriteKind::Delete;
            let chain = if deletion { &mut chains.collector } else { &mut chains.distributor };
            if let Some((_, before)) = chain.last() {
                edges.add(*before, node, Kind::Wire);
            }
            chain.push((rank, node));
            if deletion {
                edges.add(versions.writer(rank), node, Kind::WriteRange);
            } else {
                edges.add(node, versions.writer(rank), Kind::Wire);
            }
        }
        chains
    }
}

/// Goes through positions one by one.
fn add_each(ordered: &Ordered, versions: &Versions, scan: Scan, edges: &mut Edges) {
    for position in scan.keys.0..scan.keys.1 {
        let events = ordered.events(position, position + 1);
        let before = events.partition_point(|rank| *rank < scan.window.0);
        // An earlier deletion is before the insertion that ended it. If this one is present at `from`, it is
        // found and has a read, or goes within the window, or was lost.
        if let Some(last) = before.checked_sub(1).map(|at| events[at])
            && versions.kind(last) == WriteKind::Delete
        {
            edges.add(versions.writer(last), scan.attempt, Kind::WriteRange);
        }
        let after = before + events[before..].partition_point(|rank| *rank < scan.window.1);
        if let Some(next) = events.get(after)
            && versions.kind(*next) == WriteKind::Insert
        {
            edges.add(scan.attempt, versions.writer(*next), Kind::RangeWrite);
        }
    }
}
