//! The text of integers, floats, truth values, bytes and UUIDs.

use super::sql_type::Type;
use crate::error::SqlError;
use std::io::Write;

/// The error of a text that is none of a type's.
pub(crate) fn invalid_syntax(text: &str, ty: Type) -> SqlError {
    SqlError::new("22P02", format!("invalid input syntax for type {}: \"{text}\"", ty.name()))
}

/// Cuts off the blanks that C's `isspace` knows.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(|next: char| next.is_ascii_whitespace() || next == '\x0b')
}

/// Reads an integer between two bounds.
pub(crate) fn parse_integer(text: &str, ty: Type, least: i64, greatest: i64) -> Result<i64, SqlError> {
    let trimmed = trim(text);
    let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid_syntax(text, ty));
    }
    match trimmed.parse::<i64>() {
        Ok(number) if (least..=greatest).contains(&number) => Ok(number),
        _ => Err(SqlError::new("22003", format!("value \"{text}\" is out of range for type {}", ty.name()))),
    }
}

/// Reads the number of an object; a negative one stands for one above 2³¹.
pub(crate) fn parse_oid(text: &str, ty: Type) -> Result<u32, SqlError> {
    let number = parse_integer(text, ty, i64::from(i32::MIN), i64::from(u32::MAX))?;
    Ok(number as u32)
}

/// Reads a float.
pub(crate) fn parse_float(text: &str, ty: Type) -> Result<f64, SqlError> {
    let trimmed = trim(text);
    let unsigned = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    let is_named = unsigned.starts_with(|next: char| next.is_ascii_alphabetic());
    let known = ["nan", "inf", "infinity"].iter().any(|name| unsigned.eq_ignore_ascii_case(name));
    if is_named && !known {
        return Err(invalid_syntax(text, ty));
    }
    let (value, is_out_of_range) = if ty == Type::Float4 {
        let value = trimmed.parse::<f32>().map_err(|_| invalid_syntax(text, ty))?;
        (f64::from(value), !is_named && (value.is_infinite() || (value == 0.0 && has_digit(unsigned))))
    } else {
        let value = trimmed.parse::<f64>().map_err(|_| invalid_syntax(text, ty))?;
        (value, !is_named && (value.is_infinite() || (value == 0.0 && has_digit(unsigned))))
    };
    if is_out_of_range {
        return Err(SqlError::new("22003", format!("\"{trimmed}\" is out of range for type {}", ty.name())));
    }
    Ok(value)
}

/// True if a number's text has a digit before its exponent that is not zero.
fn has_digit(number: &str) -> bool {
    number.bytes().take_while(|byte| !matches!(byte, b'e' | b'E')).any(|byte| matches!(byte, b'1'..=b'9'))
}

/// Writes the shortest text that is read as the same float. `digits_max` is the number of digits beyond which there is an exponent.
fn write_shortest(scientific: &str, digits_max: i32, out: &mut Vec<u8>) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    // Writing to a vector cannot fail.
    let _ = if !(-4..digits_max).contains(&exponent) {
        let sign_of_exponent = if exponent < 0 { '-' } else { '+' };
        write!(out, "{sign}{mantissa}e{sign_of_exponent}{:02}", exponent.unsigned_abs())
    } else if exponent < 0 {
        let zeros = exponent.unsigned_abs() as usize - 1;
        write!(out, "{sign}0.{}{digits}", &"000"[..zeros])
    } else {
        let whole = exponent as usize + 1;
        match digits.split_at_checked(whole) {
            Some((whole, "")) => write!(out, "{sign}{whole}"),
            Some((whole, fraction)) => write!(out, "{sign}{whole}.{fraction}"),
            None => write!(out, "{sign}{digits:0<whole$}"),
        }
    };
}

/// The shortest digits that lead back to a float, as PostgreSQL chooses them: the nearest ones, the even one of two that are equally
/// near, and none that lies just halfway to another float.
fn shortest(
    shown: String,
    with_digits: impl Fn(usize) -> String,
    leads_back: impl Fn(&str) -> bool,
) -> String {
    let fraction = shown.split_once('e').and_then(|(mantissa, _)| mantissa.split_once('.'));
    let decimals = fraction.map_or(0, |(_, fraction)| fraction.len());
    // Seventeen digits always suffice.
    let candidates = (decimals..17).map(with_digits);
    candidates.into_iter().find(|candidate| leads_back(candidate)).map_or(shown, |found| {
        // Digits beyond the shortest may end with zeros.
        match found.split_once('e') {
            Some((mantissa, exponent)) if mantissa.contains('.') => {
                format!("{}e{exponent}", mantissa.trim_end_matches('0').trim_end_matches('.'))
            }
            _ => found,
        }
    })
}

