//! Notes the source revision, so that a report says what was measured.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rustc-env=HOTROW_REVISION={}", revision().unwrap_or_else(|| "unknown".to_owned()));
    // Whether the tree has changes depends on all crates' sources; the revision, on the checkout's state.
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

/// The revision; none outside a checkout.
fn revision() -> Option<String> {
    let revision = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = !git(&["status", "--porcelain"])?.is_empty();
    Some(if changed { format!("{revision}-dirty") } else { revision })
}

/// What a git command prints. It takes no lock, so it disturbs nobody.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("--no-optional-locks").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
