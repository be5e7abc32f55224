//! The page of all results, in Markdown: tables of what was measured, and the papers' claims, judged.

use super::claims::{Judged, RULE};
use super::measured::{Measured, Measurement, Side};
use super::page::{Counts, Origin, counts};
use super::points::Results;
use super::registry::Figure;
use crate::text;
use std::fmt::Write as _;

/// The page.
pub(super) fn markdown(
    measured: &Measured,
    judged: &[(&Figure, Vec<Judged<'_>>)],
    results: &Results,
    origin: &Origin,
) -> String {
    let mut page = String::from(
        "# Results\n\n\
         <!-- `hotrow figures --from-archive --out docs/results` makes this page. Edit what it is made from. -->\n\n\
         This page is made from the files beside it: `measured.jsonl` has what was measured, a JSON object a line, `machines.json` and \
         `subjects.json` have the words around it, and `reports.jsonl.gz` has the reports of the papers' figures, whose plots are in \
         [index.html](index.html). `hotrow figures --from-archive --out docs/results` makes it, in a build with `--features sim`, \
         and a test compares it.\n\n\
         A ratio is ours to the other's: the median over the rounds, with the least and the largest. One without a name is that of the \
         first of both cells. *Threads* are clients of a server, and virtual cores of a simulated machine. Absolute figures of a shared \
         machine mean little; ratios of runs by turns mean more. [left-out.md](../left-out.md) lists what was tried and not kept.\n",
    );
    for subject in &measured.subjects {
        let of_subject: Vec<&Measurement> =
            measured.measurements.iter().filter(|one| one.subject == subject.id).collect();
        if of_subject.is_empty() {
            continue;
        }
        let _ = write!(page, "\n## {}\n\n{}\n", subject.title, subject.words);
        if subject.has_commands_in_rows {
            let _ = write!(page, "\n{}", table_with_commands(&of_subject, measured));
            continue;
        }
        for group in grouped(&of_subject, |one| (&one.machine, &one.revision, &one.command)) {
            let first = group[0];
            let machine = &measured.machines[&first.machine];
            let _ = write!(
                page,
                "\nMachine: {machine}. Revision {}. `{}`\n\n{}",
                first.revision,
                first.command,
                table(&group)
            );
        }
    }
    page + &claims(judged, results, origin)
}

/// Items in groups of equal keys, in the order of their first items.
fn grouped<'a, K: PartialEq>(
    items: &[&'a Measurement],
    key: impl Fn(&'a Measurement) -> K,
) -> Vec<Vec<&'a Measurement>> {
    let mut groups: Vec<(K, Vec<&Measurement>)> = Vec::new();
    for item in items {
        let key = key(item);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// A table with a row for each work, number of threads and unit. The best of each side comes first in the file.
fn table(measurements: &[&Measurement]) -> String {
    let rows: Vec<[String; 6]> = grouped(measurements, |one| (&one.work, one.threads, &one.unit))
        .iter()
        .map(|row| {
            let first = row[0];
            [
                first.work.clone(),
                first.threads.map_or_else(String::new, |threads| threads.to_string()),
                sides(row.iter().filter_map(|one| one.other.as_ref())),
                sides(row.iter().filter_map(|one| one.ours.as_ref())),
                first.unit.clone(),
                ratios(row),
            ]
        })
        .collect();
    lines(&["work", "threads", "other", "ours", "unit", "ratio"], &rows)
}

/// A table whose rows say how each was measured.
fn table_with_commands(measurements: &[&Measurement], measured: &Measured) -> String {
    let row = |one: &&Measurement| {
        [
            one.work.clone(),
            one.threads.map_or_else(String::new, |threads| threads.to_string()),
            sides(one.other.iter()),
            sides(one.ours.iter()),
            one.unit.clone(),
            measured.machines[&one.machine].clone(),
            one.revision.clone(),
            format!("`{}`", one.command),
        ]
    };
    let head = ["work", "threads", "other", "ours", "unit", "machine", "revision", "command"];
    lines(&head, &measurements.iter().map(row).collect::<Vec<_>>())
}

/// The names and values of a side, each once.
fn sides<'a>(sides: impl Iterator<Item = &'a Side>) -> String {
    let mut words: Vec<String> = Vec::new();
    for side in sides {
        let value = side.value.map_or_else(String::new, |value| format!(" {}", number(value)));
        let word = format!("{}{value}", side.name);
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join("; ")
}

/// The ratios of a row. Where several of ours have one, each is named; so is what it is to, from the second on.
fn ratios(row: &[&Measurement]) -> String {
    let name = |side: &Option<Side>| side.as_ref().map_or_else(String::new, |side| side.name.clone());
    let known: Vec<_> = row
        .iter()
        .filter_map(|one| Some((name(&one.ours), name(&one.other), one.ratio?, one.low.zip(one.high))))
        .collect();
    let Some((first_ours, first_other, ..)) = known.first() else { return String::new() };
    let is_one = known.iter().all(|(ours, ..)| ours == first_ours);
    let words = known.iter().map(|(ours, other, ratio, range)| {
        let of = if is_one { String::new() } else { format!("{ours} ") };
        let to = if other == first_other { String::new() } else { format!("to {other} ") };
        let range = range.map(|(low, high)| format!(" ({} to {})", number(low), number(high)));
        format!("{of}{to}{}{}", number(*ratio), range.unwrap_or_default())
    });
    words.collect::<Vec<_>>().join("; ")
}

/// A number as it was written down; whole ones with separators.
fn number(value: f64) -> String {
    let is_whole = value.fract() == 0.0 && value >= 0.0;
    if is_whole { text::count(value as u64) } else { value.to_string() }
}

/// A table in Markdown, without the columns that are empty.
fn lines<const COLUMNS: usize>(head: &[&str; COLUMNS], rows: &[[String; COLUMNS]]) -> String {
    let used: Vec<usize> =
        (0..COLUMNS).filter(|column| rows.iter().any(|row| !row[*column].is_empty())).collect();
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let mut table = line(used.iter().map(|column| head[*column]).collect());
    table += &format!("|{}\n", "---|".repeat(used.len()));
    for row in rows {
        table += &line(used.iter().map(|column| row[*column].as_str()).collect());
    }
    table
}

/// The papers' claims: how many hold, and which do not.
fn claims(judged: &[(&Figure, Vec<Judged<'_>>)], results: &Results, origin: &Origin) -> String {
    let mut page = format!(
        "\n## Claims of the papers\n\n{RULE} Simulated runs, and real ones of the figures that say so; what the simulator's numbers are \
         worth is in [simulator.md](../simulator.md).\n\n\
         Machine: {}. Revision {}. `{}`\n\n",
        origin.machine, origin.revision, origin.call
    );
    let (papers, all) = counts(judged, results);
    let row = |name: &str, counts: Counts| {
        let Counts { figures, rerun, claims, measured, hold } = counts;
        let [figures, rerun, claims, measured, hold] =
            [figures, rerun, claims, measured, hold].map(|count| count.to_string());
        [name.to_owned(), figures, rerun, claims, measured, hold]
    };
    let rows: Vec<_> =
        papers.into_iter().chain([("all", all)]).map(|(name, counts)| row(name, counts)).collect();
    page += &lines(&["paper", "figures", "rerun", "claims", "measured", "hold"], &rows);
    let all = || judged.iter().flat_map(|(figure, judged)| judged.iter().map(move |one| (figure, one)));
    let differing = |(figure, one): (&&Figure, &Judged<'_>)| {
        let Judged { claim, .. } = one;
        let reason = one.reason().unwrap_or("Not known.").to_owned();
        [figure.id.clone(), format!("{} `{}`", claim.says, claim.ours), one.paper(), one.ours(), reason]
    };
    let rows: Vec<_> = all().filter(|(_, one)| one.ours.is_some() && !one.holds()).map(differing).collect();
    if !rows.is_empty() {
        page += "\nClaims that do not hold:\n\n";
        page += &lines(&["figure", "claim", "paper", "ours", "reason"], &rows);
    }
    let missing: Vec<String> = all()
        .filter(|(_, one)| one.ours.is_none())
        .map(|(figure, one)| format!("- {}: {} `{}`\n", figure.id, one.claim.says, one.claim.ours))
        .collect();
    if !missing.is_empty() {
        page += "\nClaims whose points are not among the reports:\n\n";
        page += &missing.concat();
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn measurement(ours: (&str, f64), other: Option<(&str, f64)>, ratio: Option<f64>) -> Measurement {
        let side = |(name, value): (&str, f64)| json!({"name": name, "value": value});
        let line = json!({
            "subject": "peers", "work": "array", "threads": 2, "ours": side(ours), "other": other.map(side),
            "unit": "commits/s", "ratio": ratio, "low": ratio, "high": ratio, "command": "hotrow bench array",
            "revision": "aa65dcc3", "date": "2026-11-30", "machine": "epyc",
        });
        serde_json::from_value(line).unwrap()
    }

    #[test]
    fn a_row_has_all_of_one_work_and_names_further_ratios() {
        let all = [
            measurement(("occ", 10_700_000.0), Some(("2PLSF", 26_300_000.0)), Some(0.4)),
            measurement(("occ", 10_700_000.0), Some(("STO", 15_700_000.0)), Some(0.68)),
            measurement(("tictoc", 7.61), None, None),
        ];
        let expected = "| work | threads | other | ours | unit | ratio |\n|---|---|---|---|---|---|\n\
                        | array | 2 | 2PLSF 26,300,000; STO 15,700,000 | occ 10,700,000; tictoc 7.61 | commits/s \
                        | 0.4 (0.4 to 0.4); to STO 0.68 (0.68 to 0.68) |\n";
        assert_eq!(table(&all.iter().collect::<Vec<_>>()), expected);
    }

    #[test]
    fn ratios_of_several_of_ours_have_names() {
        let all = [
            measurement(("occ", 1.0), Some(("before", 1.0)), Some(1.16)),
            measurement(("plor", 1.0), Some(("before", 1.0)), Some(0.8)),
        ];
        assert_eq!(ratios(&all.iter().collect::<Vec<_>>()), "occ 1.16 (1.16 to 1.16); plor 0.8 (0.8 to 0.8)");
    }

    #[test]
    fn columns_without_a_cell_are_left_out() {
        let mut one = measurement(("occ", 1.5), None, None);
        one.threads = None;
        assert_eq!(
            table(&[&one]),
            "| work | ours | unit |\n|---|---|---|\n| array | occ 1.5 | commits/s |\n"
        );
    }
}
