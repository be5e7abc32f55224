//! Functions that quote, encode and format texts.

use super::digest::md5;
use super::function::{
    Function, Parameter, ResultType, bytes, function, integer, polymorphic, text, wrong_arguments,
};
use super::number_format::{number_text, parse_number};
use super::time_format::{interval_text, moment_text, parse_moment};
use crate::error::SqlError;
use crate::values::scalar_text::{parse_bytes, parse_hexadecimal, write_hexadecimal};
use crate::values::{BYTES_MAX, Datum, Numeric, Type, too_long};
use Type::{
    Bytea, Date, Float4, Float8, Int4, Int8, Interval, Numeric as Decimal, Text, Timestamp, TimestampTz,
};

pub(super) const FUNCTIONS: &[Function] = &[
    function("md5", &[Text], Text, |arguments, _| Ok(hexadecimal(&md5(text(arguments, 0)?.as_bytes())))),
    function("md5", &[Bytea], Text, |arguments, _| Ok(hexadecimal(&md5(bytes(arguments, 0)?)))),
    function("to_hex", &[Int4], Text, |arguments, _| {
        Ok(Datum::text(format!("{:x}", integer(arguments, 0)? as i32)))
    }),
    function("to_hex", &[Int8], Text, |arguments, _| {
        Ok(Datum::text(format!("{:x}", integer(arguments, 0)?)))
    }),
    function("encode", &[Bytea, Text], Text, |arguments, _| {
        encode(bytes(arguments, 0)?, text(arguments, 1)?)
    }),
    function("decode", &[Text, Text], Bytea, |arguments, _| decode(text(arguments, 0)?, text(arguments, 1)?)),
    function("quote_ident", &[Text], Text, |arguments, _| {
        Ok(Datum::text(quote_identifier(text(arguments, 0)?)))
    }),
    function("quote_literal", &[Text], Text, |arguments, _| {
        Ok(Datum::text(quote_literal(text(arguments, 0)?)))
    }),
    polymorphic("quote_literal", &[Parameter::AnyElement], ResultType::Is(Text), |arguments, _| {
        Ok(Datum::text(quote_literal(&cast_text(&arguments[0]))))
    })
    .stable(),
    function("quote_nullable", &[Text], Text, |arguments, _| quote_nullable(arguments)).nullable(),
    polymorphic("quote_nullable", &[Parameter::AnyElement], ResultType::Is(Text), |arguments, _| {
        quote_nullable(arguments)
    })
    .stable()
    .nullable(),
    function("format", &[Text], Text, |arguments, _| format_text(arguments)).stable().nullable(),
    polymorphic(
        "format",
        &[Parameter::Of(Text), Parameter::AnyVariadic],
        ResultType::Is(Text),
        |arguments, _| format_text(arguments),
    )
    .stable()
    .nullable(),
    function("to_char", &[Timestamp, Text], Text, |arguments, _| moment_to_text(arguments)).stable(),
    function("to_char", &[TimestampTz, Text], Text, |arguments, _| moment_to_text(arguments)).stable(),
    function("to_char", &[Interval, Text], Text, |arguments, _| match &arguments[0] {
        Datum::Interval(interval) => interval_text(*interval, text(arguments, 1)?),
        _ => Err(wrong_arguments()),
    })
    .stable(),
    function("to_char", &[Int4, Text], Text, |arguments, _| number_to_text(arguments)).stable(),
    function("to_char", &[Int8, Text], Text, |arguments, _| number_to_text(arguments)).stable(),
    function("to_char", &[Float4, Text], Text, |arguments, _| number_to_text(arguments)).stable(),
    function("to_char", &[Float8, Text], Text, |arguments, _| number_to_text(arguments)).stable(),
    function("to_char", &[Decimal, Text], Text, |arguments, _| number_to_text(arguments)).stable(),
    function("to_number", &[Text, Text], Decimal, |arguments, _| {
        parse_number(text(arguments, 0)?, text(arguments, 1)?)
    })
    .stable(),
    function("to_date", &[Text, Text], Date, |arguments, _| {
        let moment = parse_moment(text(arguments, 0)?, text(arguments, 1)?)?;
        Ok(Datum::Date(crate::values::casts::date_of(moment)))
    })
    .stable(),
    function("to_timestamp", &[Text, Text], TimestampTz, |arguments, _| {
        parse_moment(text(arguments, 0)?, text(arguments, 1)?).map(Datum::TimestampTz)
    })
    .stable(),
];

