//! Names in the book: identifiers, paths, links, features and variables, each held against the sources.

use super::commands;
use super::pages::{Block, Page, Span};
use crate::{crates, root};
use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// Words in backticks that no source has, by the reason why they may be there.
const WORDS_OF_OTHERS: [(&str, &str); 6] = [
    (
        "statements and clauses of SQL, which the server has or lacks",
        "LATERAL LISTEN NOTIFY RECURSIVE VACUUM",
    ),
    ("headings and marks of comments, which the sources have in comments only", "Safety SAFETY"),
    ("names that are examples of the rules for names", "an_aborted_insert_is_invisible misc wait_us_max"),
    ("names of a program of the reader's own", "Db NAME OLD"),
    ("names of other libraries and their settings", "MIMALLOC_ALLOW_THP TVar atomically"),
    ("crates of others, whose paths no source need have", "std tokio"),
];

/// The words of the sources, comments left out.
pub(super) struct Sources {
    words: HashSet<String>,
    /// The words of each Rust source, with those of its path.
    of_files: Vec<HashSet<String>>,
    /// All files of the repository by their paths.
    pub(super) paths: BTreeSet<String>,
    pub(super) manifests: String,
    text: String,
}

pub(super) fn is_part_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter| !is_part_of_word(letter)).filter(|word| !word.is_empty())
}

/// A source without its comments, with its literals.
pub(super) fn without_comments(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let mut comments = line.match_indices("//");
        // Slashes inside of a literal have an odd number of quotation marks before them.
        let comment = comments.find(|(at, _)| line[..*at].matches('"').count() % 2 == 0);
        comment.map_or(line, |(at, _)| &line[..at])
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

impl Sources {
    fn new() -> Self {
        let mut sources = Self {
            words: HashSet::new(),
            of_files: Vec::new(),
            paths: BTreeSet::new(),
            manifests: String::new(),
            text: String::new(),
        };
        let tests = crates().join("cli/tests/house");
        for directory in ["crates", "examples", "docs", ".ci"] {
            add_paths(&root().join(directory), &mut sources.paths);
        }
        let top =
            fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        sources.paths.extend(top);
        for path in sources.paths.clone() {
            let file = root().join(&path);
            let is_rust = path.ends_with(".rs");
            let is_source = is_rust
                || path.starts_with(".ci/")
                || [".toml", ".html", ".css"].iter().any(|end| path.ends_with(end));
            if !is_source || file.starts_with(&tests) || !file.is_file() {
                continue;
            }
            let Ok(text) = fs::read_to_string(&file) else { continue };
            if path.ends_with("Cargo.toml") {
                sources.manifests += &text;
            }
            let text = if is_rust { without_comments(&text) } else { text };
            let own: HashSet<String> = words(&text).chain(words(&path)).map(str::to_owned).collect();
            sources.words.extend(own.iter().cloned());
            if is_rust {
                sources.of_files.push(own);
            }
            sources.text += &text;
        }
        assert!(sources.of_files.len() > 400, "the sources are found");
        sources
    }

    /// True if a source has the word, or one that it abbreviates: `_end` and `begin_`.
    pub(super) fn has_word(&self, word: &str) -> bool {
        self.words.contains(word)
            || word.len() > 2 && word.starts_with('_') && self.words.iter().any(|known| known.ends_with(word))
            || word.len() > 2 && word.ends_with('_') && self.words.iter().any(|known| known.starts_with(word))
    }

    /// True if a file or directory has this path, from the root, from the directory of the page or, in part, from anywhere.
    fn has_path(&self, page: &str, path: &str) -> bool {
        let path = path.trim_end_matches('/').trim_start_matches("./");
        let below = Path::new(page).parent().unwrap().join(path);
        let end = format!("/{path}");
        root().join(path).exists()
            || root().join(below).exists()
            || self.paths.iter().any(|known| known.ends_with(&end))
    }
}

/// The sources, read once.
pub(super) fn sources() -> &'static Sources {
    static SOURCES: LazyLock<Sources> = LazyLock::new(Sources::new);
    &SOURCES
}

/// All files and directories below a directory.
fn add_paths(directory: &Path, paths: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        paths.insert(path.strip_prefix(root()).unwrap().to_string_lossy().into_owned());
        if path.is_dir() && !path.ends_with("target") {
            add_paths(&path, paths);
        }
    }
}

/// True if a code span is a path: it has a slash between names, or the ending of a file.
fn is_path(span: &str) -> bool {
    let ends = [".rs", ".md", ".toml", ".svg", ".json", ".jsonl", ".lock"];
    let letters = |letter: char| is_part_of_word(letter) || ['.', '-', '/'].contains(&letter);
    span.chars().all(letters)
        && (span.contains('/') && !span.starts_with('/') || ends.iter().any(|end| span.ends_with(end)))
        && span.len() > 4
}

