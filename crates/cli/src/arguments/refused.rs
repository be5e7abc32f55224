//! The errors that the parser of the command line finds, as one sentence in one line each.

use super::Refusal;
use super::nearest::{nearest, not_one_of, unknown};
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::error::Error as _;
use std::ffi::OsString;

/// The refusal for an error of the parser. `command` is the definition of the command line, which has been built, and `arguments` are
/// those that it was given.
pub(crate) fn refused(error: clap::Error, command: &Command, arguments: &[OsString]) -> Refusal {
    let at = called(command, arguments);
    match error.kind() {
        ErrorKind::UnknownArgument => match text(&error, ContextKind::InvalidArg) {
            Some(argument) => Refusal::Message(unknown_argument(argument, at)),
            None => shortened(error),
        },
        ErrorKind::InvalidSubcommand => match text(&error, ContextKind::InvalidSubcommand) {
            Some(name) => {
                Refusal::Message(unknown("subcommand", name, at.get_subcommands().map(Command::get_name)))
            }
            None => shortened(error),
        },
        ErrorKind::MissingRequiredArgument => match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::Strings(missing)) => {
                let call = at.get_bin_name().unwrap_or_else(|| at.get_name());
                let missing = missing.join(" and ");
                Refusal::Message(format!("missing {missing}; {call} --help shows what there is"))
            }
            _ => shortened(error),
        },
        _ => shortened(error),
    }
}

/// The refusal for an error that is not about a name.
pub(crate) fn shortened(error: clap::Error) -> Refusal {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Refusal::Answer(error);
    }
    Refusal::Message(about_a_value(&error).unwrap_or_else(|| first_paragraph(&error)))
}

/// The message about the value of an option or of an argument, if the error is about one.
fn about_a_value(error: &clap::Error) -> Option<String> {
    let shown = text(error, ContextKind::InvalidArg)?;
    let name = shown.split_once([' ', '=']).map_or(shown, |(name, _)| name);
    let name = name.trim_matches(['<', '>', '[', ']']);
    let value = text(error, ContextKind::InvalidValue).unwrap_or_default();
    match error.kind() {
        ErrorKind::InvalidValue if value.is_empty() => Some(format!("{name} needs a value: {shown}")),
        ErrorKind::InvalidValue => match error.get(ContextKind::ValidValue) {
            Some(ContextValue::Strings(known)) => Some(not_one_of(name, value, known)),
            _ => None,
        },
        ErrorKind::ValueValidation => Some(match value {
            "" => format!("{name} \"\": {}", reason(error)?),
            value => format!("{name} {value}: {}", reason(error)?),
        }),
        _ => None,
    }
}

/// The reason why a value is not admitted.
fn reason(error: &clap::Error) -> Option<String> {
    let reason = error.source()?.to_string();
    // The parser's own words for a number beyond its bounds: "7 is not in 1..=6".
    let bounds = reason.split_once(" is not in ").and_then(|(_, bounds)| bounds.split_once("..="));
    Some(match bounds {
        Some((least, most)) => format!("expected a number from {least} to {most}"),
        None if reason.contains("invalid digit") || reason.contains("empty string") => {
            String::from("expected a whole number")
        }
        None => reason,
    })
}

fn first_paragraph(error: &clap::Error) -> String {
    let message = error.to_string();
    let paragraph = message.split("\n\n").next().unwrap_or_default();
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

/// A text of an error's context.
fn text(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

/// The subcommand that the arguments call, as far as they name one.
fn called<'a>(command: &'a Command, arguments: &[OsString]) -> &'a Command {
    let mut called = command;
    for argument in arguments.iter().skip(1) {
        match argument.to_str().and_then(|name| called.find_subcommand(name)) {
            Some(subcommand) => called = subcommand,
            None => break,
        }
    }
    called
}

/// The names of a command's options, without dashes.
fn options(command: &Command) -> impl Iterator<Item = &str> {
    command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set())
        .filter_map(|argument| argument.get_long())
}

/// The message about an argument that the command `at` does not have.
fn unknown_argument(argument: &str, at: &Command) -> String {
    let call = at.get_bin_name().unwrap_or_else(|| at.get_name());
    let Some(option) = argument.strip_prefix("--") else {
        let kind = if argument.starts_with('-') { "unknown option" } else { "unexpected argument" };
        return format!("{kind} {argument}; {call} --help shows what there is");
    };
    let below = || at.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    if let Some(subcommand) = below().find(|subcommand| options(subcommand).any(|known| known == option)) {
        return format!("--{option} comes too early; write: {call} {} --{option}", subcommand.get_name());
    }
    match nearest(option, options(at).chain(below().flat_map(options))) {
        Some(nearest) => format!("unknown option --{option}; did you mean --{nearest}?"),
        None => format!("unknown option --{option}; {call} --help shows what there is"),
    }
}
