//! Rows: a value that also carries the data for the checks after a run.
//!
//! There are three types, because the type decides how a value is held. [`Short`] holds up to 16 bytes, [`Standard`]
//! 1,000 bytes, which is YCSB's own size; their values are inline, and what is read of them is copied. [`Long`] holds all
//! others; its values are boxed and never copied to be read. In all, the value itself carries the stamp of its last writer and the number of changes since it was last
//! replaced.

use hotrow::{Context, Data, Operations, Stored, TableRef, Value, column_of};

/// Size of the largest inline value, in bytes.
pub const SHORT_BYTES_MAX: u32 = 16;

/// Size of a value as YCSB has it: ten fields of a hundred bytes.
pub const STANDARD_BYTES: u32 = 1_000;

/// A row whose values have a configurable size.
pub trait Row: Value + Data {
    /// Makes a whole new value, for a blind write.
    fn filled(value_bytes: u32, stamp: u64) -> Self;

    /// Changes a part of the value in a way that depends on its old value, for a read-modify-write.
    fn change(&mut self, stamp: u64);

    /// Reads a few bytes from both ends of the value and returns a number that depends on them, so that they must
    /// be fetched. It skips the rest: a client would copy the whole record out, but that would measure copying
    /// rather than transactions.
    fn look(&self) -> u64;

    /// Reads a row as [`look`](Self::look) does.
    fn read<C: Context>(
        cx: &mut C,
        table: TableRef<u64, Self>,
        key: C::Val<u64>,
    ) -> Result<C::Val<Option<u64>>, C::Stop> {
        cx.read(table, key, Self::look)
    }

    /// Checks that the value is whole and returns its stamp and count of changes.
    ///
    /// # Errors
    ///
    /// A description of the fault: the value is torn, or it has another size.
    fn inspect(&self, value_bytes: u32) -> Result<Inspected, String>;
}

/// Stamp and count of changes of a whole value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inspected {
    /// Stamp of the last writer.
    pub stamp: u64,
    /// Number of read-modify-writes since the value was last replaced.
    pub changes: u64,
}

/// A value of up to 16 bytes. It takes 16 bytes of memory, whatever its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value, Stored)]
#[value(inline)]
#[repr(C)]
pub struct Short {
    stamp: u64,
    changes: u32,
    /// Checksum of the other fields, which distinguishes a torn value from a whole one.
    sum: u32,
}

impl Short {
    fn new(stamp: u64, changes: u32) -> Self {
        Self { stamp, changes, sum: Self::sum_of(stamp, changes) }
    }

    fn sum_of(stamp: u64, changes: u32) -> u32 {
        let mixed = (stamp ^ u64::from(changes).rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as u32
    }
}

impl Row for Short {
    fn filled(_value_bytes: u32, stamp: u64) -> Self {
        Self::new(stamp, 0)
    }

    fn change(&mut self, stamp: u64) {
        *self = Self::new(stamp, self.changes.wrapping_add(1));
    }

    fn look(&self) -> u64 {
        self.stamp ^ u64::from(self.sum)
    }

    fn inspect(&self, _value_bytes: u32) -> Result<Inspected, String> {
        if self.sum == Self::sum_of(self.stamp, self.changes) {
            Ok(Inspected { stamp: self.stamp, changes: self.changes.into() })
        } else {
            Err(format!("parts of different values: {self:?}"))
        }
    }
}

/// A value of 1,000 bytes, laid out like a [`Long`] one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value, Stored)]
#[value(inline)]
#[repr(C)]
pub struct Standard {
    stamp: u64,
    changes: u64,
    filling: [u8; STANDARD_BYTES as usize - 24],
    tail: u64,
}

impl Standard {
    fn seen(stamp: u64, tail: u64) -> u64 {
        stamp ^ (tail >> 56)
    }
}

impl Row for Standard {
    fn filled(_value_bytes: u32, stamp: u64) -> Self {
        Self { stamp, changes: 0, filling: [stamp as u8; STANDARD_BYTES as usize - 24], tail: stamp }
    }

    fn change(&mut self, stamp: u64) {
        (self.stamp, self.tail, self.changes) = (stamp, stamp, self.changes.wrapping_add(1));
    }

    fn look(&self) -> u64 {
        Self::seen(self.stamp, self.tail)
    }

    fn read<C: Context>(
        cx: &mut C,
        table: TableRef<u64, Self>,
        key: C::Val<u64>,
    ) -> Result<C::Val<Option<u64>>, C::Stop> {
        let ends = cx.read_columns(table, key, (column_of!(Self, stamp), column_of!(Self, tail)))?;
        Ok(cx.map(ends, |ends| ends.map(|(stamp, tail)| Self::seen(stamp, tail))))
    }

