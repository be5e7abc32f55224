//! Writing of a file.

use super::{BLOCK_BYTES, MAGIC, Totals, VERSION, checksum, kind};
use hotrow_core::history::History;
use std::io::{self, Write};

/// Writes a history. Each block is one call of `write_all` or three small ones, so a `BufWriter` helps little.
///
/// # Errors
///
/// The errors of the writer, and `InvalidInput` if a key's name is longer than a block may be (sixteen MiB).
pub fn write(history: &History, writer: &mut impl Write) -> io::Result<()> {
    let mut totals = Totals::default();
    writer.write_all(&MAGIC)?;
    writer.write_all(&VERSION.to_le_bytes())?;
    let History { opaque, strict, complete, .. } = history;
    let mut payload = vec![u8::from(*opaque) | u8::from(*complete) << 1 | u8::from(!*strict) << 2];
    put_bytes(&mut payload, history.protocol.as_bytes());
    put_block(writer, kind::METADATA, &payload)?;

    payload.clear();
    for object in &history.objects {
        totals.objects += 1;
        put_bytes(&mut payload, object.as_bytes());
        flush(writer, kind::OBJECTS, &mut payload, BLOCK_BYTES)?;
    }
    flush(writer, kind::OBJECTS, &mut payload, 0)?;
    for key in history.keys.iter() {
        totals.keys += 1;
        put_number(&mut payload, key.object.into());
        put_bytes(&mut payload, key.order);
        put_bytes(&mut payload, key.text);
        flush(writer, kind::KEYS, &mut payload, BLOCK_BYTES)?;
    }
    flush(writer, kind::KEYS, &mut payload, 0)?;
    for worker in &history.workers {
        totals.workers += 1;
        totals.event_bytes += worker.bytes.len() as u64;
        put_block(writer, kind::WORKER, &worker.worker.to_le_bytes())?;
        for part in worker.bytes.chunks(BLOCK_BYTES) {
            put_block(writer, kind::EVENTS, part)?;
        }
    }
    for total in [totals.objects, totals.keys, totals.workers, totals.event_bytes] {
        payload.extend_from_slice(&total.to_le_bytes());
    }
    put_block(writer, kind::END, &payload)?;
    writer.flush()
}

/// Writes the gathered bytes as a block if there are more than `above`.
fn flush(writer: &mut impl Write, kind: u8, payload: &mut Vec<u8>, above: usize) -> io::Result<()> {
    if payload.len() > above {
        put_block(writer, kind, payload)?;
        payload.clear();
    }
    Ok(())
}

fn put_block(writer: &mut impl Write, kind: u8, payload: &[u8]) -> io::Result<()> {
    if payload.len() > super::BLOCK_BYTES_MAX as usize {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a name is too long for a history file"));
    }
    writer.write_all(&[kind])?;
    writer.write_all(&(payload.len() as u32).to_le_bytes())?;
    writer.write_all(&checksum(kind, payload).to_le_bytes())?;
    writer.write_all(payload)
}

fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn put_bytes(bytes: &mut Vec<u8>, content: &[u8]) {
    put_number(bytes, content.len() as u64);
    bytes.extend_from_slice(content);
}