fn hexadecimal(bytes: &[u8]) -> Datum {
    let mut out = Vec::new();
    write_hexadecimal(bytes, &mut out);
    Datum::text(String::from_utf8_lossy(&out))
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn unknown_encoding(name: &str) -> SqlError {
    SqlError::new("22023", format!("unrecognized encoding: \"{name}\""))
}

fn encode(bytes: &[u8], name: &str) -> Result<Datum, SqlError> {
    let mut out = String::new();
    match name.to_ascii_lowercase().as_str() {
        "hex" => return Ok(hexadecimal(bytes)),
        "escape" => {
            for byte in bytes {
                match byte {
                    b'\\' => out.push_str("\\\\"),
                    0 | 0x80.. => out.push_str(&format!("\\{byte:03o}")),
                    byte => out.push(char::from(*byte)),
                }
            }
        }
        "base64" => {
            for (place, group) in bytes.chunks(3).enumerate() {
                // Lines have 76 characters.
                if place > 0 && place % 19 == 0 {
                    out.push('\n');
                }
                let word = group.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte))
                    << (8 * (3 - group.len()));
                for digit in 0..4 {
                    let value = (word >> (18 - 6 * digit)) & 63;
                    out.push(if digit <= group.len() { char::from(BASE64[value as usize]) } else { '=' });
                }
            }
        }
        _ => return Err(unknown_encoding(name)),
    }
    Ok(Datum::text(out))
}

fn decode(text: &str, name: &str) -> Result<Datum, SqlError> {
    let decoded = match name.to_ascii_lowercase().as_str() {
        "hex" => parse_hexadecimal(text)?,
        "escape" => parse_bytes(if text.starts_with("\\x") { "" } else { text })?,
        "base64" => decode_base64(text)?,
        _ => return Err(unknown_encoding(name)),
    };
    Ok(Datum::Bytes(decoded.into()))
}

