//! Pieces by ranks: procedures cut at each table, to be ordered while they run (Wang et al., "Scaling Multicore Databases via
//! Constrained Parallel Execution", SIGMOD 2016; drp §2.2).
//!
//! # Algorithm
//!
//! 1. Classes of operations that conflict (as for chopping, with the same refinements, except published changes) touch column groups
//!    of a table. Groups that one operation touches together are one *node*, which all that conflicts over them touches.
//! 2. Nodes have edges along the data flow of every procedure, over operations that conflict with nobody, too. The nodes of a circle
//!    are merged; so are those of operations of one procedure that depend on each other both ways, or belong together
//!    ([`Chopping::belongs`](super::Chopping::belongs)). A topological order gives the *ranks*.
//! 3. Each procedure has a piece for each of its nodes, in the order of ranks. If it decides upon a result of such a piece (branches on it,
//!    or may roll back), all pieces up to that one are merged into the first: nobody sees anything before the last decision.
//! 4. Reads that conflict with nobody, and depend on no piece, come before all others, as a piece of their own if there are any writes, so
//!    that the first conflicting piece is short. Other operations without conflict are executed as late as possible: together with the first
//!    piece that needs them, or in a last piece of their own if nobody does and there are writes among them.

use super::graph::{Pieces, conflict_edges, merge, merge_cycles, reached_from};
use super::operations::{Declared, OperationClass, Shape};
use super::{ConflictEdge, graph};
use hotrow_core::PieceRanks;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of pieces of a procedure; those before the last are merged.
pub(crate) const PIECES_MAX: usize = 64;

/// Procedures in pieces by ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankedGraph {
    /// The procedures, as they were added.
    pub procedures: Vec<RankedProcedure>,
    /// The conflicts between instances of the procedures.
    pub edges: Vec<ConflictEdge>,
}

/// A procedure in pieces by ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankedProcedure {
    /// Its name.
    pub name: String,
    /// Its classes of operations, in the order of the program.
    pub classes: Vec<OperationClass>,
    /// Its pieces, in the order in which they are executed.
    pub pieces: Vec<RankedPiece>,
    /// True if it only reads, on snapshots. Then it takes no part in the graph, and is one piece.
    pub on_snapshot: bool,
    /// For each class: true if its results are needed after its piece.
    pub(super) kept: Vec<bool>,
}

/// A piece: operations that are executed as one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankedPiece {
    /// Positions in [`RankedProcedure::classes`].
    pub classes: Vec<usize>,
    /// The ranks of its nodes, if it conflicts with pieces of others.
    pub ranks: Option<PieceRanks>,
}

impl RankedProcedure {
    /// The ranks of all its pieces together, if any conflicts.
    pub(crate) fn all_ranks(&self) -> Option<PieceRanks> {
        let all = || self.pieces.iter().filter_map(|piece| piece.ranks);
        let first = all().map(|ranks| ranks.first).min()?;
        Some(PieceRanks { first, last: all().map(|ranks| ranks.last).max()? })
    }
}

/// The nodes: disjoint sets of column groups of tables.
struct Nodes {
    numbers: BTreeMap<(String, u32), usize>,
    parents: Vec<usize>,
}

impl Nodes {
    fn of(&mut self, class: &OperationClass) -> usize {
        let groups = (0..32).filter(|group| class.groups >> group & 1 == 1);
        let mut numbers = groups.map(|group| {
            let next = self.numbers.len();
            *self.numbers.entry((class.table.clone(), group)).or_insert(next)
        });
        let all: Vec<usize> = numbers.by_ref().collect();
        self.parents.extend(self.parents.len()..self.numbers.len());
        let first = all[0];
        all.iter().for_each(|other| _ = self.join(first, *other));
        self.root(first)
    }

    fn root(&self, mut at: usize) -> usize {
        while self.parents[at] != at {
            at = self.parents[at];
        }
        at
    }

    /// True if the two were different ones.
    fn join(&mut self, one: usize, other: usize) -> bool {
        let (one, other) = (self.root(one), self.root(other));
        self.parents[one.max(other)] = one.min(other);
        one != other
    }
}

