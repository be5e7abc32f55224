//! The events of a history and their bytes.
//!
//! # Bytes
//!
//! An event is one byte for its kind, followed by numbers: LEB128, seven bits a byte, least significant first. A bound
//! of a range is one byte (0 unbounded, 1 included, 2 excluded) and, unless unbounded, a length and that many bytes.
//! `docs/history-format.md` has the table.

use crate::kernel::abort::Reason;
use crate::kernel::object::WriteKind;
use std::ops::Bound;

/// An action of an attempt.
///
/// Keys and objects are numbers in their history's tables. Version 0 of a key is its state before the recording. Stamps
/// and versions come from one counter, so that they compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// An attempt began.
    Begin {
        /// The number of earlier attempts of the same transaction.
        attempt: u32,
        /// The counter when it began: attempts that ended with a smaller stamp ended before.
        stamp: u64,
    },
    /// It learned one version of a key.
    Read {
        /// The key.
        key: u32,
        /// The version.
        version: u64,
        /// The fact that it learned about it.
        kind: ReadKind,
    },
    /// It learned which keys of an ordered object exist between two bounds. Those that exist have reads of their own;
    /// all others were absent at some moment between `from` and `to`.
    Range {
        /// The object.
        object: u32,
        /// The lowest key, as order-preserving bytes.
        low: Bound<&'a [u8]>,
        /// The highest key.
        high: Bound<&'a [u8]>,
        /// The counter before the scan.
        from: u64,
        /// The counter after it.
        to: u64,
    },
    /// It will replace the value of a key of an ordered object, without having read it. From here on its range reads
    /// find its own write.
    Intend {
        /// The key.
        key: u32,
    },
    /// The following events, up to the next of this kind or to the installations, belong to the operation at this place
    /// of the attempt's program. Deferred operations run later than others, so places need not ascend; those of
    /// operations on one key do, unless both only read. At the beginning the place is 0.
    Operation {
        /// The place. Operations of a smaller place come before it in the program.
        place: u32,
    },
    /// It read a key that it has changed, and found its own change.
    OwnRead {
        /// The key.
        key: u32,
    },
    /// It changed a key; others see the change when a version is installed. Recorded under protocols that defer
    /// operations.
    Change {
        /// The key.
        key: u32,
    },
    /// It installed a version of a key, replacing another one.
    Write {
        /// The key.
        key: u32,
        /// The version before.
        replaced: u64,
        /// The version now.
        version: u64,
        /// The effect on the key.
        kind: WriteKind,
    },
    /// It ended.
    End {
        /// The outcome.
        outcome: Ended,
        /// The number that it took from the counter after its end: attempts that begin with a greater one began after.
        stamp: u64,
    },
}

/// The fact that a read learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadKind {
    /// The value.
    Value,
    /// The absence of a value: a lookup failed, or an insertion found the key free.
    Absent,
    /// A condition, and not the value. A predicate is recorded for committed attempts only: others may have seen it
    /// hold of one version and rely on its holding of a later one. A read that only tells whether there is something to
    /// lock in order is recorded for all. Neither has a place in the order of the attempt's own operations.
    Predicate,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It committed.
    Committed,
    /// It lost a conflict.
    Aborted(Reason),
    /// Its body asked for a rollback, or panicked.
    RolledBack,
}

mod tag {
    pub(super) const BEGIN: u8 = 1;
    pub(super) const READ_VALUE: u8 = 2;
    pub(super) const READ_ABSENT: u8 = 3;
    pub(super) const READ_PREDICATE: u8 = 4;
    pub(super) const RANGE: u8 = 5;
    pub(super) const UPDATE: u8 = 6;
    pub(super) const INSERT: u8 = 7;
    pub(super) const DELETE: u8 = 8;
    pub(super) const COMMITTED: u8 = 9;
    pub(super) const ABORTED: u8 = 10;
    pub(super) const ROLLED_BACK: u8 = 11;
    pub(super) const INTEND: u8 = 12;
    pub(super) const OPERATION: u8 = 13;
    pub(super) const OWN_READ: u8 = 14;
    pub(super) const CHANGE: u8 = 15;
    pub(super) const COMMUTE: u8 = 16;
}

fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn put_bound(bytes: &mut Vec<u8>, bound: Bound<&[u8]>) {
    let (kind, key) = match bound {
        Bound::Unbounded => return bytes.push(0),
        Bound::Included(key) => (1, key),
        Bound::Excluded(key) => (2, key),
    };
    bytes.push(kind);
    put_number(bytes, key.len() as u64);
    bytes.extend_from_slice(key);
}

impl Event<'_> {
    /// Appends the event's bytes.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        let mut put = |tag: u8, numbers: &[u64]| {
            bytes.push(tag);
            numbers.iter().for_each(|number| put_number(bytes, *number));
        };
        match *self {
            Event::Begin { attempt, stamp } => put(tag::BEGIN, &[attempt.into(), stamp]),
            Event::Read { key, version, kind } => {
                let tag = match kind {
                    ReadKind::Value => tag::READ_VALUE,
                    ReadKind::Absent => tag::READ_ABSENT,
                    ReadKind::Predicate => tag::READ_PREDICATE,
                };
                put(tag, &[key.into(), version]);
            }
            Event::Range { object, low, high, from, to } => {
                put(tag::RANGE, &[object.into(), from, to]);
                put_bound(bytes, low);
                put_bound(bytes, high);
            }
            Event::Intend { key } => put(tag::INTEND, &[key.into()]),
            Event::Operation { place } => put(tag::OPERATION, &[place.into()]),
            Event::OwnRead { key } => put(tag::OWN_READ, &[key.into()]),
            Event::Change { key } => put(tag::CHANGE, &[key.into()]),
            Event::Write { key, replaced, version, kind } => {
                let tag = match kind {
                    WriteKind::Update => tag::UPDATE,
                    WriteKind::Commute => tag::COMMUTE,
                    WriteKind::Insert => tag::INSERT,
                    WriteKind::Delete => tag::DELETE,
                };
                put(tag, &[key.into(), replaced, version]);
            }
            Event::End { outcome: Ended::Committed, stamp } => put(tag::COMMITTED, &[stamp]),
            Event::End { outcome: Ended::Aborted(reason), stamp } => {
                put(tag::ABORTED, &[stamp, reason as u64]);
            }
            Event::End { outcome: Ended::RolledBack, stamp } => put(tag::ROLLED_BACK, &[stamp]),
        }
    }
}

/// An error: the bytes are no event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no event at byte {offset}")]
pub struct Malformed {
    /// The offset of the event's first byte.
    pub offset: usize,
}

