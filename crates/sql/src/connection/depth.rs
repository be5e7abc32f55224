//! A bound of how deep a statement's tree may be, found before there is a tree: what walks through one needs stack for each level.

use crate::error::SqlError;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// The largest number of operators in one expression, those around it included.
const OPERATORS_MAX: usize = 2_000;

/// Refuses a statement with an expression of too many operators.
pub(super) fn check_depth(tokens: &[TokenWithSpan]) -> Result<(), SqlError> {
    // Of each open parenthesis: operators around it, and those of the present expression inside.
    let mut open = Vec::new();
    let (mut around, mut inside) = (0_usize, 0_usize);
    for TokenWithSpan { token, .. } in tokens {
        match token {
            Token::LParen | Token::LBracket => {
                open.push((around, inside));
                around += inside + 1;
                inside = 0;
            }
            Token::RParen | Token::RBracket => {
                if let Some(before) = open.pop() {
                    (around, inside) = before;
                }
            }
            Token::Comma | Token::SemiColon => inside = 0,
            Token::Word(word) => match word.keyword {
                Keyword::SELECT | Keyword::FROM | Keyword::WHERE | Keyword::VALUES | Keyword::SET => {
                    inside = 0
                }
                Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::JOIN
                | Keyword::UNION
                | Keyword::CASE
                | Keyword::WHEN
                | Keyword::ELSE
                | Keyword::INTERSECT
                | Keyword::EXCEPT => inside += 1,
                _ => {}
            },
            Token::Whitespace(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::Placeholder(_)
            | Token::Period
            | Token::EOF => {}
            _ => inside += 1,
        }
        if around + inside > OPERATORS_MAX {
            return Err(SqlError::new("54001", "stack depth limit exceeded")
                .hint("A statement may have 2,000 operators in one expression."));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::tokenizer::Tokenizer;

    fn check(text: &str) -> Result<(), SqlError> {
        check_depth(&Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().unwrap())
    }

    #[test]
    fn deep_expressions_are_refused_and_long_lists_are_not() {
        let sum = |terms: usize| format!("select 1{}", "+1".repeat(terms));
        assert!(check(&sum(1_900)).is_ok());
        assert_eq!(check(&sum(20_000)).unwrap_err().code, "54001");
        let nested = |depth: usize| format!("select {}1{}", "(1+".repeat(depth), ")".repeat(depth));
        assert!(check(&nested(900)).is_ok());
        assert_eq!(check(&nested(5_000)).unwrap_err().code, "54001");
        assert!(check(&format!("insert into t values (-1){}", ", (-1, 2 + 3)".repeat(50_000))).is_ok());
        assert!(check(&format!("select 1 where x in (1{})", ", -5".repeat(50_000))).is_ok());
    }
}
