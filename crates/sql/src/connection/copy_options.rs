//! The options of `COPY`, in their two grammars.

use super::words::Cursor;
use crate::error::SqlError;
use sqlparser::tokenizer::Token;

/// The form of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Form {
    #[default]
    Text,
    Csv,
    Binary,
}

/// Whether the first line has the columns' names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Header {
    #[default]
    Absent,
    Present,
    /// Present, and equal to the columns' names.
    Matching,
}

/// Columns that an option names.
#[derive(Debug, Clone, Default)]
pub(super) enum Named {
    #[default]
    None,
    All,
    These(Vec<String>),
}

impl Named {
    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::These(names) => names.iter().any(|known| known == name),
        }
    }

    fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// How the data of `COPY` are written.
#[derive(Debug, Clone)]
pub(super) struct CopyOptions {
    pub(super) form: Form,
    pub(super) delimiter: u8,
    /// The text of a null.
    pub(super) null: String,
    pub(super) header: Header,
    pub(super) quote: u8,
    pub(super) escape: u8,
    pub(super) force_quote: Named,
    pub(super) force_not_null: Named,
    pub(super) force_null: Named,
}

/// The options as they were given.
#[derive(Default)]
struct Given {
    form: Option<Form>,
    delimiter: Option<String>,
    null: Option<String>,
    header: Option<Header>,
    quote: Option<String>,
    escape: Option<String>,
    force_quote: Named,
    force_not_null: Named,
    force_null: Named,
}

fn not_supported(what: &str) -> SqlError {
    SqlError::new("0A000", what.to_owned())
}

fn unrecognized(option: &str) -> SqlError {
    SqlError::new("42601", format!("option \"{option}\" not recognized"))
}

/// Reads what follows `COPY`, and returns the place behind `STDIN` or `STDOUT`, up to which it is the parser's.
pub(super) fn options(cursor: &mut Cursor<'_>) -> Result<(usize, CopyOptions), SqlError> {
    let mut depth = 0_u32;
    loop {
        if depth == 0 && (cursor.keyword("FROM") || cursor.keyword("TO")) {
            break;
        }
        match cursor.peek() {
            Some(Token::LParen) => depth += 1,
            Some(Token::RParen) => depth = depth.saturating_sub(1),
            None => return Err(cursor.error()),
            Some(_) => {}
        }
        cursor.advance();
    }
    let end = cursor.place() + 1;
    if !cursor.keyword("STDIN") && !cursor.keyword("STDOUT") {
        if cursor.keyword("PROGRAM") || cursor.string().is_some() {
            return Err(not_supported("COPY to or from a file or a program is not supported").hint(
                "Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone.",
            ));
        }
        return Err(cursor.error());
    }
    let mut given = Given::default();
    cursor.keyword("WITH");
    if cursor.token(&Token::LParen) {
        loop {
            given.option(cursor)?;
            if !cursor.token(&Token::Comma) {
                break;
            }
        }
        cursor.expect_token(&Token::RParen)?;
    } else {
        while cursor.peek().is_some() && given.old_option(cursor)? {}
    }
    if cursor.keyword("WHERE") {
        return Err(not_supported("COPY with WHERE is not supported"));
    }
    Ok((end, given.checked()?))
}

/// The truth of an option, which is on if it says nothing.
fn is_on(cursor: &mut Cursor<'_>, option: &str) -> Result<bool, SqlError> {
    let word = cursor.string().or_else(|| cursor.number()).or_else(|| cursor.name());
    match word.as_deref().map(str::to_ascii_lowercase).as_deref() {
        None | Some("true" | "on" | "1") => Ok(true),
        Some("false" | "off" | "0") => Ok(false),
        Some(_) => Err(SqlError::new("42601", format!("{option} requires a Boolean value"))),
    }
}

fn columns(cursor: &mut Cursor<'_>, in_parentheses: bool) -> Result<Named, SqlError> {
    if cursor.token(&Token::Mul) {
        return Ok(Named::All);
    }
    if in_parentheses {
        cursor.expect_token(&Token::LParen)?;
    }
    let mut names = vec![cursor.expect_name()?];
    while cursor.token(&Token::Comma) {
        names.push(cursor.expect_name()?);
    }
    if in_parentheses {
        cursor.expect_token(&Token::RParen)?;
    }
    Ok(Named::These(names))
}

impl Given {
    fn set_form(&mut self, name: &str) -> Result<(), SqlError> {
        self.form = Some(match name {
            "text" => Form::Text,
            "csv" => Form::Csv,
            "binary" => Form::Binary,
            _ => return Err(SqlError::new("22023", format!("COPY format \"{name}\" not recognized"))),
        });
        Ok(())
    }

    /// One of the options in parentheses.
    fn option(&mut self, cursor: &mut Cursor<'_>) -> Result<(), SqlError> {
        let name = cursor.expect_name()?;
        match name.as_str() {
            "format" => {
                let form = cursor.string().map_or_else(|| cursor.expect_name(), Ok)?;
                self.set_form(&form)?;
            }
            "freeze" => drop(is_on(cursor, "freeze")?),
            "delimiter" => self.delimiter = Some(cursor.expect_string()?),
            "null" => self.null = Some(cursor.expect_string()?),
            "header" => {
                let header = if cursor.keyword("MATCH") {
                    Header::Matching
                } else if is_on(cursor, "header")? {
                    Header::Present
                } else {
                    Header::Absent
                };
                self.header = Some(header);
            }
            "quote" => self.quote = Some(cursor.expect_string()?),
            "escape" => self.escape = Some(cursor.expect_string()?),
            "force_quote" => self.force_quote = columns(cursor, true)?,
            "force_not_null" => self.force_not_null = columns(cursor, true)?,
            "force_null" => self.force_null = columns(cursor, true)?,
            "encoding" => check_encoding(&cursor.expect_string()?)?,
            _ => return Err(unrecognized(&name)),
        }
        Ok(())
    }

