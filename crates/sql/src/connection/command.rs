//! Statements as a connection sees them: those that have plans, and those that it serves itself.

use super::copy::CopyOptions;
use super::cursor::{CursorOptions, Fetch};
use super::set_words;
use super::words::{Cursor, Words};
use crate::error::SqlError;
use crate::values::Type;
use sqlparser::ast::Statement;
use sqlparser::tokenizer::Token;
use std::ops::Range;

/// A statement.
pub(super) enum Command {
    /// Nothing.
    Empty,
    /// A statement that has a plan.
    Planned(Planned),
    /// `COPY`, which has a plan, too.
    Copy(Planned, CopyOptions),
    /// `BEGIN` and `START TRANSACTION`, by its tag.
    Begin {
        modes: Modes,
        tag: &'static str,
    },
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    Savepoint(String),
    Release(String),
    RollbackTo(String),
    /// `SET TRANSACTION`.
    SetTransaction(Modes),
    /// `SET SESSION CHARACTERISTICS AS TRANSACTION`.
    SetCharacteristics(Modes),
    /// `SET` and `RESET`. Without a value it is the default.
    Set {
        name: String,
        value: Option<String>,
        is_local: bool,
        tag: &'static str,
    },
    ResetAll,
    /// `SHOW` one, or all.
    Show(Option<String>),
    DiscardAll,
    /// `DISCARD` of some of the connection's state.
    Discard(&'static str),
    Listen(String),
    /// `UNLISTEN` one channel, or all.
    Unlisten(Option<String>),
    Notify {
        channel: String,
        payload: String,
    },
    Prepare {
        name: String,
        types: Vec<Option<Type>>,
        body: Planned,
    },
    /// `EXECUTE`. The arguments are a query that gives one row of them.
    Execute {
        name: String,
        arguments: Option<Planned>,
    },
    /// `DEALLOCATE` one, or all.
    Deallocate(Option<String>),
    Declare {
        name: String,
        options: CursorOptions,
        query: Planned,
    },
    /// `FETCH` and `MOVE`.
    Fetch {
        name: String,
        fetch: Fetch,
        moves: bool,
    },
    /// `CLOSE` one cursor, or all.
    Close(Option<String>),
    /// A statement that has nothing to do. Some are allowed outside of a block only, others within one only.
    Accepted {
        tag: &'static str,
        place: Allowed,
    },
}

/// A statement that has a plan.
pub(super) struct Planned {
    pub(super) statement: Statement,
    /// Its first words, as errors call it.
    pub(super) verb: String,
}

/// Where a statement is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    Everywhere,
    OutsideOfBlocks,
    InBlocks,
}

/// The declarations of a transaction about itself. Its isolation is always the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Modes {
    pub(super) read_only: Option<bool>,
}

/// The statements of a text.
pub(super) fn commands(text: &str) -> Result<Vec<Command>, SqlError> {
    let words = Words::new(text)?;
    words.statements().into_iter().map(|range| command(&words, range)).collect()
}

