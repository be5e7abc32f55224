//! Files that were changed: an error that names the place, or a cut tail; never wrong rows, a panic or a change of a file.

use crate::engine::{self, Contents, delete, put, put_part};
use hotrow_log::storage::Faulty;
use hotrow_log::{Log, OpenError, Options, dump, verify};
use std::collections::BTreeMap;
use std::sync::Arc;

type Files = BTreeMap<String, Vec<u8>>;

/// A log with a checkpoint and several segments, and the states that its batches leave, the last one last.
struct Sample {
    files: Files,
    states: Vec<Contents>,
}

fn sample(closed: bool) -> Sample {
    let storage = Arc::new(Faulty::new(0));
    let options = Options { segment_bytes: 2_600, ..Options::default() };
    let opened = Log::open(storage.clone(), options).unwrap();
    let mut clock = engine::Clock::new(1);
    let (log, mut logger) = opened.start_without_thread(Box::new(clock.clone())).unwrap();
    log.put_catalog(engine::table(1)).unwrap();
    let mut buffer = log.buffer();
    let (mut contents, mut states) = (Contents::new(), vec![Contents::new()]);
    for number in 0..24_u8 {
        let mut record = Vec::new();
        put(&mut record, 1, &[number], &[number; 200]);
        if number % 3 == 2 {
            delete(&mut record, 1, &[number - 1]);
            put_part(&mut record, 1, 5, &[number], b"part");
        }
        let (stamp, guard) = clock.stamp();
        buffer.append(stamp, &record);
        drop(guard);
        engine::apply(&mut contents, &record);
        assert!(logger.step());
        states.push(contents.clone());
        if number == 5 {
            let epoch = hotrow_log::Epochs::advance(&mut clock);
            let mut writer = log.begin_checkpoint(epoch).unwrap();
            for ((structure, key), (value, overlays)) in &contents {
                let mut row = Vec::new();
                // The part is a part of the value now.
                let value = if overlays.is_empty() { value.clone() } else { b"with part".to_vec() };
                put(&mut row, *structure, key, &value);
                writer.put(&row).unwrap();
            }
            writer.finish().unwrap();
            for (value, overlays) in contents.values_mut().filter(|(_, overlays)| !overlays.is_empty()) {
                *value = b"with part".to_vec();
                overlays.clear();
            }
            states = vec![contents.clone()];
        }
    }
    drop(buffer);
    if closed {
        drop(log);
        while logger.step() {}
    }
    let files = storage.files();
    assert!(files.len() >= 5 && !files.contains_key("log-0000000000000001"), "{:?}", files.keys());
    Sample { files, states }
}

/// Recovers, and returns the contents or the error. Panics if a file was changed by that.
fn recover(files: &Files) -> Result<Contents, OpenError> {
    let storage = Arc::new(Faulty::with_files(0, files.clone()));
    let recovered = Log::open(storage.clone(), Options::default())
        .and_then(|mut opened| engine::replay(&mut opened, 1).map(|(contents, _)| contents));
    // Half of the time, as it takes threads.
    if files.values().map(Vec::len).sum::<usize>().is_multiple_of(2) {
        assert_eq!(verify(&*storage).is_ok(), recovered.is_ok());
    }
    let dumped = dump(&*storage, &mut std::io::sink());
    assert!(dumped.is_ok() || recovered.is_err());
    assert!(storage.files() == *files, "recovery has changed a file");
    if let Err(OpenError::Corrupt { file, .. }) = &recovered {
        assert!(!file.is_empty());
    }
    recovered
}

