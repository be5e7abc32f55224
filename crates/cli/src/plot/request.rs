//! The options of plots.

use crate::arguments::Refusal;
use clap::{Args, Command, ValueEnum};
use std::path::PathBuf;

/// The kind of a plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlotKind {
    /// Throughput and the 99th percentile of latency against workers.
    Throughput,
    /// The 99.9th percentile against throughput, and the distribution of latency (plor, Figures 6 and 7).
    Latency,
}

impl PlotKind {
    /// The part of the title that names the kind.
    pub(crate) fn title(self) -> &'static str {
        match self {
            PlotKind::Throughput => "throughput and latency",
            PlotKind::Latency => "latency against throughput, and its distribution",
        }
    }

    fn name(self) -> &'static str {
        match self {
            PlotKind::Throughput => "throughput",
            PlotKind::Latency => "latency",
        }
    }
}

/// The request to draw a plot.
#[derive(Debug)]
pub(crate) struct PlotRequest {
    /// The file.
    pub(crate) path: PathBuf,
    /// The kind of the plot.
    pub(crate) kind: PlotKind,
    /// The number of workers whose distribution of latency is shown.
    pub(crate) at: usize,
}

/// The options of plots on the command line.
#[derive(Debug, Args)]
pub(crate) struct PlotArguments {
    /// Draw the runs, as SVG
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Kind of plot: "throughput" (throughput and 99th percentile of latency against the number of workers), or
    /// "latency" (99.9th percentile against throughput, and the distribution at one number of workers)
    #[arg(long, value_enum, value_name = "KIND", requires = "plot", hide_possible_values = true)]
    plot_kind: PlotKind,
    /// Number of workers for which the distribution of latency is drawn [default: the largest]
    #[arg(long, value_name = "N", requires = "plot", allow_negative_numbers = true)]
    plot_at: Option<usize>,
}

impl PlotArguments {
    /// Adds these options to a command.
    pub(crate) fn augment(command: Command, default: PlotKind) -> Command {
        Self::augment_args(command)
            .mut_arg("plot_kind", |kind| kind.required(false).default_value(default.name()))
    }

    /// The plot that the options request; `numbers` are the numbers of workers of the runs.
    pub(crate) fn request(self, workers: &str, numbers: &[usize]) -> Result<Option<PlotRequest>, Refusal> {
        let Self { plot: Some(path), plot_kind: kind, plot_at } = self else { return Ok(None) };
        if let Some(at) = plot_at {
            if kind != PlotKind::Latency {
                let message = "--plot-at chooses a distribution of latency, which --plot-kind latency draws";
                return Err(Refusal::Message(message.to_owned()));
            }
            if !numbers.contains(&at) {
                return Err(Refusal::Message(format!("--plot-at {at}: no run has {at} {workers}")));
            }
        }
        let most = numbers.iter().copied().max().unwrap_or(1);
        Ok(Some(PlotRequest { path, kind, at: plot_at.unwrap_or(most) }))
    }
}
