//! `hotrow chop`: cuts a workload's procedures into pieces, and prints or draws the chopping graph.

use crate::arguments::{Format, Refusal, about, common_options, own_options, shortened, workload};
use crate::error::CommandError;
use crate::text;
use crate::whole_file::WholeFile;
use clap::{ArgMatches, Args, Command, FromArgMatches as _, ValueEnum};
use hotrow::chopping::{
    ChoppedProcedure, ChoppingError, ChoppingGraph, OperationClass, RankedGraph, RankedPiece,
};
use hotrow_workloads::{Refinement, WORKLOADS, WorkloadInfo, WorkloadOptions};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;

mod drawing;

/// The value of --refine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Refine {
    /// Nothing but reordering and commutative changes.
    Default,
    /// Readers on snapshots, besides.
    Snapshots,
    /// The workload's declarations, besides.
    Full,
}

#[derive(Debug, Args)]
struct ChopArguments {
    /// Refinements: "default" (independent operations reordered, commutative changes), "snapshots" (transactions that only
    /// read leave the graph, too), or "full" (and what the workload declares: published changes, rows that belong to others)
    #[arg(long, value_enum, default_value_t = Refine::Full, hide_possible_values = true)]
    refine: Refine,
    /// Draw the chopping graph to this file, as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Output format: "table", or "json" for one object
    #[arg(long, value_enum, default_value_t = Format::Table, hide_possible_values = true)]
    format: Format,
}

/// A request to chop a workload's procedures.
#[derive(Debug)]
pub(crate) struct ChopPlan {
    options: WorkloadOptions,
    arguments: ChopArguments,
}

pub(crate) fn command() -> Command {
    let workloads = WORKLOADS.iter().filter(|workload| workload.runs_procedures).map(|workload| {
        ChopArguments::augment_args(own_options(workload))
            .about(about(workload))
            .after_help(format!("Example:\n  hotrow chop {} --svg graph.svg", workload.name))
    });
    Command::new("chop")
        .about("Cuts a workload's procedures into pieces that are atomic by themselves (transaction chopping)")
        .after_help(format!(
            "{}\n\nPieces that conflict with others are marked with a star. A procedure has one of them at most. Behind them come the \
             pieces by ranks, as ic3 executes them.\n\n\
             Example:\n  hotrow chop tpcc --refine default --svg graph.svg",
            common_options(ChopArguments::augment_args)
        ))
        .subcommand_value_name("WORKLOAD")
        .subcommand_help_heading("Workloads")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .allow_external_subcommands(true)
        .subcommands(workloads)
}

pub(crate) fn plan(matches: &ArgMatches) -> Result<ChopPlan, Refusal> {
    let chosen = matches.subcommand_name().and_then(|name| WORKLOADS.iter().find(|known| known.name == name));
    if let Some(WorkloadInfo { name, runs_procedures: false, .. }) = chosen {
        return Err(Refusal::Message(format!(
            "the transactions of {name} are no procedures, so they cannot be chopped"
        )));
    }
    let (options, matches) = workload(matches)?;
    let arguments = ChopArguments::from_arg_matches(matches).map_err(shortened)?;
    Ok(ChopPlan { options, arguments })
}

pub(crate) fn run(plan: &ChopPlan) -> Result<(), CommandError> {
    let refinement = match plan.arguments.refine {
        Refine::Default => Refinement::Default,
        Refine::Snapshots => Refinement::Snapshots,
        Refine::Full => Refinement::Full,
    };
    let file = plan.arguments.svg.as_deref().map(WholeFile::open).transpose()?;
    let name = plan.options.info().name;
    let Some(chopping) = plan.options.chopping(refinement) else {
        return Err(CommandError::BadInput(format!("{name} does not describe its procedures for chopping")));
    };
    let chopping = chopping?;
    let verdict = |error: ChoppingError| CommandError::Verdict(error.to_string());
    let graph = chopping.analyse().map_err(verdict)?;
    let ranked = chopping.rank().map_err(verdict)?;
    if let Some(file) = file {
        let drawn = drawing::draw(name, &graph).map_err(CommandError::File)?;
        file.write(|out| out.write_all(drawn.as_bytes()))?;
    }
    text::print(&match plan.arguments.format {
        Format::Table => in_words(&graph, &ranked),
        Format::Json => format!("{}\n", in_json(&graph, &ranked)),
    })?;
    Ok(())
}

