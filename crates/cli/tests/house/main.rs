//! The project's rules that no compiler enforces, checked on the sources of all crates.

mod book;
mod imports;
mod quotes;
mod rooms;

use std::fs;
use std::path::{Path, PathBuf};

/// The crate that owns threads, atomics and the clock.
const OWNER: &str = "sync";

/// The paths that only the owner may name.
const OWNED: [&str; 4] = ["std::sync::atomic", "core::sync::atomic", "std::thread", "std::time::Instant"];

/// The most lines of a file.
const LINES_MAX: usize = 800;

/// Names that say nothing about a module.
const NAMES_OF_NOTHING: [&str; 7] = ["util", "utils", "common", "misc", "types", "helper", "helpers"];

fn crates() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies beside the others");
    crates.to_owned()
}

/// The root of the repository.
fn root() -> PathBuf {
    crates().parent().expect("the crates lie below the root").to_owned()
}

/// All files below a directory whose names end with `ending`, with their text.
fn files(directory: &Path, ending: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                found.extend(files(&path, ending));
            }
        } else if name.ends_with(ending) {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
    found
}

fn sources() -> Vec<(PathBuf, String)> {
    let sources = files(&crates(), ".rs");
    assert!(sources.len() > 20, "the sources are found");
    sources
}

/// The crate that a file belongs to: the name of its directory.
fn crate_of(path: &Path) -> String {
    let inside = path.strip_prefix(crates()).unwrap();
    inside.iter().next().unwrap().to_string_lossy().into_owned()
}

/// True if a file belongs to a crate's integration tests.
fn is_in_tests(path: &Path) -> bool {
    path.strip_prefix(crates()).unwrap().iter().nth(1).is_some_and(|part| part == "tests")
}

/// The code without comments and literals, and without white space except between words.
fn code(text: &str) -> String {
    let mut code = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '/' if characters.peek() == Some(&'/') => {
                while characters.next_if(|next| *next != '\n').is_some() {}
            }
            '"' => {
                while let Some(next) = characters.next() {
                    match next {
                        '\\' => drop(characters.next()),
                        '"' => break,
                        _ => {}
                    }
                }
                code.push_str("\"\"");
            }
            // A literal character, which could look like a bracket or the start of a string; `'a` alone is a lifetime.
            '\'' => {
                let mut ahead = characters.clone();
                let is_escaped = ahead.next() == Some('\\');
                if is_escaped || ahead.next() == Some('\'') {
                    characters.nth(usize::from(is_escaped));
                    while characters.next_if(|next| *next != '\'').is_some() {}
                    characters.next();
                }
            }
            _ if character.is_whitespace() => {
                let word = |character: &char| character.is_alphanumeric() || *character == '_';
                while characters.next_if(|next| next.is_whitespace()).is_some() {}
                if code.chars().next_back().as_ref().is_some_and(word) && characters.peek().is_some_and(word)
                {
                    code.push(' ');
                }
            }
            _ => code.push(character),
        }
    }
    code
}

/// The paths that a use tree names: `a::{b,c::d}` is `a::b` and `a::c::d`.
fn paths(tree: &str) -> Vec<String> {
    let Some(open) = tree.find('{') else { return vec![tree.to_owned()] };
    let prefix = &tree[..open];
    let inside = tree[open + 1..].strip_suffix('}').unwrap_or(&tree[open + 1..]);
    let mut depth = 0;
    let parts = inside.split(|character| {
        depth += i32::from(character == '{') - i32::from(character == '}');
        character == ',' && depth == 0
    });
    parts.flat_map(paths).map(|path| format!("{prefix}{path}")).collect()
}

/// The owned paths that a source names.
fn owned_paths(text: &str) -> Vec<&'static str> {
    let code = code(text);
    let used = code.split(';').filter_map(|statement| {
        let at = statement.rfind("use ")?;
        Some(paths(&statement[at + 4..]))
    });
    let named: Vec<String> = used.flatten().chain([code.clone()]).collect();
    let ends = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    let names =
        |text: &String, owned: &str| text.match_indices(owned).any(|(at, _)| ends(&text[at + owned.len()..]));
    OWNED.into_iter().filter(|owned| named.iter().any(|text| names(text, owned))).collect()
}

