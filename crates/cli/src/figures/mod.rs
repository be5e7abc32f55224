//! `hotrow figures`: the papers' figures and tables, rerun, with the papers' numbers beside ours.
//!
//! The registry ([`registry`]) is data: one file for each paper. Each figure names its source, the workload and the protocols, and what
//! the paper claims, as a quotient of measured values ([`claims`]). A figure needs runs ([`points`]); each is a call of this command in
//! a process of its own, whose report goes into a file at once, so that a run that was killed goes on where it was. The page
//! ([`page`]) is made from the reports.

mod chart;
mod claims;
mod page;
mod points;
mod registry;

use crate::arguments::{Refusal, shortened};
use crate::error::CommandError;
use crate::fidelity::Fidelity;
use crate::host::ThisHost;
use crate::text::{self, print};
use crate::whole_file::WholeFile;
use claims::{Judged, RULE};
use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use hotrow_workloads::Host as _;
use points::Results;
use registry::{Figure, figures};
use std::path::PathBuf;

/// The arguments of `hotrow figures`.
#[derive(Debug, Args)]
pub(crate) struct FiguresPlan {
    /// Only these figures, separated by commas; a paper's name stands for all of its figures (drp.3, plor)
    #[arg(long, value_name = "FIGURE[,FIGURE...]", value_delimiter = ',')]
    only: Vec<String>,
    /// Fewer points: what the claims need
    #[arg(long)]
    quick: bool,
    /// List the figures and their claims, and run nothing
    #[arg(long)]
    list: bool,
    /// The directory for the page and the reports; what an interrupted call has measured there is kept
    #[arg(long, value_name = "DIR", default_value = "figures")]
    out: PathBuf,
}

/// The subcommand's definition.
pub(crate) fn command() -> Command {
    FiguresPlan::augment_args(Command::new("figures"))
        .about("Reruns the papers' figures, and sets ours beside theirs on one page")
        .after_help(format!(
            "{RULE} Beside its simulated runs a figure has runs on this machine's threads, as far as it has cores. With --quick it \
             takes about a quarter of an hour on two cores. If it is interrupted, the same call goes on; reports of another \
             revision are not used.\n\nExample:\n  hotrow figures --only plor.6,drp --quick --out figures"
        ))
}

/// The plan of the arguments.
pub(crate) fn plan(matches: &ArgMatches) -> Result<FiguresPlan, Refusal> {
    let plan = FiguresPlan::from_arg_matches(matches).map_err(shortened)?;
    for name in &plan.only {
        if !figures().iter().any(|figure| figure.is_called(name)) {
            let known: Vec<_> = figures().iter().map(|figure| figure.id.as_str()).collect();
            return Err(Refusal::Message(format!(
                "unknown figure {name:?}; there are: {}",
                known.join(", ")
            )));
        }
    }
    Ok(plan)
}

/// Reruns the figures.
pub(crate) fn run(plan: &FiguresPlan, host: &ThisHost) -> Result<(), CommandError> {
    let is_wanted =
        |figure: &&Figure| plan.only.is_empty() || plan.only.iter().any(|name| figure.is_called(name));
    let chosen: Vec<&Figure> = figures().iter().filter(is_wanted).collect();
    if plan.list {
        return Ok(print(&list(&chosen))?);
    }
    let mut results = Results::open(&plan.out, host.revision())?;
    // Opened before the runs, which would be useless if the page cannot be written.
    let page = WholeFile::open(&plan.out.join("index.html"))?;
    let failed = results.run(&chosen, plan.quick)?;
    let judged: Vec<(&Figure, Vec<Judged<'_>>)> =
        chosen.iter().map(|figure| (*figure, claims::judge(figure, &results))).collect();
    let html = page::html(&judged, &results, plan, host, &Fidelity::kept().in_words());
    page.write(|file| file.write_all(html.as_bytes()))?;
    let rows = judged.iter().filter(|(figure, _)| figure.is_rerun()).map(|(figure, judged)| {
        let holds = judged.iter().filter(|judged| judged.holds()).count();
        vec![figure.id.clone(), figure.title.clone(), format!("{holds} of {}", judged.len())]
    });
    print(&text::table(2, &["figure", "", "claims that hold"], rows))?;
    let all = || judged.iter().flat_map(|(_, judged)| judged);
    let (holds, claims) = (all().filter(|judged| judged.holds()).count(), all().count());
    print(&format!(
        "\n{holds} of {claims} claims hold; the page is {}\n",
        plan.out.join("index.html").display()
    ))?;
    match failed.first() {
        None => Ok(()),
        Some(first) => {
            Err(CommandError::Verdict(format!("{} runs failed; the first is {first}", failed.len())))
        }
    }
}

/// The figures and their claims in words.
fn list(figures: &[&Figure]) -> String {
    let mut words = String::new();
    for figure in figures {
        words += &format!("{}  {} ({})\n", figure.id, figure.title, figure.source);
        if let Some(substitute) = &figure.substitute {
            words += &format!("    {substitute}\n");
        }
        for claim in &figure.claims {
            words += &format!("    {} [{}: {}]\n", claim.says, claim.kind.name(), claim.ours);
        }
    }
    words
}
