//! The help of the command and its subcommands, and what the sources of the examples say of theirs.

use crate::root;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// The help of a subcommand.
#[derive(Debug, Default, Clone)]
pub(super) struct Help {
    pub(super) subcommands: Vec<String>,
    /// Each option with its help; it has a `<` behind its name if it takes a value.
    pub(super) options: BTreeMap<String, String>,
    pub(super) text: String,
}

impl Help {
    pub(super) fn new(text: &str) -> Self {
        let mut help = Self { text: text.to_owned(), ..Self::default() };
        let (mut option, mut heading) = (None, "");
        for line in text.lines() {
            let trimmed = line.trim_start();
            let indent = line.len() - trimmed.len();
            // A short name may stand before the long one.
            let long = if trimmed.starts_with("--") { Some(trimmed) } else { trimmed.get(4..) };
            let long = long.filter(|long| long.starts_with("--") && trimmed.starts_with('-'));
            if indent == 0 && !line.is_empty() {
                (heading, option) = (line, None);
            } else if let Some(long) = long {
                let name = long.split([' ', '=', '[']).next().unwrap_or_default().to_owned();
                let behind = &long[name.len()..];
                if heading.starts_with("Options") {
                    help.options.insert(name.clone(), behind.to_owned());
                } else if let Some(text) = help.options.get_mut(&name) {
                    // The values that an application of STAMP has.
                    *text += behind;
                }
                option = Some(name);
            } else if ["Commands:", "Workloads:"].contains(&heading) && indent == 2 {
                help.subcommands.extend(trimmed.split(' ').next().map(str::to_owned));
            } else if let Some(text) = option.as_ref().and_then(|name| help.options.get_mut(name)) {
                *text += " ";
                *text += trimmed;
            }
        }
        help
    }
}

/// Runs the command, and has what it prints; `None` if it refuses.
pub(super) fn printed(arguments: &[String]) -> Option<String> {
    let run = Command::new(env!("CARGO_BIN_EXE_hotrow")).args(arguments).output().expect("the command runs");
    run.status.success().then(|| String::from_utf8(run.stdout).expect("the command prints text"))
}

/// The options and the names of the examples, from their source: no other crate's test can run them.
pub(super) fn examples() -> Help {
    let main = fs::read_to_string(root().join("examples/src/main.rs")).unwrap();
    let options =
        main.split("#[arg(long").skip(1).filter_map(|rest| rest.split_once(")]\n")?.1.split(':').next());
    let names = main.split("Example { name: \"").skip(1).filter_map(|rest| rest.split('"').next());
    let help = Help {
        subcommands: names.map(str::to_owned).collect(),
        options: options
            .map(|name| (format!("--{}", name.trim().replace('_', "-")), String::new()))
            .collect(),
        text: String::new(),
    };
    assert!(help.subcommands.len() > 5 && help.options.len() > 3, "the examples are found: {help:?}");
    help
}

#[test]
fn help_is_read_with_subcommands_and_options() {
    let help = Help::new(
        "About\n\nUsage: a\n\nCommands:\n  one  First,\n       longer\n  two  Second\n\nOptions:\n  -s, --short <N>  A number, \n     \
         of more: x\n      --flag       No value\n\napp: it\n  --flag on  More\n\nExample:\n  hotrow one --none\n",
    );
    assert_eq!(help.subcommands, ["one", "two"]);
    let options: Vec<_> = help.options.iter().map(|(name, text)| (&**name, text.contains("<N>"))).collect();
    assert_eq!(options, [("--flag", false), ("--short", true)]);
    assert!(help.options["--short"].contains("of more: x") && help.options["--flag"].contains("on  More"));
}