#[test]
fn owned_paths_are_found_however_they_are_named() {
    let found = |text: &str| owned_paths(text).join(" ");
    assert_eq!(found("fn f() { std::thread::yield_now() }"), "std::thread");
    assert_eq!(
        found("pub use std::{fmt, sync::{Arc, atomic::{AtomicU8, Ordering}},\n thread};"),
        "std::sync::atomic std::thread"
    );
    assert_eq!(found("use std::time::{Duration, Instant};"), "std::time::Instant");
    assert_eq!(found("let a = core :: sync :: atomic::AtomicU8::new(0);"), "core::sync::atomic");
    assert_eq!(
        found("use std::{time::Duration, sync::Arc}; std::thread_local!(); // std::thread\n\"std::thread\""),
        ""
    );
    assert_eq!(
        found("use hotrow::sync::{thread, atomic::Ordering}; let c = '\"'; use std::thread;"),
        "std::thread"
    );
}

#[test]
fn only_sync_names_threads_atomics_and_the_clock() {
    let mut found = Vec::new();
    for (path, text) in sources() {
        if crate_of(&path) != OWNER {
            found.extend(owned_paths(&text).into_iter().map(|owned| format!("{}: {owned}", path.display())));
        }
    }
    assert!(found.is_empty(), "these belong to crate {OWNER}:\n{}", found.join("\n"));
}

#[test]
fn only_sync_depends_on_the_clock_and_on_the_model_checker() {
    let manifests = files(&crates(), "Cargo.toml");
    for dependency in ["quanta", "loom"] {
        let dependents: Vec<String> = manifests
            .iter()
            .filter(|(_, text)| text.lines().any(|line| line.trim_start().starts_with(dependency)))
            .map(|(path, _)| crate_of(path))
            .collect();
        assert_eq!(dependents, [OWNER], "{dependency}");
    }
}

/// The crates that `.ci/loom` builds. loom's words panic outside a model, so that build must leave the crates'
/// ordinary tests out.
const MODELLED: [&str; 4] = ["sync", "core", "protocols", "tables"];

#[test]
fn ordinary_tests_of_modelled_crates_are_left_out_of_the_build_for_loom() {
    let mut found = Vec::new();
    for (path, text) in sources() {
        if MODELLED.contains(&crate_of(&path).as_str()) && code(&text).contains("#[cfg(test)]") {
            found.push(path.display().to_string());
        }
    }
    assert!(found.is_empty(), "`#[cfg(all(test, not(loom)))]` belongs in these:\n{}", found.join("\n"));
}

#[test]
fn ci_runs_the_tests_of_all_features_by_the_command_of_the_readme() {
    let root = crates().parent().unwrap().to_owned();
    // With all features Cargo leaves no test binary out.
    for file in [".ci/run", "README.md"] {
        let text = fs::read_to_string(root.join(file)).unwrap();
        assert!(text.lines().any(|line| line.ends_with("cargo test --workspace --all-features")), "{file}");
    }
}

#[test]
fn no_test_file_is_empty_in_a_build() {
    let mut empty = Vec::new();
    for (path, text) in sources() {
        if is_in_tests(&path) && code(&text).contains("#![cfg(") {
            empty.push(path.display().to_string());
        }
    }
    assert!(
        empty.is_empty(),
        "a binary without tests passes; write `required-features` in Cargo.toml instead:\n{}",
        empty.join("\n")
    );
}

