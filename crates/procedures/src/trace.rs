//! The operations of a procedure as data: in order, with their dependencies.

use hotrow_tables::operations::OperationKind;
use std::fmt;

/// The number of an operation in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId(pub u32);

/// One operation of a procedure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedOperation {
    /// The name of the table.
    pub table: String,
    /// The name of the secondary index through which the operation looks at the table, if it does.
    pub index: Option<String>,
    /// The number of the table, or of the secondary index, in its database.
    pub part: u32,
    /// The key, or the range.
    pub key: String,
    /// The kind of the operation.
    pub kind: OperationKind,
    /// The [column groups](hotrow_core::column_groups) that the operation touches, one bit each: the lowest one for the main
    /// columns, the next for the first group. All, if it inserts or deletes the row.
    pub groups: u32,
    /// The names of the groups in `groups`. The main columns are called `main`.
    pub group_names: Vec<&'static str>,
    /// True if the table, or the index, is declared immutable, so that the operation conflicts with nothing.
    pub immutable: bool,
    /// The group, for an insert that names one.
    pub group: Option<u64>,
    /// The operations whose results are inputs of this one: its key, its row, the input of its change.
    pub data: Vec<OperationId>,
    /// Those of them from which the key, or the range, comes.
    pub key_data: Vec<OperationId>,
    /// The operations whose results were forced, or required to hold, before this one. The procedure may run this
    /// operation only for some of those results.
    pub control: Vec<OperationId>,
}

/// The operations of one execution of a procedure, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcedureTrace {
    /// The operations. An [`OperationId`] is a position here.
    pub operations: Vec<TracedOperation>,
    /// The operations on which the procedure's output depends.
    pub output: Vec<OperationId>,
    /// The operations whose results the procedure has forced, or required to hold.
    pub decisions: Vec<OperationId>,
    /// True if the procedure requested a rollback.
    pub rolls_back: bool,
}

/// The name of a row's main columns, which are in no group.
pub(crate) const MAIN_GROUP: &str = "main";

impl ProcedureTrace {
    /// True if nothing was forced, so that the rows to be touched are known before any is read.
    pub fn is_tame(&self) -> bool {
        self.operations.iter().all(|operation| operation.control.is_empty())
    }
}

impl fmt::Display for ProcedureTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |ids: &[OperationId]| ids.iter().map(|id| id.0.to_string()).collect::<Vec<_>>().join(" ");
        for (number, operation) in self.operations.iter().enumerate() {
            let TracedOperation {
                table, index, key, kind, group_names, immutable, group, data, control, ..
            } = operation;
            write!(f, "{number:3} {kind:?} {}[{key}]", index.as_ref().unwrap_or(table))?;
            if group_names != &[MAIN_GROUP] {
                write!(f, " of {}", group_names.join("+"))?;
            }
            if *immutable {
                write!(f, " immutable")?;
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