/// The words of code spans, outside of commands and paths, that no source has.
pub(super) fn unknown_words(page: &Page, sources: &Sources) -> Vec<String> {
    let allowed: HashSet<&str> =
        WORDS_OF_OTHERS.iter().flat_map(|(_, words)| words.split_whitespace()).collect();
    let is_of_others = |span: &str| {
        allowed.iter().any(|word| span.strip_prefix(word).is_some_and(|rest| rest.starts_with("::")))
    };
    let mut findings = Vec::new();
    for Span { line, text } in page.prose().flat_map(Block::spans) {
        // A test may be named by its end.
        let span = text.trim_start_matches("...");
        if is_path(span) || commands::is_command(span) || span.contains("://") || is_of_others(span) {
            continue;
        }
        let is_name = |word: &&str| word.len() > 1 && !word.starts_with(|first: char| first.is_ascii_digit());
        let unknown =
            words(span).filter(is_name).find(|word| !allowed.contains(word) && !sources.has_word(word));
        if let Some(word) = unknown {
            findings.push(page.at(line, &format!("`{text}`: no source has `{word}`")));
            continue;
        }
        for (owner, member) in members(span) {
            let with_both = |words: &HashSet<String>| words.contains(owner) && words.contains(member);
            if !sources.of_files.iter().any(with_both) {
                findings.push(page.at(line, &format!("`{text}`: no source has `{owner}` and `{member}`")));
            }
        }
    }
    findings
}

/// The pairs `Type::member` of a code span, of `Type::{a, b}` each.
fn members(span: &str) -> Vec<(&str, &str)> {
    let mut pairs = Vec::new();
    for (at, mark) in span.match_indices("::") {
        let owner = words(&span[..at]).last().unwrap_or_default();
        let rest = &span[at + mark.len()..];
        let inside = rest.strip_prefix('{').map_or(rest, |rest| rest.split('}').next().unwrap_or(rest));
        let count = if inside.len() < rest.len() { usize::MAX } else { 1 };
        pairs.extend(words(inside).take(count).map(|member| (owner, member)));
    }
    pairs.retain(|(owner, _)| owner.starts_with(char::is_uppercase) && owner.len() > 1);
    pairs
}

/// The paths of code spans that no file has. A file that a program writes is in its source.
pub(super) fn unknown_paths(page: &Page, sources: &Sources) -> Vec<String> {
    let spans = page.prose().flat_map(Block::spans).filter(|span| is_path(&span.text));
    let lost =
        spans.filter(|span| !sources.has_path(&page.name, &span.text) && !sources.text.contains(&*span.text));
    lost.map(|span| page.at(span.line, &format!("no file `{}`", span.text))).collect()
}

/// The links of a page to files or headings that are not there.
pub(super) fn lost_links(page: &Page) -> Vec<String> {
    let mut findings = Vec::new();
    for Span { line, text } in page.blocks.iter().flat_map(Block::links) {
        // The compiler checks the links of sources to names.
        let is_of_code = page.name.ends_with(".rs") && !text.contains('/') && !text.contains(".md");
        if text.contains("://") || text.starts_with("mailto:") || is_of_code {
            continue;
        }
        let (file, anchor) = text.split_once('#').unwrap_or((&text, ""));
        let target = root().join(&page.name).parent().unwrap().join(file);
        let anchors = match file {
            "" => page.anchors(),
            _ if target.exists() => {
                Page::new("a.md", &fs::read_to_string(&target).unwrap_or_default()).anchors()
            }
            _ => {
                findings.push(page.at(line, &format!("no file for the link `{text}`")));
                continue;
            }
        };
        if !anchor.is_empty() && !anchors.iter().any(|known| known == anchor) {
            findings.push(page.at(line, &format!("no heading for the link `{text}`")));
        }
    }
    findings
}

