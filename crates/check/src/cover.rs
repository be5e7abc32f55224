//! Rules 1 and 2 of [`crate::ranges`], applied to many keys at once.
//!
//! A scan of a queue begins at its least key and passes over all keys that were taken long ago, up to the first
//! present one. With an edge for each of these keys, a hundred thousand scans of a hundred thousand keys would make
//! ten billion edges. Instead, blocks of positions (`BLOCK`) are the leaves of a binary tree, and O(log n) of its
//! nodes cover a long range. Each tree node that is used has two chains of auxiliary graph nodes over its keys'
//! events, made at its first use:
//!
//! - The collector has one auxiliary node per deletion, in the order of versions. Edges lead to it from the
//!   deleting attempt and from the node before. So one edge to the scanner, from the last node below `from`, stands
//!   for all deletions below `from` (rule 1).
//! - The distributor has one auxiliary node per insertion. Edges lead from it to the inserting attempt and to the
//!   next node. So one edge from the scanner to the first node not below `to` stands for all insertions from there
//!   on (rule 2).
//!
//! Edges lead into collectors only from writers, and out of them only to scanners. Edges lead into distributors
//! only from scanners, and out of them only to writers. So a path through auxiliary nodes is exactly one edge of
//! rule 1 or of rule 2. No path leads from an attempt to itself, because a scanner uses no blocks with positions
//! that it has written.
//!
//! An event is in at most as many chains as the tree has levels. Short ranges, and both ends of long ones, are
//! processed key by key.

use crate::graph::{Edges, Kind};
use crate::ordered::Ordered;
use crate::versions::Versions;
use hotrow_core::history::WriteKind;
use std::collections::BTreeMap;

/// A range read, in positions and ranks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scan {
    pub(crate) attempt: u32,
    /// First position, and the one after the last.
    pub(crate) keys: (u32, u32),
    /// Ranks of the first version not below the stamp before the scan, and not below the stamp after it.
    pub(crate) window: (u32, u32),
    /// Begin and end, in `Ranges::touched`, of the positions that the attempt has touched.
    pub(crate) touched: (usize, usize),
}

/// Number of positions in a block.
const BLOCK: u32 = if cfg!(test) { 2 } else { 16 };

/// Length of the longest range that is processed key by key.
const SHORT: u32 = 2 * BLOCK;

/// Binary tree over the blocks, as far as it was used.
#[derive(Debug)]
pub(crate) struct Cover {
    positions: u32,
    /// Chains by level and number of their tree node.
    chains: BTreeMap<(u32, u32), Chains>,
}

/// Auxiliary nodes of one tree node.
#[derive(Debug)]
struct Chains {
    /// Rank and auxiliary node of each deletion.
    collector: Vec<(u32, u32)>,
    /// Rank and auxiliary node of each insertion.
    distributor: Vec<(u32, u32)>,
}

impl Cover {
    pub(crate) fn new(positions: u32) -> Self {
        Cover { positions, chains: BTreeMap::new() }
    }

    /// Adds the edges that rules 1 and 2 give for a scan's positions.
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

/// Adds the edges of rules 1 and 2 position by position.
fn add_each(ordered: &Ordered, versions: &Versions, scan: Scan, edges: &mut Edges) {
    for position in scan.keys.0..scan.keys.1 {
        let events = ordered.events(position, position + 1);
        let before = events.partition_point(|rank| *rank < scan.window.0);
        // Earlier deletions precede the insertion that ended them. If the key is present at `from`, the scan found
        // it and has a read, or the key goes within the window, or it was lost.
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
