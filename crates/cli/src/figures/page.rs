//! The page: one HTML file without links to others.

use super::FiguresPlan;
use super::chart::{self, Line, escape};
use super::claims::{Judged, RULE};
use super::points::{Results, real_values};
use super::registry::{Figure, Kind, Runs};
use crate::host::ThisHost;
use crate::text;
use hotrow_workloads::Host as _;
use std::fmt::Write as _;

/// The page of figures and their verdicts.
pub(super) fn html(
    judged: &[(&Figure, Vec<Judged<'_>>)],
    results: &Results,
    plan: &FiguresPlan,
    host: &ThisHost,
    fidelity: &str,
) -> String {
    let machine = host.machine();
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>Hotrow: the papers' figures</title>\n<style>\n{}</style>\n<h1>The papers' figures, rerun</h1>\n",
        include_str!("page.css")
    );
    let _ = write!(
        page,
        "<p>Revision {}, on {} ({} cores, {}), by <code>{}</code>.</p>\n<p>{RULE}</p>\n<p class=\"soft\">Simulated runs: {}</p>\n",
        escape(host.revision()),
        escape(&machine.cpu),
        machine.cores,
        escape(&machine.os),
        escape(&call(plan)),
        escape(fidelity)
    );
    page += &summary(judged);
    for (figure, judged) in judged {
        page += &section(figure, judged, results, plan.quick);
    }
    page + "</html>\n"
}

/// The call that makes the page.
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

/// A table of the papers, with the numbers of claims that hold.
fn summary(judged: &[(&Figure, Vec<Judged<'_>>)]) -> String {
    let mut papers: Vec<(&str, [usize; 4])> = Vec::new();
    for (figure, judged) in judged {
        let paper = figure.id.split('.').next().unwrap_or_default();
        if papers.last().is_none_or(|(last, _)| *last != paper) {
            papers.push((paper, [0; 4]));
        }
        let (_, counts) = papers.last_mut().expect("it was just added");
        let holds = judged.iter().filter(|judged| judged.holds()).count();
        let rerun = usize::from(figure.is_rerun());
        for (count, more) in counts.iter_mut().zip([1, rerun, judged.len(), holds]) {
            *count += more;
        }
    }
    let mut all = [0; 4];
    let mut rows = String::new();
    for (paper, counts) in &papers {
        let [figures, rerun, claims, holds] = counts;
        let _ = write!(rows, "<tr><td>{paper}<td>{figures}<td>{rerun}<td>{claims}<td>{holds}");
        all.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    let [figures, rerun, claims, holds] = all;
    format!(
        "<table class=\"summary\"><tr><th>paper<th>figures<th>rerun<th>claims<th>hold{rows}\
         <tr class=\"sum\"><td>all<td>{figures}<td>{rerun}<td>{claims}<td>{holds}</table>\n"
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
    if figure.is_left_out() {
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
        let ours = one.ours.map_or_else(|| String::from("–"), text::quantity);
        let paper = match one.claim.kind {
            Kind::Order => String::from("above 1"),
            _ => text::quantity(one.claim.paper),
        };
        let class = if one.holds() { "holds" } else { "fails" };
        let _ = writeln!(
            html,
            "<tr><td>{}<br><code>{}</code><td>{}<td>{ours}<td class=\"{class}\">{}",
            escape(&one.claim.says),
            escape(&one.claim.ours),
            paper,
            one.verdict()
        );
    }
    html + "</table>\n"
}
