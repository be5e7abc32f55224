//! The book names only what is there, and says where its figures come from: README, ARCHITECTURE, CONTRIBUTING, CHANGELOG, `docs`, the guide, and
//! the heads of the examples.

mod commands;
mod help;
mod names;
mod pages;
mod wording;

use names::sources;
use pages::{Page, pages};

/// The most words of the README, and of ARCHITECTURE together with the pages of protocols.
const README_WORDS_MAX: usize = 500;
const ARCHITECTURE_WORDS_MAX: usize = 6_000;

/// Fails with all findings of a check in the pages of the book.
fn assert_none(kind: &str, check: impl FnMut(&Page) -> Vec<String>) {
    assert_none_in(pages().iter(), kind, check);
}

/// As [`assert_none`], but for the pages about earlier revisions: results, whose commands are those of the revisions that they name, and ideas
/// that were left out.
fn assert_none_today(kind: &str, check: impl FnMut(&Page) -> Vec<String>) {
    let is_of_today =
        |page: &&Page| !["docs/results/README.md", "docs/left-out.md"].contains(&page.name.as_str());
    assert_none_in(pages().iter().filter(is_of_today), kind, check);
}

fn assert_none_in<'a>(
    pages: impl Iterator<Item = &'a Page>,
    kind: &str,
    check: impl FnMut(&Page) -> Vec<String>,
) {
    let findings: Vec<String> = pages.flat_map(check).collect();
    assert!(findings.is_empty(), "{} findings, {kind}:\n{}", findings.len(), findings.join("\n"));
}

#[test]
fn every_name_in_the_book_is_in_the_sources() {
    let sources = sources();
    assert_none_today("names that no source has", |page| names::unknown_words(page, sources));
}

#[test]
fn every_path_in_the_book_is_a_file() {
    let sources = sources();
    assert_none("paths without a file", |page| names::unknown_paths(page, sources));
}

#[test]
fn every_link_of_the_book_leads_to_a_file_and_a_heading() {
    assert_none("links that lead nowhere", names::lost_links);
}

#[test]
fn every_option_in_the_book_is_one_of_its_command() {
    assert_none_today("options that do not exist", commands::unknown_options);
}

#[test]
fn every_subcommand_workload_protocol_and_preset_in_the_book_exists() {
    assert_none_today("subcommands and values that do not exist", commands::unknown_values);
}

#[test]
fn every_feature_in_the_book_is_in_a_manifest() {
    let sources = sources();
    assert_none("features that no manifest has", |page| names::unknown_features(page, &sources.manifests));
}

#[test]
fn every_variable_in_the_book_is_read_by_a_source() {
    let sources = sources();
    assert_none_today("variables that no source has", |page| names::unknown_variables(page, sources));
}

#[test]
fn no_sentence_of_the_book_begins_with_who_whom_or_what() {
    assert_none("sentences that begin with a question word", wording::beginnings_with_who);
}

#[test]
fn the_book_has_no_word_that_another_replaces() {
    assert_none("words that are replaced", wording::replaced_words);
}

#[test]
fn every_figure_of_the_readme_and_the_guide_names_its_source() {
    assert_none("figures without a source", |page| match wording::has_figures(page) {
        true => wording::figures_without_source(page),
        false => Vec::new(),
    });
}

/// The words of the README, and of ARCHITECTURE with the pages of protocols.
fn sizes(pages: &[Page]) -> (usize, usize) {
    let words = |is_counted: fn(&str) -> bool| {
        pages.iter().filter(|page| is_counted(&page.name)).map(Page::word_count).sum()
    };
    (
        words(|name| name == "README.md"),
        words(|name| name == "ARCHITECTURE.md" || name.starts_with("docs/protocols/")),
    )
}

#[test]
fn the_readme_and_the_architecture_are_short() {
    let (readme, architecture) = sizes(pages());
    assert!(
        readme <= README_WORDS_MAX && architecture <= ARCHITECTURE_WORDS_MAX,
        "2 sizes: the README has {readme} words (at most {README_WORDS_MAX}), \
         ARCHITECTURE and the protocols {architecture} (at most {ARCHITECTURE_WORDS_MAX})"
    );
}

#[test]
fn words_are_counted_outside_of_code_and_in_their_pages_only() {
    let text = "# One two\n\n```\nno words\n```\n- three `four`";
    let pages = ["README.md", "ARCHITECTURE.md", "docs/protocols/occ.md", "docs/sql.md"]
        .map(|name| Page::new(name, text));
    assert_eq!(sizes(&pages), (4, 8));
}