    /// One of the options that PostgreSQL had before version 9. False if there is none.
    fn old_option(&mut self, cursor: &mut Cursor<'_>) -> Result<bool, SqlError> {
        let value = |cursor: &mut Cursor<'_>| {
            cursor.keyword("AS");
            cursor.expect_string()
        };
        if cursor.keyword("BINARY") {
            self.form = Some(Form::Binary);
        } else if cursor.keyword("CSV") {
            self.form = Some(Form::Csv);
        } else if cursor.keyword("FREEZE") {
        } else if cursor.keyword("HEADER") {
            self.header = Some(Header::Present);
        } else if cursor.keyword("DELIMITER") {
            self.delimiter = Some(value(cursor)?);
        } else if cursor.keyword("NULL") {
            self.null = Some(value(cursor)?);
        } else if cursor.keyword("QUOTE") {
            self.quote = Some(value(cursor)?);
        } else if cursor.keyword("ESCAPE") {
            self.escape = Some(value(cursor)?);
        } else if cursor.keyword("ENCODING") {
            check_encoding(&cursor.expect_string()?)?;
        } else if cursor.keywords(&["FORCE", "QUOTE"]) {
            self.force_quote = columns(cursor, false)?;
        } else if cursor.keywords(&["FORCE", "NOT", "NULL"]) {
            self.force_not_null = columns(cursor, false)?;
        } else if cursor.keywords(&["FORCE", "NULL"]) {
            self.force_null = columns(cursor, false)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Checks the options against each other, and takes the defaults for the others.
    fn checked(self) -> Result<CopyOptions, SqlError> {
        let form = self.form.unwrap_or_default();
        let (is_csv, is_binary) = (form == Form::Csv, form == Form::Binary);
        let refused = |is: bool, message: &'static str| {
            if is { Err(SqlError::new("0A000", message)) } else { Ok(()) }
        };
        if is_binary && self.delimiter.is_some() {
            return Err(SqlError::new("42601", "cannot specify DELIMITER in BINARY mode"));
        }
        if is_binary && self.null.is_some() {
            return Err(SqlError::new("42601", "cannot specify NULL in BINARY mode"));
        }
        let has_header = self.header.is_some_and(|header| header != Header::Absent);
        refused(is_binary && has_header, "cannot specify HEADER in BINARY mode")?;
        refused(!is_csv && self.quote.is_some(), "COPY quote available only in CSV mode")?;
        refused(!is_csv && self.escape.is_some(), "COPY escape available only in CSV mode")?;
        refused(!is_csv && !self.force_quote.is_none(), "COPY force quote available only in CSV mode")?;
        refused(!is_csv && !self.force_not_null.is_none(), "COPY force not null available only in CSV mode")?;
        refused(!is_csv && !self.force_null.is_none(), "COPY force null available only in CSV mode")?;
        let delimiter = one_byte(self.delimiter, if is_csv { b',' } else { b'\t' }, "COPY delimiter")?;
        let quote = one_byte(self.quote, b'"', "COPY quote")?;
        let escape = one_byte(self.escape, quote, "COPY escape")?;
        let null = self.null.unwrap_or_else(|| if is_csv { String::new() } else { "\\N".to_owned() });
        let wrong = |message: &'static str| Err(SqlError::new("22023", message));
        if matches!(delimiter, b'\n' | b'\r') {
            return wrong("COPY delimiter cannot be newline or carriage return");
        }
        if null.contains(['\n', '\r']) {
            return wrong("COPY null representation cannot use newline or carriage return");
        }
        if !is_csv && b"\\.abcdefghijklmnopqrstuvwxyz0123456789".contains(&delimiter) {
            return Err(SqlError::new(
                "22023",
                format!("COPY delimiter cannot be \"{}\"", char::from(delimiter)),
            ));
        }
        if is_csv && delimiter == quote {
            return wrong("COPY delimiter and quote must be different");
        }
        if !is_binary && null.as_bytes().contains(&delimiter) {
            return wrong("COPY delimiter must not appear in the NULL specification");
        }
        if is_csv && null.as_bytes().contains(&quote) {
            return wrong("CSV quote character must not appear in the NULL specification");
        }
        Ok(CopyOptions {
            form,
            delimiter,
            null,
            header: self.header.unwrap_or_default(),
            quote,
            escape,
            force_quote: self.force_quote,
            force_not_null: self.force_not_null,
            force_null: self.force_null,
        })
    }
}

fn check_encoding(name: &str) -> Result<(), SqlError> {
    if super::settings::is_utf8(name) {
        Ok(())
    } else {
        Err(SqlError::new("22023", format!("argument to option \"encoding\" must be UTF8, not {name}")))
    }
}

fn one_byte(given: Option<String>, default: u8, what: &str) -> Result<u8, SqlError> {
    match given.as_deref().map(str::as_bytes) {
        None => Ok(default),
        Some([byte]) => Ok(*byte),
        Some(_) => Err(SqlError::new("0A000", format!("{what} must be a single one-byte character"))),
    }
}
