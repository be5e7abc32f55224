//! The chopping graph: pieces, conflicts, and the removal of SC-cycles.

use super::error::ChoppingError;
use super::operations::{Declared, OperationClass, Shape, ShapedClass};
use hotrow_tables::operations::OperationKind;
use std::collections::BTreeSet;

/// The result of chopping procedures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoppingGraph {
    /// The procedures, as they were added.
    pub procedures: Vec<ChoppedProcedure>,
    /// The conflicts between instances of the procedures.
    pub edges: Vec<ConflictEdge>,
}

/// A procedure in pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChoppedProcedure {
    /// Its name.
    pub name: String,
    /// Its classes of operations, in the order of the program.
    pub classes: Vec<OperationClass>,
    /// Its pieces, in an order in which they can be executed.
    pub pieces: Vec<Piece>,
    /// True if it only reads, on snapshots. Then it takes no part in the graph, and is one piece.
    pub on_snapshot: bool,
    /// For each class: true if its results are needed after the first pieces.
    pub(super) kept: Vec<bool>,
    /// For each class: its part in [publishing](super::publishing).
    pub(super) publishing: Vec<Publishing>,
}

/// The part of a class in the publishing of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Publishing {
    /// Its changes are published.
    pub(super) publishes: bool,
    /// It reads, or overwrites, what others publish.
    pub(super) subscribes: bool,
}

/// A piece: operations that are executed as one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Positions in [`ChoppedProcedure::classes`].
    pub classes: Vec<usize>,
    /// True if it conflicts with a piece of an instance of some procedure.
    pub conflicting: bool,
    /// True if it is executed before, or together with, the conflicting piece: that depends on it, or the procedure branches on it
    /// or may roll back for it.
    pub first: bool,
}

/// A conflict between two classes of operations, of two instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConflictEdge {
    /// The positions of procedure and class. Not after `to`.
    pub from: (usize, usize),
    /// The same for the other one.
    pub to: (usize, usize),
    /// True if the changes are published later, so that it is no conflict any more.
    pub published: bool,
}

impl ChoppedProcedure {
    /// Returns the conflicting piece, if it has one.
    pub fn conflicting_piece(&self) -> Option<&Piece> {
        self.pieces.iter().find(|piece| piece.conflicting)
    }
}

/// The pieces of one procedure while the graph is made: sets of classes.
pub(super) type Pieces = Vec<BTreeSet<usize>>;

pub(super) fn analyse(shapes: &[Shape], declared: &Declared) -> Result<ChoppingGraph, ChoppingError> {
    let on_snapshot = |shape: &Shape| declared.readers_on_snapshots && shape.only_reads();
    let edges = conflict_edges(shapes, declared, on_snapshot);
    check_published(shapes, &edges)?;
    let mut pieces: Vec<Pieces> = shapes
        .iter()
        .map(|shape| {
            let mut pieces: Pieces = (0..shape.classes.len()).map(|class| BTreeSet::from([class])).collect();
            join_owned(shape, declared, &mut pieces);
            merge_cycles(shape, &mut pieces);
            pieces
        })
        .collect();
    while remove_sc_cycle(shapes, &edges, &mut pieces) {}
    let procedures = shapes.iter().zip(pieces).enumerate();
    let procedures = procedures.map(|(number, (shape, pieces))| {
        let conflicts = |class: usize| {
            let touches = |edge: &ConflictEdge| {
                !edge.published && (edge.from == (number, class) || edge.to == (number, class))
            };
            edges.iter().any(touches)
        };
        let publishing = |class: usize| {
            let is_end = |edge: &ConflictEdge| [edge.from, edge.to].contains(&(number, class));
            let is_on_edge = edges.iter().any(|edge| edge.published && is_end(edge));
            let publishes = is_on_edge && declared.is_published(shape, &shape.classes[class]);
            Publishing { publishes, subscribes: is_on_edge && !publishes }
        };
        let publishing = (0..shape.classes.len()).map(publishing).collect();
        let pieces = if on_snapshot(shape) { vec![(0..shape.classes.len()).collect()] } else { pieces };
        chopped(shape, &pieces, on_snapshot(shape), conflicts, publishing)
    });
    let procedures: Vec<ChoppedProcedure> = procedures.collect();
    for procedure in &procedures {
        let conflicting = procedure.pieces.iter().filter(|piece| piece.conflicting).count();
        // INVARIANT 18: At most one piece of a chopped procedure conflicts with other transactions.
        assert!(conflicting <= 1, "at most one piece of {} conflicts (dbx-tc, Theorem 1)", procedure.name);
    }
    Ok(ChoppingGraph { procedures, edges })
}