fn decode_base64(text: &str) -> Result<Vec<u8>, SqlError> {
    let invalid = |what: String| SqlError::new("22023", what);
    let (mut bytes, mut word, mut digits, mut ends) = (Vec::new(), 0_u32, 0, 0);
    for byte in text.bytes().filter(|byte| !matches!(byte, b' ' | b'\n' | b'\t' | b'\r')) {
        if byte == b'=' && digits >= 2 && digits + ends < 4 {
            ends += 1;
            continue;
        }
        let Some(value) = BASE64.iter().position(|known| *known == byte).filter(|_| ends == 0) else {
            let symbol = char::from(byte);
            return Err(if byte == b'=' {
                invalid("unexpected \"=\" while decoding base64 sequence".to_owned())
            } else {
                invalid(format!("invalid symbol \"{symbol}\" found while decoding base64 sequence"))
            });
        };
        word = word << 6 | value as u32;
        digits += 1;
        if digits == 4 {
            bytes.extend(&word.to_be_bytes()[1..]);
            (word, digits) = (0, 0);
        }
    }
    if digits + ends != 0 && digits + ends != 4 {
        return Err(invalid("invalid base64 end sequence".to_owned())
            .hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    if digits > 0 {
        let word = word << (6 * (4 - digits));
        bytes.extend(&word.to_be_bytes()[1..digits]);
    }
    Ok(bytes)
}

/// The words that are no names unless they are quoted.
const KEYWORDS: &str = "\
    all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean \
    both case cast char character check coalesce collate collation column concurrently constraint create \
    cross current_catalog current_date current_role current_schema current_time current_timestamp \
    current_user dec decimal default deferrable desc distinct do else end except exists extract false \
    fetch float for foreign freeze from full grant greatest group grouping having ilike in initially \
    inner inout int integer intersect interval into is isnull join lateral leading least left like limit \
    localtime localtimestamp national natural nchar none normalize not notnull null nullif numeric \
    offset on only or order out outer overlaps overlay placing position precision primary real \
    references returning right row select session_user setof similar smallint some substring symmetric \
    table tablesample then time timestamp to trailing treat trim true union unique user using values \
    varchar variadic verbose when where window with xmlattributes xmlconcat xmlelement xmlexists \
    xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable";

/// A name in quotes, if it needs them.
pub(crate) fn quote_identifier(name: &str) -> String {
    let is_plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !KEYWORDS.split(' ').any(|keyword| keyword == name);
    if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// The text that a cast to text gives: truth values are words there.
fn cast_text(value: &Datum) -> String {
    match value {
        Datum::Bool(value) => value.to_string(),
        value => value.to_text(Text),
    }
}

fn quote_nullable(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let value = arguments.first().ok_or_else(wrong_arguments)?;
    Ok(Datum::text(if value.is_null() { "NULL".to_owned() } else { quote_literal(&cast_text(value)) }))
}

/// A literal in quotes.
fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') {
        // Backslashes mean something in such literals only.
        return format!("E'{}'", quoted.replace('\\', "\\\\"));
    }
    format!("'{quoted}'")
}

/// `format`: `%s`, `%I` and `%L`, each with a place (`%1$s`) and a width (`%-10s`).
fn format_text(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let Some((pattern, values)) = arguments.split_first() else { return Err(wrong_arguments()) };
    let Datum::Text(pattern) = pattern else { return Ok(Datum::Null) };
    let (mut out, mut rest, mut next) = (String::new(), &**pattern, 0);
    let unfinished = || {
        SqlError::new("22023", "unterminated format() type specifier").hint("For a single \"%\" use \"%%\".")
    };
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let number = |text: &str| {
            let end = text.find(|next: char| !next.is_ascii_digit()).unwrap_or(text.len());
            let value = if end == 0 { Some(None) } else { text[..end].parse::<usize>().ok().map(Some) };
            value.map(|value| (value, end)).ok_or_else(|| SqlError::new("22003", "number is out of range"))
        };
        let (mut width, mut end) = number(rest)?;
        if let (Some(place), Some(after)) = (width, rest[end..].strip_prefix('$')) {
            if place == 0 {
                return Err(SqlError::new(
                    "22023",
                    "format specifies argument 0, but arguments are numbered from 1",
                ));
            }
            next = place - 1;
            rest = after;
            width = None;
            end = 0;
        }
        let is_left = width.is_none() && rest[end..].starts_with('-');
        if is_left {
            rest = &rest[1..];
        }
        if width.is_none() {
            (width, end) = number(rest)?;
        }
        rest = &rest[end..];
        let Some(kind) = rest.chars().next() else { return Err(unfinished()) };
        rest = &rest[kind.len_utf8()..];
        if kind == '*' {
            return Err(SqlError::not_supported("a width of format() among its arguments"));
        }
        let value =
            values.get(next).ok_or_else(|| SqlError::new("22023", "too few arguments for format()"))?;
        next += 1;
        let shown = match (kind, value.is_null()) {
            ('s', true) => String::new(),
            ('s', false) => value.to_text(Text),
            ('I', false) => quote_identifier(&value.to_text(Text)),
            ('I', true) => {
                return Err(SqlError::new("22004", "null values cannot be formatted as an SQL identifier"));
            }
            ('L', true) => "NULL".to_owned(),
            ('L', false) => quote_literal(&value.to_text(Text)),
            _ => {
                let message = format!("unrecognized format() type specifier \"{kind}\"");
                return Err(SqlError::new("22023", message).hint("For a single \"%\" use \"%%\"."));
            }
        };
        let blanks = width.unwrap_or(0).saturating_sub(shown.chars().count());
        if out.len() + shown.len() + blanks > BYTES_MAX {
            return Err(too_long());
        }
        let blanks = " ".repeat(blanks);
        out.push_str(&if is_left { shown + &blanks } else { blanks + &shown });
    }
    out.push_str(rest);
    Ok(Datum::text(out))
}

fn moment_to_text(arguments: &[Datum]) -> Result<Datum, SqlError> {
    match &arguments[0] {
        Datum::Timestamp(moment) => moment_text(*moment, false, text(arguments, 1)?),
        Datum::TimestampTz(moment) => moment_text(*moment, true, text(arguments, 1)?),
        _ => Err(wrong_arguments()),
    }
}

fn number_to_text(arguments: &[Datum]) -> Result<Datum, SqlError> {
    let number = match &arguments[0] {
        Datum::Numeric(number) => Numeric::clone(number),
        Datum::Float4(float) => Numeric::of_f32(*float),
        Datum::Float8(float) => Numeric::of_f64(*float),
        value => Numeric::from(value.as_integer().ok_or_else(wrong_arguments)?),
    };
    number_text(&number, text(arguments, 1)?)
}