pub(super) fn rank(shapes: &[Shape], declared: &Declared) -> RankedGraph {
    let on_snapshot = |shape: &Shape| declared.readers_on_snapshots && shape.only_reads();
    let edges = conflict_edges(shapes, declared, on_snapshot);
    let mut nodes = Nodes { numbers: BTreeMap::new(), parents: Vec::new() };
    // The node of each conflicting class, if it is one.
    let node_of: Vec<Vec<Option<usize>>> = shapes
        .iter()
        .enumerate()
        .map(|(number, shape)| {
            let conflicts = |class: usize| {
                edges.iter().any(|edge| edge.from == (number, class) || edge.to == (number, class))
            };
            let classes = shape.classes.iter().enumerate();
            classes.map(|(at, shaped)| conflicts(at).then(|| nodes.of(&shaped.class))).collect()
        })
        .collect();
    let mut units: Vec<Pieces> = shapes
        .iter()
        .map(|shape| {
            let mut units: Pieces = (0..shape.classes.len()).map(|class| BTreeSet::from([class])).collect();
            graph::join_owned(shape, declared, &mut units);
            units
        })
        .collect();
    while merge_nodes(shapes, &node_of, &mut nodes, &mut units) {}
    let ranks = ranks_of(shapes, &node_of, &nodes, &units);
    let procedures = shapes.iter().zip(units).zip(&node_of).map(|((shape, units), node_of)| {
        let rank_of = |unit: &BTreeSet<usize>| {
            let class = unit.iter().find_map(|class| node_of[*class])?;
            Some(ranks[&nodes.root(class)])
        };
        cut(shape, &units, on_snapshot(shape), rank_of)
    });
    RankedGraph { procedures: procedures.collect(), edges }
}

/// Merges what must be together. True if anything was merged.
fn merge_nodes(
    shapes: &[Shape],
    node_of: &[Vec<Option<usize>>],
    nodes: &mut Nodes,
    units: &mut [Pieces],
) -> bool {
    let mut merged = false;
    for (number, shape) in shapes.iter().enumerate() {
        let found: BTreeSet<usize> = node_of[number].iter().flatten().map(|node| nodes.root(*node)).collect();
        for node in found {
            let touches = |class: &usize| node_of[number][*class].is_some_and(|own| nodes.root(own) == node);
            merged |= merge(&mut units[number], |unit| unit.iter().any(touches));
        }
        let before = units[number].len();
        merge_cycles(shape, &mut units[number]);
        merged |= units[number].len() != before;
        for unit in &units[number] {
            let mut own = unit.iter().filter_map(|class| node_of[number][*class]);
            if let Some(first) = own.next() {
                own.for_each(|other| merged |= nodes.join(first, other));
            }
        }
    }
    // Circles of nodes.
    let edges = node_edges(shapes, node_of, nodes, units);
    let reaches = |from: usize, to: usize| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(at) = open.pop() {
            for (_, next) in edges.range((at, 0)..=(at, usize::MAX)) {
                if *next == to {
                    return true;
                }
                if seen.insert(*next) {
                    open.push(*next);
                }
            }
        }
        false
    };
    let circles: Vec<_> = edges.iter().filter(|(from, to)| reaches(*to, *from)).copied().collect();
    circles.into_iter().for_each(|(from, to)| merged |= nodes.join(from, to));
    merged
}

/// The data flow between different nodes: pairs of a node and one that needs it.
fn node_edges(
    shapes: &[Shape],
    node_of: &[Vec<Option<usize>>],
    nodes: &Nodes,
    units: &[Pieces],
) -> BTreeSet<(usize, usize)> {
    let mut edges = BTreeSet::new();
    for ((shape, node_of), units) in shapes.iter().zip(node_of).zip(units) {
        let node =
            |unit: usize| units[unit].iter().find_map(|class| node_of[*class]).map(|node| nodes.root(node));
        for at in 0..units.len() {
            let Some(own) = node(at) else { continue };
            let needed = reached_from(shape, units, at).into_iter().filter_map(node);
            edges.extend(needed.filter(|other| *other != own).map(|other| (other, own)));
        }
    }
    edges
}

/// A topological order of the nodes; those that come first in the programs have low ranks where there is a choice.
fn ranks_of(
    shapes: &[Shape],
    node_of: &[Vec<Option<usize>>],
    nodes: &Nodes,
    units: &[Pieces],
) -> BTreeMap<usize, u16> {
    let edges = node_edges(shapes, node_of, nodes, units);
    let mut left: Vec<usize> = Vec::new();
    for node in node_of.iter().flatten().flatten().map(|node| nodes.root(*node)) {
        if !left.contains(&node) {
            left.push(node);
        }
    }
    let mut ranks = BTreeMap::new();
    while !left.is_empty() {
        let is_free = |node: &usize| !edges.iter().any(|(from, to)| to == node && left.contains(from));
        let at = left.iter().position(is_free).expect("circles are merged");
        let rank = u16::try_from(ranks.len()).expect("fewer nodes than tables");
        ranks.insert(left.remove(at), rank);
    }
    ranks
}

