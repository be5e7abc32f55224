//! Search for short cycles within a component, and the bound on its cost.

use crate::graph::{Kind, KindSet, Part};
use std::collections::VecDeque;

/// A cycle, or a path without its last node: each node with the kind of the edge that leaves it.
pub(crate) type Path = Vec<(u32, Kind)>;

/// Search for shortest paths. The arrays are allocated once and reused, so that a search costs only the edges it
/// visits.
#[derive(Debug)]
pub(crate) struct Search {
    turn: u32,
    /// Per node: the last search that saw it, its distance there, and the edge that led to it.
    seen: Vec<(u32, u32, u32, Kind)>,
    queue: VecDeque<u32>,
    /// Number of edges that the searches which may find nothing may still visit.
    budget: u64,
}

impl Search {
    /// Makes a search with a budget of four times the graph's edges plus one million, so that all searches together
    /// stay linear.
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

    /// Returns a shortest cycle through a node, among the nodes of one component.
    pub(crate) fn cycle(&mut self, part: Part<'_>, components: &[u32], node: u32) -> Option<Path> {
        self.path(part, components, node, node, None)
    }

    /// Returns a shortest path between two nodes of one component; `None` if the budget is spent first.
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

    /// Breadth-first search. An edge out of an auxiliary node has length 0, because it continues an edge that has
    /// been counted.
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

/// Kinds of edges between writers.
pub(crate) const WRITES: KindSet = KindSet::of(&[Kind::WriteWrite]);
/// Kinds of information flow.
pub(crate) const FLOW: KindSet =
    KindSet::of(&[Kind::WriteWrite, Kind::WriteRead, Kind::WriteRange, Kind::Wire]);
/// All kinds but real time.
pub(crate) const DEPENDENCIES: KindSet = FLOW.and(Kind::ReadWrite).and(Kind::RangeWrite);
/// All kinds.
pub(crate) const ALL: KindSet = DEPENDENCIES.and(Kind::Time);
