//! A serial order: the nodes of an acyclic part of the graph, one after the other (Kahn, "Topological Sorting of Large
//! Networks", 1962).
//!
//! Of all orders that the edges allow it is the one that follows the moments at which the attempts took effect wherever
//! it can. That matters for what the edges leave open: of a key that came and went while a range read was under way, the
//! read may have missed any of its absences (module [`crate::ranges`]). A store with one version of each key
//! validates what was absent when it commits, so the latest absence is the one that the attempt has seen.

use crate::attempts::Attempts;
use crate::graph::Part;
use crate::versions::Versions;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Of each attempt: when it took effect, which is when it installed its last version, or ended if it installed none.
pub(crate) fn moments(attempts: &Attempts, versions: &Versions) -> Vec<u64> {
    let mut moments = attempts.end.clone();
    let mut written = vec![false; attempts.len()];
    for rank in versions.effective(attempts) {
        // Ranks ascend as versions do.
        let writer = versions.writer(rank) as usize;
        let version = versions.index.version(rank);
        moments[writer] = if written[writer] { moments[writer].max(version) } else { version };
        written[writer] = true;
    }
    moments
}

/// The attempts of a part without cycles, each after all from which an edge leads to it, and with each how many of those
/// before it have to be there for that. Attempts that no edge orders follow `moments`. `None` if there is a cycle.
pub(crate) fn serial_order(part: Part<'_>, moments: &[u64]) -> Option<Vec<(u32, usize)>> {
    let nodes = part.graph.nodes() as u32;
    let mut waits_for = vec![0u32; nodes as usize];
    let in_part = || (0..nodes).filter(|node| part.has_node(*node));
    let from = |node| part.graph.from(node).filter(|edge| part.has(*edge));
    for node in in_part() {
        from(node).for_each(|(to, _)| waits_for[to as usize] += 1);
    }
    // Auxiliary nodes have no moment: they go first, as what they stand for may be earlier than what else is ready.
    let moment = |node: u32| moments.get(node as usize).copied().unwrap_or(0);
    let ready = in_part().filter(|node| waits_for[*node as usize] == 0);
    let mut ready: BinaryHeap<_> = ready.map(|node| Reverse((moment(node), node))).collect();
    let mut order = Vec::with_capacity(moments.len());
    // Of each node: the end of the beginning of the order that comes before it.
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