fn is_zeros(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

#[test]
fn a_changed_byte_is_an_error_or_cuts_the_last_batch_only() {
    for closed in [false, true] {
        let Sample { files, states } = sample(closed);
        let (newest, before) = (&states[states.len() - 1], &states[states.len() - 2]);
        assert_eq!(recover(&files).unwrap(), *newest);
        let last = files.keys().rfind(|name| name.starts_with("log-")).unwrap().clone();
        let mut random = fastrand::Rng::with_seed(u64::from(closed));
        let (mut errors, mut cuts, mut ahead) = (0, 0, 0);
        for (name, bytes) in &files {
            // Of the zeros that were written ahead a few.
            let places = (0..bytes.len()).filter(|&at| at % 61 == 0 || !is_zeros(&bytes[at..]));
            for at in places {
                let mut changed = files.clone();
                changed.get_mut(name).unwrap()[at] ^= 1 << random.u8(..8);
                match recover(&changed) {
                    Err(OpenError::Corrupt { file, offset, .. }) => {
                        errors += 1;
                        let place = file == *name && offset <= at as u64;
                        assert!(place, "byte {at} of {name} was changed, and {offset} of {file} is blamed");
                    }
                    Err(error) => panic!("byte {at} of {name}: {error}"),
                    // It lies behind the end, in zeros that were written ahead.
                    Ok(contents) if contents == *newest && is_zeros(&bytes[at..]) => ahead += 1,
                    Ok(contents) => {
                        assert!(!closed && *name == last && contents == *before, "byte {at} of {name}");
                        cuts += 1;
                    }
                }
            }
        }
        // The catalog says where a closed log ends.
        let right = if closed { cuts == 0 } else { cuts >= 64 && ahead > 0 };
        assert!(errors > 3_000 && right, "{errors} errors, {cuts} cuts, {ahead} ahead");
    }
}

#[test]
fn a_file_that_is_cut_off_or_missing_is_an_error_or_a_shorter_log() {
    for closed in [false, true] {
        let (errors, shorter) = cut_off_or_remove_files(&sample(closed));
        let right = if closed { shorter == 0 } else { shorter > 70 };
        assert!(errors > 500 && right, "{errors} errors, {shorter} shorter logs");
    }
}

fn cut_off_or_remove_files(Sample { files, states }: &Sample) -> (u32, u32) {
    let last = files.keys().rfind(|name| name.starts_with("log-")).unwrap();
    let newest = states.last().unwrap();
    let (mut errors, mut shorter) = (0, 0);
    for (name, bytes) in files {
        let lengths = (0..bytes.len()).step_by(7).map(Some).chain([None]);
        for length in lengths {
            let mut changed = files.clone();
            match length {
                Some(length) => changed.get_mut(name).unwrap().truncate(length),
                None => drop(changed.remove(name)),
            }
            match recover(&changed) {
                Err(OpenError::Corrupt { .. }) => errors += 1,
                Err(error) => panic!("{length:?} bytes of {name}: {error}"),
                // Only zeros that were written ahead are missing.
                Ok(contents)
                    if length.is_some_and(|length| is_zeros(&bytes[length..])) && contents == *newest => {}
                Ok(contents) => {
                    let is_cut = length.is_some() && name == last;
                    assert!(is_cut && states.contains(&contents), "{length:?} bytes of {name}");
                    shorter += 1;
                }
            }
        }
    }
    (errors, shorter)
}

/// Writes the right checksum over the bytes before it.
fn reseal(bytes: &mut [u8]) {
    let sum = bytes.len() - 4;
    let checksum = crc32c::crc32c(&bytes[..sum]);
    bytes[sum..].copy_from_slice(&checksum.to_le_bytes());
}

/// Changes some bytes at random, half of the time so that numbers become large.
fn mangle(bytes: &mut [u8], random: &mut fastrand::Rng) {
    for _ in 0..random.usize(1..4) {
        if bytes.is_empty() {
            return;
        }
        let at = random.usize(..bytes.len());
        let width = random.usize(1..9).min(bytes.len() - at);
        let value = if random.bool() { random.u64(..) } else { u64::from(random.u8(..3)).wrapping_sub(1) };
        bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
    }
}

/// Mangles what is behind the checksums, so that they do not guard it.
fn mangle_behind_checksums(name: &str, bytes: &mut [u8], random: &mut fastrand::Rng) {
    if name.starts_with("log-") && bytes.len() > 1024 && random.u8(..4) > 0 {
        // The first frame: its records, or its header.
        let payload = u64::from_le_bytes(bytes[512 + 48..512 + 56].try_into().unwrap());
        // An earlier change may have made it anything.
        let payload = payload.min((bytes.len() - 512 - 72) as u64) as usize;
        let end = (512 + 72 + payload).next_multiple_of(512).min(bytes.len());
        if random.bool() {
            mangle(&mut bytes[512 + 72..(512 + 72 + payload).min(end)], random);
            let checksum = crc32c::crc32c(&bytes[512 + 72..end]);
            bytes[512 + 60..512 + 64].copy_from_slice(&checksum.to_le_bytes());
        } else {
            mangle(&mut bytes[512 + 4..512 + 60], random);
        }
        reseal(&mut bytes[512..512 + 72]);
    } else if name.starts_with("log-") {
        mangle(&mut bytes[8..508], random);
        reseal(&mut bytes[..512]);
    } else if name.starts_with("checkpoint-") && bytes.len() > 152 {
        let length = bytes.len();
        match random.u8(..4) {
            0 => {
                mangle(&mut bytes[8..52], random);
                reseal(&mut bytes[..56]);
            }
            1 => {
                mangle(&mut bytes[length - 32..], random);
                let checksum = crc32c::crc32c(&bytes[length - 32..]);
                bytes[length - 40..length - 36].copy_from_slice(&checksum.to_le_bytes());
                reseal(&mut bytes[length - 64..length - 32]);
            }
            2 => {
                mangle(&mut bytes[56..84], random);
                reseal(&mut bytes[56..88]);
            }
            _ => {
                mangle(&mut bytes[88..length - 64], random);
                let checksum = crc32c::crc32c(&bytes[88..length - 64]);
                bytes[80..84].copy_from_slice(&checksum.to_le_bytes());
                reseal(&mut bytes[56..88]);
            }
        }
    } else {
        mangle(&mut bytes[8..], random);
        reseal(bytes);
    }
}

/// Any result but a panic is right. More inputs: `HOTROW_FUZZ_SEEDS=1000000` before the command of the test.
fn fuzz_seeds(usual: u64) -> std::ops::Range<u64> {
    let seeds = std::env::var("HOTROW_FUZZ_SEEDS").map(|text| text.parse().expect("a number"));
    0..seeds.unwrap_or(usual)
}

#[test]
fn recovery_of_arbitrary_files_ends_without_a_panic() {
    let samples = [sample(false), sample(true)];
    let mut sound = 0;
    for seed in fuzz_seeds(4_000) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut files = samples[random.usize(..2)].files.clone();
        let names: Vec<String> = files.keys().cloned().collect();
        for _ in 0..random.usize(1..3) {
            let name = &names[random.usize(..names.len())];
            let bytes = files.get_mut(name).unwrap();
            match random.u8(..8) {
                0 => {
                    *bytes = (0..random.usize(..2_000)).map(|_| random.u8(..)).collect();
                }
                1 => mangle(bytes, &mut random),
                2 => {
                    let others = &samples[0].files;
                    let other = others.values().nth(random.usize(..others.len()));
                    bytes.extend_from_slice(other.unwrap());
                }
                _ if bytes.len() >= 512 || name == "catalog" && bytes.len() > 24 => {
                    mangle_behind_checksums(name, bytes, &mut random);
                }
                _ => {}
            }
        }
        sound += u64::from(recover(&files).is_ok());
    }
    assert!(sound > 0, "some changes are harmless");
}

#[test]
fn a_segment_of_another_log_is_refused() {
    let (Sample { files, .. }, other) = (sample(false), sample(false));
    let names: Vec<&String> = files.keys().filter(|name| name.starts_with("log-")).collect();
    let mut changed = files.clone();
    changed.insert(names[0].clone(), other.files[names[1]].clone());
    assert!(matches!(recover(&changed), Err(OpenError::Corrupt { file, .. }) if file == *names[0]));
}

#[test]
fn a_version_of_the_format_that_is_not_known_is_told() {
    let Sample { files, .. } = sample(true);
    for name in files.keys() {
        let mut changed = files.clone();
        let bytes = changed.get_mut(name).unwrap();
        let header = match name.as_str() {
            "catalog" => bytes.len(),
            name if name.starts_with("log-") => 512,
            _ => 56,
        };
        bytes[8] = 77;
        reseal(&mut bytes[..header]);
        assert!(matches!(recover(&changed), Err(OpenError::Version { file, found: 77 }) if file == *name));
    }
}
