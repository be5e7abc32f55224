//! Results of statements, and the client that they are for.

use crate::error::SqlError;
use crate::values::{Datum, Type};
use std::sync::Arc;

/// A column of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: Arc<str>,
    /// The type of its values.
    pub ty: Type,
    /// The type's modifier, as `pg_attribute.atttypmod`: -1 if it has none.
    pub modifier: i32,
    /// The table's number, or 0 if the column is computed.
    pub table: u32,
    /// The column's place in its table from 1 on, or 0.
    pub column: i16,
}

/// The result of a statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// There was no statement in the text.
    Empty,
    /// It has run, and gives no rows.
    Done {
        /// The command's tag, as `UPDATE 1`.
        tag: String,
    },
    /// It has run, and gives these rows.
    Rows {
        /// The columns.
        fields: Arc<[Field]>,
        /// The rows, each of as many values.
        rows: Vec<Box<[Datum]>>,
        /// The command's tag, as `SELECT 3`.
        tag: String,
    },
    /// `COPY … TO STDOUT` has run.
    CopyOut {
        /// The number of columns.
        columns: usize,
        /// True for PostgreSQL's binary form.
        is_binary: bool,
        /// The chunks, one for each row.
        data: Vec<Vec<u8>>,
        /// The command's tag, as `COPY 3`.
        tag: String,
    },
}

/// A message that is no error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// `NOTICE` or `WARNING`.
    pub severity: &'static str,
    /// Its code, message and the rest.
    pub content: SqlError,
}

/// The client of a connection. The functions of [`Connection`](crate::Connection) call it while a statement runs.
pub trait Client {
    /// Gives it the result of one statement of a text.
    ///
    /// # Errors
    ///
    /// If it is gone: then the text is not run any further.
    fn outcome(&mut self, outcome: Outcome) -> Result<(), SqlError>;

    /// Asks it for the data of `COPY … FROM STDIN`.
    ///
    /// # Errors
    ///
    /// If it is gone.
    fn begin_copy_in(&mut self, columns: usize, is_binary: bool) -> Result<(), SqlError>;

    /// The next chunk of these data; none at their end. Chunks do not end where lines do.
    ///
    /// # Errors
    ///
    /// If it is gone, has given up (57014), or has sent something else.
    fn copy_data(&mut self) -> Result<Option<Vec<u8>>, SqlError>;

    /// Tells it something.
    fn notice(&mut self, notice: Notice);

    /// Tells it that a parameter that it is told of has another value.
    fn parameter(&mut self, name: &str, value: &str);
}

/// The block that a connection's next statement belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockState {
    /// No block is open: `I`.
    Idle,
    /// A block is open: `T`.
    Open,
    /// A block has failed, and waits for its end: `E`.
    Failed,
}
