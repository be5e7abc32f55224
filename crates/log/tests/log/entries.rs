//! Entries: written and read.

use crate::engine::{bytes, delete, put, put_part};
use hotrow_log::Buffer;
use hotrow_log::entry::{self, Change};

#[test]
fn entries_of_any_lengths_come_back() {
    let lengths = [0, 1, 127, 128, 255, 256, 300, 65_535, 65_536, 70_000];
    for structure in [0, 127, 128, u32::MAX] {
        let mut record = Vec::new();
        let mut expected = Vec::new();
        for key in lengths.map(|length| vec![1; length]) {
            for value in lengths.map(|length| vec![2; length]) {
                put(&mut record, structure, &key, &value);
                expected.push((key.clone(), Some((None, value.clone()))));
                put_part(&mut record, structure, u32::MAX - 1, &key, &value);
                expected.push((key.clone(), Some((Some(u32::MAX - 1), value))));
            }
            delete(&mut record, structure, &key);
            expected.push((key, None));
        }
        let mut found = entry::read(&record);
        for (key, value) in &expected {
            let next = found.next().unwrap().unwrap();
            assert!((next.structure, next.key) == (structure, key));
            match (value, next.change) {
                (None, Change::Delete) => {}
                (Some((None, value)), Change::Put(found)) => assert!(found == value),
                (Some((Some(part), value)), Change::PutParts(parts)) => {
                    assert!(parts.eq([(*part, &value[..])]));
                }
                (_, change) => panic!("{change:?}"),
            }
        }
        assert_eq!(found.next(), None);
    }
}

#[test]
fn a_small_entry_has_three_bytes_beside_key_and_value() {
    let mut record = Vec::new();
    put(&mut record, 5, b"key", b"value");
    delete(&mut record, 62, b"k");
    assert_eq!(record, *b"\x14\x03\x05keyvalue\xf9\x01\x00k");
}

#[test]
fn several_parts_share_a_key_and_have_one_byte_each_beside_their_short_values() {
    let mut record = Vec::new();
    let parts = |parts: &mut entry::PartsWriter<'_>| {
        parts.put(30, bytes(b"x"))?;
        parts.put(200, bytes(b"y"))?;
        parts.put(1, bytes(&[7; 300]))
    };
    entry::put_parts(&mut record, 5, bytes(b"key"), parts).unwrap();
    assert_eq!(record[..19], *b"\x16\x03\xff\x38\x01\x00\x00key\xf1x\xf9\xc8\x01y\x0f\xff\x2c");
    let found = entry::read(&record).next().unwrap().unwrap();
    let Change::PutParts(parts) = found.change else { panic!("{found:?}") };
    assert!(parts.eq([(30, &b"x"[..]), (200, &b"y"[..]), (1, &[7; 300][..])]));
    let mut none = Vec::new();
    entry::put_parts(&mut none, 5, bytes(b"key"), |_| Ok(())).unwrap();
    assert_eq!(entry::read(&none).next().unwrap().unwrap_err().reason, "is cut off");
}

#[test]
fn an_entry_that_fails_leaves_the_record_as_it_was() {
    let mut record = Vec::new();
    put(&mut record, 5, b"key", b"value");
    let before = record.clone();
    let failing = |out: &mut Vec<u8>| {
        out.extend_from_slice(b"half");
        Err::<(), u8>(7)
    };
    let whole = |out: &mut Vec<u8>| {
        out.extend_from_slice(&[0; 1000]);
        Ok::<(), u8>(())
    };
    assert_eq!(entry::put(&mut record, 1, failing, whole), Err(7));
    let parts = |parts: &mut entry::PartsWriter<'_>| parts.put(2, whole).and_then(|()| parts.put(3, failing));
    assert_eq!(entry::put_parts(&mut record, 1, whole, parts), Err(7));
    assert_eq!(entry::delete(&mut record, 1, failing), Err(7));
    assert_eq!(record, before);
}

#[test]
fn arbitrary_bytes_are_read_to_their_end_without_a_panic() {
    let seeds = std::env::var("HOTROW_FUZZ_SEEDS").map(|text| text.parse().expect("a number"));
    let (mut whole, mut malformed) = (0, 0);
    for seed in 0..seeds.unwrap_or(20_000_u64) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut record = Vec::new();
        for _ in 0..random.usize(..4) {
            let (key, value) = (vec![1; random.usize(..300)], vec![2; random.usize(..300)]);
            match random.u8(..3) {
                0 => put(&mut record, random.u32(..), &key, &value),
                1 => put_part(&mut record, random.u32(..), random.u32(..), &key, &value),
                _ => delete(&mut record, random.u32(..), &key),
            }
        }
        for _ in 0..random.usize(..3) {
            match random.u8(..3) {
                0 => record.truncate(random.usize(..=record.len())),
                1 => record.push(random.u8(..)),
                _ if record.is_empty() => {}
                _ => {
                    let at = random.usize(..record.len());
                    record[at] = random.u8(..);
                }
            }
        }
        let mut again = Vec::new();
        let mut entries = entry::read(&record);
        loop {
            let start = entries.offset();
            match entries.next() {
                None => {
                    whole += 1;
                    break;
                }
                Some(Ok(found)) => {
                    assert!(entries.offset() > start);
                    match found.change {
                        Change::Delete => {
                            entry::delete(&mut again, found.structure, bytes(found.key)).unwrap()
                        }
                        Change::Put(value) => {
                            entry::put(&mut again, found.structure, bytes(found.key), bytes(value)).unwrap();
                        }
                        Change::PutParts(mut parts) => {
                            let put = |writer: &mut entry::PartsWriter<'_>| {
                                parts.try_for_each(|(part, value)| writer.put(part, bytes(value)))
                            };
                            entry::put_parts(&mut again, found.structure, bytes(found.key), put).unwrap();
                        }
                    }
                }
                Some(Err(fault)) => {
                    assert_eq!(fault.offset, start);
                    assert_eq!(entries.next(), None);
                    malformed += 1;
                    break;
                }
            }
        }
        // Entries that were understood are understood again.
        assert!(entry::read(&again).all(|found| found.is_ok()));
    }
    assert!(whole > 1_000 && malformed > 1_000, "{whole} whole, {malformed} malformed");
}

#[test]
fn buffers_can_be_sent_to_other_threads() {
    fn sendable<T: Send>() {}
    sendable::<Buffer>();
    sendable::<hotrow_log::WhenDurable>();
    sendable::<hotrow_log::CheckpointWriter>();
}
