//! The page: one HTML file without links to others.

use super::chart::{self, Line, escape};
use super::claims::{Judged, RULE};
use super::points::{Results, real_values};
use super::registry::{Figure, Runs};
use std::fmt::Write as _;

/// Where the reports of a page come from, in words.
pub(super) struct Origin {
    /// The revision, or several.
    pub(super) revision: String,
    /// The machine of the runs that are not simulated.
    pub(super) machine: String,
    /// The call that has made the reports.
    pub(super) call: String,
    /// True if only the claims' points were measured.
    pub(super) is_quick: bool,
}

/// The page of figures and their verdicts.
pub(super) fn html(
    judged: &[(&Figure, Vec<Judged<'_>>)],
    results: &Results,
    origin: &Origin,
    fidelity: &str,
) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Hotrow: the papers' figures</title>\n<style>\n{}</style>\n<h1>The papers' figures, rerun</h1>\n",
        include_str!("page.css")
    );
    let _ = write!(
        page,
        "<p>Revision {}, on {}, by <code>{}</code>.</p>\n<p>{RULE}</p>\n<p class=\"soft\">Simulated runs: {}</p>\n",
        escape(&origin.revision),
        escape(&origin.machine),
        escape(&origin.call),
        escape(fidelity)
    );
    page += &summary(judged, results);
    for (figure, judged) in judged {
        page += &section(figure, judged, results, origin.is_quick);
    }
    page + "</html>\n"
}

/// The numbers of a paper, or of all: figures, those that can be rerun, claims, those that were measured, those that hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) figures: usize,
    pub(super) rerun: usize,
    pub(super) claims: usize,
    pub(super) measured: usize,
    pub(super) hold: usize,
}

/// Counts the figures and claims of each paper, in the papers' order, and of all.
pub(super) fn counts<'a>(
    judged: &[(&'a Figure, Vec<Judged<'_>>)],
    results: &Results,
) -> (Vec<(&'a str, Counts)>, Counts) {
    let mut papers: Vec<(&str, Counts)> = Vec::new();
    let mut all = Counts::default();
    for (figure, judged) in judged {
        let paper = figure.paper();
        if papers.last().is_none_or(|(last, _)| *last != paper) {
            papers.push((paper, Counts::default()));
        }
        let (_, of_paper) = papers.last_mut().expect("it was just added");
        for counts in [of_paper, &mut all] {
            counts.figures += 1;
            counts.rerun += usize::from(results.has_any_of(figure));
            counts.claims += judged.len();
            counts.measured += judged.iter().filter(|judged| judged.ours.is_some()).count();
            counts.hold += judged.iter().filter(|judged| judged.holds()).count();
        }
    }
    (papers, all)
}

/// A table of the papers, with the numbers of claims that hold.
fn summary(judged: &[(&Figure, Vec<Judged<'_>>)], results: &Results) -> String {
    let (papers, all) = counts(judged, results);
    let cells = |counts: &Counts| {
        let Counts { figures, rerun, claims, measured, hold } = counts;
        format!("<td>{figures}<td>{rerun}<td>{claims}<td>{measured}<td>{hold}")
    };
    let rows: String =
        papers.iter().map(|(paper, counts)| format!("<tr><td>{paper}{}", cells(counts))).collect();
    format!(
        "<table class=\"summary\"><tr><th>paper<th>figures<th>rerun<th>claims<th>measured<th>hold{rows}\
         <tr class=\"sum\"><td>all{}</table>\n",
        cells(&all)
    )
}

/// A figure: its plot, its claims, the calls.
fn section(figure: &Figure, judged: &[Judged<'_>], results: &Results, quick: bool) -> String {
    let mut html = format!(
        "<section id=\"{0}\">\n<h2>{0} <span>{1}</span></h2>\n<p class=\"soft\">{2}. {3}</p>\n",
        escape(&figure.id),
        escape(&figure.title),
        escape(&figure.source),
        escape(&figure.setting)
    );
    if let Some(substitute) = &figure.substitute {
        let _ = writeln!(html, "<p class=\"substitute\">{}</p>", escape(substitute));
    }
    let Some(runs) = figure.runs else { return html + "</section>\n" };
    if figure.is_left_out() && !results.has_any_of(figure) {
        html += "<p class=\"substitute\">Not rerun: this build has no STAMP applications; one with <code>--features sim,stamp</code> has.</p>\n";
        return html + &claims(judged) + "</section>\n";
    }
    let places = figure.values(quick);
    let mut lines = Vec::new();
    for is_real in [false, true] {
        for (colour, series) in figure.series.iter().enumerate() {
            let is_there =
                |place: &String| !is_real || real_values(figure, quick).any(|value| value == place);
            let value = |place: &String| {
                let real = is_real || runs == Runs::Bench;
                results.measured(figure, series, place, figure.metric, real).filter(|_| is_there(place))
            };
            let values: Vec<_> = places.iter().map(value).collect();
            if values.iter().any(Option::is_some) {
                lines.push(Line { name: series.name.clone(), values, colour, is_real });
            }
        }
    }
    let x_label = match figure.x.as_str() {
        "cores" => format!("virtual cores of {}", figure.machine),
        "threads" => String::from("threads of this machine"),
        option => {
            let workers = figure.cores.unwrap_or(1);
            let of = match runs {
                Runs::Bench => String::from("threads"),
                Runs::Sim | Runs::Stamp => format!("virtual cores of {}", figure.machine),
            };
            format!("{}, {workers} {of}", option.trim_start_matches('-'))
        }
    };
    let chart = chart::svg(places, &x_label, figure.metric.label(), &lines);
    let _ = writeln!(
        html,
        "<figure><figcaption>{}</figcaption>{chart}{}</figure>",
        figure.metric.label(),
        chart::legend(&lines)
    );
    html += &claims(judged);
    html += "<details><summary>calls</summary><pre>";
    for series in &figure.series {
        for place in places {
            let _ = writeln!(
                html,
                "hotrow {}",
                escape(&figure.call(series, place, runs == Runs::Bench).join(" "))
            );
        }
    }
    html + "</pre></details>\n</section>\n"
}

/// A table of claims and verdicts.
fn claims(judged: &[Judged<'_>]) -> String {
    if judged.is_empty() {
        return String::new();
    }
    let mut html = String::from("<table class=\"claims\"><tr><th>claim<th>paper<th>ours<th>verdict\n");
    for one in judged {
        let class = if one.holds() { "holds" } else { "fails" };
        let reason = one.reason().map_or_else(String::new, |reason| format!("<br>{}", escape(reason)));
        let _ = writeln!(
            html,
            "<tr><td>{}<br><code>{}</code>{reason}<td>{}<td>{}<td class=\"{class}\">{}",
            escape(&one.claim.says),
            escape(&one.claim.ours),
            one.paper(),
            one.ours(),
            one.verdict()
        );
    }
    html + "</table>\n"
}
