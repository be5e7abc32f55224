//! Files that do not belong together: those of another database, of another time, or of a backup that was not finished.

use crate::engine::{self, Clock, Contents, put};
use hotrow_log::storage::{Fault, Faulty, Storage};
use hotrow_log::{Failure, Log, OpenError, Options, Stamp, dump, verify};
use std::collections::BTreeMap;
use std::sync::Arc;

type Files = BTreeMap<String, Vec<u8>>;

fn small() -> Options {
    Options { segment_bytes: 1_500, ..Options::default() }
}

fn commit(log: &Log, clock: &Clock, structure: u32, key: u8) -> Stamp {
    let mut record = Vec::new();
    put(&mut record, structure, &[key], &[key; 300]);
    let (stamp, guard) = clock.stamp();
    log.buffer().append(stamp, &record);
    drop(guard);
    log.wait_durable(stamp.epoch).unwrap();
    stamp
}

/// The files of a log with some segments, and with a checkpoint if asked for.
fn files(seed: u64, with_checkpoint: bool, closed: bool) -> Files {
    let storage = Arc::new(Faulty::new(seed));
    let (log, mut clock, _) = engine::start(storage.clone(), small()).unwrap();
    for key in 0..12 {
        commit(&log, &clock, 1, key);
        if with_checkpoint && key == 5 {
            let epoch = hotrow_log::Epochs::advance(&mut clock);
            log.begin_checkpoint(epoch).unwrap().finish().unwrap();
        }
    }
    if closed {
        log.close().unwrap();
    }
    storage.files()
}

fn recover(files: &Files) -> Result<Contents, OpenError> {
    let storage = Arc::new(Faulty::with_files(0, files.clone()));
    let recovered = engine::recover(storage.clone()).map(|(contents, _)| contents);
    assert_eq!(verify(&*storage).is_ok(), recovered.is_ok());
    assert!(storage.files() == *files, "recovery has changed a file");
    recovered
}

