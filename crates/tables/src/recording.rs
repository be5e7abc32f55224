//! What a procedure does, as data: its operations in order, with their dependencies.

use std::fmt;

/// The number of an operation in its recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId(pub u32);

/// What an operation does to its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OperationKind {
    /// Looks at one row.
    Read,
    /// Changes one row, depending on what was there.
    Write,
    /// Replaces one row, whatever was there.
    Replace,
    /// Inserts one row.
    Insert,
    /// Deletes one row.
    Delete,
    /// Looks at a range of rows, or of a secondary index.
    Scan,
    /// Changes one row in a way that commutes with other commutative changes.
    Commutative,
}

/// One operation of a procedure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The table's, or the secondary index's, name.
    pub table: String,
    /// The key, or the range.
    pub key: String,
    /// What it does.
    pub kind: OperationKind,
    /// Whether the table is declared static: then it conflicts with nothing.
    pub fixed: bool,
    /// The group, for an insert that names one.
    pub group: Option<u64>,
    /// The operations whose results are inputs of this one: its key, its row, the input of its change.
    pub data: Vec<OperationId>,
    /// The operations whose results were forced, or required to hold, before this one: whether it is done at
    /// all may depend on them.
    pub control: Vec<OperationId>,
}

/// The operations of one execution of a procedure, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The operations. An [`OperationId`] is a position here.
    pub operations: Vec<Operation>,
    /// The operations on which the procedure's output depends.
    pub output: Vec<OperationId>,
    /// Whether the procedure asked for a rollback.
    pub rolls_back: bool,
}

impl Recorded {
    /// Whether nothing was forced: which rows are touched is known before any is read.
    pub fn is_tame(&self) -> bool {
        self.operations.iter().all(|operation| operation.control.is_empty())
    }
}

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |ids: &[OperationId]| ids.iter().map(|id| id.0.to_string()).collect::<Vec<_>>().join(" ");
        for (number, operation) in self.operations.iter().enumerate() {
            let Operation { table, key, kind, fixed, group, data, control } = operation;
            write!(f, "{number:3} {kind:?} {table}[{key}]")?;
            if *fixed {
                write!(f, " static")?;
            }
            if let Some(group) = group {
                write!(f, " group {group}")?;
            }
            if !data.is_empty() {
                write!(f, " <- {}", list(data))?;
            }
            if !control.is_empty() {
                write!(f, " if {}", list(control))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