fn command(words: &Words<'_>, range: Range<usize>) -> Result<Command, SqlError> {
    let mut cursor = words.cursor(range.clone());
    let start = cursor.place()..range.end;
    let first = match cursor.peek() {
        Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
        _ => return planned(words, start),
    };
    cursor.advance();
    let command = match first.as_str() {
        "BEGIN" => {
            let _ = cursor.keyword("WORK") || cursor.keyword("TRANSACTION");
            Command::Begin { modes: modes(&mut cursor)?, tag: "BEGIN" }
        }
        "START" => {
            cursor.expect_keyword("TRANSACTION")?;
            Command::Begin { modes: modes(&mut cursor)?, tag: "START TRANSACTION" }
        }
        "COMMIT" | "END" => Command::Commit { chain: chain(&mut cursor)? },
        "ABORT" => Command::Rollback { chain: chain(&mut cursor)? },
        "ROLLBACK" => rollback(&mut cursor)?,
        "SAVEPOINT" => Command::Savepoint(cursor.expect_name()?),
        "RELEASE" => {
            cursor.keyword("SAVEPOINT");
            Command::Release(cursor.expect_name()?)
        }
        "SET" => set_words::set(&mut cursor)?,
        "RESET" => set_words::reset(&mut cursor)?,
        "SHOW" => set_words::show(&mut cursor)?,
        "DISCARD" => set_words::discard(&mut cursor)?,
        "LISTEN" => Command::Listen(cursor.expect_name()?),
        "UNLISTEN" if cursor.token(&Token::Mul) => Command::Unlisten(None),
        "UNLISTEN" => Command::Unlisten(Some(cursor.expect_name()?)),
        "NOTIFY" => {
            let channel = cursor.expect_name()?;
            let payload = if cursor.token(&Token::Comma) { cursor.expect_string()? } else { String::new() };
            Command::Notify { channel, payload }
        }
        "VACUUM" => accepted(&mut cursor, "VACUUM", Allowed::OutsideOfBlocks),
        "ANALYZE" | "ANALYSE" => accepted(&mut cursor, "ANALYZE", Allowed::Everywhere),
        "CHECKPOINT" => accepted(&mut cursor, "CHECKPOINT", Allowed::Everywhere),
        "LOCK" => accepted(&mut cursor, "LOCK TABLE", Allowed::InBlocks),
        "PREPARE" => prepare(words, &mut cursor)?,
        "EXECUTE" => execute(words, &mut cursor)?,
        "DEALLOCATE" => {
            cursor.keyword("PREPARE");
            let all = cursor.keyword("ALL");
            Command::Deallocate(if all { None } else { Some(cursor.expect_name()?) })
        }
        "COPY" => {
            let (end, options) = super::copy::options(&mut cursor)?;
            let planned =
                Planned { statement: words.parse(&[], start.start..end)?, verb: "COPY FROM".to_owned() };
            Command::Copy(planned, options)
        }
        "DECLARE" => {
            let name = cursor.expect_name()?;
            let options = super::cursor::options(&mut cursor)?;
            let query = plan_of(words, cursor.rest())?;
            cursor.finish();
            Command::Declare { name, options, query }
        }
        "FETCH" | "MOVE" => {
            let (fetch, name) = super::cursor::fetch(&mut cursor)?;
            Command::Fetch { name, fetch, moves: first == "MOVE" }
        }
        "CLOSE" => Command::Close(super::cursor::closed(&mut cursor)?),
        _ => return planned(words, start),
    };
    cursor.expect_end()?;
    Ok(command)
}

fn planned(words: &Words<'_>, range: Range<usize>) -> Result<Command, SqlError> {
    plan_of(words, range).map(Command::Planned)
}

/// A statement that is to have a plan.
fn plan_of(words: &Words<'_>, range: Range<usize>) -> Result<Planned, SqlError> {
    let mut cursor = words.cursor(range.clone());
    let mut verb = String::new();
    for _ in 0..2 {
        match cursor.peek() {
            Some(Token::Word(word)) if word.quote_style.is_none() => {
                let word = word.value.to_ascii_uppercase();
                let is_whole = verb.is_empty() && !matches!(word.as_str(), "CREATE" | "ALTER" | "DROP");
                verb = if verb.is_empty() { word } else { format!("{verb} {word}") };
                cursor.advance();
                match verb.as_str() {
                    "CREATE UNIQUE" => verb = "CREATE INDEX".to_owned(),
                    "TRUNCATE" => verb = "TRUNCATE TABLE".to_owned(),
                    _ => {}
                }
                if is_whole {
                    break;
                }
            }
            _ => break,
        }
    }
    Ok(Planned { statement: words.parse(&[], range)?, verb })
}

pub(super) fn modes(cursor: &mut Cursor<'_>) -> Result<Modes, SqlError> {
    let mut modes = Modes::default();
    let mut is_required = false;
    loop {
        if cursor.keywords(&["ISOLATION", "LEVEL"]) {
            let is_known = cursor.keyword("SERIALIZABLE")
                || cursor.keywords(&["REPEATABLE", "READ"])
                || cursor.keywords(&["READ", "COMMITTED"])
                || cursor.keywords(&["READ", "UNCOMMITTED"]);
            if !is_known {
                return Err(cursor.error());
            }
        } else if cursor.keywords(&["READ", "ONLY"]) {
            modes.read_only = Some(true);
        } else if cursor.keywords(&["READ", "WRITE"]) {
            modes.read_only = Some(false);
        } else if !cursor.keyword("DEFERRABLE") && !cursor.keywords(&["NOT", "DEFERRABLE"]) {
            return if is_required { Err(cursor.error()) } else { Ok(modes) };
        }
        is_required = cursor.token(&Token::Comma);
    }
}

