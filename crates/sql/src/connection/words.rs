//! The words of a text: its tokens, cut into statements, and a cursor over those of one statement.
//!
//! The statements that a connection serves itself (transaction control, settings, `COPY`'s options) are read here by PostgreSQL's own
//! grammar, which is small for them. All others are the parser's.

use super::depth::check_depth;
use crate::error::SqlError;
use sqlparser::ast::Statement;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use std::ops::Range;

/// The depth of parentheses and subqueries that the parser goes along with.
const DEPTH_MAX: usize = 100;

/// A text with its tokens, blanks and comments included.
pub(super) struct Words<'a> {
    text: &'a str,
    tokens: Vec<TokenWithSpan>,
}

/// True for blanks and comments.
fn is_blank(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_))
}

/// The place of a location in the text: in bytes, and in characters from 0 on.
fn place(text: &str, location: Location) -> (usize, usize) {
    let (mut line, mut column) = (1, 1);
    for (characters, (bytes, character)) in text.char_indices().enumerate() {
        if (line, column) >= (location.line, location.column) {
            return (bytes, characters);
        }
        if character == '\n' {
            (line, column) = (line + 1, 1);
        } else {
            column += 1;
        }
    }
    (text.len(), text.chars().count())
}

fn tokenize(text: &str, tokens: &mut Vec<TokenWithSpan>) -> Result<(), SqlError> {
    Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location_into_buf(tokens).map_err(|error| {
        let (bytes, characters) = place(text, error.location);
        let what = match error.message.as_str() {
            message if message.contains("dollar") => "unterminated dollar-quoted string",
            message if message.contains("comment") => "unterminated /* comment",
            message if message.contains("close delimiter") => "unterminated quoted identifier",
            message if message.contains("nterminated") => "unterminated quoted string",
            _ => "syntax error",
        };
        SqlError::new("42601", format!("{what} at or near \"{}\"", &text[bytes..])).at(characters + 1)
    })
}

impl<'a> Words<'a> {
    /// Cuts a text into tokens.
    pub(super) fn new(text: &'a str) -> Result<Self, SqlError> {
        let mut tokens = Vec::new();
        tokenize(text, &mut tokens)?;
        // The tokenizer takes what follows `COPY … FROM STDIN;` for the data. On the wire they come in messages of their own, so these
        // are further statements.
        while let Some(data) = tokens.iter().position(|token| matches!(token.token, Token::CopyData { .. })) {
            let Some(end) = tokens[data..].iter().find(|token| token.token == Token::SemiColon) else {
                break;
            };
            let (end, semicolon) = (end.span.end, end.clone());
            let mut rest = Vec::new();
            tokenize(&text[place(text, end).0..], &mut rest)?;
            tokens.truncate(data);
            tokens.push(semicolon);
            tokens.extend(rest.into_iter().map(|mut token| {
                for location in [&mut token.span.start, &mut token.span.end] {
                    if location.line == 1 {
                        location.column += end.column - 1;
                    }
                    location.line += end.line - 1;
                }
                token
            }));
        }
        Ok(Self { text, tokens })
    }

    /// The statements' tokens. There is none for an empty statement.
    pub(super) fn statements(&self) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut start = 0;
        for part in self.tokens.split(|token| token.token == Token::SemiColon) {
            if part.iter().any(|token| !is_blank(token)) {
                found.push(start..start + part.len());
            }
            start += part.len() + 1;
        }
        found
    }

    /// A cursor at the first word of a statement.
    pub(super) fn cursor(&self, statement: Range<usize>) -> Cursor<'_> {
        let mut cursor = Cursor { words: self, at: statement.start, end: statement.end };
        cursor.skip_blanks();
        cursor
    }

    /// Parses the tokens of a statement, with others in front of them.
    pub(super) fn parse(&self, before: &[Token], range: Range<usize>) -> Result<Statement, SqlError> {
        let before = before.iter().map(|token| TokenWithSpan::wrap(token.clone()));
        let tokens: Vec<TokenWithSpan> = before.chain(self.tokens[range.clone()].iter().cloned()).collect();
        check_depth(&tokens)?;
        let dialect = PostgreSqlDialect {};
        let mut parser =
            Parser::new(&dialect).with_recursion_limit(DEPTH_MAX).with_tokens_with_locations(tokens);
        let statement = parser.parse_statement().map_err(|error| self.error_of(&error, range.end))?;
        match &parser.peek_token_ref().token {
            Token::EOF => Ok(statement),
            _ => Err(self.syntax_error(parser.peek_token_ref().span.start)),
        }
    }

    /// The error of the parser as PostgreSQL has it.
    fn error_of(&self, error: &ParserError, end: usize) -> SqlError {
        let (ParserError::ParserError(message) | ParserError::TokenizerError(message)) = error else {
            return SqlError::new("54001", "stack depth limit exceeded");
        };
        let location = message.rsplit_once(" at Line: ").and_then(|(_, place)| {
            let (line, column) = place.split_once(", Column: ")?;
            Some(Location { line: line.parse().ok()?, column: column.parse().ok()? })
        });
        match location {
            Some(location) => self.syntax_error(location).detail(message.clone()),
            None if message.starts_with("Expected") || message.contains("EOF") => self.error_at(end),
            None => SqlError::new("42601", message.clone()),
        }
    }

    /// The error of a token that does not belong at its place.
    fn syntax_error(&self, location: Location) -> SqlError {
        let at = self.tokens.iter().position(|token| token.span.start == location && !is_blank(token));
        self.error_at(at.unwrap_or(self.tokens.len()))
    }

    fn error_at(&self, at: usize) -> SqlError {
        let Some(token) = self.tokens.get(at) else {
            return SqlError::new("42601", "syntax error at end of input").at(self.text.chars().count() + 1);
        };
        let (start, characters) = place(self.text, token.span.start);
        let end = place(self.text, token.span.end).0.max(start);
        SqlError::new("42601", format!("syntax error at or near \"{}\"", &self.text[start..end]))
            .at(characters + 1)
    }
}

