//! Base 64 (RFC 4648), as SCRAM writes bytes.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text of some bytes.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for letter in 0..4 {
            // A group of one byte has two letters, one of two bytes three.
            text.push(match letter <= group.len() {
                true => char::from(LETTERS[(bits >> (18 - 6 * letter) & 63) as usize]),
                false => '=',
            });
        }
    }
    text
}

/// The bytes of a text; none if it is not what [`encode`] gives for any bytes.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let letters = text.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(letters.len() / 4 * 3 + 2);
    for group in letters.as_bytes().chunks(4) {
        let mut bits = 0;
        for index in 0..4 {
            let value = match group.get(index) {
                Some(letter) => LETTERS.iter().position(|known| known == letter)?,
                None => 0,
            };
            bits = bits << 6 | value as u32;
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len().max(1)]);
    }
    // Refuses wrong padding, and bits beyond the last byte.
    (encode(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc_hold_both_ways() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in
            ["Z", "Zg", "Zg=", "Zg===", "Zh==", "Zm9v=", "Z===", "====", "Zm9!", "Zm 9v", "Zg==Zg==", "é"]
        {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
