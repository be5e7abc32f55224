//! Runs applications and shows times and counts: over the store without synchronization, or, on several threads, over
//! the one with a global lock.
//!
//! ```sh
//! cargo run --release -p hotrow-stamp --example stamp -- all
//! cargo run --release -p hotrow-stamp --example stamp -- vacation preset=high queries=2 threads=4
//! ```

use hotrow_stamp::registry::{APPLICATIONS, ApplicationOptions};
use hotrow_stamp::{GlobalLock, OneThread, OptionError, Sequential, on_threads};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, settings)) = arguments.split_first() else {
        list();
        return ExitCode::SUCCESS;
    };
    let names = match name.as_str() {
        "all" => APPLICATIONS.iter().map(|application| application.name).collect(),
        name => vec![name],
    };
    let mut code = ExitCode::SUCCESS;
    for name in names {
        match run(name, settings) {
            Ok(true) => {}
            Ok(false) => code = ExitCode::FAILURE,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
        }
    }
    code
}

/// Shows the applications with their options and presets.
fn list() {
    for application in APPLICATIONS {
        println!("{}: {}", application.name, application.summary);
        for option in application.options {
            println!("  {}={} ({}): {}", option.name, option.default, option.bounds, option.summary);
        }
        for preset in application.presets {
            println!("  preset={}: {} {:?}", preset.name, preset.summary, preset.values);
        }
    }
}

/// Runs one application and returns true if its result is right.
fn run(name: &str, settings: &[String]) -> Result<bool, OptionError> {
    let (mut preset, mut threads) = (None, None);
    let mut given = Vec::new();
    for setting in settings {
        match setting.split_once('=').unwrap_or((setting, "")) {
            ("preset", name) => preset = Some(name),
            ("threads", number) => threads = Some(parse_threads(number)?),
            option => given.push(option),
        }
    }
    let options = ApplicationOptions::parse(name, preset, &given)?;
    let outcome = match threads {
        None => options.execute(Sequential::default(), &OneThread),
        Some(threads) => options.execute(GlobalLock::default(), &on_threads(threads)),
    };
    let counts: Vec<String> =
        outcome.statistics.counts().iter().map(|(name, count)| format!("{name} {count}")).collect();
    let verdict = match &outcome.verification {
        Ok(()) => "right".to_owned(),
        Err(failure) => format!("wrong: {failure}"),
    };
    println!("{name}: {:.3} s, {verdict}; {}", outcome.elapsed.as_secs_f64(), counts.join(", "));
    Ok(outcome.verification.is_ok())
}

fn parse_threads(number: &str) -> Result<usize, OptionError> {
    number.parse().ok().filter(|threads| (1..=1_000).contains(threads)).ok_or(OptionError::Invalid {
        name: "threads",
        value: number.to_owned(),
        reason: "expected a number from 1 to 1000".to_owned(),
    })
}