#[test]
fn every_file_beside_a_test_binary_is_a_part_of_one() {
    let mut lost = Vec::new();
    let sources = sources();
    for (path, _) in &sources {
        let Ok(inside) = path.strip_prefix(crates()) else { continue };
        let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
        // `tests/NAME.rs` and `tests/NAME/main.rs` are binaries; trybuild compiles what lies in `ui`.
        let is_binary = parts.len() == 3 || parts.ends_with(&["main.rs".into()]);
        if parts.get(1).is_none_or(|part| part != "tests")
            || is_binary
            || parts.iter().any(|part| part == "ui")
        {
            continue;
        }
        let module = if parts.ends_with(&["mod.rs".into()]) {
            &parts[parts.len() - 2]
        } else {
            &parts[parts.len() - 1]
        };
        let declaration = format!("mod {};", module.trim_end_matches(".rs"));
        let of_this_crate = |other: &Path| crate_of(other) == *parts[0] && is_in_tests(other);
        if !sources.iter().any(|(other, text)| of_this_crate(other) && code(text).contains(&declaration)) {
            lost.push(path.display().to_string());
        }
    }
    assert!(lost.is_empty(), "no test binary has these modules:\n{}", lost.join("\n"));
}

/// The compiler shares functions that are not inlined between crates: what one crate leaves unoptimized, others call.
#[test]
fn a_release_build_optimizes_every_crate_of_the_project_alike() {
    let manifest = fs::read_to_string(crates().join("../Cargo.toml")).unwrap();
    let own = manifest.lines().find(|line| line.starts_with("[profile.release.package.hotrow"));
    assert_eq!(own, None, "a profile of its own");
    assert!(manifest.contains("[profile.release]"), "the profiles are in this manifest");
}

/// Tests of a crate of macros use what the compiler uses: a dependency of theirs is compiled once more, for it, with all below it.
#[test]
fn tests_of_macros_are_in_the_crates_that_use_them() {
    let manifest = fs::read_to_string(crates().join("derive/Cargo.toml")).unwrap();
    assert!(manifest.contains("proc-macro = true") && !manifest.contains("[dev-dependencies]"));
}

#[test]
fn no_file_is_a_giant() {
    let giants: Vec<String> = sources()
        .iter()
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > LINES_MAX)
        .map(|(path, lines)| format!("{}: {lines} lines", path.display()))
        .collect();
    assert!(giants.is_empty(), "above {LINES_MAX} lines a file is two things:\n{}", giants.join("\n"));
}

#[test]
fn every_module_has_a_name_that_says_what_it_is() {
    let mut nameless = Vec::new();
    for (path, text) in sources() {
        let inside = path.strip_prefix(crates()).unwrap().with_extension("");
        let in_path = inside.iter().skip(1).any(|part| NAMES_OF_NOTHING.iter().any(|name| part == *name));
        let code = code(&text);
        let in_code = NAMES_OF_NOTHING.iter().any(|name| {
            [';', '{'].iter().any(|end| {
                let declaration = format!("mod {name}{end}");
                code.match_indices(&declaration).any(|(at, _)| {
                    !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
                })
            })
        });
        if in_path || in_code {
            nameless.push(path.display().to_string());
        }
    }
    assert!(nameless.is_empty(), "{}", nameless.join("\n"));
}

/// A report that prints an error with its chain of sources would show the cause twice.
#[test]
fn no_error_shows_in_its_text_what_it_has_as_its_source() {
    let mut shown = 0;
    for (path, text) in sources().iter().filter(|(path, _)| !is_in_tests(path)) {
        for variant in text.split("#[error(").skip(1) {
            let Some((format, fields)) = variant.split_once(")]\n") else { continue };
            // The variant, or the struct, ends with a line that is not indented deeper than its attribute.
            let end =
                fields.find("\n    }").into_iter().chain(fields.find("),\n")).chain(fields.find("\n}")).min();
            let fields = &fields[..end.unwrap_or(fields.len())];
            let is_shown = |name: &str| {
                format.contains(&format!("{{{name}}}")) || format.contains(&format!("{{{name}:"))
            };
            let sources = fields.split("#[source]").skip(1).chain(fields.split("#[from]").skip(1));
            for source in sources.chain(fields.contains(" source: ").then_some("source: ")) {
                let name = source.split(':').next().unwrap_or_default().trim();
                let name = name.trim_start_matches("pub ").trim();
                let is_named =
                    !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
                assert!(!is_shown(if is_named { name } else { "0" }), "{}: {format}", path.display());
                shown += 1;
            }
        }
    }
    assert!(shown > 5, "the errors with sources are found");
}