/// The features that a page names and no manifest has.
pub(super) fn unknown_features(page: &Page, manifests: &str) -> Vec<String> {
    let is_known = |name: &str| {
        manifests
            .lines()
            .any(|line| line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with("= [")))
            || manifests.contains(&format!("{name} = {{ workspace = true, optional = true"))
    };
    let mut findings = Vec::new();
    for block in &page.blocks {
        let list = |at: usize| &block.text[at..];
        let behind =
            |mark: &'static str| block.text.match_indices(mark).map(move |(at, mark)| at + mark.len());
        // In prose, the names behind `feature` are in backticks; `features a, b and c` are several.
        let one = behind("feature `").map(|at| (at, list(at).split('`').next().unwrap_or_default()));
        let several = behind("features `").flat_map(|at| {
            let parts = list(at).split('`');
            let joins = |part: &&str| [",", "and", "or", ", and"].contains(&part.trim());
            let more = parts.clone().skip(1).step_by(2).take_while(joins).count();
            parts.step_by(2).take(1 + more).map(move |name| (at, name))
        });
        let in_commands = behind("--features ").flat_map(|at| {
            let names =
                list(at).split(|end: char| end.is_whitespace() || ['`', '\'', '"'].contains(&end)).next();
            names.unwrap_or_default().split(',').map(move |name| (at, name))
        });
        for (at, name) in one.chain(several).chain(in_commands) {
            let name = name.rsplit('/').next().unwrap_or(name);
            if !is_known(name) {
                findings.push(page.at(block.line_of(at), &format!("no manifest has the feature `{name}`")));
            }
        }
    }
    findings
}

/// The variables `HOTROW_…` that no source has.
pub(super) fn unknown_variables(page: &Page, sources: &Sources) -> Vec<String> {
    let mut findings = Vec::new();
    for block in &page.blocks {
        for (at, mark) in block.text.match_indices("HOTROW_") {
            let word = words(&block.text[at..]).next().unwrap_or(mark);
            if !sources.has_word(word) {
                findings.push(page.at(block.line_of(at), &format!("no source has the variable `{word}`")));
            }
        }
    }
    findings
}

/// The findings of a snippet.
fn in_snippet(text: &str, check: impl Fn(&Page) -> Vec<String>) -> String {
    check(&Page::new("docs/snippet.md", text)).join("\n")
}

#[test]
fn a_name_that_no_source_has_is_found() {
    let sources = sources();
    let found = |text: &str| in_snippet(text, |page| unknown_words(page, sources));
    assert_eq!(
        found("`Database::open`, `Engine::{transact, transact_async}`, `tx.get(&key)`, `begin_*`, `SELECT`"),
        ""
    );
    assert_eq!(found("a\n`NoSuchThing`"), "docs/snippet.md:2: `NoSuchThing`: no source has `NoSuchThing`");
    assert!(found("`Database::no_such_call()`").contains("`no_such_call`"));
    assert!(found("`no_such_call(&key)`").contains("`no_such_call`"));
    // Both words are there, but the type has no such method.
    assert!(found("`EtcdUser::subtract_if_enough`").contains("`EtcdUser` and `subtract_if_enough`"));
    assert!(found("`Database::{open, subtract_nothing}`").contains("`subtract_nothing`"));
}

#[test]
fn a_path_or_a_link_that_leads_nowhere_is_found() {
    let sources = sources();
    let found =
        |text: &str| in_snippet(text, |page| [unknown_paths(page, sources), lost_links(page)].concat());
    assert_eq!(
        found(
            "`docs/sql.md`, `sql.md`, `core/src/lib.rs`, [a](sql.md), [b](../README.md#hotrow), [c](https://a.b/c)"
        ),
        ""
    );
    assert!(found("`core/src/no_such.rs`").contains("no file `core/src/no_such.rs`"));
    assert!(found("\n\n[a](no-such.md)").contains("docs/snippet.md:3: no file for the link `no-such.md`"));
    assert!(found("[a](../README.md#no-such)").contains("no heading for the link `../README.md#no-such`"));
    assert_eq!(found("# A b\n\n[a](#a-b)"), "");
    assert!(found("# A b\n\n[a](#b-a)").contains("docs/snippet.md:3: no heading for the link `#b-a`"));
}

#[test]
fn a_feature_or_a_variable_that_is_not_there_is_found() {
    let sources = sources();
    let features = |text: &str| in_snippet(text, |page| unknown_features(page, &sources.manifests));
    assert_eq!(
        features(
            "feature `sim`, `no_feature`, features `durable`, `erased` and `serde`; `--features sim,stamp`"
        ),
        ""
    );
    assert!(features("feature `simulated`").contains("`simulated`"));
    assert!(features("features `sim` and `stamped`").contains("`stamped`"));
    assert!(
        features("```sh\ncargo run --features sim,served -- list\n```")
            .contains("docs/snippet.md:2: no manifest has the feature `served`")
    );
    let variables = |text: &str| in_snippet(text, |page| unknown_variables(page, sources));
    assert_eq!(variables("`HOTROW_ETCD_PASSWORD`"), "");
    assert!(variables("`HOTROW_NO_SUCH=1`").contains("`HOTROW_NO_SUCH`"));
}
