//! The result of the analysis as the execution uses it: for each class of operations, the piece to which it belongs.

use super::graph::Publishing;
use super::{ChoppingGraph, Piece};
use crate::trace::OperationKind;

/// The chopped procedures of a database.
#[derive(Debug)]
pub(crate) struct ChoppingPlan {
    procedures: Vec<ProcedurePlan>,
}

/// A procedure in pieces. The first has the conflicting piece and all that must come before it; the pieces after that conflict
/// with nobody, and are executed together.
#[derive(Debug)]
pub(crate) struct ProcedurePlan {
    name: String,
    /// True if it only reads, on snapshots.
    pub(crate) on_snapshot: bool,
    /// True if commutative changes are executed as such, and not as updates.
    pub(crate) commutes: bool,
    /// True if there are writes after the first piece.
    pub(crate) goes_on: bool,
    /// True if a class publishes or subscribes.
    pub(crate) has_marks: bool,
    classes: Vec<(u64, ClassPlan)>,
}

/// The part of a class of operations in its procedure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClassPlan {
    /// True if it is executed in the first piece.
    pub(crate) first: bool,
    /// True if its results are needed after the first piece.
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

impl ChoppingPlan {
    pub(crate) fn of(graph: &ChoppingGraph, commutes: bool) -> Self {
        let procedures = graph.procedures.iter().map(|procedure| {
            let plan = |(at, class): (usize, &super::OperationClass)| {
                let piece = procedure.pieces.iter().find(|piece| piece.classes.contains(&at));
                let first = piece.is_some_and(|piece| piece.first);
                let Publishing { publishes, subscribes } = procedure.publishing[at];
                let publishes = publishes && !first;
                let kept = procedure.kept[at];
                (word(class.part, class.kind, class.groups), ClassPlan { first, kept, publishes, subscribes })
            };
            // Reads that conflict with nobody are in nobody's way, and not worth a transaction of their own.
            let writes =
                |piece: &Piece| piece.classes.iter().any(|class| !procedure.classes[*class].only_reads());
            ProcedurePlan {
                name: procedure.name.clone(),
                on_snapshot: procedure.on_snapshot,
                has_marks: procedure.publishing.iter().any(|class| *class != Publishing::default()),
                commutes,
                goes_on: procedure.pieces.iter().any(|piece| piece.first)
                    && procedure.pieces.iter().any(|piece| !piece.first && writes(piece)),
                classes: procedure.classes.iter().enumerate().map(plan).collect(),
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

impl ProcedurePlan {
    /// Returns the class of an operation; `None` if the analysis has not seen it.
    #[inline]
    pub(crate) fn class(&self, part: u32, kind: OperationKind, groups: u32) -> Option<ClassPlan> {
        let wanted = word(part, kind, groups);
        self.classes.iter().find(|(word, _)| *word == wanted).map(|(_, class)| *class)
    }
}
