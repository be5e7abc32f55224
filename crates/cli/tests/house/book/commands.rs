//! Command lines in the book: options, subcommands, workloads, protocols and presets, each held against the command's own help.

use super::help::{Help, examples, printed};
use super::names::{Sources, sources, words};
use super::pages::{Block, Kind, Page, Span};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex};

/// Options that Hotrow's programs do not have, by the program that has them.
const OPTIONS_OF_OTHERS: [(&str, &str); 5] = [
    (
        "cargo",
        "--release --features --all-features --no-default-features --workspace --package --example --examples --test \
         --bin --lib --doc --bench --no-deps --open --path --all-targets --no-run --no-fail-fast --check --all --target \
         --profile --locked --git",
    ),
    ("test binaries", "--nocapture --ignored --test-threads --exact --skip"),
    ("rustc", "--cfg"),
    ("etcd", "--max-txn-ops"),
    ("every program", "--help --version"),
];

/// True for a build that lacks subcommands, and options of others.
const IS_PARTIAL: bool =
    cfg!(not(all(feature = "sim", feature = "stamp", feature = "serve", feature = "remote")));

/// Options that subcommands have in some builds only.
const OF_FEATURES: [&str; 1] = ["--store"];

/// Subcommands of cargo.
const OF_CARGO: [&str; 10] =
    ["add", "bench", "build", "clippy", "doc", "fmt", "install", "miri", "run", "test"];

/// Options whose values their help lists.
const ENUMERATED: [&str; 11] = [
    "--caches",
    "--durability",
    "--format",
    "--mix",
    "--plot-kind",
    "--preset",
    "--queue",
    "--readers",
    "--refine",
    "--scale",
    "--variant",
];

/// Languages of blocks with command lines. A block without a language is Rust in a source.
const OF_SHELL: [&str; 5] = ["sh", "bash", "shell", "console", "text"];

/// True if a code span is a command line, or a part of one.
pub(super) fn is_command(span: &str) -> bool {
    let first = span.split(' ').next().unwrap_or_default();
    ["hotrow", "cargo", "hotrow-examples"].contains(&first)
        || span.split(' ').any(|word| word.starts_with("--") && word.len() > 2)
}

/// Names in a command line that do not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Unknown {
    Option(String),
    Value(String),
}

/// The options of a page that their commands do not have.
pub(super) fn unknown_options(page: &Page) -> Vec<String> {
    findings(page, |unknown| matches!(unknown, Unknown::Option(_)))
}

/// The subcommands, workloads and values of options that do not exist.
pub(super) fn unknown_values(page: &Page) -> Vec<String> {
    findings(page, |unknown| matches!(unknown, Unknown::Value(_)))
}

fn findings(page: &Page, is_wanted: fn(&Unknown) -> bool) -> Vec<String> {
    static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(|| Mutex::new(Known::new()));
    let unknown = KNOWN.lock().expect("no judgement panics").unknown(page).into_iter();
    let wanted = unknown.filter(|(_, unknown)| is_wanted(unknown));
    wanted.map(|(line, Unknown::Option(text) | Unknown::Value(text))| page.at(line, &text)).collect()
}

/// The definitions of the commands.
struct Known {
    /// `None` for subcommands that this build lacks: all is allowed there.
    helps: BTreeMap<Vec<String>, Option<Help>>,
    /// Protocols and baselines.
    protocols: Vec<String>,
    /// Empty in a build without the simulator.
    machines: Vec<String>,
    workloads: Vec<String>,
    list: String,
    examples: Help,
    sources: &'static Sources,
}

impl Known {
    fn new() -> Self {
        let list = printed(&["list", "--format", "json"].map(str::to_owned)).expect("hotrow lists");
        let json: Value = serde_json::from_str(&list).expect("the list is an object");
        let names = |list: &Value| {
            let names = list.as_array().into_iter().flatten().filter_map(|entry| entry["name"].as_str());
            names.map(str::to_owned).collect::<Vec<_>>()
        };
        let workloads = json["workloads"].as_array().expect("workloads are listed");
        let baselines = workloads.iter().flat_map(|workload| names(&workload["baselines"]));
        let protocols: Vec<String> = names(&json["protocols"]).into_iter().chain(baselines).collect();
        assert!(protocols.len() > 15, "protocols are listed");
        let sources = sources();
        let examples = examples();
        let [machines, workloads] = [&json["machines"], &json["workloads"]].map(names);
        Self { helps: BTreeMap::new(), protocols, machines, workloads, list, examples, sources }
    }

