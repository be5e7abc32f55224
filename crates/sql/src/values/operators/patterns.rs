//! Patterns: `LIKE` and regular expressions.
//!
//! Regular expressions are those of `regex-lite`, in the dialect that both have in common with PostgreSQL: groups, classes,
//! quantifiers, alternatives, anchors, and PostgreSQL's `\y`, `\m`, `\M`, `\A` and `\Z`. Back references and looking ahead or behind are
//! refused (2201B). Matching takes linear time.

use super::numbers::wrong_operands;
use crate::error::SqlError;
use crate::values::Datum;
use regex_lite::{Regex, RegexBuilder};
use std::cell::RefCell;

/// The most regular expressions that a thread keeps.
const KEPT_MAX: usize = 16;
/// The longest regular expression, in bytes.
const EXPRESSION_BYTES_MAX: usize = 64 << 10;
/// The most memory that a compiled expression may take.
const COMPILED_BYTES_MAX: usize = 4 << 20;

/// True if a text is like a pattern: `_` is one character, `%` any number of them. What follows the escape character stands for itself.
///
/// # Errors
///
/// If the pattern ends with the escape character (22025).
pub fn like(text: &str, pattern: &str, escape: Option<char>) -> Result<bool, SqlError> {
    let unfinished = || SqlError::new("22025", "LIKE pattern must not end with escape character");
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    // The places to go on from after the last `%`: what follows it in the pattern, and how much of the text it has not taken yet.
    let mut again = None;
    loop {
        let mut after = pattern.clone();
        let matches = match after.next() {
            Some('%') if escape != Some('%') => {
                again = Some((after.clone(), text.clone()));
                pattern = after;
                continue;
            }
            None if text.as_str().is_empty() => return Ok(true),
            None => false,
            Some(next) => {
                // A text that is at its end decides before the pattern is looked at.
                let Some(found) = text.next() else { return Ok(false) };
                let wanted =
                    if Some(next) == escape { Some(after.next().ok_or_else(unfinished)?) } else { None };
                match wanted {
                    Some(wanted) => wanted == found,
                    None => next == '_' || next == found,
                }
            }
        };
        if matches {
            pattern = after;
        } else {
            let Some((of_pattern, of_text)) = &mut again else { return Ok(false) };
            if of_text.next().is_none() {
                return Ok(false);
            }
            (pattern, text) = (of_pattern.clone(), of_text.clone());
        }
    }
}

/// As [`like`], without regard to case.
///
/// # Errors
///
/// If the pattern ends with the escape character (22025).
pub fn like_any_case(text: &str, pattern: &str, escape: Option<char>) -> Result<bool, SqlError> {
    like(&text.to_lowercase(), &pattern.to_lowercase(), escape)
}

/// A regular expression of PostgreSQL in the dialect of the crate.
fn translated(pattern: &str) -> String {
    let mut translated = String::with_capacity(pattern.len());
    let mut characters = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(next) = characters.next() {
        match next {
            '\\' => match characters.next() {
                Some('y') if !in_class => translated.push_str("\\b"),
                Some('Y') if !in_class => translated.push_str("\\B"),
                Some('m') if !in_class => translated.push_str("\\b{start}"),
                Some('M') if !in_class => translated.push_str("\\b{end}"),
                Some('Z') if !in_class => translated.push_str("\\z"),
                // A character that is no letter stands for itself, whatever the crate knows of it.
                Some(other) if !other.is_ascii_alphanumeric() => {
                    translated.push_str(&regex_lite::escape(&other.to_string()));
                }
                Some(other) => translated.extend(['\\', other]),
                None => translated.push('\\'),
            },
            '[' if in_class => {
                // `[:alpha:]` is a class within a class; any other bracket stands for itself.
                if characters.peek() == Some(&':') {
                    translated.push('[')
                } else {
                    translated.push_str("\\[")
                }
            }
            '[' => {
                in_class = true;
                translated.push('[');
                if characters.peek() == Some(&'^') {
                    translated.extend(characters.next());
                }
                // A closing bracket at the first place is a member.
                if characters.peek() == Some(&']') {
                    characters.next();
                    translated.push_str("\\]");
                }
            }
            ']' if in_class => {
                translated.push(']');
                in_class = translated.ends_with(":]");
            }
            '&' | '~' if in_class => translated.extend(['\\', next]),
            other => translated.push(other),
        }
    }
    translated
}

