//! Runs applications over the store without synchronization, and shows times and counts.
//!
//! ```sh
//! cargo run --release -p hotrow-stamp --example sequential -- all
//! cargo run --release -p hotrow-stamp --example sequential -- vacation preset=high queries=2
//! ```

use hotrow_stamp::registry::{APPLICATIONS, ApplicationOptions};
use hotrow_stamp::{OneThread, OptionError, Sequential};
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
    let mut preset = None;
    let mut given = Vec::new();
    for setting in settings {
        match setting.split_once('=').unwrap_or((setting, "")) {
            ("preset", name) => preset = Some(name),
            option => given.push(option),
        }
    }
    let outcome = ApplicationOptions::parse(name, preset, &given)?.execute(Sequential::default(), &OneThread);
    let counts: Vec<String> =
        outcome.statistics.counts().iter().map(|(name, count)| format!("{name} {count}")).collect();
    let verdict = match &outcome.verification {
        Ok(()) => "right".to_owned(),
        Err(failure) => format!("wrong: {failure}"),
    };
    println!("{name}: {:.3} s, {verdict}; {}", outcome.elapsed.as_secs_f64(), counts.join(", "));
    Ok(outcome.verification.is_ok())
}