    fn unknown(&mut self, page: &Page) -> Vec<(usize, Unknown)> {
        let mut found = Vec::new();
        for Span { line, text } in lines(page) {
            for command in
                text.split(" | ").flat_map(|text| text.split(" && ")).flat_map(|text| text.split("; "))
            {
                let trimmed = |word: &str| word.trim_matches(['\'', '"', '[', ']', '(', ')']).to_owned();
                let words: Vec<String> = command.split_whitespace().map(trimmed).collect();
                found.extend(self.in_command(&words).into_iter().map(|unknown| (line, unknown)));
            }
        }
        found
    }

    /// Judges a command line, or the part of one that the text names.
    fn in_command(&mut self, words: &[String]) -> Vec<Unknown> {
        let is_program = |word: &String| {
            let name = word.rsplit('/').next().unwrap_or(word);
            ["hotrow", "cargo", "hotrow-examples"].contains(&name)
        };
        let Some(first) = words.first() else { return Vec::new() };
        if let Some(at) = words.iter().position(is_program) {
            let arguments = &words[at + 1..];
            return match words[at].rsplit('/').next() {
                Some("cargo") => self.in_cargo(arguments),
                Some("hotrow-examples") => self.in_example(arguments),
                _ => self.in_hotrow(arguments),
            };
        }
        if first.starts_with("--") {
            return self.alone(words);
        }
        let subcommands = self.help(&[]).map(|help| help.subcommands).unwrap_or_default();
        if words.len() > 1 && subcommands.contains(first) {
            return self.in_hotrow(words);
        }
        if words.len() > 1 && self.workloads.contains(first) && words[1].starts_with("--") {
            return self.in_hotrow(&[&["bench".to_owned()], words].concat());
        }
        Vec::new()
    }

    /// Judges options without their command: any program may have them.
    fn alone(&mut self, words: &[String]) -> Vec<Unknown> {
        let mut found = Vec::new();
        for (at, word) in
            words.iter().enumerate().filter(|(_, word)| word.starts_with("--") && word.len() > 2)
        {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let value = if value.is_empty() { words.get(at + 1).map_or("", String::as_str) } else { value };
            match self.options(&[]).get(name) {
                Some(help) => found.extend(self.in_value(name, value, help)),
                None if is_of_others(name) || self.examples.options.contains_key(name) => {}
                // A build that lacks subcommands has the names of their options in its sources.
                None if IS_PARTIAL && self.sources.has_word(&name[2..].replace('-', "_")) => {}
                None => found.push(Unknown::Option(format!("no command has the option `{name}`"))),
            }
        }
        found
    }

    fn in_cargo(&mut self, words: &[String]) -> Vec<Unknown> {
        let mut found = Vec::new();
        let words = if words.first().is_some_and(|word| word.starts_with('+')) { &words[1..] } else { words };
        let own = words.iter().position(|word| word == "--").unwrap_or(words.len());
        if let Some(name) =
            words.first().filter(|name| !OF_CARGO.contains(&&***name) && !name.starts_with('-'))
        {
            found.push(Unknown::Value(format!("cargo has no subcommand `{name}`")));
        }
        let (mut package, mut is_example) = ("hotrow-cli", false);
        for (at, word) in words[..own].iter().enumerate().filter(|(_, word)| word.starts_with('-')) {
            let value = words.get(at + 1).map_or("", String::as_str);
            let ends = match &**word {
                "-p" | "--package" => {
                    package = value;
                    if !self.sources.manifests.contains(&format!("name = \"{value}\"\n")) {
                        found.push(Unknown::Value(format!("no package `{value}`")));
                    }
                    continue;
                }
                "--example" => vec![format!("/examples/{value}.rs"), format!("/examples/{value}/main.rs")],
                "--test" => vec![format!("/tests/{value}.rs"), format!("/tests/{value}/main.rs")],
                name => {
                    if name.starts_with("--") && !is_of_others(name.split('=').next().unwrap_or(name)) {
                        found.push(Unknown::Option(format!("cargo's option `{name}` is not known here")));
                    }
                    continue;
                }
            };
            is_example |= word == "--example";
            if !ends.iter().any(|end| self.sources.paths.iter().any(|path| path.ends_with(end))) {
                found.push(Unknown::Value(format!("no file for `{word} {value}`")));
            }
        }
        if words.first().is_some_and(|word| word == "run") && !is_example && own < words.len() {
            found.extend(match package {
                "hotrow-cli" => self.in_hotrow(&words[own + 1..]),
                "hotrow-examples" => self.in_example(&words[own + 1..]),
                _ => Vec::new(),
            });
        }
        found
    }

