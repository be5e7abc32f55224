//! The rooms of each crate: how many files may import each other in a circle, and the directions of the core's parts.

use super::imports::{imports, largest_circle};
use super::{code, crates, files};
use std::collections::BTreeSet;
use std::fs;

/// For each crate, the most files that may import each other, directly or through others. Lower these.
const CIRCLE_MAX: [(&str, usize); 20] = [
    ("check", 4),
    ("cli", 2),
    ("core", 8),
    ("derive", 0),
    ("driver", 5),
    ("durable", 0),
    ("hotrow", 0),
    ("log", 5),
    ("objects", 2),
    ("procedures", 0),
    ("protocols", 13),
    ("remote", 0),
    ("server", 2),
    ("sim", 11),
    ("sql", 34),
    ("stamp", 23),
    ("stored", 2),
    ("sync", 4),
    ("tables", 2),
    ("workloads", 6),
];

/// The parts of the core. Each may import itself and those before it.
const PARTS: [&str; 4] = ["memory", "kernel", "features", "kit"];

#[test]
fn no_circle_of_imports_is_larger_than_its_crate_may_have() {
    let bounded: BTreeSet<String> = CIRCLE_MAX.iter().map(|(name, _)| (*name).to_owned()).collect();
    let all = fs::read_dir(crates()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(bounded, all.collect(), "the crates of the workspace");
    for (name, files_max) in CIRCLE_MAX {
        let imports = imports(name);
        let circle = largest_circle(&imports);
        let shown: Vec<String> = circle
            .iter()
            .map(|file| {
                let inside = imports[*file].iter().map(String::as_str).filter(|other| circle.contains(other));
                format!("{file}: {}", inside.collect::<Vec<_>>().join(" "))
            })
            .collect();
        assert!(
            circle.len() <= files_max,
            "{name}: {} files, not {files_max}:\n{}",
            circle.len(),
            shown.join("\n")
        );
    }
}

#[test]
fn the_parts_of_the_core_import_only_those_before_them() {
    let part = |file: &str| PARTS.iter().position(|part| file.split('/').next() == Some(part));
    let mut found = BTreeSet::new();
    for (file, imported) in &imports("core") {
        let Some(own) = part(file) else { continue };
        for other in imported.iter().filter(|other| part(other).is_none_or(|part| part > own)) {
            let room: Vec<&str> = other.trim_end_matches(".rs").split('/').take(2).collect();
            found.insert((file.clone(), room.join("/")));
        }
    }
    assert!(found.is_empty(), "imports against the direction of the parts: {found:#?}");
}

#[test]
fn the_kernel_is_small() {
    let kernel = files(&crates().join("core/src/kernel"), ".rs");
    let lines: usize = kernel.iter().map(|(_, text)| text.lines().count()).sum();
    assert!(kernel.len() <= 20 && lines <= 6_500, "the kernel has {} files of {lines} lines", kernel.len());
}

#[test]
fn the_kernel_looks_at_no_state_of_features() {
    for (path, text) in files(&crates().join("core/src/kernel"), ".rs") {
        assert!(!code(&text).contains("features."), "{}: the features' state is theirs", path.display());
    }
}