/// The error's text, which names file and offset.
fn refused(files: &Files) -> String {
    match recover(files) {
        Err(error @ OpenError::Corrupt { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

fn newest_segment(files: &Files) -> String {
    files.keys().rfind(|name| name.starts_with("log-")).unwrap().clone()
}

#[test]
fn a_file_of_another_database_is_refused_whichever_it_is() {
    let (one, other) = (files(1, true, true), files(1, true, true));
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    let mut refusals = 0;
    for name in one.keys() {
        let mut mixed = one.clone();
        mixed.insert(name.clone(), other[name].clone());
        let text = refused(&mixed);
        assert!(text.contains("it belongs to another database"), "{name}: {text}");
        refusals += 1;
    }
    assert!(refusals >= 4);
}

#[test]
fn a_file_that_is_missing_is_told_whichever_it_is() {
    for closed in [false, true] {
        let whole = files(1, true, closed);
        for name in whole.keys() {
            let mut less = whole.clone();
            less.remove(name);
            assert_eq!(refused(&less), format!("{name} is corrupt at byte 0: the file is missing"));
        }
    }
}

#[test]
fn a_page_of_zeros_at_the_end_of_a_closed_log_is_no_torn_tail() {
    let whole = files(1, false, true);
    let last = newest_segment(&whole);
    let length = whole[&last].len();
    // Also without the bytes.
    for is_cut in [false, true] {
        let mut less = whole.clone();
        let bytes = less.get_mut(&last).unwrap();
        let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() / 512 * 512;
        if is_cut {
            bytes.truncate(end)
        } else {
            bytes[end..length].fill(0)
        }
        let text = refused(&less);
        assert!(text.starts_with(&format!("{last} is corrupt at byte {end}")), "{text}");
        assert!(text.contains("were durable when the catalog was written"), "{text}");
    }
}

#[test]
fn an_older_catalog_is_refused() {
    let storage = Arc::new(Faulty::new(0));
    let (log, clock, _) = engine::start(storage.clone(), Options::default()).unwrap();
    commit(&log, &clock, 1, 1);
    let older = storage.files()["catalog"].clone();
    // The same table with another shape: the rows that follow cannot be read by the older one.
    let mut changed = engine::table(1);
    changed.shape = vec![9];
    log.put_catalog(changed).unwrap();
    commit(&log, &clock, 1, 2);
    let mut files = storage.files();
    assert_eq!(recover(&files).unwrap().len(), 2);
    files.insert("catalog".into(), older);
    let text = refused(&files);
    assert!(text.starts_with("catalog is corrupt at byte 32: it is an older one"), "{text}");

    // One that knows fewer segments.
    let storage = Arc::new(Faulty::new(0));
    let (log, clock, _) = engine::start(storage.clone(), small()).unwrap();
    let older = storage.files()["catalog"].clone();
    for key in 0..12 {
        commit(&log, &clock, 1, key);
    }
    let mut files = storage.files();
    files.insert("catalog".into(), older);
    assert!(refused(&files).starts_with("catalog is corrupt at byte 32"));
}

#[test]
fn an_entry_of_a_structure_that_the_catalog_lacks_is_told_with_its_place() {
    let storage = Arc::new(Faulty::new(0));
    let (log, clock, _) = engine::start(storage.clone(), Options::default()).unwrap();
    commit(&log, &clock, 1, 1);
    commit(&log, &clock, 77, 1);
    let text = refused(&storage.files());
    let place = "log-0000000000000001 is corrupt at byte 1100";
    assert_eq!(text, format!("{place}: an entry of structure 77, which the catalog lacks"));
}

#[test]
fn a_dropped_structure_is_passed_over_and_its_number_is_not_used_again() {
    let storage = Arc::new(Faulty::new(0));
    let (log, mut clock, _) = engine::start(storage.clone(), Options::default()).unwrap();
    for structure in [1, 2] {
        commit(&log, &clock, structure, 1);
    }
    let epoch = hotrow_log::Epochs::advance(&mut clock);
    let mut writer = log.begin_checkpoint(epoch).unwrap();
    for structure in [1, 2] {
        let mut row = Vec::new();
        put(&mut row, structure, &[1], &[1; 300]);
        writer.put(&row).unwrap();
    }
    writer.finish().unwrap();
    commit(&log, &clock, 2, 2);
    log.drop_structure(2).unwrap();
    let refused = log.put_catalog(engine::table(2));
    assert!(matches!(refused, Err(Failure::Dropped { structure: 2 })));
    log.put_catalog(engine::table(3)).unwrap();
    commit(&log, &clock, 3, 3);
    let mut opened = Log::open(Arc::new(storage.power_loss(0)), Options::default()).unwrap();
    assert_eq!(opened.next_structure(), 4);
    let names: Vec<&str> = opened.catalog().iter().map(|entry| &entry.name[..]).collect();
    assert_eq!(names, ["table 0", "table 1", "table 3"]);
    let rows: Vec<_> = engine::replay(&mut opened, 1).unwrap().0.into_keys().collect();
    assert_eq!(rows, [(1, vec![1]), (3, vec![3])]);
}

#[test]
fn a_backup_is_a_database_of_its_own() {
    let storage = Arc::new(Faulty::new(0));
    let (log, mut clock, _) = engine::start(storage.clone(), small()).unwrap();
    commit(&log, &clock, 1, 1);
    let epoch = hotrow_log::Epochs::advance(&mut clock);
    log.begin_checkpoint(epoch).unwrap().finish().unwrap();
    commit(&log, &clock, 1, 2);
    let copy = Faulty::new(1);
    log.backup(&copy).unwrap();
    assert!(recover(&copy.files()).is_ok());
    for (name, bytes) in copy.files() {
        let mut mixed = storage.files();
        assert!(mixed.insert(name, bytes).is_some());
        assert!(refused(&mixed).contains("another database"));
    }
}

#[test]
fn a_backup_that_was_interrupted_is_refused_wherever_that_was() {
    for with_rows in [false, true] {
        let storage = Arc::new(Faulty::new(0));
        let (log, clock, _) = engine::start(storage, small()).unwrap();
        if with_rows {
            commit(&log, &clock, 1, 1);
        }
        let mut refusals = 0;
        for n in 1.. {
            let copy = Arc::new(Faulty::new(n));
            copy.plan(n, Fault::Broken);
            let is_made = log.backup(&*copy).is_ok();
            for seed in 0..8 {
                let left = copy.power_loss(seed);
                let names: Vec<String> = left.files().into_keys().collect();
                // Nothing at all is nothing that could be taken for a copy. The last step may be through.
                let is_begun = names.iter().any(|name| !name.ends_with(".tmp"));
                match engine::recover(Arc::new(left)) {
                    Err(OpenError::UnfinishedBackup { file }) => {
                        assert_eq!(file, "catalog");
                        refusals += 1;
                    }
                    Ok((rows, _)) => {
                        assert!(!is_begun || rows.len() == usize::from(with_rows), "{n}, {seed}")
                    }
                    Err(error) => panic!("{n}, {seed}: {error}"),
                }
            }
            if is_made {
                break;
            }
        }
        assert!(refusals > 20, "{refusals}");
    }
}

#[test]
fn a_closed_log_is_opened_without_a_change_of_a_file() {
    let storage = Arc::new(Faulty::with_files(0, files(1, true, true)));
    let before = storage.files();
    storage.set_read_only(true);
    assert!(verify(&*storage).unwrap().open.closed);
    dump(&*storage, &mut std::io::sink()).unwrap();
    let (log, clock, contents) = engine::start(storage.clone(), small()).unwrap();
    assert_eq!(contents.len(), 6);
    log.close().unwrap();
    assert!(storage.files() == before);
    // A commit is what needs to write.
    let (log, ..) = engine::start(storage.clone(), small()).unwrap();
    let mut record = Vec::new();
    put(&mut record, 1, b"k", b"v");
    log.buffer().append(Stamp { epoch: clock.epoch(), order: 0 }, &record);
    let failure = log.flush().unwrap_err();
    assert!(failure.to_string().contains("read-only"), "{failure}");
    drop(log);
    assert!(storage.files() == before);
    // One that was not closed cannot be made whole.
    let open = Arc::new(Faulty::with_files(0, files(1, true, false)));
    open.set_read_only(true);
    assert!(verify(&*open).is_ok());
    assert!(matches!(engine::start(open, small()), Err(OpenError::Io { .. })));
}

#[test]
fn openings_add_no_files() {
    for crashes in [false, true] {
        let mut storage = Arc::new(Faulty::new(0));
        for key in 0..30 {
            let (log, clock, contents) = engine::start(storage.clone(), Options::default()).unwrap();
            assert_eq!(contents.len(), usize::from(key));
            commit(&log, &clock, 1, key);
            if !crashes {
                log.close().unwrap();
            }
            storage = Arc::new(storage.power_loss(u64::from(key)));
        }
        let names: Vec<String> = storage.files().into_keys().filter(|name| !name.ends_with(".tmp")).collect();
        assert_eq!(names, ["catalog", "log-0000000000000001"]);
    }
}

#[test]
fn a_catalog_that_claims_to_be_huge_takes_no_memory() {
    let path = engine::directory("huge");
    let storage = Arc::new(hotrow_log::storage::Directory::new(&path).unwrap());
    engine::start(storage.clone(), Options::default()).unwrap().0.close().unwrap();
    std::fs::OpenOptions::new().write(true).open(path.join("catalog")).unwrap().set_len(1 << 42).unwrap();
    let error = engine::recover(storage.clone()).unwrap_err().to_string();
    assert!(error.starts_with("catalog is corrupt at byte 0: it has 4398046511104 bytes"), "{error}");
    assert!(storage.list().unwrap().contains(&"catalog".to_owned()));
    std::fs::remove_dir_all(path).unwrap();
}
