//! Histories in files, whole and broken.

use super::Bench;
use crate::file::{FileError, read, write};
use hotrow_core::history::{History, KeyName};

fn sample() -> History {
    let mut bench = Bench::new(3, 2);
    bench.history.claim_opacity();
    let [a, b] = bench.begin();
    bench.scan_all(a);
    bench.history.insert(b, bench.keys[3]);
    bench.commit(&[a, b]);
    bench.history.begin(300);
    bench.history.finish()
}

fn bytes_of(history: &History) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(history, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_file_that_does_not_speak_of_strictness_claims_it() {
    // Older files are from before any protocol disclaimed strictness: their flags are 2 (complete).
    let plain = History { protocol: "occ".into(), strict: true, complete: true, ..History::default() };
    let bytes = bytes_of(&plain);
    let metadata = [&[2, 3][..], b"occ"].concat();
    assert!(bytes.windows(metadata.len()).any(|part| part == metadata), "{bytes:?}");
    assert_eq!(read(&mut bytes.as_slice()).unwrap(), plain);
}

#[test]
fn written_data_is_read_again() {
    let mut large = sample();
    for n in 0..300_000u32 {
        large.keys.push(KeyName { object: 0, order: &n.to_be_bytes(), text: b"" });
    }
    large.objects = (0..100_000).map(|n| format!("object number {n}")).collect();
    large.workers[1].bytes = vec![7; 3_000_000];
    large.workers[0].bytes.clear();
    let incomplete = History { complete: false, ..sample() };
    let lenient = History { opaque: false, strict: false, ..sample() };
    for history in [sample(), large, History::default(), incomplete, lenient] {
        let bytes = bytes_of(&history);
        assert_eq!(read(&mut bytes.as_slice()).unwrap(), history);
    }
}

#[test]
fn a_file_cut_anywhere_is_an_error_there() {
    let bytes = bytes_of(&sample());
    for length in 0..bytes.len() {
        match read(&mut &bytes[..length]) {
            Err(FileError::Empty) => assert_eq!(length, 0),
            Err(FileError::Truncated { offset, .. }) => assert_eq!(offset, length as u64),
            other => panic!("{length}: {other:?}"),
        }
    }
}

#[test]
fn any_changed_bit_is_an_error() {
    let bytes = bytes_of(&sample());
    for at in 0..bytes.len() {
        for change in (0..8).map(|bit| 1 << bit).chain([0xff]) {
            let mut bytes = bytes.clone();
            bytes[at] ^= change;
            if at == 8 && (1..=3).contains(&bytes[at]) {
                // An earlier version of the format, which is read.
                continue;
            }
            let error = read(&mut bytes.as_slice()).expect_err("the byte was changed");
            match error {
                FileError::Foreign => assert!(at < 8),
                FileError::Version { offset: 8, .. } => assert!((8..12).contains(&at)),
                FileError::Corrupt { offset, .. } | FileError::Truncated { offset, .. } => {
                    assert!(at >= 12 && offset as usize <= bytes.len());
                    assert!(error.to_string().contains(&format!("byte {offset}")), "{error}");
                }
                other => panic!("{at}: {other}"),
            }
        }
    }
}

#[test]
fn bytes_after_the_end_are_an_error() {
    let mut bytes = bytes_of(&sample());
    let offset = bytes.len() as u64;
    bytes.push(0);
    assert!(matches!(read(&mut bytes.as_slice()), Err(FileError::Corrupt { offset: o, .. }) if o == offset));
}

#[test]
fn foreign_files_and_other_versions_are_named() {
    let text = |bytes: &[u8]| read(&mut &bytes[..]).unwrap_err().to_string();
    assert_eq!(text(b""), "the file is empty (byte 0)");
    let foreign = "the file is not a history: it does not begin with the right eight bytes (byte 0)";
    assert_eq!(text(b"PK"), foreign);
    assert_eq!(text(b"{\"workload\": \"tpcc\"}"), foreign);
    assert_eq!(text(b"HOTR"), "the file is cut off: it ends at byte 4, in the middle of the head");
    for found in [0, 4] {
        let version =
            format!("the file has version {found} of the format, and only 1 to 3 are known (byte 8)");
        assert_eq!(text(&[&b"HOTROWH\n"[..], &[found, 0, 0, 0]].concat()), version);
    }
}

#[test]
fn files_of_earlier_versions_are_read() {
    let mut bytes = bytes_of(&sample());
    assert_eq!(bytes[8..12], [3, 0, 0, 0]);
    for version in [1, 2] {
        bytes[8] = version;
        assert_eq!(read(&mut bytes.as_slice()).unwrap(), sample());
    }
}

#[test]
fn blocks_with_right_checksums_and_wrong_contents_are_errors() {
    let head = b"HOTROWH\n\x01\0\0\0".to_vec();
    let block = |kind: u8, payload: &[u8]| {
        let sum = crate::file::checksum(kind, payload).to_le_bytes();
        [&[kind][..], &(payload.len() as u32).to_le_bytes(), &sum, payload].concat()
    };
    let metadata = block(1, &[2, 0]);
    let many = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    for wrong in [
        vec![block(1, &[])],
        vec![block(1, &[8, 0])],
        vec![block(1, &[0, 1, 0xff])],
        vec![block(2, b"")],
        vec![metadata.clone(), metadata.clone()],
        vec![metadata.clone(), block(2, &many)],
        vec![metadata.clone(), block(3, &[0, 0, 0])],
        vec![metadata.clone(), block(4, &[0; 3])],
        vec![metadata.clone(), block(5, &[0; 3])],
        vec![metadata.clone(), block(4, &[0; 4]), block(2, &[])],
        vec![metadata.clone(), block(6, &[0; 31])],
        vec![metadata.clone(), block(4, &[0; 4]), block(6, &[0; 32])],
        vec![metadata.clone(), block(7, &[])],
        vec![metadata.clone(), vec![2, 0, 0, 0, 2, 0, 0, 0, 0]],
    ] {
        let bytes = [&head[..], &wrong.concat()].concat();
        let error = read(&mut bytes.as_slice()).unwrap_err();
        assert!(matches!(error, FileError::Corrupt { .. }), "{wrong:?}: {error}");
    }
    let fine = [&head[..], &metadata, &block(6, &[0; 32])].concat();
    assert!(read(&mut fine.as_slice()).is_ok());
}
