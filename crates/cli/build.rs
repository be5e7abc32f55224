//! Sets the source revision, so that a report names the code that it measured.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rustc-env=HOTROW_REVISION={}", revision().unwrap_or_else(|| "unknown".to_owned()));
    // The `-dirty` mark depends on the sources of all crates, the revision on the state of the checkout.
    println!("cargo::rerun-if-changed=..");
    println!("cargo::rerun-if-changed=../../Cargo.toml");
    if let Some(directory) = git(&["rev-parse", "--absolute-git-dir"]) {
        for name in ["HEAD", "index", "logs/HEAD"] {
            let path = Path::new(&directory).join(name);
            if path.exists() {
                println!("cargo::rerun-if-changed={}", path.display());
            }
        }
    }
}

/// The revision; `None` outside a checkout.
fn revision() -> Option<String> {
    let revision = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = !git(&["status", "--porcelain"])?.is_empty();
    Some(if changed { format!("{revision}-dirty") } else { revision })
}

/// Returns the output of a git command. The command takes no lock, so it does not disturb others.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("--no-optional-locks").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