    fn in_example(&self, words: &[String]) -> Vec<Unknown> {
        let mut found = Vec::new();
        let options =
            words.iter().filter_map(|word| word.split('=').next().filter(|name| name.starts_with("--")));
        for name in options.filter(|name| !self.examples.options.contains_key(*name) && !is_of_others(name)) {
            found.push(Unknown::Option(format!("hotrow-examples has no option `{name}`")));
        }
        let name = words.first().filter(|name| !name.starts_with('-') && !is_placeholder(name));
        if let Some(name) = name.filter(|name| !self.examples.subcommands.contains(name)) {
            found.push(Unknown::Value(format!("hotrow-examples has no example `{name}`")));
        }
        found
    }

    /// Judges the arguments of `hotrow`.
    fn in_hotrow(&mut self, words: &[String]) -> Vec<Unknown> {
        let is_choice = |word: &String| word.contains('|') && !is_placeholder(word);
        let leading = words.iter().take_while(|word| !word.starts_with("--")).position(is_choice);
        if let Some(at) = leading {
            let choices: Vec<String> = words[at].split('|').map(str::to_owned).collect();
            let each = choices
                .into_iter()
                .flat_map(|choice| self.in_hotrow(&[&words[..at], &[choice], &words[at + 1..]].concat()));
            return each.collect();
        }
        let mut found = Vec::new();
        let mut path: Vec<String> = Vec::new();
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            // The shell has what is behind these.
            if ["&", ">", "2>", "#", "\\"].contains(&&**word) {
                break;
            }
            let Some(help) = self.help(&path) else { return found };
            if word.starts_with("--") && word.len() > 2 {
                let (name, value) = word.split_once('=').unwrap_or((word, ""));
                match self.options(&path).get(name) {
                    Some(text) if text.contains('<') => {
                        let next = words.next_if(|next| value.is_empty() && !next.starts_with("--"));
                        let value = next.map_or(value, String::as_str).to_owned();
                        found.extend(self.in_value(name, &value, text));
                    }
                    Some(_) => {}
                    None if ["--help", "--version"].contains(&name) => {}
                    None if IS_PARTIAL && OF_FEATURES.contains(&name) => {}
                    None => {
                        found.push(Unknown::Option(format!(
                            "`hotrow {}` has no option `{name}`",
                            path.join(" ")
                        )));
                    }
                }
            } else if word.starts_with('-') || is_placeholder(word) {
            } else if !help.subcommands.is_empty() {
                if !help.subcommands.contains(word) {
                    found.push(Unknown::Value(format!("`hotrow {}` has no `{word}`", path.join(" "))));
                    return found;
                }
                path.push(word.clone());
            } else if path == ["list"] && !self.workloads.contains(word)
                || path.last().is_some_and(|last| last == "stamp") && !self.is_application(word)
            {
                found.push(Unknown::Value(format!("`hotrow {}` has no `{word}`", path.join(" "))));
            }
        }
        found
    }

    /// True for an application of STAMP, as the help of `bench stamp` lists them.
    fn is_application(&mut self, name: &str) -> bool {
        let help = self.help(&["bench", "stamp"].map(str::to_owned));
        help.is_none_or(|help| words(&help.text).any(|word| word == name))
    }

    /// Judges the value of an option with this help.
    fn in_value(&self, name: &str, value: &str, help: &str) -> Vec<Unknown> {
        let is_known = |part: &str| match name {
            "--protocol" => {
                let mut parts = part.split('+');
                let base = parts.next().unwrap_or_default();
                base == "all"
                    || self.protocols.iter().any(|known| known == base)
                        && parts.all(|part| {
                            self.list.contains(&format!("+{}", part.split('=').next().unwrap_or(part)))
                        })
            }
            "--machine" => {
                self.machines.is_empty()
                    || part.contains(['/', '.'])
                    || self.machines.iter().any(|known| known == part)
            }
            _ => help.split(|end: char| !end.is_alphanumeric() && end != '-').any(|word| word == part),
        };
        let is_listed = ["--protocol", "--machine"].contains(&name) || ENUMERATED.contains(&name);
        if !is_listed || value.starts_with('-') || is_placeholder(value) {
            return Vec::new();
        }
        let parts = value
            .split([',', '|'])
            .filter(|part| !part.is_empty() && !is_placeholder(part) && !is_known(part));
        parts.map(|part| Unknown::Value(format!("`{name}` has no value `{part}`"))).collect()
    }

    fn help(&mut self, path: &[String]) -> Option<Help> {
        if !self.helps.contains_key(path) {
            let help = printed(&[path, &["--help".to_owned()]].concat()).map(|text| Help::new(&text));
            self.helps.insert(path.to_owned(), help);
        }
        self.helps[path].clone()
    }

    /// The options of a subcommand and of those below it.
    fn options(&mut self, path: &[String]) -> BTreeMap<String, String> {
        let Some(help) = self.help(path) else { return BTreeMap::new() };
        let mut options = help.options;
        for name in help.subcommands {
            for (name, help) in self.options(&[path, &[name]].concat()) {
                *options.entry(name).or_default() += &help;
            }
        }
        options
    }
}

