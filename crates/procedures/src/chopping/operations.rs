//! Classes of operations: what the traces of a procedure say about it, without rows.

use crate::trace::{OperationId, ProcedureTrace, TracedOperation};
use hotrow_tables::operations::OperationKind;
use std::collections::BTreeSet;
use std::fmt;

/// The operations of a procedure on the same column groups of a table, of the same kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationClass {
    /// The name of the table.
    pub table: String,
    /// The name of the secondary index through which the operations look at the table, if they do.
    pub index: Option<String>,
    /// The number of the table, or of the secondary index, in its database.
    pub part: u32,
    /// The kind of the operations.
    pub kind: OperationKind,
    /// The column groups, one bit each.
    pub groups: u32,
    /// The names of the column groups.
    pub group_names: Vec<&'static str>,
    /// True if the table, or the index, is immutable.
    pub immutable: bool,
}

impl OperationClass {
    fn of(operation: &TracedOperation) -> Self {
        Self {
            table: operation.table.clone(),
            index: operation.index.clone(),
            part: operation.part,
            kind: operation.kind,
            groups: operation.groups,
            group_names: operation.group_names.clone(),
            immutable: operation.immutable,
        }
    }

    /// True if the operations only read.
    pub fn only_reads(&self) -> bool {
        self.kind.is_read()
    }
}

impl fmt::Display for OperationClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.index.as_ref().unwrap_or(&self.table))?;
        let is_whole =
            matches!(self.kind, OperationKind::Insert | OperationKind::Delete | OperationKind::Scan);
        if !is_whole && self.group_names.as_slice() != [crate::trace::MAIN_GROUP] {
            write!(f, " ({})", self.group_names.join(", "))?;
        }
        Ok(())
    }
}

/// Declarations beside the traces.
#[derive(Debug, Clone, Default)]
pub(super) struct Declared {
    pub(super) readers_on_snapshots: bool,
    /// Commutative changes are taken for updates.
    pub(super) ignores_commuting: bool,
    /// Column groups are taken for whole rows.
    pub(super) ignores_groups: bool,
    /// Tables whose rows belong to rows of another table.
    pub(super) belongs: Vec<(String, String)>,
    /// Procedures, and the tables that they change by publishing.
    pub(super) published: Vec<(String, String)>,
}

impl Declared {
    /// True if the changes of a class are published.
    pub(super) fn is_published(&self, shape: &Shape, shaped: &ShapedClass) -> bool {
        let is_such =
            |(procedure, table): &(String, String)| *procedure == shape.name && *table == shaped.class.table;
        shaped.class.kind == OperationKind::Commutative && self.published.iter().any(is_such)
    }
}

/// A procedure as the analysis sees it.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) name: String,
    pub(super) classes: Vec<ShapedClass>,
}

/// A class of operations, with its part in the procedure.
#[derive(Debug, Clone)]
pub(super) struct ShapedClass {
    pub(super) class: OperationClass,
    /// The classes on which it depends, by data or because the procedure branches on them.
    pub(super) depends_on: BTreeSet<usize>,
    /// Those among them from which its keys come.
    pub(super) keys_from: BTreeSet<usize>,
    /// True if the procedure uses a result of it.
    pub(super) is_used: bool,
    /// True if the procedure's output depends on it.
    pub(super) is_in_output: bool,
    /// True if the procedure branches on a result of it, or may roll back for it.
    pub(super) decides: bool,
    /// The tables out of which the transaction has taken the rows from which every one of its keys comes.
    pub(super) taken_from: BTreeSet<String>,
}

impl Shape {
    pub(super) fn of(name: String, traces: impl IntoIterator<Item = ProcedureTrace>) -> Self {
        let mut shape = Self { name, classes: Vec::new() };
        for trace in traces {
            shape.add(&trace);
        }
        shape
    }

    /// True if no operation writes.
    pub(super) fn only_reads(&self) -> bool {
        self.classes.iter().all(|shaped| shaped.class.only_reads())
    }

    /// True if it changes a table in a commutative way.
    pub(super) fn commutes_on(&self, table: &str) -> bool {
        let is_such =
            |class: &OperationClass| class.kind == OperationKind::Commutative && class.table == table;
        self.classes.iter().any(|shaped| is_such(&shaped.class))
    }

    /// True if it inserts into a table.
    pub(super) fn inserts_into(&self, table: &str) -> bool {
        let is_such = |class: &OperationClass| class.kind == OperationKind::Insert && class.table == table;
        self.classes.iter().any(|shaped| is_such(&shaped.class))
    }

    fn add(&mut self, trace: &ProcedureTrace) {
        let operations = &trace.operations;
        let mut taken: Vec<BTreeSet<String>> = Vec::with_capacity(operations.len());
        let mut classes = Vec::with_capacity(operations.len());
        for operation in operations {
            // The rows taken out are known by whatever comes from the deletion.
            let sources = |ids: &[OperationId]| -> BTreeSet<String> {
                let inherited = ids.iter().flat_map(|id| taken[id.0 as usize].iter().cloned());
                let deletes = |id: &&OperationId| operations[id.0 as usize].kind == OperationKind::Delete;
                let deleted = ids.iter().filter(deletes).map(|id| operations[id.0 as usize].table.clone());
                inherited.chain(deleted).collect()
            };
            let by_key = sources(&operation.key_data);
            taken.push(sources(&operation.data));
            classes.push(self.class_of(operation, by_key));
        }
        for (operation, own) in operations.iter().zip(&classes) {
            for id in operation.data.iter().chain(&operation.control) {
                let other = classes[id.0 as usize];
                self.classes[*own].depends_on.insert(other);
            }
            for id in &operation.key_data {
                let other = classes[id.0 as usize];
                self.classes[*own].keys_from.insert(other);
            }
            for id in &operation.data {
                self.classes[classes[id.0 as usize]].is_used = true;
            }
            for id in &operation.control {
                self.classes[classes[id.0 as usize]].decides = true;
            }
        }
        for id in &trace.output {
            let class = &mut self.classes[classes[id.0 as usize]];
            (class.is_used, class.is_in_output) = (true, true);
        }
        for id in &trace.decisions {
            self.classes[classes[id.0 as usize]].decides = true;
        }
    }

    /// Returns the number of the operation's class. Its keys come from the tables that all operations of the class name.
    fn class_of(&mut self, operation: &TracedOperation, taken_from: BTreeSet<String>) -> usize {
        let class = OperationClass::of(operation);
        if let Some(at) = self.classes.iter().position(|shaped| shaped.class == class) {
            self.classes[at].taken_from.retain(|table| taken_from.contains(table));
            return at;
        }
        self.classes.push(ShapedClass {
            class,
            depends_on: BTreeSet::new(),
            keys_from: BTreeSet::new(),
            is_used: false,
            is_in_output: false,
            decides: false,
            taken_from,
        });
        self.classes.len() - 1
    }
}
