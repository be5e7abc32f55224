//! The pages of the book: their blocks, code spans and links, each with its line.

use crate::{files, root};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// A file of Markdown, or the `//!` comments of a source.
pub(crate) struct Page {
    /// The path from the root of the repository.
    pub(crate) name: String,
    pub(crate) blocks: Vec<Block>,
}

/// The kind of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A fenced block, with the language behind its fence.
    Code(String),
    Heading,
    Table,
    /// A paragraph or an item of a list.
    Text,
}

/// Lines that belong together.
pub(crate) struct Block {
    pub(crate) kind: Kind,
    /// The number of the first line of `text`.
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// A part of a block, and the number of its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// A path as the book writes it.
fn name_of(path: &Path) -> String {
    path.strip_prefix(root()).expect("the pages are in the repository").to_string_lossy().replace('\\', "/")
}

/// All pages of the book, read once.
pub(crate) fn pages() -> &'static [Page] {
    static PAGES: LazyLock<Vec<Page>> = LazyLock::new(read);
    &PAGES
}

fn read() -> Vec<Page> {
    let root = root();
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root.join(name));
    let top = top.into_iter().map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        (path, text)
    });
    let markdown = top.chain(files(&root.join("docs"), ".md"));
    let guide = files(&root.join("crates/hotrow/src/guide"), ".rs");
    let library = root.join("crates/hotrow/src/lib.rs");
    let library = (library.clone(), fs::read_to_string(&library).unwrap());
    let sources = guide.into_iter().chain([library]).chain(files(&root.join("examples/src"), ".rs"));
    let pages: Vec<Page> =
        markdown.chain(sources).map(|(path, text)| Page::new(&name_of(&path), &text)).collect();
    assert!(pages.len() > 40, "the pages are found");
    pages
}

impl Page {
    /// Reads a page. Of a source only the `//!` comments count.
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let is_source = name.ends_with(".rs");
        let lines = text.lines().map(|line| match is_source {
            true => line.trim_start().strip_prefix("//!").unwrap_or_default(),
            false => line,
        });
        let mut blocks: Vec<Block> = Vec::new();
        // True while the last block may go on.
        let mut is_open = false;
        for (at, line) in lines.enumerate() {
            let line = line.strip_prefix("> ").unwrap_or(line);
            let trimmed = line.trim_start();
            let last = blocks.last_mut().filter(|_| is_open);
            if let Some(Block { kind: Kind::Code(_), text, .. }) = last {
                if trimmed.starts_with("```") {
                    is_open = false;
                } else {
                    *text += line;
                    text.push('\n');
                }
                continue;
            }
            let kind = if let Some(language) = trimmed.strip_prefix("```") {
                blocks.push(Block {
                    kind: Kind::Code(language.to_owned()),
                    line: at + 2,
                    text: String::new(),
                });
                is_open = true;
                continue;
            } else if trimmed.starts_with('#') {
                Kind::Heading
            } else if trimmed.starts_with('|') {
                Kind::Table
            } else {
                Kind::Text
            };
            match last {
                _ if trimmed.is_empty() => is_open = false,
                Some(last) if kind != Kind::Heading && kind == last.kind && !is_item(trimmed) => {
                    last.text += line;
                    last.text.push('\n');
                }
                _ => {
                    is_open = kind != Kind::Heading;
                    blocks.push(Block { kind, line: at + 1, text: format!("{line}\n") });
                }
            }
        }
        Self { name: name.to_owned(), blocks }
    }

    /// `finding` with its place.
    pub(crate) fn at(&self, line: usize, finding: &str) -> String {
        format!("{}:{line}: {finding}", self.name)
    }

    /// The blocks that are not code.
    pub(crate) fn prose(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| !matches!(block.kind, Kind::Code(_)))
    }

    /// The words outside of code blocks; marks of lists and tables are none.
    pub(crate) fn word_count(&self) -> usize {
        let is_word = |word: &&str| word.contains(char::is_alphanumeric);
        self.prose().map(|block| block.text.split_whitespace().filter(is_word).count()).sum()
    }

    /// The names by which links lead to the headings.
    pub(crate) fn anchors(&self) -> Vec<String> {
        let mut anchors: Vec<String> = Vec::new();
        for heading in self.blocks.iter().filter(|block| block.kind == Kind::Heading) {
            let title = heading.text.trim().trim_start_matches('#').trim().to_lowercase();
            // A link in a heading counts with its text only.
            let title: String = title.split("](").enumerate().fold(String::new(), |all, (at, part)| {
                all + if at == 0 { part } else { part.split_once(')').map_or("", |(_, rest)| rest) }
            });
            let is_kept = |letter: &char| letter.is_alphanumeric() || ['-', '_', ' '].contains(letter);
            let anchor: String = title.chars().filter(is_kept).collect::<String>().replace(' ', "-");
            let same = anchors.iter().filter(|other| **other == anchor).count();
            anchors.push(if same == 0 { anchor } else { format!("{anchor}-{same}") });
        }
        anchors
    }
}

