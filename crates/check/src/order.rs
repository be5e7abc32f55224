//! Serial order: a topological sort of an acyclic part of the graph (Kahn, "Topological Sorting of Large Networks",
//! 1962).
//!
//! Of all orders that the edges allow, it follows the moments at which the attempts took effect as far as possible.
//! This matters where the edges decide nothing: if a key came and went during a range read, the read may have seen
//! any of its absences (module [`crate::ranges`]). A store with one version per key validates absences at the
//! commit, so the attempt has seen the latest one.

use crate::attempts::Attempts;
use crate::graph::Part;
use crate::versions::Versions;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Returns the moment at which each attempt took effect: that of its last installed version, or its end if it
/// installed none.
pub(crate) fn moments(attempts: &Attempts, versions: &Versions) -> Vec<u64> {
    let mut moments = attempts.end.clone();
    let mut written = vec![false; attempts.len()];
    for rank in versions.effective(attempts) {
        // Ranks ascend in the order of versions.
        let writer = versions.writer(rank) as usize;
        let version = versions.index.version(rank);
        moments[writer] = if written[writer] { moments[writer].max(version) } else { version };
        written[writer] = true;
    }
    moments
}

/// Returns the attempts of a part in a topological order, or `None` if the part has a cycle. With each attempt goes
/// the number of attempts at the beginning of the order that must precede it. Attempts without edges between them
/// follow `moments`.
pub(crate) fn serial_order(part: Part<'_>, moments: &[u64]) -> Option<Vec<(u32, usize)>> {
    let nodes = part.graph.nodes() as u32;
    let mut waits_for = vec![0u32; nodes as usize];
    let in_part = || (0..nodes).filter(|node| part.has_node(*node));
    let from = |node| part.graph.from(node).filter(|edge| part.has(*edge));
    for node in in_part() {
        from(node).for_each(|(to, _)| waits_for[to as usize] += 1);
    }
    // Auxiliary nodes have no moment. They go first, because they may stand for earlier attempts than the others
    // that are ready.
    let moment = |node: u32| moments.get(node as usize).copied().unwrap_or(0);
    let ready = in_part().filter(|node| waits_for[*node as usize] == 0);
    let mut ready: BinaryHeap<_> = ready.map(|node| Reverse((moment(node), node))).collect();
    let mut order = Vec::with_capacity(moments.len());
    // Per node: length of the beginning of the order that must precede it.
    let mut earliest = vec![0; nodes as usize];
    let mut visited = 0;
    while let Some(Reverse((_, node))) = ready.pop() {
        visited += 1;
        let mut before = earliest[node as usize];
        if (node as usize) < moments.len() {
            order.push((node, before));
            before = order.len();
        }
        for (to, _) in from(node) {
            let to_earliest = &mut earliest[to as usize];
            *to_earliest = before.max(*to_earliest);
            let left = &mut waits_for[to as usize];
            *left -= 1;
            if *left == 0 {
                ready.push(Reverse((moment(to), to)));
            }
        }
    }
    (visited == in_part().count()).then_some(order)
}
