//! The grammar of statements about settings: `SET`, `RESET`, `SHOW`, `DISCARD`.

use super::command::{Allowed, Command, modes};
use super::words::Cursor;
use crate::error::SqlError;
use sqlparser::tokenizer::Token;

/// The name of a setting, which may have parts.
fn setting(cursor: &mut Cursor<'_>) -> Result<String, SqlError> {
    let mut name = cursor.expect_name()?;
    while cursor.token(&Token::Period) {
        name = format!("{name}.{}", cursor.expect_name()?);
    }
    Ok(name)
}

/// The values of a setting, as one text; none for the default.
fn values(cursor: &mut Cursor<'_>) -> Result<Option<String>, SqlError> {
    if cursor.keyword("DEFAULT") {
        return Ok(None);
    }
    let mut values = Vec::new();
    loop {
        let value = cursor.string().or_else(|| cursor.number()).or_else(|| cursor.name());
        values.push(value.ok_or_else(|| cursor.error())?);
        if !cursor.token(&Token::Comma) {
            return Ok(Some(values.join(", ")));
        }
    }
}

pub(super) fn set(cursor: &mut Cursor<'_>) -> Result<Command, SqlError> {
    let is_local = cursor.keyword("LOCAL");
    let is_session = !is_local && cursor.keyword("SESSION");
    if is_session && cursor.keywords(&["CHARACTERISTICS", "AS", "TRANSACTION"]) {
        return Ok(Command::SetCharacteristics(modes(cursor)?));
    }
    if !is_local && !is_session && cursor.keyword("TRANSACTION") {
        if cursor.keyword("SNAPSHOT") {
            return Err(SqlError::not_supported("SET TRANSACTION SNAPSHOT"));
        }
        return Ok(Command::SetTransaction(modes(cursor)?));
    }
    if cursor.keyword("CONSTRAINTS") {
        cursor.finish();
        return Ok(Command::Accepted { tag: "SET CONSTRAINTS", place: Allowed::Everywhere });
    }
    let set = |name: &str, value| Command::Set { name: name.to_owned(), value, is_local, tag: "SET" };
    if cursor.keywords(&["TIME", "ZONE"]) {
        let value = if cursor.keyword("LOCAL") { None } else { values(cursor)? };
        return Ok(set("timezone", value));
    }
    if cursor.keyword("NAMES") {
        return Ok(set("client_encoding", values(cursor)?));
    }
    if cursor.keyword("SCHEMA") {
        return Ok(set("search_path", Some(cursor.expect_string()?)));
    }
    if is_session && cursor.keyword("AUTHORIZATION") {
        return Ok(set("session_authorization", values(cursor)?));
    }
    if cursor.keyword("ROLE") {
        cursor.token(&Token::Eq);
        return Ok(set("role", values(cursor)?));
    }
    let name = setting(cursor)?;
    if !cursor.token(&Token::Eq) {
        cursor.expect_keyword("TO")?;
    }
    Ok(set(&name, values(cursor)?))
}

/// The settings whose names are several words.
fn spelled(cursor: &mut Cursor<'_>) -> Option<&'static str> {
    if cursor.keywords(&["TIME", "ZONE"]) {
        Some("timezone")
    } else if cursor.keywords(&["TRANSACTION", "ISOLATION", "LEVEL"]) {
        Some("transaction_isolation")
    } else if cursor.keywords(&["SESSION", "AUTHORIZATION"]) {
        Some("session_authorization")
    } else {
        None
    }
}

pub(super) fn reset(cursor: &mut Cursor<'_>) -> Result<Command, SqlError> {
    if cursor.keyword("ALL") {
        return Ok(Command::ResetAll);
    }
    let name = match spelled(cursor) {
        Some(name) => name.to_owned(),
        None => setting(cursor)?,
    };
    Ok(Command::Set { name, value: None, is_local: false, tag: "RESET" })
}

pub(super) fn show(cursor: &mut Cursor<'_>) -> Result<Command, SqlError> {
    if cursor.keyword("ALL") {
        return Ok(Command::Show(None));
    }
    Ok(Command::Show(Some(match spelled(cursor) {
        Some(name) => name.to_owned(),
        None => setting(cursor)?,
    })))
}

pub(super) fn discard(cursor: &mut Cursor<'_>) -> Result<Command, SqlError> {
    for (word, tag) in [
        ("PLANS", "DISCARD PLANS"),
        ("SEQUENCES", "DISCARD SEQUENCES"),
        ("TEMP", "DISCARD TEMP"),
        ("TEMPORARY", "DISCARD TEMP"),
    ] {
        if cursor.keyword(word) {
            return Ok(Command::Discard(tag));
        }
    }
    cursor.expect_keyword("ALL")?;
    Ok(Command::DiscardAll)
}
