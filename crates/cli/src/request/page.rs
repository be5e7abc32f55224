//! A test that `docs/command.md` names the options that the command has.

use super::command;
use clap::Command;
use hotrow_workloads::WORKLOADS;
use std::collections::{BTreeMap, BTreeSet};

/// The page that describes the command.
const PAGE: &str = include_str!("../../../../docs/command.md");

/// The options of calls and of workloads, by name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    calls: BTreeMap<String, BTreeSet<String>>,
    workloads: BTreeMap<String, BTreeSet<String>>,
}

/// The words of a text that are options.
fn options_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    let names = words.filter_map(|word| word.strip_prefix("--"));
    names.filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase())).map(str::to_owned).collect()
}

impl Options {
    /// Adds those of a command and of all that are below it.
    fn add(&mut self, command: &Command) {
        let name = command.get_bin_name().unwrap_or_default();
        let (above, last) = name.rsplit_once(' ').unwrap_or(("", name));
        let workload = WORKLOADS.iter().find(|workload| above != "hotrow" && workload.name == last);
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let Some(long) = argument.get_long().filter(|long| !["help", "version"].contains(long)) else {
                continue;
            };
            let own = workload.filter(|workload| workload.options.iter().any(|own| own.name == long));
            let (names, name) = match (own, workload) {
                (Some(workload), _) => (&mut self.workloads, workload.name),
                (None, Some(_)) => (&mut self.calls, above),
                (None, None) => (&mut self.calls, name),
            };
            names.entry(name.to_owned()).or_default().insert(long.to_owned());
        }
        command.get_subcommands().for_each(|below| self.add(below));
    }

    /// Those that the tables of the page name.
    fn of_page() -> Self {
        let mut options = Self::default();
        let (_, tables) = PAGE.split_once("## Options").unwrap();
        for line in tables.lines() {
            let Some((name, listed)) = line.strip_prefix("| `").and_then(|row| row.split_once("` | ")) else {
                continue;
            };
            // Names of arguments are in capitals.
            let words = name.split(' ').take_while(|word| !word.contains(|c: char| c.is_ascii_uppercase()));
            let name = words.collect::<Vec<_>>().join(" ");
            let names = if name.contains(' ') { &mut options.calls } else { &mut options.workloads };
            names.insert(name, options_in(listed));
        }
        options
    }
}

#[test]
fn the_page_names_each_option_of_each_call_and_no_other() {
    let mut command = command();
    command.build();
    let mut options = Options::default();
    options.add(&command);
    assert_eq!(Options::of_page(), options);
    let known: BTreeSet<String> =
        options.calls.into_values().chain(options.workloads.into_values()).flatten().collect();
    // Of every command, of cargo and of etcd.
    let others = ["help", "release", "features", "max-txn-ops"].map(str::to_owned);
    let named = options_in(PAGE);
    let unknown: Vec<_> =
        named.iter().filter(|name| !known.contains(*name) && !others.contains(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
