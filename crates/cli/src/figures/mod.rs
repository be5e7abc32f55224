//! `hotrow figures`: the papers' figures and tables, rerun, with the papers' numbers beside ours.
//!
//! The registry ([`registry`]) is data: one file for each paper. Each figure names its source, the workload and the protocols, and what
//! the paper claims, as a quotient of measured values ([`claims`]). A figure needs runs ([`points`]); each is a call of this command in
//! a process of its own, whose report goes into a file at once, so that a run that was killed goes on where it was. The page
//! ([`page`]) is made from the reports.
//!
//! The page of all results, `docs/results/README.md` ([`overview`]), is made from an archive of reports and from what was measured
//! beside them ([`measured`]), without a run.

mod chart;
mod claims;
mod measured;
mod overview;
mod page;
mod points;
mod registry;

use crate::arguments::{Refusal, shortened, unknown};
use crate::error::CommandError;
use crate::fidelity::Fidelity;
use crate::host::ThisHost;
use crate::text::{self, print};
use crate::whole_file::WholeFile;
use claims::{Judged, RULE};
use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use hotrow_workloads::Host as _;
use measured::Measured;
use page::Origin;
use points::{Archive, Results, machine_in_words};
use registry::{Figure, figures};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

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
    /// Run nothing: make the pages from the reports in --out, of whatever revision, and from measured.jsonl there
    #[arg(long, conflicts_with_all = ["only", "quick", "list"])]
    from_archive: bool,
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
             revision are not used.\n\nExamples:\n  hotrow figures --only plor.6,drp --quick --out figures\n  \
             hotrow figures --from-archive --out docs/results"
        ))
}

/// The plan of the arguments.
pub(crate) fn plan(matches: &ArgMatches) -> Result<FiguresPlan, Refusal> {
    let plan = FiguresPlan::from_arg_matches(matches).map_err(shortened)?;
    for name in &plan.only {
        if !figures().iter().any(|figure| figure.is_called(name)) {
            let known = figures().iter().map(|figure| figure.id.as_str());
            return Err(Refusal::Message(unknown("figure", name, known)));
        }
    }
    Ok(plan)
}

/// The call that makes the reports.
fn call(plan: &FiguresPlan) -> String {
    let mut call = String::from("hotrow figures");
    if !plan.only.is_empty() {
        let _ = write!(call, " --only {}", plan.only.join(","));
    }
    if plan.quick {
        call += " --quick";
    }
    call + " --out DIR"
}

/// Figures, each with its claims judged.
fn judge_each<'a>(
    figures: impl IntoIterator<Item = &'a Figure>,
    results: &Results,
) -> Vec<(&'a Figure, Vec<Judged<'a>>)> {
    figures.into_iter().map(|figure| (figure, claims::judge(figure, results))).collect()
}

/// The pages that are made from an archive: that of the figures, and that of all results.
fn pages_of_archive(directory: &Path) -> Result<(String, String), CommandError> {
    let Archive { results, revision, machine } = Results::of_archive(directory)?;
    let measured = Measured::read(directory)?;
    let judged = judge_each(figures(), &results);
    let origin =
        Origin { revision, machine, call: String::from("hotrow figures --out DIR"), is_quick: false };
    let html = page::html(&judged, &results, &origin, &Fidelity::kept().in_words());
    let overview = overview::markdown(&measured, &judged, &results, &origin);
    Ok((html, overview))
}

/// Makes the pages from an archive.
fn write_pages_of_archive(directory: &Path) -> Result<(), CommandError> {
    let (html, overview) = pages_of_archive(directory)?;
    for (name, page) in [("index.html", html), ("README.md", overview)] {
        WholeFile::open(&directory.join(name))?.write(|file| file.write_all(page.as_bytes()))?;
    }
    Ok(print(&format!("the pages are {0}/README.md and {0}/index.html\n", directory.display()))?)
}

/// Reruns the figures.
pub(crate) fn run(plan: &FiguresPlan, host: &ThisHost) -> Result<(), CommandError> {
    let is_wanted =
        |figure: &&Figure| plan.only.is_empty() || plan.only.iter().any(|name| figure.is_called(name));
    let chosen: Vec<&Figure> = figures().iter().filter(is_wanted).collect();
    if plan.list {
        return Ok(print(&list(&chosen))?);
    }
    if plan.from_archive {
        return write_pages_of_archive(&plan.out);
    }
    let mut results = Results::open(&plan.out, host.revision())?;
    // Opened before the runs, which would be useless if the page cannot be written.
    let page = WholeFile::open(&plan.out.join("index.html"))?;
    let failed = results.run(&chosen, plan.quick)?;
    let judged = judge_each(chosen, &results);
    let machine = host.machine();
    let origin = Origin {
        revision: host.revision().to_owned(),
        machine: machine_in_words(&machine.cpu, machine.cores as u64, &machine.os),
        call: call(plan),
        is_quick: plan.quick,
    };
    let html = page::html(&judged, &results, &origin, &Fidelity::kept().in_words());
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_pages_of_results_are_those_that_the_archive_makes() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
        let (html, overview) = pages_of_archive(&directory).unwrap();
        for (name, made) in [("index.html", html), ("README.md", overview)] {
            let kept = fs::read_to_string(directory.join(name)).unwrap();
            // Not `assert_eq`, which would print both pages.
            let difference = made.lines().zip(kept.lines()).find(|(made, kept)| made != kept);
            assert!(
                made == kept,
                "run `hotrow figures --from-archive --out docs/results`; the first difference in {name}: {difference:?}"
            );
        }
    }
}
