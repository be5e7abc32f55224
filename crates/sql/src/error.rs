//! Errors of statements, as PostgreSQL's clients know them.

use std::borrow::Cow;
use std::fmt;

/// An error of a statement: a code, a message, and what clients show besides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlError {
    /// The SQLSTATE: five characters, as `40001`.
    pub code: &'static str,
    /// One sentence, without a full stop, as PostgreSQL has it.
    pub message: Cow<'static, str>,
    /// More of what happened.
    pub detail: Option<String>,
    /// What to do about it.
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
        Self {
            code,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            table: None,
            column: None,
            constraint: None,
        }
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
