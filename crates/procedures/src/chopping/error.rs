//! The error of the analysis.

/// The reason why procedures cannot be chopped as declared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChoppingError {
    /// A procedure has no trace with an operation.
    #[error("procedure {0} has no trace with an operation")]
    NoTrace(String),
    /// Two procedures have the same name.
    #[error("there are two procedures {0}")]
    SameName(String),
    /// A declaration names a procedure that is not there, or one without commutative changes of the table.
    #[error("procedure {procedure} has no commutative change of table {table} to be published")]
    NothingToPublish {
        /// The procedure.
        procedure: String,
        /// The table.
        table: String,
    },
    /// The database has chopped procedures already.
    #[error("the procedures of this database are chopped already")]
    Chopped,
    /// The published changes cannot be deferred, because the subscriber would see the publisher's other effects before them.
    #[error(
        "procedure {publisher} cannot publish its changes of table {table} later: {subscriber}, which reads them, conflicts \
         with it elsewhere, too"
    )]
    Connected {
        /// The procedure whose changes were to be published.
        publisher: String,
        /// The table of the changes.
        table: String,
        /// The procedure that reads them.
        subscriber: String,
    },
}
