//! Subcommands of features that a build does not have.

use clap::{Arg, Command};

/// A subcommand that needs a feature, for a build without it. It accepts any arguments, so that the answer is always the way to a build
/// that has it, and the help does not list it.
pub(crate) fn without_feature(name: &'static str, about: &str, feature: &str) -> Command {
    Command::new(name)
        .about(format!("{about} (in builds with `--features {feature}`)"))
        .hide(true)
        .disable_help_flag(true)
        .arg(Arg::new("anything").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true))
}
