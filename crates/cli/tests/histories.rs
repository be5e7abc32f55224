//! Tests of `--record` and `check` as users call them.

mod support;

use hotrow_check::HistoryBuilder;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;
use support::{hotrow, start, text};
use tempfile::TempDir;

fn place(directory: &TempDir, name: &str) -> PathBuf {
    directory.path().join(name)
}

fn record(path: &Path, more: &[&str]) -> Output {
    record_for("0.1", path, more)
}

fn record_for(seconds: &str, path: &Path, more: &[&str]) -> Output {
    let path = path.to_str().unwrap();
    let run = ["bench", "stress", "--threads", "2", "--seconds", seconds, "--warmup", "0", "--record", path];
    hotrow(&[&run[..], more].concat())
}

fn check(path: &Path, more: &[&str]) -> Output {
    hotrow(&[&["check", path.to_str().unwrap()], more].concat())
}

/// Asserts that the command failed with one line of error that contains `words`, and printed nothing else.
fn refused(output: &Output, status: i32, words: &str) {
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{errors}");
    assert!(errors.starts_with("hotrow: ") && errors.lines().count() == 1, "{errors}");
    assert!(errors.contains(words), "{errors}");
    assert_eq!(text(&output.stdout), "");
}

#[test]
fn a_recorded_run_can_be_checked() {
    let directory = TempDir::new().unwrap();
    let path = place(&directory, "stress.history");
    for protocol in ["occ", "tl2"] {
        let output = record(&path, &["--protocol", protocol, "--format", "json"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let output = check(&path, &["--format", "json"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&verdict["protocol"], &verdict["complete"]), (&protocol.into(), &true.into()));
        assert_eq!(
            (&verdict["serializable"], &verdict["strictly_serializable"]),
            (&true.into(), &true.into())
        );
        // Transactions that are running when the measurement ends are recorded but not measured.
        assert!(verdict["committed"].as_u64().unwrap() >= report["commits"].as_u64().unwrap());
        let words = text(&check(&path, &[]).stdout);
        assert!(words.contains("serializable           yes\n") && words.ends_with('\n'), "{words}");
    }
    let there: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(there, ["stress.history"], "nothing else is left behind");
}

#[test]
fn a_history_that_reaches_its_bound_is_reported_by_bench_and_by_check() {
    let directory = TempDir::new().unwrap();
    let path = place(&directory, "cut.history");
    // A busy machine takes longer to reach the bound.
    let reached = ["0.5", "4", "30"].into_iter().any(|seconds| {
        let output = record_for(seconds, &path, &["--record-mb", "1"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stderr).contains("has reached its bound of 1")
    });
    assert!(reached);
    let output = check(&path, &[]);
    let words = text(&output.stdout);
    assert!(output.status.success(), "{}{words}", text(&output.stderr));
    assert!(words.contains("cut at its bound"), "{words}");
}

/// Two transactions that read a balance and then both add to it.
fn lost_update() -> Vec<u8> {
    let mut history = HistoryBuilder::new("none-such");
    let accounts = history.object("accounts");
    let key = history.key(accounts, &[7], "7");
    let (one, two) = (history.begin(1), history.begin(2));
    history.read(one, key);
    history.read(two, key);
    for attempt in [one, two] {
        history.write(attempt, key);
        history.commit(attempt);
    }
    let mut bytes = Vec::new();
    hotrow_check::file::write(&history.finish(), &mut bytes).unwrap();
    bytes
}

#[test]
fn a_violation_is_explained_and_fails_the_command() {
    let directory = TempDir::new().unwrap();
    let path = place(&directory, "lost.history");
    fs::write(&path, lost_update()).unwrap();
    let output = check(&path, &[]);
    assert_eq!(output.status.code(), Some(1));
    let words = text(&output.stdout);
    assert!(words.contains("lost update") && words.contains("accounts[7]"), "{words}");
    let errors = text(&output.stderr);
    assert!(errors.contains("not strictly serializable, as its protocol claims"), "{errors}");
    let output = check(&path, &["--require", "serializable", "--format", "json", "--anomalies", "0"]);
    assert_eq!(output.status.code(), Some(1));
    let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&verdict["anomalies"], &verdict["anomalies_not_listed"]), (&Value::Array(vec![]), &1.into()));
}

#[test]
fn a_damaged_file_is_refused_with_one_line_that_names_the_byte() {
    let directory = TempDir::new().unwrap();
    let path = place(&directory, "bad.history");
    let whole = lost_update();
    let middle = whole.len() / 2;
    let mut changed = whole.clone();
    changed[middle] ^= 1;
    for (bytes, words) in [
        (Vec::new(), "empty (byte 0)".to_owned()),
        (b"{\"workload\":1}".to_vec(), "(byte 0)".to_owned()),
        (whole[..middle].to_vec(), format!("ends at byte {middle}")),
        (changed, "at byte ".to_owned()),
        ([whole.clone(), vec![0]].concat(), "at byte ".to_owned()),
    ] {
        fs::write(&path, bytes).unwrap();
        refused(&check(&path, &[]), 1, &words);
    }
    refused(&check(&place(&directory, "none"), &[]), 1, "No such file");
    refused(&check(directory.path(), &[]), 1, "directory");
}

#[test]
fn a_path_that_cannot_be_written_is_refused_before_the_run() {
    let directory = TempDir::new().unwrap();
    let path = place(&directory, "none/run.history");
    refused(&record_for("86400", &path, &[]), 1, "cannot write");
    refused(&record_for("86400", directory.path(), &[]), 1, "directory");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let output = record(Path::new("/dev/full"), &["--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot write /dev/full"), "{}", text(&output.stderr));
}

#[test]
fn a_failed_run_leaves_an_existing_file_unchanged() {
    let directory = TempDir::new().unwrap();
    let path = place(&directory, "run.history");
    fs::write(&path, "precious").unwrap();
    refused(&record(&path, &["--protocol", "none"]), 2, "admits at most 1 thread");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn a_recording_follows_symbolic_links_and_keeps_the_permissions_of_the_target() {
    let directory = TempDir::new().unwrap();
    let (link, chain) = (place(&directory, "link"), place(&directory, "chain"));
    symlink("target", &link).unwrap();
    symlink(&link, &chain).unwrap();
    let target = place(&directory, "target");
    for before in [None, Some(0o600)] {
        if let Some(mode) = before {
            fs::set_permissions(&target, Permissions::from_mode(mode)).unwrap();
        }
        let output = record(&chain, &["--format", "json"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(fs::symlink_metadata(&chain).unwrap().is_symlink() && link.is_symlink());
        let written = fs::symlink_metadata(&target).unwrap();
        assert!(written.is_file());
        assert!(before.is_none_or(|mode| written.permissions().mode() & 0o777 == mode));
        assert!(check(&target, &[]).status.success());
    }
    let circle = place(&directory, "circle");
    symlink("circle", &circle).unwrap();
    refused(&record_for("86400", &circle, &[]), 1, "symbolic links");
}

#[test]
fn a_read_only_file_is_refused_before_the_run() {
    let directory = TempDir::new().unwrap();
    let path = place(&directory, "run.history");
    fs::write(&path, "precious").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
    refused(&record_for("86400", &path, &[]), 1, "read-only");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[cfg(target_os = "linux")]
#[test]
fn a_killed_recording_leaves_nothing_behind() {
    let directory = TempDir::new().unwrap();
    let path = place(&directory, "run.history");
    let mut run = start(&["bench", "stress", "--seconds", "86400", "--record", path.to_str().unwrap()]);
    let descriptors = PathBuf::from(format!("/proc/{}/fd", run.id()));
    let is_inside = |descriptor: &Path| {
        fs::read_link(descriptor).is_ok_and(|file| file.starts_with(directory.path().canonicalize().unwrap()))
    };
    while !fs::read_dir(&descriptors).unwrap().any(|descriptor| is_inside(&descriptor.unwrap().path())) {
        assert!(run.try_wait().unwrap().is_none(), "it runs for a day");
        hotrow::sync::thread::yield_now();
    }
    run.kill().unwrap();
    run.wait().unwrap();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn only_one_run_is_recorded() {
    let directory = TempDir::new().unwrap();
    let path = place(&directory, "run.history");
    refused(&record(&path, &["--protocol", "occ,tl2"]), 2, "--record takes one run, not 2");
    refused(&record(&path, &["--repeat", "3"]), 2, "--record takes one run, not 3");
    refused(&record(&path, &["--record-mb", "0"]), 2, "--record-mb");
}