/// The operations of a piece of a chopped procedure in words.
fn words(procedure: &ChoppedProcedure, classes: &[usize]) -> Vec<String> {
    words_of(&procedure.classes, classes)
}

/// The operations of a piece in words.
fn words_of(operations: &[OperationClass], classes: &[usize]) -> Vec<String> {
    classes.iter().map(|class| operations[*class].to_string()).collect()
}

/// The ranks of a piece, if it may conflict with others.
fn ranks(piece: &RankedPiece) -> Option<String> {
    piece.ranks.map(|ranks| match ranks.first == ranks.last {
        true => ranks.first.to_string(),
        false => format!("{}-{}", ranks.first, ranks.last),
    })
}

fn in_words(graph: &ChoppingGraph, ranked: &RankedGraph) -> String {
    let mut out = String::new();
    for procedure in &graph.procedures {
        let pieces = procedure.pieces.len();
        let note = match (procedure.on_snapshot, pieces) {
            (true, _) => "on a snapshot".to_owned(),
            (false, 1) => "1 piece".to_owned(),
            (false, _) => format!("{pieces} pieces"),
        };
        let _ = writeln!(out, "{}: {note}", procedure.name);
        for (at, piece) in procedure.pieces.iter().enumerate() {
            let star = if piece.conflicting { '*' } else { ' ' };
            let _ = writeln!(out, "  {} {star} {}", at + 1, words(procedure, &piece.classes).join("; "));
        }
    }
    print_ranked(&mut out, ranked);
    let _ = writeln!(out, "\nconflicts");
    for edge in &graph.edges {
        let end = |(procedure, class): (usize, usize)| {
            let procedure = &graph.procedures[procedure];
            format!("{}: {}", procedure.name, procedure.classes[class])
        };
        let published = if edge.published { " (published later)" } else { "" };
        let _ = writeln!(out, "  {} - {}{published}", end(edge.from), end(edge.to));
    }
    out
}

fn print_ranked(out: &mut String, ranked: &RankedGraph) {
    let _ = writeln!(out, "\nby ranks (ic3)");
    for procedure in ranked.procedures.iter().filter(|procedure| !procedure.on_snapshot) {
        let _ = writeln!(out, "{}", procedure.name);
        for piece in &procedure.pieces {
            let words = words_of(&procedure.classes, &piece.classes).join("; ");
            let _ = writeln!(out, "  {:>3}  {words}", ranks(piece).unwrap_or_default());
        }
    }
}

fn ranked_in_json(ranked: &RankedGraph) -> Value {
    let ranked = ranked.procedures.iter().map(|procedure| {
        let pieces = procedure.pieces.iter().map(|piece| {
            json!({ "operations": words_of(&procedure.classes, &piece.classes), "ranks": ranks(piece) })
        });
        json!({ "name": procedure.name, "on_snapshot": procedure.on_snapshot, "pieces": pieces.collect::<Vec<_>>() })
    });
    Value::Array(ranked.collect())
}

fn in_json(graph: &ChoppingGraph, ranked: &RankedGraph) -> Value {
    let procedures = graph.procedures.iter().map(|procedure| {
        let pieces = procedure.pieces.iter().map(|piece| {
            json!({
                "operations": words(procedure, &piece.classes),
                "conflicting": piece.conflicting,
                "first": piece.first,
            })
        });
        json!({
            "name": procedure.name,
            "on_snapshot": procedure.on_snapshot,
            "pieces": pieces.collect::<Vec<_>>(),
        })
    });
    let edges = graph.edges.iter().map(|edge| {
        let end = |(procedure, class): (usize, usize)| {
            let procedure = &graph.procedures[procedure];
            json!({ "procedure": procedure.name, "operation": procedure.classes[class].to_string() })
        };
        json!({ "from": end(edge.from), "to": end(edge.to), "published": edge.published })
    });
    json!({
        "procedures": procedures.collect::<Vec<_>>(),
        "by_ranks": ranked_in_json(ranked),
        "conflicts": edges.collect::<Vec<_>>(),
    })
}
