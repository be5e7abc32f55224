//! Cursors: the rows of a query, given in parts. All rows are there when the cursor is declared.

use super::Connection;
use super::block::{Phase, only_in_blocks};
use super::command::Command;
use super::executor::Work;
use super::prepared::Prepared;
use super::words::Cursor as Words;
use crate::error::SqlError;
use crate::outcome::{Field, Outcome};
use crate::values::Datum;
use hotrow::sync::Arc;
use std::rc::Rc;

/// The largest number of cursors of one connection.
const CURSORS_MAX: usize = 1_000;

/// A cursor.
pub(super) struct Cursor {
    fields: Arc<[Field]>,
    rows: Vec<Box<[Datum]>>,
    /// The row that it is on, from 1 on: 0 before the first one, one more than there are behind the last one.
    at: usize,
    only_forward: bool,
    /// True if it stays when the transaction commits.
    holds: bool,
    /// True once it has stayed.
    has_committed: bool,
}

/// Which rows are fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fetch {
    /// So many, on from where the cursor is; backward if it is negative.
    Next(i64),
    /// The one at this place, from the end if it is negative.
    Absolute(i64),
    /// The one so many further.
    Relative(i64),
}

/// The properties of a cursor to be declared.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CursorOptions {
    only_forward: bool,
    holds: bool,
}

/// Reads the properties, up to `FOR`.
pub(super) fn options(words: &mut Words<'_>) -> Result<CursorOptions, SqlError> {
    let mut options = CursorOptions::default();
    loop {
        if words.keyword("BINARY") {
            return Err(SqlError::not_supported("a binary cursor"));
        } else if words.keywords(&["NO", "SCROLL"]) {
            options.only_forward = true;
        } else if !["SCROLL", "INSENSITIVE", "ASENSITIVE"].iter().any(|word| words.keyword(word)) {
            break;
        }
    }
    words.expect_keyword("CURSOR")?;
    if words.keywords(&["WITH", "HOLD"]) {
        options.holds = true;
    } else {
        words.keywords(&["WITHOUT", "HOLD"]);
    }
    words.expect_keyword("FOR")?;
    Ok(options)
}

/// Reads what follows `FETCH` or `MOVE`: which rows, and the cursor's name.
pub(super) fn fetch(words: &mut Words<'_>) -> Result<(Fetch, String), SqlError> {
    let number = |words: &mut Words<'_>| -> Result<Option<i64>, SqlError> {
        let Some(number) = words.number() else { return Ok(None) };
        let wrong = || SqlError::new("22003", format!("value \"{number}\" is out of range"));
        number.parse().map(Some).map_err(|_| wrong())
    };
    // A cursor may be called as one of these words.
    let before = words.clone();
    let found = if words.keyword("NEXT") {
        Fetch::Next(1)
    } else if words.keyword("PRIOR") {
        Fetch::Next(-1)
    } else if words.keyword("FIRST") {
        Fetch::Absolute(1)
    } else if words.keyword("LAST") {
        Fetch::Absolute(-1)
    } else if words.keyword("ABSOLUTE") {
        Fetch::Absolute(number(words)?.ok_or_else(|| words.error())?)
    } else if words.keyword("RELATIVE") {
        Fetch::Relative(number(words)?.ok_or_else(|| words.error())?)
    } else if words.keyword("ALL") {
        Fetch::Next(i64::MAX)
    } else if words.keyword("FORWARD") {
        let all = words.keyword("ALL");
        Fetch::Next(if all { i64::MAX } else { number(words)?.unwrap_or(1) })
    } else if words.keyword("BACKWARD") {
        let all = words.keyword("ALL");
        Fetch::Next(if all { -i64::MAX } else { number(words)?.unwrap_or(1).saturating_neg() })
    } else {
        Fetch::Next(number(words)?.unwrap_or(1))
    };
    let _ = words.keyword("FROM") || words.keyword("IN");
    match words.name() {
        Some(name) => Ok((found, name)),
        None => {
            *words = before;
            Ok((Fetch::Next(1), words.expect_name()?))
        }
    }
}

/// Reads the name of a cursor to be closed; none for all.
pub(super) fn closed(words: &mut Words<'_>) -> Result<Option<String>, SqlError> {
    if words.keyword("ALL") { Ok(None) } else { words.expect_name().map(Some) }
}

