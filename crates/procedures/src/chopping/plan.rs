//! The result of the analysis as the execution uses it: for each class of operations, the piece to which it belongs.

use super::graph::Publishing;
use super::ranks::PIECES_MAX;
use super::{ChoppingGraph, OperationClass, Piece, RankedGraph};
use hotrow_core::PieceRanks;
use hotrow_tables::operations::OperationKind;

/// The chopped procedures of a database.
#[derive(Debug)]
pub(crate) struct ChoppingPlan {
    procedures: Vec<ProcedurePlan>,
}

/// A procedure in pieces. If pieces have no ranks, the first has the conflicting piece and all that must come before it; the pieces
/// after that conflict with nobody, and are executed together.
#[derive(Debug)]
pub(crate) struct ProcedurePlan {
    name: String,
    /// True if it only reads, on snapshots.
    pub(crate) on_snapshot: bool,
    /// True if commutative changes are executed as such, and not as updates.
    pub(crate) commutes: bool,
    /// True if a class publishes or subscribes.
    pub(crate) has_marks: bool,
    /// The ranks of each piece.
    pieces: Vec<Option<PieceRanks>>,
    /// The ranks of all pieces together.
    all_ranks: Option<PieceRanks>,
    classes: Vec<(u64, ClassPlan)>,
}

/// The part of a class of operations in its procedure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClassPlan {
    /// The number of its piece.
    pub(crate) piece: u8,
    /// True if its results are needed after that piece.
    pub(crate) kept: bool,
    /// True if its changes are published, in a later piece.
    pub(crate) publishes: bool,
    /// True if it checks for marks of published changes.
    pub(crate) subscribes: bool,
}

/// A class as one word. Databases have fewer than 2^24 tables and indexes.
fn word(part: u32, kind: OperationKind, groups: u32) -> u64 {
    u64::from(part) << 40 | (kind as u64) << 32 | u64::from(groups)
}

/// The plans of the classes of a procedure.
fn classes(classes: &[OperationClass], plan: impl Fn(usize) -> ClassPlan) -> Vec<(u64, ClassPlan)> {
    let words = classes.iter().map(|class| word(class.part, class.kind, class.groups));
    words.enumerate().map(|(at, word)| (word, plan(at))).collect()
}

impl ChoppingPlan {
    /// A plan of procedures of which one piece conflicts with others, at most.
    pub(crate) fn of(graph: &ChoppingGraph, commutes: bool) -> Self {
        let procedures = graph.procedures.iter().map(|procedure| {
            // Reads that conflict with nobody are in nobody's way, and not worth a transaction of their own.
            let writes =
                |piece: &Piece| piece.classes.iter().any(|class| !procedure.classes[*class].only_reads());
            let goes_on = procedure.pieces.iter().any(|piece| piece.first)
                && procedure.pieces.iter().any(|piece| !piece.first && writes(piece));
            let plan = |at: usize| {
                let piece = procedure.pieces.iter().find(|piece| piece.classes.contains(&at));
                let is_first = piece.is_some_and(|piece| piece.first);
                let Publishing { publishes, subscribes } = procedure.publishing[at];
                let (piece, kept) = (u8::from(goes_on && !is_first), procedure.kept[at]);
                ClassPlan { piece, kept, publishes: publishes && !is_first, subscribes }
            };
            ProcedurePlan {
                name: procedure.name.clone(),
                on_snapshot: procedure.on_snapshot,
                commutes,
                has_marks: procedure.publishing.iter().any(|class| *class != Publishing::default()),
                pieces: vec![None; 1 + usize::from(goes_on)],
                all_ranks: None,
                classes: classes(&procedure.classes, plan),
            }
        });
        Self { procedures: procedures.collect() }
    }

    /// A plan of procedures whose pieces are ordered when they run.
    pub(crate) fn ranked(graph: &RankedGraph, commutes: bool) -> Self {
        let procedures = graph.procedures.iter().map(|procedure| {
            let plan = |at: usize| {
                let piece = procedure.pieces.iter().position(|piece| piece.classes.contains(&at));
                let piece = piece.expect("each class has a piece");
                let (piece, kept) = (piece as u8, procedure.kept[at]);
                ClassPlan { piece, kept, publishes: false, subscribes: false }
            };
            ProcedurePlan {
                name: procedure.name.clone(),
                on_snapshot: procedure.on_snapshot,
                commutes,
                has_marks: false,
                pieces: procedure.pieces.iter().map(|piece| piece.ranks).collect(),
                all_ranks: procedure.all_ranks(),
                classes: classes(&procedure.classes, plan),
            }
        });
        Self { procedures: procedures.collect() }
    }

    /// True if procedures publish changes.
    pub(crate) fn publishes(&self) -> bool {
        self.procedures.iter().any(|procedure| procedure.has_marks)
    }

    /// Returns the plan of a procedure, if it was analysed.
    pub(crate) fn find(&self, name: &str) -> Option<&ProcedurePlan> {
        self.procedures.iter().find(|procedure| procedure.name == name)
    }
}

const _: () = assert!(PIECES_MAX <= 64, "the pieces in which a value is known are bits of a word");

impl ProcedurePlan {
    /// The number of its pieces.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.pieces.len()
    }

    /// The ranks of a piece, if it conflicts with pieces of others and is ordered.
    #[inline]
    pub(crate) fn ranks(&self, piece: usize) -> Option<PieceRanks> {
        self.pieces[piece]
    }

    /// The same for the procedure as one piece.
    pub(crate) fn all_ranks(&self) -> Option<PieceRanks> {
        self.all_ranks
    }

    /// Returns the class of an operation; `None` if the analysis has not seen it.
    #[inline]
    pub(crate) fn class(&self, part: u32, kind: OperationKind, groups: u32) -> Option<ClassPlan> {
        let wanted = word(part, kind, groups);
        self.classes.iter().find(|(word, _)| *word == wanted).map(|(_, class)| *class)
    }
}
