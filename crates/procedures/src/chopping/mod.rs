//! Transaction chopping: procedures cut into pieces, each of which is atomic by itself (dbx-tc §3.1 and §3.2; Shasha, Llirbat,
//! Simon and Valduriez, "Transaction Chopping: Algorithms and Performance Studies", TODS 1995).
//!
//! # Input
//!
//! [Traces](crate::ProcedureTrace) of the procedures that will run, for inputs that together reach every way through them. The
//! operations of a procedure on the same column groups of a table, of the same kind, form a class ([`OperationClass`]): the
//! analysis knows tables and column groups, not rows.
//!
//! # Algorithm
//!
//! 1. At first each class is a piece. Pieces that depend on each other both ways are merged.
//! 2. The *chopping graph* has two instances of each procedure. S-edges join the pieces of an instance. C-edges join pieces of
//!    different instances that conflict: they touch the same column group of a table, at least one of them writes, and they do
//!    not commute.
//! 3. A cycle with S-edges and C-edges (an *SC-cycle*) is removed by merging the pieces of one procedure that lie on it, until
//!    there is none left. If each piece is then executed as a transaction of its own, whole procedures are serializable.
//!
//! It follows that a procedure has at most one piece with C-edges, the *conflicting piece* (dbx-tc, Theorem 1). Its place among
//! others' conflicting pieces is the procedure's place in the serial order.
//!
//! # Refinements
//!
//! - Procedures that only read take no part if they run on snapshots ([`Chopping::readers_on_snapshots`]; dbx-tc §3.2).
//! - Commutative changes do not conflict with each other. One whose result need not be seen at once can be *published* later
//!   ([`Chopping::publish`]; dbx-tc §3.2): then it does not conflict with those that read the result either.
//! - Insertions conflict with each other only if a procedure uses their results, by which it would learn that the key was taken.
//! - Rows may *belong* to a row of another table ([`Chopping::belongs`]): whoever takes that one out has them to itself. It is
//!   how the accesses to ORDER and ORDER-LINE leave Delivery's conflicting piece (dbx-tc §3.2, end).
//! - Independent operations may be reordered: a piece is a set of operations, not a range of the program.
//!
//! # Example
//!
//! ```
//! use hotrow_protocols::Any;
//! use hotrow_procedures::chopping::Chopping;
//! use hotrow_procedures::{Context, Operations, Procedure, Procedures};
//! use hotrow_tables::{Database, TableRef};
//!
//! /// Takes a ticket, and adds its price to the day's takings.
//! struct Sell {
//!     tickets: TableRef<u32, u32>,
//!     takings: TableRef<u32, u64>,
//! }
//!
//! impl Procedure for Sell {
//!     type Output = u32;
//!
//!     fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<u32>, C::Stop> {
//!         let (event, one) = (cx.value(1), cx.value(1));
//!         let left = cx.update(self.tickets, event, one, |left, one| {
//!             *left = left.saturating_sub(one);
//!             *left
//!         })?;
//!         let (today, price) = (cx.value(1), cx.value(25));
//!         cx.commute(self.takings, today, price, |sum, price: u64| *sum += price)?;
//!         Ok(cx.map(left, Option::unwrap_or_default))
//!     }
//! }
//!
//! let db: Database<Any> = Database::builder().protocol("chop").open()?;
//! let tickets = db.table::<u32, u32>("tickets").create()?;
//! let takings = db.table::<u32, u64>("takings").create()?;
//! tickets.bulk_insert([(1, 1_000)])?;
//! takings.bulk_insert([(1, 0)])?;
//! let sell = Sell { tickets: tickets.reference(), takings: takings.reference() };
//!
//! let chopping = Chopping::new().procedure(sell.name(), [db.trace(&sell)?]);
//! let pieces = &chopping.analyse()?.procedures[0].pieces;
//! assert_eq!(pieces.len(), 2, "the takings are a piece of their own");
//! db.chop(&chopping)?;
//! assert_eq!(db.execute(&sell)?, 999);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Deviations
//!
//! - The paper tells the order of the pieces by hand. Here the operations on which the conflicting piece depends, and those on whose
//!   results the procedure branches or may roll back, are executed first, together with the conflicting piece.

mod error;
mod graph;
mod operations;
mod plan;
pub(crate) mod publishing;
mod ranks;

pub use error::ChoppingError;
pub use graph::{ChoppedProcedure, ChoppingGraph, ConflictEdge, Piece};
pub use operations::OperationClass;
pub(crate) use plan::{ChoppingPlan, ProcedurePlan};
pub use ranks::{RankedGraph, RankedPiece, RankedProcedure};

use crate::trace::ProcedureTrace;
use hotrow_tables::operations::OperationKind;
use operations::{Declared, Shape};

/// A set of procedures to be chopped, with what is known of them beside their traces.
#[derive(Debug, Clone, Default)]
pub struct Chopping {
    shapes: Vec<Shape>,
    declared: Declared,
}