/// Compiles a regular expression, or takes it from those that this thread has used last.
///
/// # Errors
///
/// If it is malformed, too large, or of a kind that is not supported (2201B).
pub(crate) fn regular_expression(pattern: &str, any_case: bool) -> Result<Regex, SqlError> {
    thread_local! {
        static KEPT: RefCell<Vec<(String, bool, Regex)>> = const { RefCell::new(Vec::new()) };
    }
    let kept = KEPT.with_borrow_mut(|kept| {
        let place = kept.iter().position(|(text, case, _)| text == pattern && *case == any_case)?;
        // The last one used is at the end.
        kept[place..].rotate_left(1);
        kept.last().map(|(_, _, expression)| expression.clone())
    });
    if let Some(expression) = kept {
        return Ok(expression);
    }
    let refused = |reason: &dyn std::fmt::Display| {
        SqlError::new("2201B", format!("invalid regular expression: {reason}"))
    };
    if pattern.len() > EXPRESSION_BYTES_MAX {
        return Err(refused(&"regular expression is too complex"));
    }
    let expression = RegexBuilder::new(&translated(pattern))
        .case_insensitive(any_case)
        .dot_matches_new_line(true)
        .size_limit(COMPILED_BYTES_MAX)
        .build()
        .map_err(|error| refused(&error))?;
    KEPT.with_borrow_mut(|kept| {
        if kept.len() == KEPT_MAX {
            kept.remove(0);
        }
        kept.push((pattern.to_owned(), any_case, expression.clone()));
    });
    Ok(expression)
}

fn texts<'d>(left: &'d Datum, right: &'d Datum) -> Result<(&'d str, &'d str), SqlError> {
    left.as_text().zip(right.as_text()).ok_or_else(wrong_operands)
}

/// Defines the functions of an operator and of its negation.
macro_rules! pattern_functions {
    ($($name:ident $negated:ident: $compute:expr;)*) => {$(
        pub(super) fn $name(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
            let (text, pattern) = texts(left, right)?;
            let compute: fn(&str, &str) -> Result<bool, SqlError> = $compute;
            compute(text, pattern).map(Datum::Bool)
        }

        pub(super) fn $negated(left: &Datum, right: &Datum) -> Result<Datum, SqlError> {
            let (text, pattern) = texts(left, right)?;
            let compute: fn(&str, &str) -> Result<bool, SqlError> = $compute;
            compute(text, pattern).map(|found| Datum::Bool(!found))
        }
    )*};
}

pattern_functions! {
    is_like is_not_like: |text, pattern| like(text, pattern, Some('\\'));
    is_like_any_case is_not_like_any_case: |text, pattern| like_any_case(text, pattern, Some('\\'));
    matches matches_not: |text, pattern| Ok(regular_expression(pattern, false)?.is_match(text));
    matches_any_case matches_not_any_case: |text, pattern| Ok(regular_expression(pattern, true)?.is_match(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_like() {
        for (text, pattern, expected) in [
            ("abc", "abc", true),
            ("abc", "a%", true),
            ("abc", "%b%", true),
            ("abc", "_b_", true),
            ("äbc", "_bc", true),
            ("abc", "a_", false),
            ("", "%", true),
            ("", "", true),
            ("a%c", "a\\%c", true),
            ("abc", "a\\%c", false),
            ("mississippi", "%iss%ippi", true),
            ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "%a%a%a%a%a%a%a%a%c", false),
        ] {
            assert_eq!(like(text, pattern, Some('\\')), Ok(expected), "{text} {pattern}");
        }
        assert_eq!(like("abcd", "abc\\", Some('\\')).unwrap_err().code, "22025");
        assert_eq!(like("a\\", "a\\", None), Ok(true));
        assert_eq!(like("a%", "a!%", Some('!')), Ok(true));
        assert_eq!(like_any_case("ÄB", "äb", Some('\\')), Ok(true));
    }

    #[test]
    fn regular_expressions_of_clients() {
        for (text, pattern, expected) in [
            ("pgbench_accounts", "^(pgbench_accounts)$", true),
            ("pg_toast_1", "^pg_toast", true),
            ("t", "^(t.*)$", true),
            ("a\nb", "a.b", true),
            ("x]", "^[]x]+$", true),
            ("a-b_1", "^[[:alpha:]_\\-[:digit:]]+$", true),
            ("one two", "\\mtwo\\M", true),
            ("a.b", "a\\.b", true),
            ("a$b", "a\\$b", true),
        ] {
            assert_eq!(
                regular_expression(pattern, false).unwrap().is_match(text),
                expected,
                "{text} {pattern}"
            );
        }
        assert!(regular_expression("^T$", true).unwrap().is_match("t"));
        assert_eq!(regular_expression("(", false).unwrap_err().code, "2201B");
        assert_eq!(regular_expression("(a)\\1", false).unwrap_err().code, "2201B");
        assert_eq!(regular_expression("(((a{1000}){1000}){1000})", false).unwrap_err().code, "2201B");
        for number in 0..40 {
            assert!(regular_expression(&format!("^{number}$"), false).unwrap().is_match(&number.to_string()));
        }
    }
}
