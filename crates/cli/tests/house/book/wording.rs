//! The wording of the book: beginnings of sentences, words that are replaced, and figures with their sources.

use super::names::{is_part_of_word, without_comments, words};
use super::pages::{Kind, Page};

/// The words that the book does not use, each with the one that replaces it. Words with a capital or `_` are names in code.
const REPLACED: [(&str, &str); 36] = [
    ("stood twice", "is deduplicated"),
    ("stands once", "is in one place"),
    ("give or take", "modulo, or about"),
    ("to be had", "can be claimed"),
    ("is told by", "is woken by"),
    ("in somebody's way", "delays another thread"),
    ("somebody else has made for it", "another thread recorded"),
    ("makes an item its own", "merges an item"),
    ("puts off", "would block"),
    ("put off", "would block"),
    ("put-off", "would block"),
    ("static table", "immutable table"),
    ("fixed table", "immutable table"),
    ("P::over", "after_cleanup"),
    ("P::ran", "segment_done"),
    ("P::turn", "acquire_in_order"),
    ("P::confirm", "validate_before_rollback"),
    ("P::lend", "thief_state"),
    ("Lender", "OwnerInfo"),
    ("born_locked", "new_locked_header"),
    ("BORN", "INSERTED"),
    ("AFTER_BORN", "RELEASE_AFTER_INSERTS"),
    ("SHARES", "ALLOWS_STEALING"),
    ("may_put_off", "nonblocking"),
    ("let_pass", "wait_for_predecessors"),
    ("WorkerContexts", "WorkerStates"),
    ("Refused::Held", "Unavailable"),
    ("Released::Quietly", "NoWaiters"),
    ("is_awaited", "has_waiters"),
    ("Looks", "SpinPolicy"),
    ("Patience", "WaitBudget"),
    ("Elders", "StarvationGate"),
    ("Maintained", "MaintainedIndex"),
    ("StaticTable", "an immutable table"),
    ("Table::load", "bulk_insert"),
    ("QueueLocking", "McsLocking"),
];

/// Words that no sentence begins with. The subject of a sentence is the thing, not a question for it.
const NO_BEGINNINGS: [&str; 3] = ["Who", "Whom", "What"];

/// The beginnings of sentences, with their positions: of the text, of a cell, and behind a full stop or a colon.
fn beginnings(text: &str, is_table: bool) -> Vec<usize> {
    let mut found = Vec::new();
    let mut begins = true;
    let marks = |letter: char| ['*', '_', '(', '"', '“', '[', '#', '/', '!'].contains(&letter);
    let mut at = 0;
    for token in text.split_inclusive(char::is_whitespace) {
        let word = token.trim().trim_start_matches(marks);
        let number = word.trim_end_matches('.');
        let is_item = ["-", "+"].contains(&word)
            || !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
        if is_table && word == "|" {
            begins = true;
        } else if !(word.is_empty() || begins && is_item) {
            if begins {
                found.push(at + token.find(word).unwrap_or_default());
            }
            begins = word.trim_end_matches(['*', '_', ')', '"', '”', ']']).ends_with(['.', '?', '!', ':']);
        }
        at += token.len();
    }
    found
}

/// The sentences of a text that begin with one of the words, by the position of their beginnings.
pub(super) fn bad_beginnings(text: &str, is_table: bool) -> Vec<(usize, String)> {
    let bad = beginnings(text, is_table).into_iter().filter(|at| {
        let mut next = words(&text[*at..]);
        let first = next.next().unwrap_or_default();
        text[*at..].starts_with(first)
            && (NO_BEGINNINGS.contains(&first) || first == "Whether" && next.next() == Some("what"))
    });
    bad.map(|at| (at, text[at..].split_whitespace().take(6).collect::<Vec<_>>().join(" "))).collect()
}

/// The sentences of a page that begin with such a word.
pub(super) fn beginnings_with_who(page: &Page) -> Vec<String> {
    let mut findings = Vec::new();
    for block in page.prose() {
        for (at, words) in bad_beginnings(&block.without_spans(), block.kind == Kind::Table) {
            findings.push(page.at(block.line_of(at), &format!("begins with \"{words}\"")));
        }
    }
    findings
}

/// The positions where a text has a phrase that is not a part of a longer word.
fn occurrences(text: &str, phrase: &str) -> Vec<usize> {
    let is_whole = |at: &usize| {
        !text[..*at].ends_with(is_part_of_word) && !text[at + phrase.len()..].starts_with(is_part_of_word)
    };
    text.match_indices(phrase).map(|(at, _)| at).filter(is_whole).collect()
}

/// The words of a page that are replaced: phrases in its prose, names in its code.
pub(super) fn replaced_words(page: &Page) -> Vec<String> {
    let mut findings = Vec::new();
    for block in &page.blocks {
        // One space for each break of a line keeps the positions.
        let prose = block.without_spans().replace('\n', " ").to_ascii_lowercase();
        for (word, better) in REPLACED {
            let is_name = word.contains(|letter: char| letter.is_uppercase() || letter == '_');
            let is_code = matches!(block.kind, Kind::Code(_));
            let lines: Vec<usize> = if is_name && !is_code {
                let named =
                    block.spans().into_iter().filter(|span| !occurrences(&span.text, word).is_empty());
                named.map(|span| span.line).collect()
            } else if is_name {
                occurrences(&without_comments(&block.text), word)
                    .into_iter()
                    .map(|at| block.line_of(at))
                    .collect()
            } else {
                let found = occurrences(&prose, word).into_iter().filter(|_| !is_code);
                found.map(|at| block.line_of(at)).collect()
            };
            findings
                .extend(lines.into_iter().map(|line| page.at(line, &format!("\"{word}\": write {better}"))));
        }
    }
    findings
}

