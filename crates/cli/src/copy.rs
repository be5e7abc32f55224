//! `hotrow copy`: moves a durable database between a directory and a cluster in etcd.

use crate::arguments::Refusal;
use clap::Command;

#[cfg(feature = "remote")]
pub(crate) use with_clusters::{CopyPlan, plan, run};

/// The subcommand's definition.
pub(crate) fn command() -> Command {
    #[cfg(feature = "remote")]
    return with_clusters::command();
    #[cfg(not(feature = "remote"))]
    crate::arguments::without_feature(
        "copy",
        "Copies a database from a directory into etcd, or back",
        "remote",
    )
}

/// The refusal of a build without clusters.
#[cfg(not(feature = "remote"))]
pub(crate) fn missing() -> Refusal {
    Refusal::Message(
        "this build has no clusters, because their protocol lengthens the build; use: \
         cargo run --release --features remote -- copy"
            .to_owned(),
    )
}

#[cfg(feature = "remote")]
mod with_clusters {
    use super::{Command, Refusal};
    use crate::arguments::shortened;
    use crate::error::CommandError;
    use crate::text::{count, print};
    use clap::{ArgMatches, Args, FromArgMatches as _};
    use hotrow_remote::StoreAddress;
    use hotrow_remote::moving::{MoveError, MoveProgress, into_cluster, into_directory};
    use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
    use std::path::PathBuf;

    /// A directory, or a cluster in etcd.
    #[derive(Debug)]
    enum Place {
        Directory(PathBuf),
        Cluster(StoreAddress),
    }

    impl Place {
        /// Reads an argument. The refusal does not show it, because it may have a secret, though it should not.
        fn of(argument: &str, name: &str) -> Result<Self, Refusal> {
            match name.contains("://") {
                true => name
                    .parse()
                    .map(Self::Cluster)
                    .map_err(|error| Refusal::Message(format!("{argument}: {error}"))),
                false if name.is_empty() => Err(Refusal::Message(format!("{argument} is empty"))),
                false => Ok(Self::Directory(name.into())),
            }
        }
    }

    #[derive(Debug, Args)]
    struct CopyArguments {
        /// A directory, or etcd://HOST:PORT[,HOST:PORT...][/NAME][?OPTION=VALUE&...]: the keys of a cluster begin with its name, hotrow if there is none
        #[arg(value_name = "FROM")]
        from: String,
        /// The same: an empty cluster, or a directory that is empty or not there
        #[arg(value_name = "TO")]
        to: String,
    }

    /// A copy to be made.
    #[derive(Debug)]
    pub(crate) struct CopyPlan {
        directory: PathBuf,
        address: StoreAddress,
        is_into_cluster: bool,
    }

    pub(super) fn command() -> Command {
        CopyArguments::augment_args(Command::new("copy"))
            .about("Copies a durable database from a directory into a cluster in etcd, or back")
            .after_help(
                "All tables of one state are copied, whatever their types. Start a copy that was ended half-way again: it goes on. No process \
                 may have the directory open. Until a copy from a cluster is complete, the directory has the ending .copying.\n\n\
                 Options of an address: max-txn-ops=N as etcd's option says, user=NAME with the password in HOTROW_ETCD_PASSWORD; and for etcds:// \
                 ca=FILE, certificate=FILE, key=FILE and server-name=NAME.\n\n\
                 Example:\n  hotrow copy accounts 'etcd://10.0.0.1:2379,10.0.0.2:2379/accounts?max-txn-ops=1024'",
            )
    }

    pub(crate) fn plan(matches: &ArgMatches) -> Result<CopyPlan, Refusal> {
        let CopyArguments { from, to } = CopyArguments::from_arg_matches(matches).map_err(shortened)?;
        match (Place::of("FROM", &from)?, Place::of("TO", &to)?) {
            (Place::Directory(directory), Place::Cluster(address)) => {
                Ok(CopyPlan { directory, address, is_into_cluster: true })
            }
            (Place::Cluster(address), Place::Directory(directory)) => {
                Ok(CopyPlan { directory, address, is_into_cluster: false })
            }
            _ => {
                let message = "one of FROM and TO is a directory, and the other one etcd://...";
                Err(Refusal::Message(message.to_owned()))
            }
        }
    }

    pub(crate) fn run(plan: CopyPlan) -> Result<(), CommandError> {
        let CopyPlan { directory, address, is_into_cluster } = plan;
        let cluster = address.open().map_err(|error| CommandError::BadInput(error.to_string()))?;
        // Hidden unless standard error is a terminal.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let template = match is_into_cluster {
            true => "{bar:30} {percent:>3} % {human_pos} of {human_len} rows",
            // Nobody knows how many there are before all are read.
            false => "{spinner} {human_pos} rows",
        };
        bar.set_style(
            ProgressStyle::with_template(template).expect("the template is a constant that parses"),
        );
        let mut tell = |progress: MoveProgress| {
            progress.rows_total.into_iter().for_each(|total| bar.set_length(total));
            bar.set_position(progress.rows);
        };
        let moved = match is_into_cluster {
            true => into_cluster(&directory, &cluster, &mut tell),
            false => into_directory(&cluster, &directory, &mut tell),
        };
        bar.finish_and_clear();
        let moved = moved.map_err(|error| match error {
            MoveError::Nothing { .. } | MoveError::NotEmpty { .. } | MoveError::Open(_) => {
                CommandError::BadInput(error.to_string())
            }
            MoveError::Store(_) | MoveError::Write(_) => {
                CommandError::Verdict(format!("{error}; the same command goes on from there"))
            }
            error => CommandError::Verdict(error.to_string()),
        })?;
        let (rows, tables) = (count(moved.rows), count(moved.tables));
        let before = match moved.rows_before {
            0 => String::new(),
            before => format!("; {} of them were copied before", count(before)),
        };
        Ok(print(&format!("{rows} rows of {tables} tables and objects are copied{before}\n"))?)
    }
}
