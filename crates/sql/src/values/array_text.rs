//! The text of arrays of one dimension: `{1,NULL,"a b"}`.

use crate::error::SqlError;

/// The most elements that an array may have: as many as a gigabyte of PostgreSQL's holds.
const ELEMENTS_MAX: usize = 1 << 27;

/// The error of a text that is no array.
fn malformed(text: &str, reason: &'static str) -> SqlError {
    SqlError::new("22P02", format!("malformed array literal: \"{text}\"")).detail(reason)
}

fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b'\x0b'
}

/// Splits an array into the texts of its elements; none stands for null.
pub(crate) fn split(text: &str) -> Result<Vec<Option<String>>, SqlError> {
    let bytes = text.as_bytes();
    let mut at = 0;
    let skip = |at: &mut usize| {
        while bytes.get(*at).copied().is_some_and(is_blank) {
            *at += 1;
        }
    };
    skip(&mut at);
    if bytes.get(at) == Some(&b'[') {
        return Err(SqlError::not_supported("an array whose first element is not the first"));
    }
    if bytes.get(at) != Some(&b'{') {
        return Err(malformed(text, "Array value must start with \"{\" or dimension information."));
    }
    at += 1;
    let mut elements = Vec::new();
    skip(&mut at);
    if bytes.get(at) == Some(&b'}') {
        at += 1;
    } else {
        loop {
            skip(&mut at);
            let (element, end) = element(text, at)?;
            elements.push(element);
            if elements.len() > ELEMENTS_MAX {
                return Err(SqlError::new("54000", "array size exceeds the maximum allowed"));
            }
            at = end + 1;
            match bytes[end] {
                b',' => {}
                _ => break,
            }
        }
    }
    skip(&mut at);
    if at < bytes.len() {
        return Err(malformed(text, "Junk after closing right brace."));
    }
    Ok(elements)
}

/// Reads an element that begins at a place; gives it and the place of the `,` or `}` behind it.
fn element(text: &str, start: usize) -> Result<(Option<String>, usize), SqlError> {
    let bytes = text.as_bytes();
    let (mut element, mut at) = (Vec::new(), start);
    // Blanks at the end do not count unless they are quoted; what is quoted is never null.
    let (mut kept, mut is_quoted, mut in_quotes) = (0, false, false);
    loop {
        match bytes.get(at).copied() {
            None => return Err(malformed(text, "Unexpected end of input.")),
            Some(b'\\') => {
                element.push(*bytes.get(at + 1).ok_or_else(|| malformed(text, "Unexpected end of input."))?);
                (kept, is_quoted) = (element.len(), true);
                at += 1;
            }
            Some(b'"') => {
                if !in_quotes && (is_quoted || kept > 0) {
                    return Err(malformed(text, "Unexpected array element."));
                }
                (in_quotes, is_quoted) = (!in_quotes, true);
                kept = element.len();
            }
            Some(byte) if in_quotes => element.push(byte),
            Some(b'{') => {
                // Only the first element tells that there are several dimensions.
                if element.is_empty() && !is_quoted && text[..at].trim_end().matches(['{', ',']).count() == 1
                {
                    return Err(SqlError::not_supported("an array of several dimensions"));
                }
                return Err(malformed(text, "Unexpected \"{\" character."));
            }
            Some(b',' | b'}') => break,
            Some(byte) => {
                element.push(byte);
                if !is_blank(byte) {
                    kept = element.len();
                }
            }
        }
        at += 1;
    }
    element.truncate(kept);
    if element.is_empty() && !is_quoted {
        let reason =
            if bytes[at] == b',' { "Unexpected \",\" character." } else { "Unexpected \"}\" character." };
        return Err(malformed(text, reason));
    }
    if !is_quoted && element.eq_ignore_ascii_case(b"null") {
        return Ok((None, at));
    }
    // Only whole characters were left out.
    Ok((Some(String::from_utf8_lossy(&element).into_owned()), at))
}

/// Writes the text of an element, in quotes where that is needed.
pub(crate) fn write_element(text: &[u8], out: &mut Vec<u8>) {
    let needs_quotes = text.is_empty()
        || text.eq_ignore_ascii_case(b"null")
        || text.iter().any(|byte| matches!(byte, b'"' | b'\\' | b'{' | b'}' | b',') || is_blank(*byte));
    if !needs_quotes {
        return out.extend(text);
    }
    out.push(b'"');
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_split_into_their_elements() {
        let elements = split(r#" { 1 , NULL,"NULL", "a \"b\\", c d ,\{x} "#).unwrap();
        let elements: Vec<_> = elements.iter().map(Option::as_deref).collect();
        let expected = [Some("1"), None, Some("NULL"), Some("a \"b\\"), Some("c d"), Some("{x")];
        assert_eq!(elements, expected);
        assert!(split("{}").unwrap().is_empty());
        assert_eq!(split("{é,ü}").unwrap()[1].as_deref(), Some("ü"));
    }

    #[test]
    fn malformed_arrays_are_refused() {
        for text in ["", "1,2", "{1,2", "{1,,2}", "{1,}", "{,1}", "{1}x", "{\"a", "{a\"b\"}", "{\\"] {
            assert_eq!(split(text).unwrap_err().code, "22P02", "{text}");
        }
        assert_eq!(split("{{1},{2}}").unwrap_err().code, "0A000");
    }
}
