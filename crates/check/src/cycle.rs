//! Short cycles within a component, and the bound on the search for them.

use crate::graph::{Kind, KindSet, Part};
use std::collections::VecDeque;

/// A cycle, or a path without its last node: each node and the kind of the edge that leaves it.
pub(crate) type Path = Vec<(u32, Kind)>;

/// Searches paths. Its arrays are made once and used again: a search costs only what it looks at.
#[derive(Debug)]
pub(crate) struct Search {
    turn: u32,
    /// Of each node: the search that saw it last, its distance there, and the edge that led to it.
    seen: Vec<(u32, u32, u32, Kind)>,
    queue: VecDeque<u32>,
    /// Edges that may still be looked at by searches that are not sure to find anything.
    budget: u64,
}

impl Search {
    /// The budget is four times the graph's edges and one million: so the searches together stay linear.
    pub(crate) fn new(part: Part<'_>) -> Self {
        Search {
            turn: 0,
            seen: vec![(0, 0, 0, Kind::Wire); part.graph.nodes()],
            queue: VecDeque::new(),
            budget: 4 * part.graph.edges() as u64 + 1_000_000,
        }
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.budget == 0
    }

    /// A shortest cycle through a node, among the nodes of one component.
    pub(crate) fn cycle(&mut self, part: Part<'_>, components: &[u32], node: u32) -> Option<Path> {
        self.path(part, components, node, node, None)
    }

    /// A shortest path between two nodes of one component, as long as the budget lasts.
    pub(crate) fn path_within_budget(
        &mut self,
        part: Part<'_>,
        components: &[u32],
        from: u32,
        to: u32,
    ) -> Option<Path> {
        let before = self.budget;
        let mut left = before;
        let path = self.path(part, components, from, to, Some(&mut left));
        self.budget = left;
        path
    }

    /// Breadth first. Edges from auxiliary nodes have no length, as they are the rest of one that has.
    fn path(
        &mut self,
        part: Part<'_>,
        components: &[u32],
        from: u32,
        to: u32,
        mut budget: Option<&mut u64>,
    ) -> Option<Path> {
        self.turn += 1;
        let turn = self.turn;
        self.queue.clear();
        self.queue.push_back(from);
        self.seen[from as usize] = (turn, 0, from, Kind::Wire);
        while let Some(node) = self.queue.pop_front() {
            let distance = self.seen[node as usize].1;
            for edge in part.graph.from(node) {
                if let Some(left) = budget.as_deref_mut() {
                    *left = left.checked_sub(1)?;
                }
                let (next, kind) = edge;
                if !part.has(edge) || components[next as usize] != components[from as usize] {
                    continue;
                }
                if next == to {
                    return Some(self.back(from, node, kind));
                }
                let length = u32::from(kind != Kind::Wire);
                let seen = &mut self.seen[next as usize];
                if seen.0 == turn && seen.1 <= distance + length {
                    continue;
                }
                *seen = (turn, distance + length, node, kind);
                if length == 0 {
                    self.queue.push_front(next);
                } else {
                    self.queue.push_back(next);
                }
            }
        }
        None
    }

    fn back(&self, from: u32, mut node: u32, mut kind: Kind) -> Path {
        let mut path = vec![(node, kind)];
        while node != from {
            (_, _, node, kind) = self.seen[node as usize];
            path.push((node, kind));
        }
        path.reverse();
        path
    }
}

/// The kinds of edges between writers, and from writers to readers.
pub(crate) const WRITES: KindSet = KindSet::of(&[Kind::WriteWrite]);
/// Those of information flow.
pub(crate) const FLOW: KindSet =
    KindSet::of(&[Kind::WriteWrite, Kind::WriteRead, Kind::WriteRange, Kind::Wire]);
/// All but real time.
pub(crate) const DEPENDENCIES: KindSet = FLOW.and(Kind::ReadWrite).and(Kind::RangeWrite);
/// All.
pub(crate) const ALL: KindSet = DEPENDENCIES.and(Kind::Time);
