//! A process that is killed under load.

use crate::ledger::{Ledger, nothing_acknowledged};
use crate::power::crashes;
use crate::support::choose;
use hotrow::durable::{DurableBuilder, DurableDatabase, LogOptions, Mode};
use hotrow::sync::atomic::{AtomicBool, Ordering};
use hotrow::sync::thread;
use hotrow::{Database, Occ};
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The variable that makes this test's process the one to be killed, in this directory.
const DIRECTORY: &str = "HOTROW_KILLED_IN";
const THREADS: usize = 3;

fn options() -> LogOptions {
    LogOptions { mode: Mode::Group, segment_bytes: 1 << 18, ..LogOptions::default() }
}

/// The process that is killed: runs transactions, and writes a line for each that was acknowledged.
/// The protocols under which processes commit, each under one of them.
const PROTOCOLS: [&str; 8] = ["plor", "occ", "drp", "tictoc", "steal", "wound-wait", "mocc", "tl2"];

fn run_until_killed(directory: &Path) {
    let protocol = PROTOCOLS[std::process::id() as usize % PROTOCOLS.len()];
    let builder = Database::builder().protocol(protocol).log(options()).checkpoint_after(1 << 19);
    let db = builder.open_at(directory).unwrap();
    let ledger = Ledger::open(&db);
    let tell = |thread: u32, number: u64| {
        // One write, so that lines are whole.
        std::io::stdout().write_all(format!("{thread} {number}\n").as_bytes()).unwrap();
    };
    // Ends by itself, if nobody kills it.
    let must_end = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_secs(60));
            must_end.store(true, Ordering::Relaxed);
            std::process::exit(1);
        });
        println!("ready");
        scope.spawn(|| ledger.load_beside(&must_end));
        ledger.run(std::process::id().into(), &nothing_acknowledged(THREADS), &must_end, &tell);
    });
}

#[test]
fn killed_processes_lose_nothing_acknowledged() {
    if let Some(directory) = env::var_os(DIRECTORY) {
        run_until_killed(Path::new(&directory));
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let mut acknowledged = vec![0; THREADS];
    let mut commits = 0;
    for kill in 0..crashes(8) {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "killed::killed_processes_lose_nothing_acknowledged", "--nocapture"])
            .env(DIRECTORY, scratch.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.stdout.take().unwrap();
        let lines =
            thread::spawn(move || BufReader::new(output).lines().map_while(Result::ok).collect::<Vec<_>>());
        thread::sleep(Duration::from_micros(20_000 + kill.wrapping_mul(7_919) % 120_000));
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines.join().unwrap() {
            let numbers: Vec<u64> = line.split(' ').map_while(|word| word.parse().ok()).collect();
            if let [thread, number] = numbers[..] {
                acknowledged[thread as usize] = number;
            }
        }
        choose("occ");
        let db = Database::builder().typed::<Occ>().log(options()).open_at(scratch.path()).unwrap();
        commits = Ledger::open(&db).check(&acknowledged);
        db.close().unwrap();
    }
    eprintln!("{commits} commits in {} lives", crashes(8));
    assert!(commits > 0, "no process came to a commit");
}