/// The conflicts between instances of procedures, unless they run on snapshots.
pub(super) fn conflict_edges(
    shapes: &[Shape],
    declared: &Declared,
    on_snapshot: impl Fn(&Shape) -> bool,
) -> Vec<ConflictEdge> {
    let mut edges = Vec::new();
    for (first, one) in shapes.iter().enumerate().filter(|(_, shape)| !on_snapshot(shape)) {
        for (second, other) in shapes.iter().enumerate().skip(first).filter(|(_, shape)| !on_snapshot(shape))
        {
            for (a, one_class) in one.classes.iter().enumerate() {
                // Two instances of one procedure: each pair once.
                let begin = if first == second { a } else { 0 };
                for (b, other_class) in other.classes.iter().enumerate().skip(begin) {
                    if conflict((one, one_class), (other, other_class), declared) {
                        let published = declared.is_published(one, one_class)
                            || declared.is_published(other, other_class);
                        edges.push(ConflictEdge { from: (first, a), to: (second, b), published });
                    }
                }
            }
        }
    }
    edges
}

/// True if operations of these classes may conflict.
fn conflict(one: (&Shape, &ShapedClass), other: (&Shape, &ShapedClass), declared: &Declared) -> bool {
    let (a, b) = (&one.1.class, &other.1.class);
    if a.table != b.table
        || a.immutable
        || b.immutable
        || a.only_reads() && b.only_reads()
        || a.groups & b.groups == 0 && !declared.ignores_groups
    {
        return false;
    }
    match (a.kind, b.kind) {
        (OperationKind::Commutative, OperationKind::Commutative) if !declared.ignores_commuting => {
            return false;
        }
        (OperationKind::Insert, OperationKind::Insert)
            if ![one.1, other.1].iter().any(|shaped| shaped.is_used || shaped.decides) =>
        {
            return false;
        }
        _ => {}
    }
    let is_owned = |(child, parent): &(String, String)| {
        let takes = |shaped: &ShapedClass| shaped.taken_from.contains(parent);
        let makes = |(shape, shaped): (&Shape, &ShapedClass)| {
            shaped.class.kind == OperationKind::Insert && shape.inserts_into(parent)
        };
        *child == a.table
            && (takes(one.1) && (takes(other.1) || makes(other)) || takes(other.1) && makes(one))
    };
    !declared.belongs.iter().any(is_owned)
}

/// Merges insertions of rows with that of the row to which they belong: whoever takes that one out finds them.
pub(super) fn join_owned(shape: &Shape, declared: &Declared, pieces: &mut Pieces) {
    for (child, parent) in &declared.belongs {
        let inserts = |table: &String| {
            let is_such =
                |class: &OperationClass| class.kind == OperationKind::Insert && class.table == *table;
            shape.classes.iter().position(|shaped| is_such(&shaped.class))
        };
        if let (Some(child), Some(parent)) = (inserts(child), inserts(parent)) {
            merge(pieces, |piece| piece.contains(&child) || piece.contains(&parent));
        }
    }
}

/// Merges all pieces for which `is_part` is true. True if there were several.
pub(super) fn merge(pieces: &mut Pieces, is_part: impl Fn(&BTreeSet<usize>) -> bool) -> bool {
    let (parts, rest): (Pieces, Pieces) =
        std::mem::take(pieces).into_iter().partition(|piece| is_part(piece));
    let several = parts.len() > 1;
    *pieces = rest;
    let merged: BTreeSet<usize> = parts.into_iter().flatten().collect();
    if !merged.is_empty() {
        pieces.push(merged);
    }
    several
}

