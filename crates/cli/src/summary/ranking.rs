//! The end of a comparison: throughput in a table, and one sentence that says which protocol is first, by how much, and how much the
//! rounds vary.

use super::comparison::{Measures, checks, ratios_to, table};
use crate::run::{BenchPlan, Reports, rounds};
use crate::text;

/// Formats the end of a comparison.
pub(crate) fn ranking(plan: &BenchPlan, reports: &Reports) -> String {
    let Some((_, first)) = reports.first() else { return String::new() };
    let measured = Measures::of_runs(plan, reports);
    let heading = format!("{}: {}; {}", first.workload, plan.method(), ratios_to(plan, first));
    let header = ["protocol", "threads", "commits/s", "", "least", "most", "checks"];
    let table = table(plan, &header, |run| {
        let own = &measured[run];
        let mut cells = own.throughput(&measured[plan.compared_to(run)]);
        cells.extend([own.least, own.most].map(text::quantity));
        cells.push(checks(&rounds(reports, run)));
        cells
    });
    let runs: Vec<Ranked<'_>> = plan
        .protocols
        .iter()
        .zip(&measured)
        .map(|((protocol, threads), measured)| {
            let threads = if plan.several_threads { *threads } else { 0 };
            Ranked { protocol: protocol.name, threads, measured }
        })
        .collect();
    format!("{heading}\n\n{table}\n{}\n", sentence(&runs, plan.repeat))
}

/// One run of the plan.
struct Ranked<'a> {
    protocol: &'static str,
    /// 0 if all runs have the same number of threads.
    threads: usize,
    measured: &'a Measures,
}

/// The sentence on the first protocol at each number of threads.
fn sentence(runs: &[Ranked<'_>], rounds: u32) -> String {
    let mut numbers: Vec<usize> = Vec::new();
    for run in runs {
        if !numbers.contains(&run.threads) {
            numbers.push(run.threads);
        }
    }
    let clauses = numbers.iter().map(|threads| {
        let mut alike: Vec<&Ranked<'_>> = runs.iter().filter(|run| run.threads == *threads).collect();
        alike.sort_by(|one, other| other.measured.throughput.total_cmp(&one.measured.throughput));
        let clause = clause(&alike, rounds);
        match threads {
            0 => clause,
            1 => format!("at 1 thread {clause}"),
            _ => format!("at {threads} threads {clause}"),
        }
    });
    let mut sentence = clauses.collect::<Vec<_>>().join("; ");
    // The first word is never a protocol's name.
    if let Some(first) = sentence.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    sentence + "."
}

/// The clause on runs with the same number of threads, the fastest first.
fn clause(runs: &[&Ranked<'_>], rounds: u32) -> String {
    let Some(Ranked { protocol, measured: first, .. }) = runs.first() else { return String::new() };
    if first.throughput == 0.0 {
        return String::from("no protocol has committed a transaction, so measure for longer (--seconds)");
    }
    let range = |measured: &Measures| match rounds {
        1 => String::new(),
        _ => format!(" (rounds {} to {})", text::quantity(measured.least), text::quantity(measured.most)),
    };
    let throughput =
        format!("{protocol} with {} commits/s{}", text::quantity(first.throughput), range(first));
    let Some(Ranked { protocol: other, measured: second, .. }) = runs.get(1) else {
        return format!("there is only {throughput}");
    };
    if second.throughput == 0.0 {
        return format!("first is {throughput}, and no other protocol has committed a transaction");
    }
    let spread = match rounds {
        1 => "and one round shows no spread",
        _ if first.least > second.most => "and their rounds do not overlap",
        _ => "but their rounds overlap, so that the order is uncertain",
    };
    let times = text::ratio(first.throughput, second.throughput);
    format!("first is {throughput}, {times} of {other}, the second{}, {spread}", range(second))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(least: f64, throughput: f64, most: f64) -> Measures {
        Measures { throughput, least, most, ..Measures::of_all(&[]) }
    }

    fn ranked<'a>(protocol: &'static str, threads: usize, measured: &'a Measures) -> Ranked<'a> {
        Ranked { protocol, threads, measured }
    }

    #[test]
    fn a_sentence_says_who_is_first_by_how_much_and_within_which_spread() {
        let (slow, fast) = (measured(90.0, 100.0, 110.0), measured(140.0, 150.0, 160.0));
        let runs = [ranked("occ", 0, &slow), ranked("plor", 0, &fast)];
        assert_eq!(
            sentence(&runs, 5),
            "First is plor with 150 commits/s (rounds 140 to 160), 1.50x of occ, the second (rounds 90.0 to 110), \
             and their rounds do not overlap."
        );
        assert_eq!(
            sentence(&runs, 1),
            "First is plor with 150 commits/s, 1.50x of occ, the second, and one round shows no spread."
        );
        assert_eq!(sentence(&runs[..1], 5), "There is only occ with 100 commits/s (rounds 90.0 to 110).");
        let near = measured(95.0, 105.0, 115.0);
        let runs = [ranked("occ", 0, &slow), ranked("plor", 0, &near)];
        assert!(sentence(&runs, 5).ends_with(", but their rounds overlap, so that the order is uncertain."));
    }

    #[test]
    fn each_number_of_threads_has_a_clause_of_the_same_sentence() {
        let (none, some) = (measured(0.0, 0.0, 0.0), measured(3.0, 4.0, 5.0));
        let runs = [
            ranked("occ", 1, &none),
            ranked("tl2", 1, &none),
            ranked("occ", 2, &none),
            ranked("tl2", 2, &some),
        ];
        assert_eq!(
            sentence(&runs, 3),
            "At 1 thread no protocol has committed a transaction, so measure for longer (--seconds); at 2 threads first is \
             tl2 with 4.00 commits/s (rounds 3.00 to 5.00), and no other protocol has committed a transaction."
        );
    }
}
