//! `to_char` and `to_number`: numbers by patterns such as `FM999,990.00`.

use crate::error::SqlError;
use crate::values::{Datum, Numeric};

/// The most characters of a pattern.
const PATTERN_MAX: usize = 1_000;

/// A part of a pattern.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    /// `9`: a digit, or a blank where a leading zero would be.
    Nine,
    /// `0`: a digit.
    Zero,
    /// `.` or `D`.
    Point,
    /// `,` or `G`.
    Group,
    /// `S`.
    Sign,
    /// `MI`.
    Minus,
    /// `PL`.
    Plus,
    /// `SG`.
    SignHere,
    /// A character that stands for itself.
    Literal(char),
}

/// A pattern that is read.
struct Pattern {
    parts: Vec<Part>,
    /// `FM`: without blanks and without zeros at the end.
    fills: bool,
    /// `PR`: negative numbers in angle brackets.
    has_brackets: bool,
}

fn read(pattern: &str) -> Result<Pattern, SqlError> {
    if pattern.len() > PATTERN_MAX {
        return Err(SqlError::new("22023", "the pattern of to_char() is too long"));
    }
    let (mut parts, mut fills, mut has_brackets) = (Vec::new(), true, false);
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let two = rest.get(..2).unwrap_or_default().to_ascii_uppercase();
        let (part, length) = match (two.as_str(), first.to_ascii_uppercase()) {
            ("FM", _) => {
                fills = false;
                (None, 2)
            }
            ("PR", _) => {
                has_brackets = true;
                (None, 2)
            }
            ("MI", _) => (Some(Part::Minus), 2),
            ("PL", _) => (Some(Part::Plus), 2),
            ("SG", _) => (Some(Part::SignHere), 2),
            // The currency of the locale C is a blank.
            (_, 'L') => (Some(Part::Literal(' ')), 1),
            ("RN" | "TH" | "EE", _) | (_, 'V') => {
                return Err(SqlError::not_supported(format!("\"{rest}\" in a pattern of to_char()")));
            }
            (_, '9') => (Some(Part::Nine), 1),
            (_, '0') => (Some(Part::Zero), 1),
            (_, '.' | 'D') => (Some(Part::Point), 1),
            (_, ',' | 'G') => (Some(Part::Group), 1),
            (_, 'S') => (Some(Part::Sign), 1),
            (_, '"') => {
                let quoted = rest[1..].split('"').next().unwrap_or_default();
                parts.extend(quoted.chars().map(Part::Literal));
                rest = rest.get(quoted.len() + 2..).unwrap_or_default();
                continue;
            }
            _ => (Some(Part::Literal(first)), first.len_utf8()),
        };
        parts.extend(part);
        rest = &rest[length..];
    }
    if parts.iter().filter(|part| **part == Part::Point).count() > 1 {
        return Err(SqlError::new("42601", "multiple decimal points"));
    }
    Ok(Pattern { parts, fills, has_brackets })
}