/// True if a text is the number that lies halfway between a float of this size and the next one. Only whole numbers can be.
fn is_halfway(text: &str, float: f64) -> bool {
    const WHOLE: f64 = 9_007_199_254_740_992.0;
    if float.abs() < WHOLE || float.abs() > 1e37 {
        return false;
    }
    let whole = |text: &str| {
        let (mantissa, exponent) = text.split_once('e')?;
        let (sign, digits) = (mantissa.starts_with('-'), mantissa.replace(['-', '.'], ""));
        let zeros = exponent.parse::<usize>().ok()?.checked_sub(digits.len() - 1)?;
        let number: i128 = format!("{digits}{}", "0".repeat(zeros)).parse().ok()?;
        Some(if sign { -number } else { number })
    };
    let (below, above) = (float.next_down() as i128, float.next_up() as i128);
    whole(text).is_some_and(|number| {
        let double = 2 * number;
        double == float as i128 + below || double == float as i128 + above
    })
}

/// Writes a `float8`.
pub(crate) fn write_f64(float: f64, out: &mut Vec<u8>) {
    if float.is_finite() {
        let shown = shortest(
            format!("{float:e}"),
            |decimals| format!("{float:.decimals$e}"),
            |text| text.parse() == Ok(float) && !is_halfway(text, float),
        );
        write_shortest(&shown, 15, out);
    } else {
        write_infinite(float, out);
    }
}

/// Writes a `float4`.
pub(crate) fn write_f32(float: f32, out: &mut Vec<u8>) {
    if float.is_finite() {
        // The number halfway to the next float is a float of twice the width.
        let half = |other: f32| (f64::from(float) + f64::from(other)) / 2.0;
        let halves = [half(float.next_down()), half(float.next_up())];
        let shown = shortest(
            format!("{float:e}"),
            |decimals| format!("{float:.decimals$e}"),
            |text| text.parse() == Ok(float) && text.parse::<f64>().is_ok_and(|wide| !halves.contains(&wide)),
        );
        write_shortest(&shown, 6, out);
    } else {
        write_infinite(f64::from(float), out);
    }
}

fn write_infinite(float: f64, out: &mut Vec<u8>) {
    out.extend(match float {
        f64::INFINITY => "Infinity".bytes(),
        f64::NEG_INFINITY => "-Infinity".bytes(),
        _ => "NaN".bytes(),
    });
}

/// Reads a truth value: `true`, `yes`, `on`, `1` and their opposites, which may be cut short.
pub(crate) fn parse_bool(text: &str) -> Result<bool, SqlError> {
    let word = trim(text).to_ascii_lowercase();
    let begins = |whole: &str| !word.is_empty() && whole.starts_with(&word);
    match word.as_str() {
        "1" => Ok(true),
        "0" => Ok(false),
        "on" => Ok(true),
        "of" | "off" => Ok(false),
        _ if begins("true") || begins("yes") => Ok(true),
        _ if begins("false") || begins("no") => Ok(false),
        _ => Err(invalid_syntax(text, Type::Bool)),
    }
}

/// The value of a hexadecimal digit.
fn hexadecimal(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|value| value as u8)
}

/// Reads hexadecimal digits, between whose pairs may be blanks.
pub(crate) fn parse_hexadecimal(text: &str) -> Result<Vec<u8>, SqlError> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut characters = text.chars();
    let digit = |character: char| {
        u8::try_from(character)
            .ok()
            .and_then(hexadecimal)
            .ok_or_else(|| SqlError::new("22023", format!("invalid hexadecimal digit: \"{character}\"")))
    };
    while let Some(high) = characters.next() {
        if matches!(high, ' ' | '\n' | '\t' | '\r') {
            continue;
        }
        let high = digit(high)?;
        let Some(low) = characters.next() else {
            return Err(SqlError::new("22023", "invalid hexadecimal data: odd number of digits"));
        };
        bytes.push(high << 4 | digit(low)?);
    }
    Ok(bytes)
}