/// `AND [NO] CHAIN`, behind words that mean nothing.
fn chain(cursor: &mut Cursor<'_>) -> Result<bool, SqlError> {
    if cursor.keyword("PREPARED") {
        return Err(SqlError::new("55000", "prepared transactions are disabled"));
    }
    let _ = cursor.keyword("WORK") || cursor.keyword("TRANSACTION");
    if !cursor.keyword("AND") {
        return Ok(false);
    }
    let no = cursor.keyword("NO");
    cursor.expect_keyword("CHAIN")?;
    Ok(!no)
}

fn rollback(cursor: &mut Cursor<'_>) -> Result<Command, SqlError> {
    let chain = chain(cursor)?;
    if chain || !cursor.keyword("TO") {
        return Ok(Command::Rollback { chain });
    }
    cursor.keyword("SAVEPOINT");
    Ok(Command::RollbackTo(cursor.expect_name()?))
}

fn accepted(cursor: &mut Cursor<'_>, tag: &'static str, place: Allowed) -> Command {
    cursor.finish();
    Command::Accepted { tag, place }
}

fn prepare(words: &Words<'_>, cursor: &mut Cursor<'_>) -> Result<Command, SqlError> {
    let name = cursor.expect_name()?;
    let mut types = Vec::new();
    if cursor.token(&Token::LParen) {
        loop {
            types.push(type_of(cursor)?);
            if !cursor.token(&Token::Comma) {
                break;
            }
        }
        cursor.expect_token(&Token::RParen)?;
    }
    cursor.expect_keyword("AS")?;
    let body = plan_of(words, cursor.rest())?;
    cursor.finish();
    Ok(Command::Prepare { name, types, body })
}

/// A type's name, perhaps with a modifier, which says nothing of a parameter.
fn type_of(cursor: &mut Cursor<'_>) -> Result<Option<Type>, SqlError> {
    let mut name = cursor.expect_name()?;
    if name == "pg_catalog" && cursor.token(&Token::Period) {
        name = cursor.expect_name()?;
    }
    while let Some(more) = cursor.name() {
        name = format!("{name} {more}");
    }
    if cursor.token(&Token::LParen) {
        while cursor.number().is_some() || cursor.token(&Token::Comma) {}
        cursor.expect_token(&Token::RParen)?;
    }
    while let Some(more) = cursor.name() {
        name = format!("{name} {more}");
    }
    if cursor.token(&Token::LBracket) {
        cursor.expect_token(&Token::RBracket)?;
        name.push_str("[]");
    }
    let name = match name.as_str() {
        "unknown" => return Ok(None),
        "int" => "integer",
        "decimal" | "dec" => "numeric",
        "float" => "double precision",
        "timestamp with time zone" => "timestamptz",
        "timestamp without time zone" => "timestamp",
        known => known,
    };
    let found = Type::ALL.iter().copied().find(|ty| ty.internal_name() == name || ty.name() == name);
    found.map(Some).ok_or_else(|| SqlError::new("42704", format!("type \"{name}\" does not exist")))
}

fn execute(words: &Words<'_>, cursor: &mut Cursor<'_>) -> Result<Command, SqlError> {
    let name = cursor.expect_name()?;
    let mut arguments = None;
    if cursor.token(&Token::LParen) {
        let (start, mut depth) = (cursor.place(), 1);
        loop {
            match cursor.peek() {
                Some(Token::LParen) => depth += 1,
                Some(Token::RParen) => depth -= 1,
                Some(_) => {}
                None => return Err(cursor.error()),
            }
            if depth == 0 {
                break;
            }
            cursor.advance();
        }
        if cursor.place() > start {
            let statement = words.parse(&[Token::make_keyword("SELECT")], start..cursor.place())?;
            arguments = Some(Planned { statement, verb: "EXECUTE".to_owned() });
        }
        cursor.expect_token(&Token::RParen)?;
    }
    Ok(Command::Execute { name, arguments })
}
