//! MD5 (RFC 1321), which clients use for other things than secrets.

/// The sines from which each step takes its constant.
fn constant(step: usize) -> u32 {
    (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32
}

/// The rotations of each round.
const ROTATIONS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The MD5 digest of bytes.
pub(super) fn md5(bytes: &[u8]) -> [u8; 16] {
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64) + if padded.len() % 64 > 56 { 64 } else { 0 } - 8, 0);
    padded.extend((bytes.len() as u64).wrapping_mul(8).to_le_bytes());
    let constants: [u32; 64] = std::array::from_fn(constant);
    let mut state = [0x6745_2301_u32, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476];
    for block in padded.as_chunks::<64>().0 {
        let words: [u32; 16] = std::array::from_fn(|place| {
            u32::from_le_bytes([
                block[4 * place],
                block[4 * place + 1],
                block[4 * place + 2],
                block[4 * place + 3],
            ])
        });
        let [mut a, mut b, mut c, mut d] = state;
        for step in 0..64 {
            let (mixed, word) = match step / 16 {
                0 => ((b & c) | (!b & d), step),
                1 => ((d & b) | (!d & c), (5 * step + 1) % 16),
                2 => (b ^ c ^ d, (3 * step + 5) % 16),
                _ => (c ^ (b | !d), 7 * step % 16),
            };
            let sum = a.wrapping_add(mixed).wrapping_add(constants[step]).wrapping_add(words[word]);
            (a, d, c) = (d, c, b);
            b = b.wrapping_add(sum.rotate_left(ROTATIONS[step / 16][step % 4]));
        }
        for (sum, added) in state.iter_mut().zip([a, b, c, d]) {
            *sum = sum.wrapping_add(added);
        }
    }
    let mut digest = [0; 16];
    for (place, word) in state.iter().enumerate() {
        digest[4 * place..4 * place + 4].copy_from_slice(&word.to_le_bytes());
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::md5;

    #[test]
    fn digests_are_those_of_the_standard() {
        let shown = |text: &str| md5(text.as_bytes()).map(|byte| format!("{byte:02x}")).concat();
        assert_eq!(shown(""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(shown("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
        let long = "1234567890".repeat(8);
        assert_eq!(shown(&long), "57edf4a22be3c955ac49da2e2107b67a");
        for length in 54..66 {
            assert_eq!(shown(&"a".repeat(length)).len(), 32);
        }
    }
}