/// Reads bytes: `\x` and hexadecimal digits, or characters with `\\` and `\ooo` among them.
pub(crate) fn parse_bytes(text: &str) -> Result<Vec<u8>, SqlError> {
    if let Some(digits) = text.strip_prefix("\\x") {
        return parse_hexadecimal(digits);
    }
    let invalid = || SqlError::new("22P02", "invalid input syntax for type bytea");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'\\' {
            bytes.push(*first);
            rest = after;
        } else if after.first() == Some(&b'\\') {
            bytes.push(b'\\');
            rest = &after[1..];
        } else {
            let Some((&[high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7'], after)) =
                after.split_first_chunk()
            else {
                return Err(invalid());
            };
            bytes.push((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'));
            rest = after;
        }
    }
    Ok(bytes)
}

/// Writes bytes as hexadecimal digits.
pub(crate) fn write_hexadecimal(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(2 * bytes.len());
    for byte in bytes {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
}

/// Reads a UUID: 32 hexadecimal digits, with hyphens after groups of four, perhaps in braces.
pub(crate) fn parse_uuid(text: &str) -> Result<[u8; 16], SqlError> {
    let invalid = || invalid_syntax(text, Type::Uuid);
    let inner = match text.strip_prefix('{') {
        Some(inner) => inner.strip_suffix('}').ok_or_else(invalid)?,
        None => text,
    };
    let mut rest = inner.as_bytes();
    let mut uuid = [0; 16];
    for (place, byte) in uuid.iter_mut().enumerate() {
        if let (true, Some((b'-', after))) = (place > 0 && place % 2 == 0, rest.split_first()) {
            rest = after;
        }
        let Some((&[high, low], after)) = rest.split_first_chunk() else { return Err(invalid()) };
        *byte = hexadecimal(high).ok_or_else(invalid)? << 4 | hexadecimal(low).ok_or_else(invalid)?;
        rest = after;
    }
    if rest.is_empty() { Ok(uuid) } else { Err(invalid()) }
}

/// Writes a UUID.
pub(crate) fn write_uuid(uuid: &[u8; 16], out: &mut Vec<u8>) {
    for (place, part) in
        [&uuid[..4], &uuid[4..6], &uuid[6..8], &uuid[8..10], &uuid[10..]].into_iter().enumerate()
    {
        if place > 0 {
            out.push(b'-');
        }
        write_hexadecimal(part, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_their_shortest_text() {
        let shown = |float: f64| {
            let mut out = Vec::new();
            write_f64(float, &mut out);
            String::from_utf8(out).unwrap()
        };
        for (float, text) in [
            (0.1, "0.1"),
            (-0.0, "-0"),
            (1e15, "1e+15"),
            (123456789012345.0, "123456789012345"),
            (0.0001, "0.0001"),
            (0.00001234, "1.234e-05"),
            (100.0, "100"),
            (1.0 / 3.0, "0.3333333333333333"),
            (-656_569_849_279_644.2, "-656569849279644.2"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(shown(float), text);
        }
        let mut out = Vec::new();
        write_f32(1_234_567.0, &mut out);
        write_f32(-48_757_272.0, &mut out);
        assert_eq!(out, b"1.234567e+06-4.8757272e+07");
    }

    #[test]
    fn numbers_out_of_range_are_told_from_what_is_no_number() {
        let code = |text: &str, ty| parse_float(text, ty).map_err(|error| error.code);
        assert_eq!(code("1e400", Type::Float8), Err("22003"));
        assert_eq!(code("1e-400", Type::Float8), Err("22003"));
        assert_eq!(code("1e40", Type::Float4), Err("22003"));
        assert_eq!(code("infinite", Type::Float8), Err("22P02"));
        assert_eq!(code(" 0e-400 ", Type::Float8), Ok(0.0));
        assert_eq!(parse_integer("2147483648", Type::Int4, -9, 9).unwrap_err().code, "22003");
        assert_eq!(parse_integer("1.5", Type::Int4, -9, 9).unwrap_err().code, "22P02");
    }

    #[test]
    fn bytes_truth_and_uuids_are_read() {
        assert_eq!(parse_bytes("\\x0aFf 01").unwrap(), [0x0A, 0xFF, 1]);
        assert_eq!(parse_bytes("a\\\\b\\001").unwrap(), b"a\\b\x01");
        assert_eq!(parse_bytes("\\x0").unwrap_err().code, "22023");
        assert_eq!(parse_bytes("\\9").unwrap_err().code, "22P02");
        assert!(parse_bool(" TRU ").unwrap() && !parse_bool("off").unwrap() && parse_bool("o").is_err());
        let uuid = parse_uuid("{A0EEBC99-9c0b4ef8-bb6d-6bb9bd380a11}").unwrap();
        let mut out = Vec::new();
        write_uuid(&uuid, &mut out);
        assert_eq!(out, b"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11");
        assert!(parse_uuid("a0eebc99").is_err());
    }
}
