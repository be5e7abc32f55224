//! A number by which a state of a database is known again, in whatever order its rows come.

/// The parameters of the 128-bit hash of Fowler, Noll and Vo (FNV-1a).
const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// An odd number that spreads differences over all bits.
const SPREAD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// A sum of hashes. It tells states apart that have come about by accident; nobody is expected to look for two that are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Digest(u128);

impl Digest {
    /// Adds something that consists of parts.
    pub(crate) fn add(&mut self, parts: &[&[u8]]) {
        let mut hash = BASIS;
        let mut take = |byte: u8| hash = (hash ^ u128::from(byte)).wrapping_mul(PRIME);
        for part in parts {
            (part.len() as u64).to_le_bytes().into_iter().for_each(&mut take);
            part.iter().copied().for_each(&mut take);
        }
        // Without this a last byte that is one more here, and one less there, would leave the sum as it was.
        for _ in 0..2 {
            hash ^= hash >> 64;
            hash = hash.wrapping_mul(SPREAD);
        }
        self.0 = self.0.wrapping_add(hash ^ hash >> 64);
    }

    pub(crate) fn number(self) -> u128 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[[&[u8]; 2]]) -> Digest {
        let mut digest = Digest::default();
        rows.iter().for_each(|row| digest.add(row));
        digest
    }

    #[test]
    fn order_does_not_count_and_all_else_does() {
        let rows: [[&[u8]; 2]; 2] = [[b"a", b"\x05"], [b"b", b"\x07"]];
        assert_eq!(of(&rows), of(&[rows[1], rows[0]]));
        let others: [[[&[u8]; 2]; 2]; 4] = [
            [[b"a", b"\x04"], [b"b", b"\x08"]],
            [[b"a", b"\x07"], [b"b", b"\x05"]],
            [[b"a\x05", b""], [b"b", b"\x07"]],
            [[b"a", b"\x05"], [b"a", b"\x05"]],
        ];
        for other in others {
            assert_ne!(of(&rows), of(&other), "{other:?}");
        }
        assert_ne!(of(&rows), of(&rows[..1]));
    }
}