fn is_of_others(name: &str) -> bool {
    OPTIONS_OF_OTHERS.iter().any(|(_, options)| options.split_whitespace().any(|option| option == name))
}

/// True for a word that the reader replaces: `FILE`, `…`, `N[,N...]`.
fn is_placeholder(word: &str) -> bool {
    word.contains(['…', '{'])
        || word.contains("...")
        || word.contains(char::is_uppercase) && !word.contains('/')
}

/// The command lines of a page: its code spans, and the lines of its blocks for the shell.
fn lines(page: &Page) -> Vec<Span> {
    let mut found: Vec<Span> = page.prose().flat_map(Block::spans).collect();
    for block in &page.blocks {
        let Kind::Code(language) = &block.kind else { continue };
        if !OF_SHELL.contains(&&**language) && (!language.is_empty() || page.name.ends_with(".rs")) {
            continue;
        }
        let mut open = String::new();
        for (at, line) in block.text.lines().enumerate() {
            let code = if line.starts_with('#') { "" } else { line.split(" #").next().unwrap_or(line) };
            match code.trim_end().strip_suffix('\\') {
                Some(part) => open += part,
                None => {
                    let text = std::mem::take(&mut open) + code;
                    // Other blocks than those for the shell may be drawings.
                    let begins = ["hotrow ", "cargo ", "$ "].iter().any(|begin| text.starts_with(begin));
                    let is_of_shell = OF_SHELL.contains(&&**language) && language != "text";
                    let is_command =
                        begins || is_of_shell && words(&text).any(|word| ["hotrow", "cargo"].contains(&word));
                    found.extend(is_command.then_some(Span { line: block.line + at, text }));
                }
            }
        }
    }
    found
}

#[test]
fn an_option_that_a_command_does_not_have_is_found() {
    let found = |text: &str| unknown_options(&Page::new("a.md", text)).join("\n");
    let right = "`--threads 1`, `hotrow bench tpcc --warehouses 1`, `bench --seed 3`, `tpcc --mix payment`, `hotrow bench WORKLOAD --live`, \
                 `cargo test --workspace`, `cargo run -p hotrow-examples -- ledger --over redb`, `hotrow bench tpcc|ycsb --seed 1`\n\
                 \n```sh\ncargo run --release -- \\\n  bench ycsb --theta 0.9 # --no-comment\n```";
    assert_eq!(found(right), "");
    for bad in [
        "`--no-such-option`",
        "`hotrow bench tpcc --theta 0.9`",
        "`hotrow list --threads 1`",
        "`bench tpcc|ycsb --theta 1`",
        "`tpcc --theta 1`",
        "`cargo run --no-such`",
        "`cargo run -p hotrow-examples -- ledger --under redb`",
        "`cargo run -- bench --no-such`",
    ] {
        assert!(found(bad).starts_with("a.md:1: "), "{bad}");
    }
    assert!(found("```sh\na\nhotrow bench tpcc \\\n --no-such 1\n```").starts_with("a.md:4: "));
}

#[test]
fn a_workload_protocol_or_preset_that_does_not_exist_is_found() {
    let found = |text: &str| unknown_values(&Page::new("a.md", text)).join("\n");
    let right = "`hotrow compare ycsb --preset a --protocol occ,plor+dwa,drp+calm=3`, `hotrow list tpcc`, `--protocol P`, `hotrow log verify DIR`, \
                 `compare array --protocol ordered-mutexes,all`, `cargo run -p hotrow --example polls`, `hotrow chop|check`, `--durability sync`";
    assert_eq!(found(right), "");
    for bad in [
        "`hotrow branch tpcc`",
        "`hotrow bench tpcb`",
        "`bench tpcc|tpcb`",
        "`hotrow list tpcb`",
        "`hotrow log scan DIR`",
        "`--protocol occ,2pl`",
        "`hotrow bench ycsb --protocol=plor+nothing`",
        "`hotrow bench ycsb --preset z`",
        "`cargo run -p hotrow-none`",
        "`cargo run -p hotrow --example none`",
        "`cargo runs`",
        "`hotrow-examples shop`",
    ] {
        assert!(found(bad).starts_with("a.md:1: "), "{bad}");
    }
}
