//! Errors of statements, as PostgreSQL's clients know them.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// An error of a statement. It is a pointer, because most results are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlError(Box<ErrorContent>);

impl Deref for SqlError {
    type Target = ErrorContent;

    fn deref(&self) -> &ErrorContent {
        &self.0
    }
}

impl DerefMut for SqlError {
    fn deref_mut(&mut self) -> &mut ErrorContent {
        &mut self.0
    }
}

/// The content of an error: a code, a message, and what clients show besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorContent {
    /// The SQLSTATE: five characters, as `40001`.
    pub code: &'static str,
    /// One sentence, without a full stop, as PostgreSQL has it.
    pub message: Cow<'static, str>,
    /// More of what happened.
    pub detail: Option<String>,
    /// Advice.
    pub hint: Option<String>,
    /// The place in the statement's text, in characters from 1 on.
    pub position: Option<usize>,
    /// The table.
    pub table: Option<String>,
    /// The column.
    pub column: Option<String>,
    /// The constraint.
    pub constraint: Option<String>,
}

impl SqlError {
    /// An error with a code and a message.
    pub fn new(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(ErrorContent {
            code,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            table: None,
            column: None,
            constraint: None,
        }))
    }

    /// The error of what is not supported, by its name (0A000).
    pub fn not_supported(name: impl fmt::Display) -> Self {
        Self::new("0A000", format!("{name} is not supported"))
    }

    /// The same error with a detail.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The same error with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same error with another message.
    #[must_use]
    pub fn message(mut self, message: impl Into<Cow<'static, str>>) -> Self {
        self.message = message.into();
        self
    }

    /// The same error, of a table.
    #[must_use]
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.table = Some(table.into());
        self
    }

    /// The same error, of a column.
    #[must_use]
    pub fn column(mut self, column: impl Into<String>) -> Self {
        self.column = Some(column.into());
        self
    }

    /// The same error, of a constraint.
    #[must_use]
    pub fn constraint(mut self, constraint: impl Into<String>) -> Self {
        self.constraint = Some(constraint.into());
        self
    }

    /// The same error at a place of the statement's text.
    #[must_use]
    pub fn at(mut self, position: usize) -> Self {
        self.position = Some(position);
        self
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for SqlError {}