/// Cuts a procedure.
fn cut(
    shape: &Shape,
    units: &Pieces,
    on_snapshot: bool,
    rank_of: impl Fn(&BTreeSet<usize>) -> Option<u16>,
) -> RankedProcedure {
    let needs: Vec<BTreeSet<usize>> = (0..units.len()).map(|at| reached_from(shape, units, at)).collect();
    let ranks: Vec<Option<u16>> = units.iter().map(&rank_of).collect();
    let decides = |unit: usize| units[unit].iter().any(|class| shape.classes[*class].decides);
    let writes = |unit: usize| units[unit].iter().any(|class| !shape.classes[*class].class.only_reads());
    let is_free = |unit: usize| {
        ranks[unit].is_none()
            && !writes(unit)
            && needs[unit].iter().all(|needed| ranks[*needed].is_none() && !writes(*needed))
    };
    // What is decided upon, and what that needs.
    let mut decided: BTreeSet<usize> = (0..units.len()).filter(|unit| decides(*unit)).collect();
    decided.extend(decided.clone().into_iter().flat_map(|unit| needs[unit].iter().copied()));
    let is_first_ordered = decided.iter().any(|unit| !is_free(*unit));
    let last_decided = decided.iter().filter_map(|unit| ranks[*unit]).max();
    // The rank of the piece to which a unit belongs: `FREE` for those before all others.
    const FREE: i32 = -2;
    const DECIDED: i32 = -1;
    const LAST: i32 = i32::MAX;
    let own_place = |unit: usize| match ranks[unit] {
        _ if is_first_ordered && (is_free(unit) || decided.contains(&unit)) => Some(DECIDED),
        Some(rank) if last_decided.is_some_and(|last| rank <= last) => Some(DECIDED),
        Some(rank) => Some(i32::from(rank)),
        None if is_free(unit) => Some(FREE),
        None => None,
    };
    let place = |unit: usize| {
        own_place(unit).unwrap_or_else(|| {
            let dependents = (0..units.len()).filter(|other| needs[*other].contains(&unit));
            dependents.filter_map(own_place).min().unwrap_or(LAST)
        })
    };
    let mut pieces: BTreeMap<i32, BTreeSet<usize>> = BTreeMap::new();
    for unit in 0..units.len() {
        let at = if on_snapshot { FREE } else { place(unit) };
        pieces.entry(at).or_default().insert(unit);
    }
    let mut pieces: Vec<BTreeSet<usize>> = pieces.into_values().collect();
    let writes_any = |piece: &BTreeSet<usize>| piece.iter().any(|unit| writes(*unit));
    let conflicts = |piece: &BTreeSet<usize>| piece.iter().any(|unit| ranks[*unit].is_some());
    // A last piece that only reads is not worth a transaction of its own.
    if pieces.len() > 1 && pieces.last().is_some_and(|last| !writes_any(last) && !conflicts(last))
        || pieces.len() == 2 && !pieces.iter().any(&conflicts)
    {
        let last = pieces.pop().expect("there are two");
        pieces.last_mut().expect("there were two").extend(last);
    }
    while pieces.len() > PIECES_MAX {
        let merged = pieces.remove(pieces.len() - 2);
        pieces.iter_mut().nth_back(1).expect("there are many").extend(merged);
    }
    let pieces = pieces.iter().map(|piece| {
        let own = || piece.iter().filter_map(|unit| ranks[*unit]);
        let ranks = own().min().zip(own().max()).map(|(first, last)| PieceRanks { first, last });
        let classes: BTreeSet<usize> = piece.iter().flat_map(|unit| units[*unit].iter().copied()).collect();
        RankedPiece { classes: classes.into_iter().collect(), ranks }
    });
    let pieces: Vec<RankedPiece> = pieces.collect();
    let piece_of = |class: usize| {
        pieces.iter().position(|piece| piece.classes.contains(&class)).expect("each class has a piece")
    };
    let is_kept = |class: usize| {
        let (shaped, own) = (&shape.classes[class], piece_of(class));
        let is_needed = (0..shape.classes.len())
            .any(|other| shape.classes[other].depends_on.contains(&class) && piece_of(other) != own);
        own + 1 < pieces.len() && (shaped.is_in_output || shaped.decides || is_needed)
    };
    RankedProcedure {
        name: shape.name.clone(),
        classes: shape.classes.iter().map(|shaped| shaped.class.clone()).collect(),
        on_snapshot,
        kept: (0..shape.classes.len()).map(is_kept).collect(),
        pieces,
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
