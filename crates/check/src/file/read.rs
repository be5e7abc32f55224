//! Reading of a file; the file may contain anything.

use super::{BLOCK_BYTES_MAX, FileError, MAGIC, Totals, VERSION, checksum, kind};
use hotrow_core::history::{History, KeyName, WorkerEvents};
use std::io::{ErrorKind, Read};

/// Reads a history. Blocks are read whole, so a `BufReader` helps little.
///
/// Memory is bounded by the file's length: each length is checked before memory is allocated for it, and no more
/// than sixteen MiB is allocated before the bytes have been read.
///
/// # Errors
///
/// If the bytes are not exactly those of a completely written file. The events within are not examined;
/// [`check`](crate::check()) does that.
pub fn read(reader: &mut impl Read) -> Result<History, FileError> {
    let mut source = Source { reader, offset: 0 };
    source.head()?;
    let mut history = History::default();
    let mut totals = Totals::default();
    let mut stage = 0;
    let mut payload = Vec::new();
    loop {
        let offset = source.offset;
        let kind = source.block(&mut payload)?;
        let block = Block { offset, payload: &payload };
        // Kinds come in the order of their numbers, except for events, which follow their worker.
        let out_of_order = match kind {
            kind::METADATA => stage != 0,
            kind::WORKER => stage == 0,
            kind::EVENTS => stage < kind::WORKER,
            _ => stage == 0 || kind < stage,
        };
        if out_of_order {
            return Err(block.corrupt("it is out of order"));
        }
        stage = kind;
        match kind {
            kind::METADATA => block.metadata(&mut history)?,
            kind::OBJECTS => block.objects(&mut history, &mut totals)?,
            kind::KEYS => block.keys(&mut history, &mut totals)?,
            kind::WORKER => {
                let Ok(number) = payload.as_slice().try_into() else {
                    return Err(block.corrupt("a worker's number has four bytes"));
                };
                let worker = u32::from_le_bytes(number);
                history.workers.push(WorkerEvents { worker, bytes: Vec::new() });
                totals.workers += 1;
            }
            kind::EVENTS => {
                totals.event_bytes += payload.len() as u64;
                let worker = history.workers.last_mut().expect("events come after a worker");
                worker.bytes.extend_from_slice(&payload);
            }
            kind::END => {
                block.end(totals)?;
                return match source.fill(&mut [0])? {
                    0 => Ok(history),
                    _ => Err(FileError::Corrupt { offset: source.offset - 1, what: "bytes after the end" }),
                };
            }
            _ => return Err(block.corrupt("its kind is unknown")),
        }
    }
}

struct Source<'a, R> {
    reader: &'a mut R,
    offset: u64,
}

impl<R: Read> Source<'_, R> {
    /// Reads as many bytes as there are, and returns the number.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<usize, FileError> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.reader.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(count) => {
                    filled += count;
                    self.offset += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(FileError::Io { offset: self.offset, error }),
            }
        }
        Ok(filled)
    }

    fn exactly(&mut self, bytes: &mut [u8], within: &'static str) -> Result<(), FileError> {
        match self.fill(bytes)? {
            filled if filled == bytes.len() => Ok(()),
            _ => Err(FileError::Truncated { offset: self.offset, within }),
        }
    }

    fn head(&mut self) -> Result<(), FileError> {
        let mut magic = [0; MAGIC.len()];
        let filled = self.fill(&mut magic)?;
        if filled == 0 {
            return Err(FileError::Empty);
        }
        if magic[..filled] != MAGIC[..filled] {
            return Err(FileError::Foreign);
        }
        if filled < magic.len() {
            return Err(FileError::Truncated { offset: self.offset, within: "the head" });
        }
        let mut version = [0; 4];
        self.exactly(&mut version, "the head")?;
        match u32::from_le_bytes(version) {
            1..=VERSION => Ok(()),
            found => Err(FileError::Version { offset: MAGIC.len() as u64, found }),
        }
    }

    /// Reads a block's payload and returns its kind.
    fn block(&mut self, payload: &mut Vec<u8>) -> Result<u8, FileError> {
        let offset = self.offset;
        let mut head = [0; 9];
        self.exactly(&mut head, "a block's head, or before the last block")?;
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (length, sum) = (number(1), number(5));
        if length > BLOCK_BYTES_MAX {
            return Err(FileError::Corrupt { offset, what: "its length is more than sixteen MiB" });
        }
        payload.clear();
        payload.resize(length as usize, 0);
        self.exactly(payload, "a block")?;
        if checksum(head[0], payload) != sum {
            return Err(FileError::Corrupt { offset, what: "its checksum is wrong" });
        }
        Ok(head[0])
    }
}

/// A block with the right checksum. Its content may still be wrong.
#[derive(Clone, Copy)]
struct Block<'a> {
    offset: u64,
    payload: &'a [u8],
}

impl Block<'_> {
    fn corrupt(&self, what: &'static str) -> FileError {
        FileError::Corrupt { offset: self.offset, what }
    }

    fn metadata(self, history: &mut History) -> Result<(), FileError> {
        let wrong = || self.corrupt("its metadata is malformed");
        let (flags, mut rest) = self.payload.split_first().ok_or_else(wrong)?;
        if *flags > 7 {
            return Err(wrong());
        }
        (history.opaque, history.complete) = (flags & 1 != 0, flags & 2 != 0);
        // The bit is inverted: older files do not have it, and their protocols were all strict.
        history.strict = flags & 4 == 0;
        let protocol = bytes(&mut rest).filter(|_| rest.is_empty()).ok_or_else(wrong)?;
        history.protocol = String::from_utf8(protocol.to_vec()).map_err(|_| wrong())?;
        Ok(())
    }

    fn objects(self, history: &mut History, totals: &mut Totals) -> Result<(), FileError> {
        let wrong = || self.corrupt("its objects are malformed");
        let mut rest = self.payload;
        while !rest.is_empty() {
            let name = bytes(&mut rest).ok_or_else(wrong)?;
            history.objects.push(String::from_utf8(name.to_vec()).map_err(|_| wrong())?);
            totals.objects += 1;
        }
        Ok(())
    }

    fn keys(self, history: &mut History, totals: &mut Totals) -> Result<(), FileError> {
        let wrong = || self.corrupt("its keys are malformed");
        let mut rest = self.payload;
        while !rest.is_empty() {
            let object = number(&mut rest).and_then(|object| u32::try_from(object).ok());
            let object = object.filter(|object| (*object as usize) < history.objects.len());
            let object = object.ok_or_else(wrong)?;
            let (order, text) = (bytes(&mut rest).ok_or_else(wrong)?, bytes(&mut rest).ok_or_else(wrong)?);
            if totals.keys >= u32::MAX.into() {
                return Err(self.corrupt("there are too many keys"));
            }
            history.keys.push(KeyName { object, order, text });
            totals.keys += 1;
        }
        Ok(())
    }

    fn end(self, totals: Totals) -> Result<(), FileError> {
        let expected = [totals.objects, totals.keys, totals.workers, totals.event_bytes];
        let expected: Vec<u8> = expected.iter().flat_map(|total| total.to_le_bytes()).collect();
        if self.payload == expected {
            Ok(())
        } else {
            Err(self.corrupt("its totals do not match those of the file"))
        }
    }
}

/// Takes a number (LEB128) off the front.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        let part = u64::from(byte & 0x7f);
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

/// Takes a length and as many bytes off the front.
fn bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(number(rest)?).ok()?;
    let (content, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(content)
}
