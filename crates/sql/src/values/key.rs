//! Keys: values as bytes whose order is that of the values.
//!
//! The bytes of values of one type compare as the values do, null last. No value's bytes begin with all of another's, so the bytes of
//! several columns are simply one behind the other. Each value begins with a mark that tells null from the rest; then follow
//!
//! | type | bytes |
//! |---|---|
//! | integers, dates, times | big-endian, with the sign turned over |
//! | floats | the bits, all turned over if negative and the sign else; -0 as 0, one NaN |
//! | `numeric` | a mark of the sign; the exponent; pairs of digits, each plus one, and a zero; all turned over if negative |
//! | text, bytes | the bytes, zeros followed by 0xFF; a zero and a one |
//! | arrays | the elements, and a zero |

use super::compare::without_blanks;
use super::datum::Datum;
use super::interval::Interval;
use super::numeric::Numeric;
use super::sql_type::Type;

const PRESENT: u8 = 1;
const NULL: u8 = 2;
/// Ends the elements of an array; below the marks of elements.
const END: u8 = 0;
/// Follows a zero that is a part of a text; ends of texts are followed by [`ENDS`].
const ESCAPED: u8 = 0xFF;
const ENDS: u8 = 1;

const NUMERIC_NEGATIVE_INFINITY: u8 = 0;
const NUMERIC_NEGATIVE: u8 = 1;
const NUMERIC_ZERO: u8 = 2;
const NUMERIC_POSITIVE: u8 = 3;
const NUMERIC_INFINITY: u8 = 4;
const NUMERIC_NAN: u8 = 5;

/// Appends a value's key. A `char(n)` keeps its blanks; all values of a column have as many, or use [`encode_key_as`].
pub fn encode_key(datum: &Datum, out: &mut Vec<u8>) {
    if datum.is_null() {
        return out.push(NULL);
    }
    out.push(PRESENT);
    match datum {
        Datum::Null => {}
        Datum::Bool(value) => out.push(u8::from(*value)),
        Datum::Int2(number) => out.extend((*number ^ i16::MIN).to_be_bytes()),
        Datum::Int4(number) | Datum::Date(number) => out.extend((*number ^ i32::MIN).to_be_bytes()),
        Datum::Int8(number) | Datum::Time(number) | Datum::Timestamp(number) | Datum::TimestampTz(number) => {
            out.extend((*number ^ i64::MIN).to_be_bytes());
        }
        Datum::Oid(number) => out.extend(number.to_be_bytes()),
        Datum::Float4(float) => {
            let bits =
                if *float == 0.0 { 0 } else { if float.is_nan() { f32::NAN } else { *float }.to_bits() };
            let bits = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
            out.extend(bits.to_be_bytes());
        }
        Datum::Float8(float) => {
            let bits =
                if *float == 0.0 { 0 } else { if float.is_nan() { f64::NAN } else { *float }.to_bits() };
            let bits = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
            out.extend(bits.to_be_bytes());
        }
        Datum::Numeric(number) => encode_numeric(number, out),
        Datum::Text(text) => encode_bytes(text.as_bytes(), out),
        Datum::Bytes(bytes) => encode_bytes(bytes, out),
        Datum::Uuid(uuid) => out.extend(uuid),
        Datum::Interval(interval) => out.extend((interval.length() ^ i128::MIN).to_be_bytes()),
        Datum::Array(elements) => {
            for element in elements.iter() {
                encode_key(element, out);
            }
            out.push(END);
        }
    }
}

/// Appends the key of a value of a type: as [`encode_key`], but a `char(n)` without its trailing blanks.
pub fn encode_key_as(ty: Type, datum: &Datum, out: &mut Vec<u8>) {
    match (ty, datum) {
        (Type::Char, Datum::Text(text)) => {
            out.push(PRESENT);
            encode_bytes(without_blanks(text).as_bytes(), out);
        }
        _ => encode_key(datum, out),
    }
}

fn encode_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + 2);
    for part in bytes.split_inclusive(|byte| *byte == 0) {
        out.extend(part);
        if part.last() == Some(&0) {
            out.push(ESCAPED);
        }
    }
    out.extend([0, ENDS]);
}