impl Chopping {
    /// No procedures.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a procedure with its traces: one for each way through it.
    #[must_use]
    pub fn procedure(
        mut self,
        name: impl Into<String>,
        traces: impl IntoIterator<Item = ProcedureTrace>,
    ) -> Self {
        self.shapes.push(Shape::of(name.into(), traces));
        self
    }

    /// Declares that procedures that only read run on snapshots, so that they conflict with nobody.
    #[must_use]
    pub fn readers_on_snapshots(mut self) -> Self {
        self.declared.readers_on_snapshots = true;
        self
    }

    /// Declares that the rows of table `child` belong to a row of table `parent`: a transaction that has taken that row out of
    /// `parent` finds, by its key, rows of `child` that no other transaction changes any more. Insertions into `child` then share
    /// a piece with those into `parent`.
    #[must_use]
    pub fn belongs(mut self, child: impl Into<String>, parent: impl Into<String>) -> Self {
        self.declared.belongs.push((child.into(), parent.into()));
        self
    }

    /// Declares that the commutative changes that a procedure makes to a table are published later (dbx-tc §3.2).
    #[must_use]
    pub fn publish(mut self, procedure: impl Into<String>, table: impl Into<String>) -> Self {
        self.declared.published.push((procedure.into(), table.into()));
        self
    }

    /// Takes commutative changes for updates, which conflict with each other, and has them executed as such: to measure what
    /// commutativity brings.
    #[must_use]
    pub fn without_commuting(mut self) -> Self {
        self.declared.ignores_commuting = true;
        self
    }

    /// Takes operations on column groups for ones on whole rows: to measure what groups bring to the analysis. The groups still have
    /// versions of their own when procedures are executed.
    #[must_use]
    pub fn without_column_groups(mut self) -> Self {
        self.declared.ignores_groups = true;
        self
    }

    /// True if commutative changes are executed as such.
    fn commutes(&self) -> bool {
        !self.declared.ignores_commuting
    }

    /// Chops the procedures to be executed. Changes that cannot be published when procedures are executed are made like others: if a
    /// subscriber sees the publisher's other effects, or reads ranges, whose keys cannot be checked for [marks](publishing).
    pub(crate) fn plan(&self) -> Result<ChoppingPlan, ChoppingError> {
        let scans = |graph: &ChoppingGraph| {
            let scans = |procedure: &ChoppedProcedure| {
                let mut classes = procedure.classes.iter().zip(&procedure.publishing);
                classes.any(|(class, publishing)| publishing.subscribes && class.kind == OperationKind::Scan)
            };
            graph.procedures.iter().any(scans)
        };
        match self.analyse() {
            Ok(graph) if self.commutes() && !scans(&graph) => Ok(ChoppingPlan::of(&graph, true)),
            Ok(_) | Err(ChoppingError::Connected { .. }) => {
                Ok(ChoppingPlan::of(&self.without_publishing().analyse()?, self.commutes()))
            }
            Err(error) => Err(error),
        }
    }

    /// Cuts the procedures to be executed into pieces by ranks.
    pub(crate) fn ranked_plan(&self) -> Result<ChoppingPlan, ChoppingError> {
        let graph = self.rank()?;
        Ok(ChoppingPlan::ranked(&graph, self.commutes()))
    }

    /// The same procedures, with published changes as ordinary ones.
    fn without_publishing(&self) -> Self {
        let mut chopping = self.clone();
        chopping.declared.published.clear();
        chopping
    }

    /// Chops the procedures.
    ///
    /// # Errors
    ///
    /// [`ChoppingError`] if a declaration does not fit to the procedures.
    pub fn analyse(&self) -> Result<ChoppingGraph, ChoppingError> {
        self.check()?;
        graph::analyse(&self.shapes, &self.declared)
    }

    /// Cuts the procedures into pieces by ranks, which are to be ordered when they run (`ic3`): the head of the module `ranks` has the
    /// algorithm. Published changes are ordinary ones.
    ///
    /// # Errors
    ///
    /// As [`analyse`](Self::analyse), but published changes may conflict.
    pub fn rank(&self) -> Result<RankedGraph, ChoppingError> {
        self.check()?;
        Ok(ranks::rank(&self.shapes, &self.without_publishing().declared))
    }

    /// Checks that declarations fit to the procedures.
    fn check(&self) -> Result<(), ChoppingError> {
        for (at, shape) in self.shapes.iter().enumerate() {
            if shape.classes.is_empty() {
                return Err(ChoppingError::NoTrace(shape.name.clone()));
            }
            if self.shapes[..at].iter().any(|other| other.name == shape.name) {
                return Err(ChoppingError::SameName(shape.name.clone()));
            }
        }
        for (procedure, table) in &self.declared.published {
            let publishes = |shape: &Shape| shape.name == *procedure && shape.commutes_on(table);
            if !self.shapes.iter().any(publishes) {
                let (procedure, table) = (procedure.clone(), table.clone());
                return Err(ChoppingError::NothingToPublish { procedure, table });
            }
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
