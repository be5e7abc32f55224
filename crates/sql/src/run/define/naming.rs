//! Names of what has none: PostgreSQL's rules.

use crate::catalog::Catalog;
use std::collections::HashSet;

/// The longest name, in bytes.
const NAME_MAX: usize = 63;

/// The longest start of a text that has so many bytes.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A name of up to three parts. The longer one of the first two is cut, if it is too long.
fn joined(table: &str, column: Option<&str>, label: &str) -> String {
    let separators = if column.is_some() { 2 } else { 1 };
    let room = NAME_MAX.saturating_sub(label.len() + separators);
    let (mut first, mut second) = (table.len(), column.map_or(0, str::len));
    while first + second > room {
        if first > second { first -= 1 } else { second -= 1 }
    }
    match column {
        None => format!("{}_{label}", cut(table, first)),
        Some(column) => format!("{}_{}_{label}", cut(table, first), cut(column, second)),
    }
}

/// The first name of this form that is not taken: with a number behind the label, if need be.
fn free(table: &str, column: Option<&str>, label: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut name = joined(table, column, label);
    let mut number = 0;
    while is_taken(&name) {
        number += 1;
        name = joined(table, column, &format!("{label}{number}"));
    }
    name
}

/// Names of a statement's new things: those of the catalog are taken, and those that it has given already.
pub(super) struct Names<'c> {
    catalog: &'c Catalog,
    given: HashSet<String>,
}

impl<'c> Names<'c> {
    /// The names that are taken in a catalog.
    pub(super) fn new(catalog: &'c Catalog) -> Self {
        Self { catalog, given: HashSet::new() }
    }

    /// Takes a name. False if it is taken.
    pub(super) fn take(&mut self, name: &str) -> bool {
        self.catalog.find(name).is_none() && self.given.insert(name.to_owned())
    }

    /// A name for a sequence or an index: `t_c_seq`, `t_pkey`, `t_c_key`, `t_c_idx`.
    pub(super) fn draw(&mut self, table: &str, columns: &[&str], label: &str) -> String {
        let columns = (!columns.is_empty()).then(|| cut(&columns.join("_"), NAME_MAX).to_owned());
        let is_taken = |name: &str| self.catalog.find(name).is_some() || self.given.contains(name);
        let name = free(table, columns.as_deref(), label, is_taken);
        self.given.insert(name.clone());
        name
    }
}

/// A name for a condition on a table: `t_c_check` if it is about one column, else `t_check`.
pub(super) fn check_name(table: &str, column: Option<&str>, is_taken: impl Fn(&str) -> bool) -> String {
    free(table, column, "check", is_taken)
}

#[cfg(test)]
mod tests {
    use super::{check_name, joined};

    #[test]
    fn the_longer_part_of_a_name_is_cut() {
        let long = "x".repeat(60);
        assert_eq!(joined("t", Some("a"), "seq"), "t_a_seq");
        assert_eq!(joined(&long, Some("id"), "seq"), format!("{}_id_seq", "x".repeat(56)));
        assert_eq!(joined(&"ä".repeat(31), None, "pkey"), format!("{}_pkey", "ä".repeat(29)));
    }

    #[test]
    fn a_taken_name_gets_a_number() {
        assert_eq!(check_name("t", Some("a"), |name| name != "t_a_check2"), "t_a_check2");
    }
}