/// True if a line begins an item of a list.
fn is_item(line: &str) -> bool {
    let number = line.trim_start_matches(|digit: char| digit.is_ascii_digit());
    ["- ", "* ", "+ "].iter().any(|mark| line.starts_with(mark))
        || number.len() < line.len() && number.starts_with(". ")
}

impl Block {
    /// The number of the line of a position in the text.
    pub(crate) fn line_of(&self, at: usize) -> usize {
        self.line + self.text[..at].matches('\n').count()
    }

    /// The code spans, with their positions in the text, fences included.
    fn code_ranges(&self) -> Vec<(usize, usize, usize)> {
        let mut ranges = Vec::new();
        let mut at = 0;
        if matches!(self.kind, Kind::Code(_)) {
            return ranges;
        }
        while let Some(open) = self.text[at..].find('`').map(|found| at + found) {
            let ticks = self.text[open..].bytes().take_while(|byte| *byte == b'`').count();
            let mut from = open + ticks;
            at = loop {
                // Backticks without an end are no span.
                let Some(close) = self.text[from..].find('`').map(|found| from + found) else {
                    break open + ticks;
                };
                let closing = self.text[close..].bytes().take_while(|byte| *byte == b'`').count();
                from = close + closing;
                if closing == ticks {
                    ranges.push((open, from, ticks));
                    break from;
                }
            };
        }
        ranges
    }

    /// The code spans, each in one line.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let span = |(from, to, ticks): (usize, usize, usize)| {
            let text = self.text[from + ticks..to - ticks].replace("\\|", "|");
            Span { line: self.line_of(from), text: text.split_whitespace().collect::<Vec<_>>().join(" ") }
        };
        self.code_ranges().into_iter().map(span).collect()
    }

    /// The text with a backtick for each byte of a code span.
    pub(crate) fn without_spans(&self) -> String {
        let mut text = self.text.clone();
        for (from, to, _) in self.code_ranges() {
            let blank: String =
                self.text[from..to].bytes().map(|byte| if byte == b'\n' { '\n' } else { '`' }).collect();
            text.replace_range(from..to, &blank);
        }
        text
    }

    /// The targets of links.
    pub(crate) fn links(&self) -> Vec<Span> {
        if matches!(self.kind, Kind::Code(_)) {
            return Vec::new();
        }
        let text = self.without_spans();
        let inline = text.match_indices("](").filter_map(|(at, mark)| {
            let target = text[at + mark.len()..].split_once(')')?.0;
            Some(Span { line: self.line_of(at), text: target.trim().to_owned() })
        });
        let defined = text.lines().enumerate().filter_map(|(at, line)| {
            let (_, target) = line.trim_start().strip_prefix('[')?.split_once("]: ")?;
            Some(Span { line: self.line + at, text: target.trim().to_owned() })
        });
        inline.chain(defined).collect()
    }
}

#[test]
fn a_page_is_read_with_its_lines() {
    let page = Page::new(
        "a.md",
        "# A `b` [c](d)\ntext `x\ny` and\n[l](m.md#n)\n- item ``a`b``\n  more\n\n```sh\ncode `no`\n```\n| t | `a\\|b` |\n|---|\n",
    );
    let shown: Vec<_> = page.blocks.iter().map(|block| (&block.kind, block.line)).collect();
    let code = Kind::Code("sh".to_owned());
    assert_eq!(
        shown,
        [(&Kind::Heading, 1), (&Kind::Text, 2), (&Kind::Text, 5), (&code, 9), (&Kind::Table, 11)]
    );
    let of = |spans: fn(&Block) -> Vec<Span>| {
        page.blocks
            .iter()
            .flat_map(spans)
            .map(|span| format!("{} {}", span.line, span.text))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(Block::spans), ["1 b", "2 x y", "5 a`b", "11 a|b"]);
    assert_eq!(of(Block::links), ["1 d", "4 m.md#n"]);
    assert_eq!(page.anchors(), ["a-b-c"]);
    assert_eq!(page.word_count(), 13);
    let source = Page::new("a.rs", "//! One.\n//! Two.\nuse a;\n/// Not this.\n");
    assert_eq!((source.blocks.len(), source.word_count()), (1, 2));
}