/// Merges pieces that depend on each other both ways, directly or over others.
pub(super) fn merge_cycles(shape: &Shape, pieces: &mut Pieces) {
    loop {
        let reached: Vec<BTreeSet<usize>> =
            (0..pieces.len()).map(|at| reached_from(shape, pieces, at)).collect();
        let cycle = (0..pieces.len()).find_map(|at| {
            let other =
                reached[at].iter().copied().find(|other| *other != at && reached[*other].contains(&at));
            other.map(|other| (at, other))
        });
        let Some((one, other)) = cycle else { return };
        let (one, other) = (pieces[one].clone(), pieces[other].clone());
        merge(pieces, |piece| *piece == one || *piece == other);
    }
}

/// The pieces on which a piece depends, directly or over others.
pub(super) fn reached_from(shape: &Shape, pieces: &Pieces, from: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        let needed = pieces[at].iter().flat_map(|class| &shape.classes[*class].depends_on);
        for class in needed {
            let piece =
                pieces.iter().position(|piece| piece.contains(class)).expect("each class has a piece");
            if piece != at && reached.insert(piece) {
                open.push(piece);
            }
        }
    }
    reached
}

/// Merges the pieces of one procedure that lie on an SC-cycle. False if there is none.
///
/// Two pieces of an instance lie on an SC-cycle if there is a way from one to the other that uses no S-edge of that instance.
fn remove_sc_cycle(shapes: &[Shape], edges: &[ConflictEdge], pieces: &mut [Pieces]) -> bool {
    for own in 0..shapes.len() {
        // Sets of classes of instances that are connected without the S-edges of instance 0 of `own`.
        let mut sets = Sets::new(shapes);
        for (number, pieces) in pieces.iter().enumerate() {
            for instance in 0..2 {
                let has_s_edges = (number, instance) != (own, 0);
                for piece in pieces {
                    sets.join_all(piece.iter().map(|class| (number, instance, *class)));
                }
                if has_s_edges {
                    sets.join_all((0..shapes[number].classes.len()).map(|class| (number, instance, class)));
                }
            }
        }
        for edge in edges.iter().filter(|edge| !edge.published) {
            for (from, to) in [(0, 1), (1, 0), (0, 0), (1, 1)] {
                if (edge.from.0, from) != (edge.to.0, to) {
                    let ends = [(edge.from.0, from, edge.from.1), (edge.to.0, to, edge.to.1)];
                    sets.join_all(ends.into_iter());
                }
            }
        }
        let set_of = |piece: &BTreeSet<usize>, sets: &mut Sets<'_>| {
            let class = *piece.first().expect("a piece has an operation");
            sets.set_of((own, 0, class))
        };
        let found: Vec<usize> = pieces[own].iter().map(|piece| set_of(piece, &mut sets)).collect();
        let shared = (0..found.len()).find(|at| found[..*at].contains(&found[*at]));
        if let Some(at) = shared {
            let on_cycle: Pieces = pieces[own]
                .iter()
                .zip(&found)
                .filter(|(_, set)| **set == found[at])
                .map(|(piece, _)| piece.clone())
                .collect();
            merge(&mut pieces[own], |piece| on_cycle.contains(piece));
            merge_cycles(&shapes[own], &mut pieces[own]);
            return true;
        }
    }
    false
}

/// Disjoint sets of (procedure, instance, class).
struct Sets<'a> {
    shapes: &'a [Shape],
    parents: Vec<usize>,
}

impl<'a> Sets<'a> {
    fn new(shapes: &'a [Shape]) -> Self {
        let count = shapes.iter().map(|shape| 2 * shape.classes.len()).sum();
        Self { shapes, parents: (0..count).collect() }
    }

    fn set_of(&mut self, (procedure, instance, class): (usize, usize, usize)) -> usize {
        let before: usize = self.shapes[..procedure].iter().map(|shape| 2 * shape.classes.len()).sum();
        let mut at = before + instance * self.shapes[procedure].classes.len() + class;
        while self.parents[at] != at {
            self.parents[at] = self.parents[self.parents[at]];
            at = self.parents[at];
        }
        at
    }