/// True if a page must name the source of each figure.
pub(super) fn has_figures(page: &Page) -> bool {
    page.name == "README.md"
        || page.name.starts_with("crates/hotrow/src/guide/")
        || page.name == "crates/hotrow/src/lib.rs"
}

/// The figures of a text, with their positions: numbers with a unit of throughput or `times`, percentages, and ratios below one.
fn figures(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut at = 0;
    for token in text.split_inclusive(char::is_whitespace) {
        let from = at;
        at += token.len();
        let word =
            token.trim().trim_start_matches(['(', '*', '~']).trim_end_matches([',', ';', ':', ')', '*', '.']);
        let digits = word.len()
            - word
                .trim_start_matches(|digit: char| digit.is_ascii_digit() || [',', '.'].contains(&digit))
                .len();
        let (number, unit) = word.split_at(digits);
        if number.is_empty() {
            continue;
        }
        let next: Vec<&str> = text[at..].split_whitespace().take(3).collect();
        let next = next.join(" ");
        let is_decimal = number.matches('.').count() == 1;
        let is_ratio = unit.is_empty() && number.starts_with("0.") && is_decimal && number.len() > 3;
        let compares = [
            "times as",
            "times the",
            "times more",
            "times faster",
            "times slower",
            "times less",
            "times larger",
        ];
        let is_times = unit == "×"
            || next.starts_with("times") && is_decimal
            || compares.iter().any(|words| next.starts_with(words));
        let is_share = unit == "%" || unit.is_empty() && next.starts_with('%');
        let rates = ["/s", "/sec", "/second"];
        let is_rate = ["", "k", "M", "G"].iter().any(|scale| {
            unit.strip_prefix(scale).is_some_and(|rest| {
                let behind = if rest.is_empty() { next.as_str() } else { rest };
                let behind = behind.trim_end_matches([',', ';', '.', ')']);
                rates.iter().any(|rate| behind.split(' ').any(|word| word.ends_with(rate)))
                    || next.contains("per second")
                    || next.contains("a second")
                        && next.starts_with(char::is_alphabetic)
                        && !next.starts_with("a ")
            })
        });
        if is_ratio || is_times || is_share || is_rate {
            found.push((from, format!("{word} {next}")));
        }
    }
    found
}

/// The figures of a page beside which no source stands: a link to the results, or a command.
pub(super) fn figures_without_source(page: &Page) -> Vec<String> {
    let mut findings = Vec::new();
    for block in page.prose() {
        let is_command = |span: &str| ["cargo ", "hotrow "].iter().any(|program| span.starts_with(program));
        if block.text.contains("docs/results/README.md")
            || block.spans().iter().any(|span| is_command(&span.text))
        {
            continue;
        }
        let found = figures(&block.without_spans()).into_iter();
        findings.extend(
            found.map(|(at, figure)| {
                page.at(block.line_of(at), &format!("no source of \"{}\"", figure.trim()))
            }),
        );
    }
    findings
}

#[test]
fn a_sentence_that_begins_with_who_is_found() {
    let found = |text: &str| beginnings_with_who(&Page::new("a.md", text)).join("\n");
    assert_eq!(
        found(
            "A lock has who waits. See what it is.\n\n| what | who |\n\n`What`\n\nWhatever. Whether it is."
        ),
        ""
    );
    for bad in [
        "A lock. Who waits, spins.",
        "- What it is.",
        "3. What it is.",
        "# What it is",
        "A: What it is.",
        "| a | What it is |",
        "(What it is.)",
        "*What* it is",
        "A `b`. Whom it has.",
        "Whether what it is.",
    ] {
        assert!(found(bad).contains("a.md:1: begins with"), "{bad}");
    }
    assert!(found("A\n\nb c.\nWhat\n").contains("a.md:4:"));
}

#[test]
fn a_word_that_is_replaced_is_found() {
    let found = |text: &str| replaced_words(&Page::new("a.md", text)).join("\n");
    assert_eq!(found("Looks; `put_off`, `give or take`, `Outlooks`, `BORNE`."), "");
    assert_eq!(found("It gives.\nA row is put\noff."), "a.md:2: \"put off\": write would block");
    assert_eq!(found("`is_awaited()`"), "a.md:1: \"is_awaited\": write has_waiters");
    assert!(
        found("```\nP::turn(a) // P::over\n```").ends_with("a.md:2: \"P::turn\": write acquire_in_order")
    );
}

#[test]
fn a_figure_without_a_source_is_found() {
    let found = |text: &str| figures_without_source(&Page::new("README.md", text)).join("\n");
    let sourced = "1.8 times as fast ([results](docs/results/README.md)).\n\n1.8 times as fast: `cargo run --release -- bench tpcc`.";
    assert_eq!(found(sourced), "");
    assert_eq!(
        found(
            "Rust 1.89, version 0.1.0, §6.2, 3 times, ten seconds, 16 threads, `0.88`.\n\n```\n2M commits/s\n```"
        ),
        ""
    );
    for bad in [
        "1.8 times",
        "3 times as fast",
        "1.8× as fast",
        "2.1M commits/s",
        "250,000 transactions per second",
        "0.88 of it",
        "15 % more",
        "15%",
        "90k/s",
        "2 M/s",
        "| a | 0.57 |",
    ] {
        assert!(found(bad).contains("README.md:1: no source of"), "{bad}");
    }
}