impl Cursor {
    /// Moves to a row, and returns the places, from 0 on, of those that it passes.
    fn pass(&mut self, fetch: Fetch) -> Result<Vec<usize>, SqlError> {
        let count = i64::try_from(self.rows.len()).unwrap_or(i64::MAX - 1);
        let at = i64::try_from(self.at).unwrap_or(i64::MAX);
        let single = |to: i64| {
            let to = to.clamp(0, count + 1);
            (to, if (1..=count).contains(&to) { vec![(to - 1) as usize] } else { Vec::new() })
        };
        let (to, passed) = match fetch {
            Fetch::Next(0) => single(at),
            Fetch::Next(more) if more > 0 => {
                let last = at.saturating_add(more);
                let passed = (at + 1)..=last.min(count);
                (last.min(count + 1), passed.map(|place| (place - 1) as usize).collect())
            }
            Fetch::Next(back) => {
                let last = at.saturating_add(back).max(0);
                let passed = last.max(1)..at;
                (last, passed.rev().map(|place| (place - 1) as usize).collect())
            }
            Fetch::Absolute(place) if place < 0 => single((count + 1).saturating_add(place)),
            Fetch::Absolute(place) => single(place),
            Fetch::Relative(more) => single(at.saturating_add(more)),
        };
        if self.only_forward && to < at {
            return Err(SqlError::new("55000", "cursor can only scan forward")
                .hint("Declare it with SCROLL option to enable backward scan."));
        }
        self.at = to as usize;
        Ok(passed)
    }
}

impl Connection {
    /// `DECLARE`.
    pub(super) fn declare(
        &mut self,
        prepared: &Rc<Prepared>,
        parameters: Rc<[Datum]>,
    ) -> Result<Outcome, SqlError> {
        let Command::Declare { name, options, .. } = &prepared.command else {
            return Err(SqlError::not_supported("this cursor"));
        };
        if !options.holds && self.block.phase() == Phase::Idle {
            return Err(only_in_blocks("DECLARE CURSOR"));
        }
        if self.cursors.contains_key(name) || self.portals.contains_key(name) {
            return Err(SqlError::new("42P03", format!("cursor \"{name}\" already exists")));
        }
        if self.cursors.len() >= CURSORS_MAX {
            return Err(SqlError::new("53400", "there are too many cursors"));
        }
        let is_alone = self.block.phase() == Phase::Idle;
        let work = Work::Plan { prepared: prepared.clone(), parameters };
        let Outcome::Rows { fields, rows, .. } = self.run_work(&work)? else {
            return Err(SqlError::new("42601", "a cursor needs a query"));
        };
        let CursorOptions { only_forward, holds } = *options;
        let cursor = Cursor { fields, rows, at: 0, only_forward, holds, has_committed: is_alone };
        self.cursors.insert(name.clone(), cursor);
        Ok(Outcome::Done { tag: "DECLARE CURSOR".to_owned() })
    }

    /// The columns of a cursor.
    pub(super) fn fields_of_cursor(&self, name: &str) -> Result<Arc<[Field]>, SqlError> {
        let found = self.cursors.get(name).map(|cursor| cursor.fields.clone());
        found.ok_or_else(|| no_such_cursor(name))
    }

    /// `FETCH`, and `MOVE`, which gives no rows.
    pub(super) fn fetch(&mut self, name: &str, fetch: Fetch, moves: bool) -> Result<Outcome, SqlError> {
        let cursor = self.cursors.get_mut(name).ok_or_else(|| no_such_cursor(name))?;
        let passed = cursor.pass(fetch)?;
        let count = passed.len();
        if moves {
            return Ok(Outcome::Done { tag: format!("MOVE {count}") });
        }
        let rows = passed.into_iter().map(|place| cursor.rows[place].clone()).collect();
        Ok(Outcome::Rows { fields: cursor.fields.clone(), rows, tag: format!("FETCH {count}") })
    }

    /// Gives the next rows of a cursor to a client that executes it as a portal, and says whether more may be left.
    pub(super) fn execute_cursor(
        &mut self,
        name: &str,
        rows_max: usize,
    ) -> Result<(Outcome, bool), SqlError> {
        let more = if rows_max == 0 { i64::MAX } else { i64::try_from(rows_max).unwrap_or(i64::MAX) };
        let outcome = self.fetch(name, Fetch::Next(more), false)?;
        let is_suspended = matches!(&outcome, Outcome::Rows { rows, .. } if rows.len() == rows_max);
        Ok((outcome, is_suspended && rows_max > 0))
    }

    /// `CLOSE` one cursor, or all.
    pub(super) fn close(&mut self, name: Option<&str>) -> Result<Outcome, SqlError> {
        let tag = match name {
            None => {
                self.cursors.clear();
                "CLOSE CURSOR ALL"
            }
            Some(name) => {
                self.cursors.remove(name).ok_or_else(|| no_such_cursor(name))?;
                "CLOSE CURSOR"
            }
        };
        Ok(Outcome::Done { tag: tag.to_owned() })
    }

    /// Ends the cursors of a transaction that has ended.
    pub(super) fn end_cursors(&mut self, has_committed: bool) {
        self.cursors.retain(|_, cursor| {
            cursor.has_committed |= cursor.holds && has_committed;
            cursor.has_committed
        });
    }
}

fn no_such_cursor(name: &str) -> SqlError {
    SqlError::new("34000", format!("cursor \"{name}\" does not exist"))
}
