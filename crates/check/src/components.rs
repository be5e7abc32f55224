//! Strongly connected components by Tarjan's algorithm ("Depth-First Search and Linear Graph Algorithms", 1972).
//!
//! The algorithm is written here for two reasons. The graph is two plain arrays with the kinds in the edges, and
//! each verdict looks at a part of it; petgraph would need a copy of each part. And it must not recurse.

use crate::graph::Part;

/// Order number of a node whose component is complete.
const DONE: u32 = u32::MAX;

/// Returns the components of a part that have more than one node. No edge leads from a node to itself, so only
/// these have cycles. Linear in nodes and edges.
pub(crate) fn components(part: Part<'_>) -> Vec<Vec<u32>> {
    let graph = part.graph;
    // Smallest order number reached from each node so far; 0 if the node was not visited.
    let mut low = vec![0u32; graph.nodes()];
    let mut components = Vec::new();
    let mut stack: Vec<u32> = Vec::new();
    // Stack of the nodes being visited: node, its own order number, the next of its edges.
    let mut visits: Vec<(u32, u32, usize)> = Vec::new();
    let mut order = 0;
    for root in 0..graph.nodes() as u32 {
        if low[root as usize] != 0 || !part.has_node(root) {
            continue;
        }
        let mut enter = Some(root);
        loop {
            if let Some(node) = enter.take() {
                order += 1;
                low[node as usize] = order;
                stack.push(node);
                visits.push((node, order, graph.places(node).0));
            }
            let Some((node, own, place)) = visits.last_mut() else { break };
            let (node, own, end) = (*node, *own, graph.places(*node).1);
            while *place < end && enter.is_none() {
                let edge = graph.edge(*place);
                *place += 1;
                if !part.has(edge) {
                    continue;
                }
                match low[edge.0 as usize] {
                    0 => enter = Some(edge.0),
                    reached => low[node as usize] = low[node as usize].min(reached),
                }
            }
            if enter.is_some() {
                continue;
            }
            visits.pop();
            if low[node as usize] == own {
                let at = stack.iter().rposition(|other| *other == node).expect("visited nodes are stacked");
                stack[at..].iter().for_each(|member| low[*member as usize] = DONE);
                if stack.len() - at > 1 {
                    components.push(stack[at..].to_vec());
                }
                stack.truncate(at);
            } else if let Some((parent, ..)) = visits.last() {
                low[*parent as usize] = low[*parent as usize].min(low[node as usize]);
            }
        }
    }
    components
}

#[cfg(test)]
mod tests {
    use super::components;
    use crate::graph::{Edges, Kind, KindSet, Part};

    #[test]
    fn components_are_the_sets_of_nodes_that_reach_each_other() {
        let edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 4), (6, 7), (7, 8), (8, 6), (8, 0)];
        let mut gathered = Edges::between(9);
        edges.iter().for_each(|(from, to)| gathered.add(*from, *to, Kind::WriteRead));
        let graph = gathered.into_graph().unwrap();
        let part = Part { graph: &graph, kinds: KindSet::of(&[Kind::WriteRead]), nodes: None };
        let mut found = components(part);
        found.iter_mut().for_each(|component| component.sort());
        found.sort();
        assert_eq!(found, [vec![0, 1, 2], vec![4, 5], vec![6, 7, 8]]);
        let without = [true, false, true, true, true, true, true, true, true];
        assert_eq!(components(Part { nodes: Some(&without), ..part }).len(), 2);
        assert!(components(Part { kinds: KindSet::of(&[Kind::Time]), ..part }).is_empty());
    }

    #[test]
    fn a_long_path_needs_no_deep_stack() {
        let mut gathered = Edges::between(200_000);
        (1..200_000).for_each(|node| gathered.add(node - 1, node, Kind::Time));
        gathered.add(199_999, 0, Kind::Time);
        let graph = gathered.into_graph().unwrap();
        let found = components(Part { graph: &graph, kinds: KindSet::of(&[Kind::Time]), nodes: None });
        assert_eq!(found[0].len(), 200_000);
    }
}
