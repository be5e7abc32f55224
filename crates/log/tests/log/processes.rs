//! A directory beside changes of the working directory, of its name and of its files, and in a fork.

use crate::engine::{self, Clock, put};
use hotrow_log::storage::{Directory, Storage};
use hotrow_log::{Failure, Log, Options, Stamp};
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// Tells a child its directory.
const CHILD: &str = "HOTROW_LOG_CHILD_DIRECTORY";

/// Runs the named test again, in a process of its own, in which it is given a directory. True in the process that was called first.
fn in_a_child(test: &str) -> Option<std::path::PathBuf> {
    if let Some(path) = std::env::var_os(CHILD) {
        return Some(path.into());
    }
    let path = engine::directory(&test.replace(':', "-"));
    std::fs::create_dir_all(&path).unwrap();
    let child = Command::new(std::env::current_exe().unwrap());
    let mut child = child;
    let status = child.args(["--exact", test, "--nocapture"]).env(CHILD, &path).status().unwrap();
    assert!(status.success(), "{status}");
    std::fs::remove_dir_all(&path).unwrap();
    None
}

fn append(log: &Log, clock: &Clock, key: &[u8]) -> Stamp {
    let mut record = Vec::new();
    put(&mut record, 1, key, b"value");
    let (stamp, guard) = clock.stamp();
    log.buffer().append(stamp, &record);
    drop(guard);
    stamp
}

fn keys(path: &Path) -> Vec<Vec<u8>> {
    let (contents, _) = engine::recover(Arc::new(Directory::existing(path).unwrap())).unwrap();
    contents.into_keys().map(|(_, key)| key).collect()
}

/// A small segment, so that files are created and deleted.
fn small() -> Options {
    Options { segment_bytes: 600, ..Options::default() }
}

#[test]
fn a_relative_path_stays_that_of_its_directory_when_the_working_directory_changes() {
    let Some(path) = in_a_child(
        "processes::a_relative_path_stays_that_of_its_directory_when_the_working_directory_changes",
    ) else {
        return;
    };
    for place in ["here", "there"] {
        std::fs::create_dir(path.join(place)).unwrap();
        std::env::set_current_dir(path.join(place)).unwrap();
        let (log, clock, _) = engine::start(Arc::new(Directory::new("data").unwrap()), small()).unwrap();
        log.wait_durable(append(&log, &clock, place.as_bytes()).epoch).unwrap();
        log.close().unwrap();
    }
    std::env::set_current_dir(path.join("here")).unwrap();
    let (log, mut clock, _) = engine::start(Arc::new(Directory::new("data").unwrap()), small()).unwrap();
    std::env::set_current_dir(path.join("there")).unwrap();
    for key in [b"1", b"2", b"3"] {
        log.wait_durable(append(&log, &clock, key).epoch).unwrap();
    }
    let mut writer = log.begin_checkpoint(hotrow_log::Epochs::advance(&mut clock)).unwrap();
    let mut row = Vec::new();
    put(&mut row, 1, b"checkpoint", b"value");
    writer.put(&row).unwrap();
    writer.finish().unwrap();
    log.close().unwrap();
    assert_eq!(keys(&path.join("here/data")), [b"checkpoint"]);
    assert_eq!(keys(&path.join("there/data")), [b"there"]);
}

#[test]
fn a_directory_that_gets_another_name_takes_its_log_along() {
    let path = engine::directory("renamed");
    let (old, new) = (path.join("old"), path.join("new"));
    let (log, clock, _) = engine::start(Arc::new(Directory::new(&old).unwrap()), small()).unwrap();
    std::fs::rename(&old, &new).unwrap();
    let other = Directory::new(&old).unwrap();
    log.wait_durable(append(&log, &clock, b"key").epoch).unwrap();
    log.close().unwrap();
    drop(log);
    assert_eq!(other.list().unwrap(), Vec::<String>::new());
    assert_eq!(keys(&new), [b"key"]);
    std::fs::remove_dir_all(path).unwrap();
}

#[test]
fn the_lock_lasts_whatever_is_deleted_in_the_directory() {
    let path = engine::directory("lock-deleted");
    let (log, ..) = engine::start(Arc::new(Directory::new(&path).unwrap()), small()).unwrap();
    for entry in std::fs::read_dir(&path).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    assert_eq!(Directory::new(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop(log);
    drop(Directory::new(&path).unwrap());
    std::fs::remove_dir_all(path).unwrap();
}

#[test]
fn an_empty_path_and_a_file_are_no_directories() {
    let error = Directory::new("").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
    let path = engine::directory("a-file");
    std::fs::write(&path, b"text").unwrap();
    let error = Directory::new(&path).unwrap_err().to_string();
    assert!(error.contains("a-file"), "{error}");
    assert!(Directory::new(path.join("below")).is_err());
    std::fs::remove_file(path).unwrap();
}

/// Calls `work` in a fork. Returns true if that returned true there.
fn in_a_fork(work: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child uses memory, files and no lock that another thread of this process, which has no other with work, may hold, and
    // ends without running handlers of this process.
    unsafe {
        match libc::fork() {
            -1 => panic!("{}", io::Error::last_os_error()),
            0 => {
                let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
                libc::_exit(i32::from(!matches!(result, Ok(true))));
            }
            child => {
                let mut status = 0;
                assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
                libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
            }
        }
    }
}

#[test]
fn a_fork_changes_no_file_and_waits_for_nothing() {
    let Some(path) = in_a_child("processes::a_fork_changes_no_file_and_waits_for_nothing") else { return };
    let storage = Arc::new(Directory::new(path.join("data")).unwrap());
    let (log, mut clock, _) = engine::start(storage.clone(), small()).unwrap();
    log.wait_durable(append(&log, &clock, b"1").epoch).unwrap();
    let ended = in_a_fork(|| {
        let is_refused =
            |result: io::Result<()>| result.is_err_and(|error| error.to_string().contains("fork"));
        let stamp = append(&log, &clock, b"lost");
        let epoch = hotrow_log::Epochs::advance(&mut clock);
        let refusals = [
            is_refused(storage.create("file")),
            is_refused(storage.write("catalog", 0, b"x").map(drop)),
            is_refused(storage.sync("catalog")),
            is_refused(storage.rename("catalog", "file")),
            is_refused(storage.delete("catalog")),
            is_refused(storage.lock()),
            matches!(log.wait_durable(stamp.epoch), Err(Failure::Forked)),
            matches!(log.flush(), Err(Failure::Forked)),
            matches!(log.put_catalog(engine::table(9)), Err(Failure::Forked)),
            log.begin_checkpoint(epoch).is_err(),
            matches!(log.close(), Err(Failure::Forked)),
            matches!(log.failure(), Some(Failure::Forked)),
        ];
        // What is dropped waits for no thread, and leaves the parent's lock.
        drop(log.clone());
        drop(log);
        drop(storage);
        refusals == [true; 12]
    });
    assert!(ended);
}

#[test]
fn a_parent_goes_on_beside_its_fork() {
    let Some(path) = in_a_child("processes::a_parent_goes_on_beside_its_fork") else { return };
    let path = path.join("data");
    let (log, clock, _) = engine::start(Arc::new(Directory::new(&path).unwrap()), small()).unwrap();
    let forked = log.clone();
    assert!(in_a_fork(move || {
        drop(forked);
        true
    }));
    assert_eq!(Directory::new(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    log.wait_durable(append(&log, &clock, b"1").epoch).unwrap();
    log.close().unwrap();
    drop(log);
    assert_eq!(keys(&path), [b"1"]);
}