fn encode_numeric(number: &Numeric, out: &mut Vec<u8>) {
    let Some((is_negative, digits, exponent)) = number.significant() else {
        return out.push(match (number.is_zero(), number.is_nan(), number.is_negative()) {
            (true, ..) => NUMERIC_ZERO,
            (_, true, _) => NUMERIC_NAN,
            (.., true) => NUMERIC_NEGATIVE_INFINITY,
            _ => NUMERIC_INFINITY,
        });
    };
    out.push(if is_negative { NUMERIC_NEGATIVE } else { NUMERIC_POSITIVE });
    let start = out.len();
    // Exponents are far within 32 bits: there are 131,072 digits at most.
    out.extend((exponent as i32 ^ i32::MIN).to_be_bytes());
    for pair in digits.as_bytes().chunks(2) {
        let low = pair.get(1).map_or(0, |digit| digit - b'0');
        out.push((pair[0] - b'0') * 10 + low + 1);
    }
    out.push(0);
    if is_negative {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// Reads the value of a type from the front of a key, for messages. A `numeric` has lost zeros at its end, an `interval` its parts.
/// None if the bytes are no such key.
pub fn decode_key(key: &[u8], ty: Type) -> Option<(Datum, &[u8])> {
    let (mark, rest) = key.split_first()?;
    match *mark {
        NULL => return Some((Datum::Null, rest)),
        PRESENT => {}
        _ => return None,
    }
    fn split<const N: usize>(bytes: &[u8]) -> Option<([u8; N], &[u8])> {
        bytes.split_first_chunk().map(|(first, rest)| (*first, rest))
    }
    let of_i64 = |make: fn(i64) -> Datum| {
        let (bytes, rest) = split(rest)?;
        Some((make(i64::from_be_bytes(bytes) ^ i64::MIN), rest))
    };
    Some(match ty {
        Type::Bool => (Datum::Bool(*rest.first()? != 0), &rest[1..]),
        Type::Int2 => {
            let (bytes, rest) = split(rest)?;
            (Datum::Int2(i16::from_be_bytes(bytes) ^ i16::MIN), rest)
        }
        Type::Int4 => {
            let (bytes, rest) = split(rest)?;
            (Datum::Int4(i32::from_be_bytes(bytes) ^ i32::MIN), rest)
        }
        Type::Date => {
            let (bytes, rest) = split(rest)?;
            (Datum::Date(i32::from_be_bytes(bytes) ^ i32::MIN), rest)
        }
        Type::Int8 => of_i64(Datum::Int8)?,
        Type::Time => of_i64(Datum::Time)?,
        Type::Timestamp => of_i64(Datum::Timestamp)?,
        Type::TimestampTz => of_i64(Datum::TimestampTz)?,
        ty if ty.is_oid() => {
            let (bytes, rest) = split(rest)?;
            (Datum::Oid(u32::from_be_bytes(bytes)), rest)
        }
        Type::Float4 => {
            let (bytes, rest) = split(rest)?;
            let bits = u32::from_be_bytes(bytes);
            (Datum::Float4(f32::from_bits(if bits >> 31 == 1 { bits ^ 1 << 31 } else { !bits })), rest)
        }
        Type::Float8 => {
            let (bytes, rest) = split(rest)?;
            let bits = u64::from_be_bytes(bytes);
            (Datum::Float8(f64::from_bits(if bits >> 63 == 1 { bits ^ 1 << 63 } else { !bits })), rest)
        }
        Type::Numeric => {
            let (number, rest) = decode_numeric(rest)?;
            (Datum::numeric(number), rest)
        }
        Type::Uuid => {
            let (uuid, rest) = split(rest)?;
            (Datum::Uuid(uuid), rest)
        }
        Type::Interval => {
            let (bytes, rest) = split(rest)?;
            let length = i128::from_be_bytes(bytes) ^ i128::MIN;
            let day = i128::from(super::calendar::DAY);
            let (days, microseconds) = (length / day, (length % day) as i64);
            // A span's parts came from parts that fit.
            let months = i32::try_from(days / 30).ok()?;
            (Datum::Interval(Interval { months, days: (days % 30) as i32, microseconds }), rest)
        }
        Type::Bytea => {
            let (bytes, rest) = decode_bytes(rest)?;
            (Datum::Bytes(bytes.into()), rest)
        }
        ty => match ty.element() {
            Some(element) => {
                let (mut elements, mut rest) = (Vec::new(), rest);
                while *rest.first()? != END {
                    let (value, after) = decode_key(rest, element)?;
                    elements.push(value);
                    rest = after;
                }
                (Datum::array(elements), &rest[1..])
            }
            None => {
                let (bytes, rest) = decode_bytes(rest)?;
                (Datum::text(String::from_utf8(bytes).ok()?), rest)
            }
        },
    })
}

fn decode_bytes(mut key: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut bytes = Vec::new();
    loop {
        let zero = key.iter().position(|byte| *byte == 0)?;
        bytes.extend(&key[..zero]);
        let mark = *key.get(zero + 1)?;
        key = &key[zero + 2..];
        if mark == ENDS {
            return Some((bytes, key));
        }
        bytes.push(0);
    }
}

fn decode_numeric(key: &[u8]) -> Option<(Numeric, &[u8])> {
    let (mark, rest) = key.split_first()?;
    let is_negative = match *mark {
        NUMERIC_NEGATIVE_INFINITY => return Some((Numeric::infinity(true), rest)),
        NUMERIC_ZERO => return Some((Numeric::from(0), rest)),
        NUMERIC_INFINITY => return Some((Numeric::infinity(false), rest)),
        NUMERIC_NAN => return Some((Numeric::nan(), rest)),
        NUMERIC_NEGATIVE => true,
        NUMERIC_POSITIVE => false,
        _ => return None,
    };
    let turned = if is_negative { 0xFF } else { 0 };
    let (exponent, rest) = rest.split_first_chunk::<4>()?;
    let exponent = i32::from_be_bytes(exponent.map(|byte| byte ^ turned)) ^ i32::MIN;
    let end = rest.iter().position(|byte| byte ^ turned == 0)?;
    let mut digits = String::with_capacity(2 * end);
    for pair in &rest[..end] {
        digits.push_str(&format!("{:02}", (pair ^ turned).wrapping_sub(1)));
    }
    let digits = digits.trim_end_matches('0');
    Some((Numeric::of_significant(is_negative, digits, i64::from(exponent))?, &rest[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::super::compare::compare;
    use super::*;
    use std::cmp::Ordering;

    fn key(datum: &Datum) -> Vec<u8> {
        let mut out = Vec::new();
        encode_key(datum, &mut out);
        out
    }

    #[test]
    fn keys_are_ordered_as_their_values_and_no_key_begins_another() {
        let cases: [(Type, &[&str]); 8] = [
            (Type::Int4, &["-2147483648", "-1", "0", "7", "2147483647"]),
            (Type::Float8, &["-Infinity", "-1.5", "-1e-300", "0", "-0", "1e-300", "2", "Infinity", "NaN"]),
            (
                Type::Numeric,
                &[
                    "-Infinity",
                    "-1e20",
                    "-10",
                    "-9.99",
                    "-9.9",
                    "-0.001",
                    "0.00",
                    "0",
                    "0.001",
                    "1.2",
                    "1.23",
                    "9",
                    "10",
                    "1e20",
                    "NaN",
                ],
            ),
            (Type::Text, &["", "a", "a b", "aa", "b", "é"]),
            (Type::Bytea, &["\\x", "\\x00", "\\x0000", "\\x0001", "\\x01", "\\xff"]),
            (Type::Interval, &["-1 day", "1 day", "1 month", "30 days", "31 days"]),
            (Type::Int4Array, &["{}", "{1}", "{1,2}", "{1,NULL}", "{2}"]),
            (Type::Timestamp, &["-infinity", "1999-01-01", "2024-01-01 00:00:00.000001", "infinity"]),
        ];
        for (ty, texts) in cases {
            let values: Vec<Datum> = texts.iter().map(|text| Datum::parse(text, ty).unwrap()).collect();
            for left in &values {
                for right in &values {
                    let (of_left, of_right) = (key(left), key(right));
                    assert_eq!(of_left.cmp(&of_right), compare(left, right), "{left:?} {right:?}");
                    let is_prefix = of_right.starts_with(&of_left);
                    assert_eq!(is_prefix, compare(left, right) == Ordering::Equal);
                }
                assert!(key(left) < key(&Datum::Null));
                let mut bytes = key(left);
                bytes.push(42);
                let (decoded, rest) = decode_key(&bytes, ty).unwrap();
                assert_eq!(compare(&decoded, left), Ordering::Equal);
                assert_eq!(rest, [42]);
            }
        }
    }

    #[test]
    fn the_key_of_a_char_does_not_count_its_blanks() {
        let (mut short, mut padded) = (Vec::new(), Vec::new());
        encode_key_as(Type::Char, &Datum::text("a"), &mut short);
        encode_key_as(Type::Char, &Datum::text("a   "), &mut padded);
        assert_eq!(short, padded);
    }

    #[test]
    fn bytes_that_are_no_key_are_refused() {
        for bytes in [&[][..], &[3], &[1], &[1, 9, 0], &[1, 3, 0, 0]] {
            assert_eq!(decode_key(bytes, Type::Numeric), None);
            assert_eq!(decode_key(bytes, Type::Int4), None);
        }
    }
}