/// A number by a pattern.
pub(super) fn number_text(number: &Numeric, pattern: &str) -> Result<Datum, SqlError> {
    let pattern = read(pattern)?;
    let point = pattern.parts.iter().position(|part| *part == Part::Point).unwrap_or(pattern.parts.len());
    let is_digit = |part: &&Part| matches!(part, Part::Nine | Part::Zero);
    let (whole_parts, fraction_parts) = pattern.parts.split_at(point);
    let whole_count = whole_parts.iter().filter(is_digit).count();
    let fraction_count = fraction_parts.iter().filter(is_digit).count();
    let rounded = number.round(fraction_count as i32)?;
    let text = rounded.absolute().to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    // A zero before the point takes a place, too, although it is not shown.
    let is_overflown = whole.len() > whole_count;
    let whole = if whole == "0" { "" } else { whole };
    let is_negative = rounded.is_negative();
    let whole_digits: Vec<char> = format!("{whole:>whole_count$}").chars().collect();
    let mut fraction_digits: Vec<char> = fraction.chars().collect();
    // The last digit that is shown behind the point even without blanks: the last zero of the pattern, or one that is not zero.
    let last_wanted = {
        let forced = fraction_parts
            .iter()
            .filter(is_digit)
            .enumerate()
            .filter(|(_, part)| **part == Part::Zero)
            .last();
        let forced = forced.map_or(0, |(place, _)| place + 1);
        forced.max(fraction.trim_end_matches('0').len())
    };
    let first_zero = whole_parts.iter().filter(is_digit).position(|part| *part == Part::Zero);
    let mut out = String::new();
    let has_sign = pattern.parts.iter().any(|part| matches!(part, Part::Sign | Part::Minus | Part::SignHere));
    let mut is_sign_written = has_sign || pattern.has_brackets;
    let starts_with_sign = pattern.parts.first() == Some(&Part::Sign);
    let open_sign = |out: &mut String, is_sign_written: &mut bool| {
        if !*is_sign_written {
            if is_negative {
                out.push('-');
            } else if pattern.fills {
                out.push(' ');
            }
            *is_sign_written = true;
        }
    };
    let (mut place, mut fraction_place, mut has_begun) = (0, 0, false);
    let mut waiting_sign = starts_with_sign || pattern.has_brackets;
    let write_waiting = |out: &mut String, waiting: &mut bool| {
        if *waiting {
            *waiting = false;
            if pattern.has_brackets {
                if is_negative {
                    out.push('<');
                } else if pattern.fills {
                    out.push(' ');
                }
            } else {
                out.push(if is_negative { '-' } else { '+' });
            }
        }
    };
    for (at, part) in pattern.parts.iter().enumerate() {
        match part {
            Part::Nine | Part::Zero if at < point => {
                let digit = if is_overflown { '#' } else { whole_digits[place] };
                let is_forced = first_zero.is_some_and(|first| place >= first);
                // A whole part of zero is shown if no fraction is.
                let has_fraction = fraction_count > 0 && (pattern.fills || last_wanted > 0);
                let is_last = place + 1 == whole_count && !has_fraction;
                place += 1;
                if digit == ' ' && !is_forced && !is_last {
                    if pattern.fills {
                        out.push(' ');
                    }
                } else {
                    write_waiting(&mut out, &mut waiting_sign);
                    open_sign(&mut out, &mut is_sign_written);
                    has_begun = true;
                    out.push(if digit == ' ' { '0' } else { digit });
                }
            }
            Part::Nine | Part::Zero => {
                let digit = fraction_digits.get_mut(fraction_place).map_or('0', |digit| *digit);
                fraction_place += 1;
                if is_overflown {
                    out.push('#');
                } else if pattern.fills || fraction_place <= last_wanted {
                    out.push(digit);
                }
            }
            Part::Point => {
                write_waiting(&mut out, &mut waiting_sign);
                open_sign(&mut out, &mut is_sign_written);
                has_begun = true;
                // Without blanks a point stays even if no digit follows.
                out.push('.');
            }
            Part::Group if has_begun => out.push(','),
            Part::Group => {
                if pattern.fills {
                    out.push(' ');
                }
            }
            Part::Sign if at == 0 && starts_with_sign => {}
            Part::Sign | Part::SignHere => out.push(if is_negative { '-' } else { '+' }),
            Part::Minus if is_negative => out.push('-'),
            Part::Plus if !is_negative => out.push('+'),
            Part::Minus | Part::Plus => {
                if pattern.fills {
                    out.push(' ');
                }
            }
            Part::Literal(literal) => out.push(*literal),
        }
    }
    open_sign(&mut out, &mut is_sign_written);
    if pattern.has_brackets {
        if is_negative {
            out.push('>');
        } else if pattern.fills {
            out.push(' ');
        }
    }
    // The sign stands before the first digit: blanks before it are to its left.
    Ok(Datum::text(out))
}

/// The number of a text that a pattern describes: digits, a sign and a point are read, all else is passed over.
pub(super) fn parse_number(text: &str, pattern: &str) -> Result<Datum, SqlError> {
    let pattern = read(pattern)?;
    let fraction_max = match pattern.parts.iter().position(|part| *part == Part::Point) {
        Some(point) => {
            pattern.parts[point..].iter().filter(|part| matches!(part, Part::Nine | Part::Zero)).count()
        }
        None => 0,
    };
    let is_negative = text.contains('-') || (pattern.has_brackets && text.contains('<'));
    let (mut digits, mut scale) = (String::new(), None);
    for next in text.chars() {
        match next {
            '0'..='9' => {
                if let Some(scale) = &mut scale {
                    if *scale == fraction_max {
                        break;
                    }
                    *scale += 1;
                }
                digits.push(next);
            }
            '.' if scale.is_none() => {
                scale = Some(0);
                if fraction_max == 0 {
                    break;
                }
                digits.push('.');
            }
            _ => {}
        }
    }
    if !digits.contains(|next: char| next.is_ascii_digit()) {
        return Err(SqlError::new("22P02", format!("invalid input syntax for type numeric: \"{text}\"")));
    }
    let number: Numeric = digits.parse()?;
    Ok(Datum::numeric(if is_negative { number.negated() } else { number }))
}