/// A place among the words of one statement.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    words: &'a Words<'a>,
    at: usize,
    end: usize,
}

impl Cursor<'_> {
    fn skip_blanks(&mut self) {
        while self.at < self.end && is_blank(&self.words.tokens[self.at]) {
            self.at += 1;
        }
    }

    /// The next token, if the statement has one.
    pub(super) fn peek(&self) -> Option<&Token> {
        (self.at < self.end).then(|| &self.words.tokens[self.at].token)
    }

    /// The tokens that are left.
    pub(super) fn rest(&self) -> Range<usize> {
        self.at..self.end
    }

    /// The place of the next token.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// Passes the next token.
    pub(super) fn advance(&mut self) {
        self.at = (self.at + 1).min(self.end);
        self.skip_blanks();
    }

    /// True if the next word is this one. It is passed then.
    pub(super) fn keyword(&mut self, keyword: &str) -> bool {
        let is_next = matches!(self.peek(), Some(Token::Word(word))
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(keyword));
        if is_next {
            self.advance();
        }
        is_next
    }

    /// True if the next words are these. They are passed then.
    pub(super) fn keywords(&mut self, keywords: &[&str]) -> bool {
        let before = self.at;
        let are_next = keywords.iter().all(|keyword| self.keyword(keyword));
        if !are_next {
            self.at = before;
        }
        are_next
    }

    /// True if the next token is this one. It is passed then.
    pub(super) fn token(&mut self, token: &Token) -> bool {
        let is_next = self.peek() == Some(token);
        if is_next {
            self.advance();
        }
        is_next
    }

    /// Passes a word that must be there.
    pub(super) fn expect_keyword(&mut self, keyword: &str) -> Result<(), SqlError> {
        if self.keyword(keyword) { Ok(()) } else { Err(self.error()) }
    }

    /// Passes a token that must be there.
    pub(super) fn expect_token(&mut self, token: &Token) -> Result<(), SqlError> {
        if self.token(token) { Ok(()) } else { Err(self.error()) }
    }

    /// A name: in lower case, unless it is in quotes.
    pub(super) fn name(&mut self) -> Option<String> {
        let name = match self.peek()? {
            Token::Word(word) if word.quote_style.is_none() => word.value.to_lowercase(),
            Token::Word(word) => word.value.clone(),
            _ => return None,
        };
        self.advance();
        Some(name)
    }

    /// A name that must be there.
    pub(super) fn expect_name(&mut self) -> Result<String, SqlError> {
        self.name().ok_or_else(|| self.error())
    }

    /// The content of a text in quotes.
    pub(super) fn string(&mut self) -> Option<String> {
        let text = match self.peek()? {
            Token::SingleQuotedString(text)
            | Token::EscapedStringLiteral(text)
            | Token::NationalStringLiteral(text)
            | Token::UnicodeStringLiteral(text) => text.clone(),
            Token::DollarQuotedString(quoted) => quoted.value.clone(),
            _ => return None,
        };
        self.advance();
        Some(text)
    }

    /// A text in quotes that must be there.
    pub(super) fn expect_string(&mut self) -> Result<String, SqlError> {
        self.string().ok_or_else(|| self.error())
    }

    /// A number, with its sign.
    pub(super) fn number(&mut self) -> Option<String> {
        let before = self.at;
        let sign = if self.token(&Token::Minus) { "-" } else { "" };
        if sign.is_empty() {
            self.token(&Token::Plus);
        }
        if let Some(Token::Number(digits, _)) = self.peek() {
            let number = format!("{sign}{digits}");
            self.advance();
            return Some(number);
        }
        self.at = before;
        None
    }

    /// Checks that the statement ends here.
    pub(super) fn expect_end(&self) -> Result<(), SqlError> {
        if self.at >= self.end { Ok(()) } else { Err(self.error()) }
    }

    /// Passes everything that is left.
    pub(super) fn finish(&mut self) {
        self.at = self.end;
    }

    /// The error of the next token, which does not belong here.
    pub(super) fn error(&self) -> SqlError {
        self.words.error_at(self.at.min(self.end))
    }
}
