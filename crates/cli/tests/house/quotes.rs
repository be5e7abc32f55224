//! The pages of the repository quote the sources: code word for word, and the numbered invariants.

use super::{files, root};
use std::fs;
use std::process::Command;

/// Before a block of code: the file whose lines the block quotes.
const MARKER: &str = "<!-- quotes ";

/// In a block: lines were left out here.
const OMISSION: &str = "// ...";

/// The first line of a block that does not follow the lines before it in the source.
fn first_foreign<'b>(block: &'b str, source: &str) -> Option<&'b str> {
    let mut rest = source.lines().map(str::trim);
    let mut quoted =
        block.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(OMISSION));
    quoted.find(|line| !rest.any(|other| other == *line))
}

/// The blocks of a page that quote a file, each with the file's path.
fn quotes(page: &str) -> Vec<(&str, &str)> {
    let quotes = page.split(MARKER).skip(1).map(|rest| {
        let (path, behind) = rest.split_once(" -->\n```rust\n").expect("a block of Rust follows the marker");
        (path, behind.split_once("```").expect("the block ends").0)
    });
    quotes.collect()
}

#[test]
fn a_quote_has_lines_of_the_source_in_their_order() {
    let source = "fn f() {\n    a();\n    b();\n}\n";
    assert_eq!(first_foreign("fn f() {\n    // ... not shown\n    b();\n}", source), None);
    assert_eq!(first_foreign("b();\na();", source), Some("a();"), "the order");
    assert_eq!(first_foreign("a()", source), Some("a()"), "a line that was changed");
    assert_eq!(quotes("<!-- quotes a.rs -->\n```rust\na();\n```\n"), [("a.rs", "a();\n")]);
}

#[test]
fn the_code_on_pages_is_that_of_the_sources() {
    let mut seen = 0;
    for (page, text) in files(&root(), ".md") {
        for (path, block) in quotes(&text) {
            let source = fs::read_to_string(root().join(path))
                .unwrap_or_else(|error| panic!("{}: {path}: {error}", page.display()));
            let foreign = first_foreign(block, &source);
            assert_eq!(foreign, None, "{}: not in {path}, or not in this order", page.display());
            seen += 1;
        }
    }
    assert!(seen > 5, "the quotes are found");
}

#[test]
fn the_invariants_of_the_architecture_are_those_of_the_sources() {
    let listed = Command::new(root().join(".ci/invariants")).output().expect("the script runs");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).unwrap();
    let mut stated: Vec<String> = listed
        .lines()
        .filter_map(|line| line.rsplit_once('\t')) // Without the place.
        .map(|(invariant, _)| invariant.replacen('\t', ". ", 1))
        .collect();
    stated.dedup();
    assert!(stated.len() > 20, "the invariants are found");

    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, section) = page.split_once("\n## Invariants\n").expect("a section has the invariants");
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    let shown: Vec<&str> =
        section.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit())).collect();
    assert_eq!(shown, stated);
}
