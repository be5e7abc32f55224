//! What is asked to be drawn.

use crate::arguments::Refusal;
use clap::{Args, Command, ValueEnum};
use std::path::PathBuf;

/// What a plot shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Throughput and the 99th percentile of latency against workers.
    Throughput,
    /// The 99.9th percentile against throughput, and the distribution of latency (plor, Figures 6 and 7).
    Latency,
}

impl Kind {
    /// What its title says.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Kind::Throughput => "throughput and latency",
            Kind::Latency => "latency against throughput, and its distribution",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Throughput => "throughput",
            Kind::Latency => "latency",
        }
    }
}

/// A plot that is to be drawn.
#[derive(Debug)]
pub(crate) struct PlotRequest {
    /// Where it goes.
    pub(crate) path: PathBuf,
    /// What it shows.
    pub(crate) kind: Kind,
    /// At how many workers the distribution of latency is shown.
    pub(crate) at: usize,
}

/// Options about plots.
#[derive(Debug, Args)]
pub(crate) struct PlotArguments {
    /// Draw the runs, as SVG
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// What the plot shows: "throughput" and 99th percentile against the number of workers; or "latency": its
    /// 99.9th percentile against throughput, and its distribution at one number of workers
    #[arg(long, value_enum, value_name = "KIND", requires = "plot", hide_possible_values = true)]
    plot_kind: Kind,
    /// The number of workers whose distribution of latency is drawn [default: the largest]
    #[arg(long, value_name = "N", requires = "plot", allow_negative_numbers = true)]
    plot_at: Option<usize>,
}

impl PlotArguments {
    /// A command with these options.
    pub(crate) fn augment(command: Command, default: Kind) -> Command {
        Self::augment_args(command)
            .mut_arg("plot_kind", |kind| kind.required(false).default_value(default.name()))
    }

    /// What they ask for, of runs with these numbers of workers.
    pub(crate) fn request(self, workers: &str, numbers: &[usize]) -> Result<Option<PlotRequest>, Refusal> {
        let Self { plot: Some(path), plot_kind: kind, plot_at } = self else { return Ok(None) };
        if let Some(at) = plot_at {
            if kind != Kind::Latency {
                let words = "--plot-at chooses a distribution of latency, which --plot-kind latency draws";
                return Err(Refusal::Words(words.to_owned()));
            }
            if !numbers.contains(&at) {
                return Err(Refusal::Words(format!("--plot-at {at}: no run has {at} {workers}")));
            }
        }
        let most = numbers.iter().copied().max().unwrap_or(1);
        Ok(Some(PlotRequest { path, kind, at: plot_at.unwrap_or(most) }))
    }
}