/// The events in some bytes, one after the other. Ends at the first that is malformed.
#[derive(Debug, Clone)]
pub struct Events<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Events<'a> {
    /// Decodes the events in `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit.
            if shift == 63 && part > 1 {
                return None;
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn bound(&mut self) -> Option<Bound<&'a [u8]>> {
        let kind = self.byte()?;
        if kind == 0 {
            return Some(Bound::Unbounded);
        }
        let length = usize::try_from(self.number()?).ok()?;
        let key = self.bytes.get(self.at..self.at.checked_add(length)?)?;
        self.at += length;
        match kind {
            1 => Some(Bound::Included(key)),
            2 => Some(Bound::Excluded(key)),
            _ => None,
        }
    }

    fn event(&mut self) -> Option<Event<'a>> {
        Some(match self.byte()? {
            tag::BEGIN => Event::Begin { attempt: self.small()?, stamp: self.number()? },
            tag::READ_VALUE => self.read(ReadKind::Value)?,
            tag::READ_ABSENT => self.read(ReadKind::Absent)?,
            tag::READ_PREDICATE => self.read(ReadKind::Predicate)?,
            tag::RANGE => {
                let (object, from, to) = (self.small()?, self.number()?, self.number()?);
                Event::Range { object, from, to, low: self.bound()?, high: self.bound()? }
            }
            tag::INTEND => Event::Intend { key: self.small()? },
            tag::OPERATION => Event::Operation { place: self.small()? },
            tag::OWN_READ => Event::OwnRead { key: self.small()? },
            tag::CHANGE => Event::Change { key: self.small()? },
            tag::UPDATE => self.write(WriteKind::Update)?,
            tag::COMMUTE => self.write(WriteKind::Commute)?,
            tag::INSERT => self.write(WriteKind::Insert)?,
            tag::DELETE => self.write(WriteKind::Delete)?,
            tag::COMMITTED => Event::End { outcome: Ended::Committed, stamp: self.number()? },
            tag::ABORTED => {
                let (stamp, reason) = (self.number()?, self.small()?);
                let reason = *Reason::ALL.get(reason as usize)?;
                Event::End { outcome: Ended::Aborted(reason), stamp }
            }
            tag::ROLLED_BACK => Event::End { outcome: Ended::RolledBack, stamp: self.number()? },
            _ => return None,
        })
    }

    fn read(&mut self, kind: ReadKind) -> Option<Event<'a>> {
        Some(Event::Read { key: self.small()?, version: self.number()?, kind })
    }

    fn write(&mut self, kind: WriteKind) -> Option<Event<'a>> {
        let (key, replaced, version) = (self.small()?, self.number()?, self.number()?);
        Some(Event::Write { key, replaced, version, kind })
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Result<Event<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let offset = self.at;
        let event = self.event().ok_or(Malformed { offset });
        if event.is_err() {
            self.at = self.bytes.len();
        }
        Some(event)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn all() -> Vec<Event<'static>> {
        let mut events = vec![
            Event::Begin { attempt: 3, stamp: 127 },
            Event::Range {
                object: 1,
                low: Bound::Included(b"a"),
                high: Bound::Excluded(b""),
                from: 128,
                to: u64::MAX,
            },
            Event::Range { object: 1, low: Bound::Unbounded, high: Bound::Unbounded, from: 0, to: 0 },
            Event::Intend { key: 1 << 20 },
            Event::Operation { place: 200 },
            Event::OwnRead { key: 3 },
            Event::Change { key: u32::MAX },
            Event::End { outcome: Ended::Committed, stamp: 1 },
            Event::End { outcome: Ended::RolledBack, stamp: 2 },
        ];
        for kind in [ReadKind::Value, ReadKind::Absent, ReadKind::Predicate] {
            events.push(Event::Read { key: u32::MAX, version: 1 << 40, kind });
        }
        for kind in [WriteKind::Update, WriteKind::Commute, WriteKind::Insert, WriteKind::Delete] {
            events.push(Event::Write { key: 0, replaced: 0, version: 300, kind });
        }
        events.extend(
            Reason::ALL.map(|reason| Event::End { outcome: Ended::Aborted(reason), stamp: u64::MAX }),
        );
        events
    }

    #[test]
    fn written_data_is_read_again() {
        let mut bytes = Vec::new();
        all().iter().for_each(|event| event.encode(&mut bytes));
        let read: Vec<_> = Events::new(&bytes).collect::<Result<_, _>>().unwrap();
        assert_eq!(read, all());
    }

    #[test]
    fn an_event_cut_short_is_malformed_where_it_begins() {
        for event in all() {
            let mut bytes = Vec::new();
            Event::Begin { attempt: 0, stamp: 0 }.encode(&mut bytes);
            let offset = bytes.len();
            event.encode(&mut bytes);
            for length in offset + 1..bytes.len() {
                let mut events = Events::new(&bytes[..length]);
                assert!(events.next().unwrap().is_ok());
                assert_eq!(events.next(), Some(Err(Malformed { offset })), "{event:?}");
                assert_eq!(events.next(), None);
            }
        }
    }

    #[test]
    fn nonsense_is_malformed() {
        let eleven = [vec![tag::COMMITTED], vec![0xff; 10], vec![1]].concat();
        let too_much = [vec![tag::COMMITTED], vec![0xff; 9], vec![2]].concat();
        let reason = [tag::ABORTED, 1, Reason::ALL.len() as u8].to_vec();
        for bytes in [vec![0], vec![99], eleven, too_much, reason] {
            assert_eq!(Events::new(&bytes).next(), Some(Err(Malformed { offset: 0 })), "{bytes:?}");
        }
    }
}