    fn join_all(&mut self, mut members: impl Iterator<Item = (usize, usize, usize)>) {
        let Some(first) = members.next() else { return };
        for member in members {
            let (one, other) = (self.set_of(first), self.set_of(member));
            self.parents[other] = one;
        }
    }
}

/// Checks that who reads published changes does not conflict with their publisher in another way, over others included.
fn check_published(shapes: &[Shape], edges: &[ConflictEdge]) -> Result<(), ChoppingError> {
    let mut connected: Vec<usize> = (0..shapes.len()).collect();
    for edge in edges.iter().filter(|edge| !edge.published) {
        let (one, other) = (connected[edge.from.0], connected[edge.to.0]);
        connected.iter_mut().filter(|set| **set == other).for_each(|set| *set = one);
    }
    for edge in edges.iter().filter(|edge| edge.published) {
        let ((from, class), (to, other)) = (edge.from, edge.to);
        let publishes = |(procedure, class): (usize, usize)| {
            let shaped: &ShapedClass = &shapes[procedure].classes[class];
            shaped.class.kind == OperationKind::Commutative
        };
        let ((publisher, class), subscriber) =
            if publishes((from, class)) { ((from, class), to) } else { ((to, other), from) };
        if connected[publisher] == connected[subscriber] {
            return Err(ChoppingError::Connected {
                publisher: shapes[publisher].name.clone(),
                table: shapes[publisher].classes[class].class.table.clone(),
                subscriber: shapes[subscriber].name.clone(),
            });
        }
    }
    Ok(())
}

/// Puts the pieces of a procedure in order.
fn chopped(
    shape: &Shape,
    pieces: &Pieces,
    on_snapshot: bool,
    conflicts: impl Fn(usize) -> bool,
    publishing: Vec<Publishing>,
) -> ChoppedProcedure {
    let is_conflicting = |piece: &BTreeSet<usize>| piece.iter().any(|class| conflicts(*class));
    let decides = |piece: &BTreeSet<usize>| piece.iter().any(|class| shape.classes[*class].decides);
    // The keys of published changes are marked, and those of others checked, in the first piece.
    let marks = |piece: &BTreeSet<usize>| {
        let needs = |(class, publishing): (usize, &Publishing)| {
            publishing.publishes && !shape.classes[class].keys_from.is_disjoint(piece)
        };
        piece.iter().any(|class| publishing[*class].subscribes) || publishing.iter().enumerate().any(needs)
    };
    let mut first = BTreeSet::new();
    for (at, piece) in pieces.iter().enumerate() {
        if is_conflicting(piece) || decides(piece) || marks(piece) {
            first.insert(at);
            first.extend(reached_from(shape, pieces, at));
        }
    }
    let mut left: Vec<usize> = (0..pieces.len()).collect();
    let mut ordered = Vec::with_capacity(pieces.len());
    while !left.is_empty() {
        let can_run =
            |at: &usize| reached_from(shape, pieces, *at).iter().all(|needed| !left.contains(needed));
        // The earliest in the program among those that come first, if there are any left.
        let next = left
            .iter()
            .copied()
            .filter(can_run)
            .min_by_key(|at| (!first.contains(at), pieces[*at].first().copied()));
        let next = next.expect("pieces do not depend on each other both ways");
        left.retain(|at| *at != next);
        ordered.push(Piece {
            classes: pieces[next].iter().copied().collect(),
            conflicting: is_conflicting(&pieces[next]),
            first: first.contains(&next),
        });
    }
    let is_first = |class: usize| ordered.iter().any(|piece| piece.first && piece.classes.contains(&class));
    let is_kept = |class: usize| {
        let needs = |(at, shaped): (usize, &ShapedClass)| !is_first(at) && shaped.depends_on.contains(&class);
        let shaped = &shape.classes[class];
        is_first(class)
            && (shaped.is_in_output || shaped.decides || shape.classes.iter().enumerate().any(needs))
    };
    let kept = (0..shape.classes.len()).map(is_kept).collect();
    ChoppedProcedure {
        kept,
        publishing,
        name: shape.name.clone(),
        classes: shape.classes.iter().map(|shaped| shaped.class.clone()).collect(),
        pieces: ordered,
        on_snapshot,
    }
}