    fn inspect(&self, _value_bytes: u32) -> Result<Inspected, String> {
        if self.tail != self.stamp {
            return Err(format!("begins with the stamp {:#x} and ends with {:x}", self.stamp, self.tail));
        }
        of_one_byte(&self.filling)?;
        Ok(Inspected { stamp: self.stamp, changes: self.changes })
    }
}

/// Checks that the bytes between a value's ends come from one blind write.
fn of_one_byte(filling: &[u8]) -> Result<(), String> {
    // Compares all bytes without a branch for each byte.
    let differences = filling.iter().fold(0, |differences, byte| differences | (byte ^ filling[0]));
    if differences == 0 { Ok(()) } else { Err(String::from("the fillings of different values")) }
}

/// A value of 17 bytes or more. Its first eight bytes hold the writer's stamp, the next eight the count of changes,
/// and its last bytes the stamp again, as far as there is room. The last blind write filled the bytes between.
#[derive(Debug, Clone, PartialEq, Eq, Value, Stored)]
pub struct Long {
    bytes: Box<[u8]>,
}

const STAMP: std::ops::Range<usize> = 0..8;
const CHANGES: std::ops::Range<usize> = 8..16;

impl Long {
    fn word(&self, at: std::ops::Range<usize>) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.bytes[at]);
        u64::from_le_bytes(word)
    }

    fn tail(&self) -> &[u8] {
        &self.bytes[CHANGES.end.max(self.bytes.len().saturating_sub(STAMP.end))..]
    }

    fn set(&mut self, stamp: u64, changes: u64) {
        self.bytes[STAMP].copy_from_slice(&stamp.to_le_bytes());
        self.bytes[CHANGES].copy_from_slice(&changes.to_le_bytes());
        let tail = self.tail().len();
        let from = self.bytes.len() - tail;
        self.bytes[from..].copy_from_slice(&stamp.to_le_bytes()[..tail]);
    }
}

impl Row for Long {
    fn filled(value_bytes: u32, stamp: u64) -> Self {
        let bytes = value_bytes.max(SHORT_BYTES_MAX + 1) as usize;
        let mut row = Self { bytes: vec![stamp as u8; bytes].into_boxed_slice() };
        row.set(stamp, 0);
        row
    }

    fn change(&mut self, stamp: u64) {
        let changes = self.word(CHANGES).wrapping_add(1);
        self.set(stamp, changes);
    }

    fn look(&self) -> u64 {
        self.word(STAMP) ^ u64::from(self.bytes[self.bytes.len() - 1])
    }

    fn inspect(&self, value_bytes: u32) -> Result<Inspected, String> {
        if self.bytes.len() != value_bytes as usize {
            return Err(format!("{} bytes instead of {value_bytes}", self.bytes.len()));
        }
        let (stamp, tail) = (self.word(STAMP), self.tail());
        if tail != &stamp.to_le_bytes()[..tail.len()] {
            return Err(format!("begins with the stamp {stamp:#x} and ends with {tail:x?}"));
        }
        let filling = &self.bytes[CHANGES.end..self.bytes.len() - tail.len()];
        of_one_byte(filling)?;
        Ok(Inspected { stamp, changes: self.word(CHANGES) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written_and_changed<R: Row>(value_bytes: u32) {
        let mut row = R::filled(value_bytes, 0x0102_0304_0506_0708);
        assert_eq!(
            row.inspect(value_bytes),
            Ok(Inspected { stamp: 0x0102_0304_0506_0708, changes: 0 }),
            "{value_bytes} bytes"
        );
        let before = row.look();
        row.change(9);
        row.change(77);
        assert_eq!(row.inspect(value_bytes), Ok(Inspected { stamp: 77, changes: 2 }));
        assert_ne!(row.look(), before);
    }

    #[test]
    fn values_of_every_size_say_who_wrote_them_and_how_often_they_were_changed() {
        for value_bytes in 1..=SHORT_BYTES_MAX {
            written_and_changed::<Short>(value_bytes);
        }
        written_and_changed::<Standard>(STANDARD_BYTES);
        assert_eq!(size_of::<Standard>(), STANDARD_BYTES as usize);
        for value_bytes in [17, 18, 23, 24, 25, 100, 1_000, 1_000_000] {
            written_and_changed::<Long>(value_bytes);
        }
    }

    #[test]
    fn a_torn_value_is_noticed() {
        let (old, new) = (Short::new(1 << 40 | 5, 3), Short::new(2 << 40 | 6, 3));
        let torn = Short { stamp: new.stamp, ..old };
        assert!(torn.inspect(16).unwrap_err().contains("different values"));

        let (old, new) = (Standard::filled(STANDARD_BYTES, 1), Standard::filled(STANDARD_BYTES, 2));
        for torn in [Standard { stamp: new.stamp, ..old }, Standard { tail: new.tail, ..old }, {
            let mut torn = old;
            torn.filling[500..].copy_from_slice(&new.filling[500..]);
            torn
        }] {
            assert!(torn.inspect(STANDARD_BYTES).is_err());
        }

        let (old, new) = (Long::filled(100, 1), Long::filled(100, 2));
        for cut in [8, 16, 50, 92] {
            let mut torn = old.clone();
            torn.bytes[..cut].copy_from_slice(&new.bytes[..cut]);
            assert!(torn.inspect(100).is_err(), "cut at {cut}");
        }
        assert_eq!(old.inspect(101), Err(String::from("100 bytes instead of 101")));
    }
}
