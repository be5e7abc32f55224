//! The order of protocols under several transfer factors, which shows whether an error in their costs changes it.

use crate::sim::VirtualRun;
use std::cmp::Ordering;

/// Returns a sentence for each pair of protocols. It says whether their order, at the largest number of cores, is the
/// same under all factors.
pub(crate) fn orders(runs: &[VirtualRun]) -> Vec<String> {
    let Some(cores) = runs.iter().map(|run| run.report.threads).max() else { return Vec::new() };
    let mut protocols = Vec::new();
    let mut factors = Vec::new();
    for run in runs {
        if !protocols.contains(&run.report.protocol.as_str()) {
            protocols.push(&run.report.protocol);
        }
        if !factors.contains(&run.factor) {
            factors.push(run.factor);
        }
    }
    let throughput = |protocol: &str, factor: f64| {
        let fits = |run: &&VirtualRun| {
            (run.report.protocol.as_str(), run.report.threads, run.factor) == (protocol, cores, factor)
        };
        runs.iter().find(fits).map(|run| run.report.throughput_per_s)
    };
    let mut sentences = Vec::new();
    for (at, first) in protocols.iter().enumerate() {
        for second in &protocols[at + 1..] {
            let compared = factors.iter().filter_map(|factor| {
                Some((*factor, throughput(first, *factor)? / throughput(second, *factor)?))
            });
            sentences.push(order(first, second, cores, &compared.collect::<Vec<_>>()));
        }
    }
    sentences
}

/// The sentence for one pair; `ratios` are the first protocol's throughput relative to the second's, by factor.
fn order(first: &str, second: &str, cores: usize, ratios: &[(f64, f64)]) -> String {
    let where_ = format!("at {cores} core{}", if cores == 1 { "" } else { "s" });
    let under = |holds: fn(f64) -> bool| {
        let factors = ratios.iter().filter(|(_, ratio)| holds(*ratio)).map(|(factor, _)| factor.to_string());
        factors.collect::<Vec<_>>().join(", ")
    };
    let ahead = under(|ratio| ratio > 1.0);
    let behind = under(|ratio| ratio < 1.0);
    let neither = under(|ratio| ratio.partial_cmp(&1.0).is_none_or(Ordering::is_eq));
    let all = |winner: &str, loser: &str, ratios: Vec<f64>| {
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        // Without commits of the other one there is no ratio.
        let times =
            if most.is_finite() { format!(" ({least:.2} to {most:.2} times)") } else { String::new() };
        format!("{winner} is faster than {loser} {where_} under all transfer factors{times}")
    };
    match (ahead.is_empty(), behind.is_empty(), neither.is_empty()) {
        (false, true, true) => all(first, second, ratios.iter().map(|(_, ratio)| *ratio).collect()),
        (true, false, true) => all(second, first, ratios.iter().map(|(_, ratio)| ratio.recip()).collect()),
        (true, true, _) => format!("{first} and {second} are equal {where_} under all transfer factors"),
        _ => {
            let mut parts = Vec::new();
            for (words, factors) in
                [(format!("{first} is faster"), ahead), (format!("{second} is faster"), behind)]
            {
                if !factors.is_empty() {
                    parts.push(format!("{words} with {factors}"));
                }
            }
            if !neither.is_empty() {
                parts.push(format!("they are equal with {neither}"));
            }
            format!(
                "the order of {first} and {second} {where_} depends on the transfer factor: {}",
                parts.join(", ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::report;

    fn run(protocol: &'static str, threads: usize, factor: f64, throughput_per_s: f64) -> VirtualRun {
        let mut report = report(true);
        (report.protocol, report.threads, report.throughput_per_s) =
            (protocol.to_owned(), threads, throughput_per_s);
        VirtualRun { factor, report, profile: None }
    }

    #[test]
    fn only_runs_with_the_most_cores_decide_the_order() {
        let runs = [
            run("occ", 1, 0.5, 1.0),
            run("occ", 8, 0.5, 30.0),
            run("occ", 8, 2.0, 11.0),
            run("tl2", 1, 0.5, 9.0),
            run("tl2", 8, 0.5, 10.0),
            run("tl2", 8, 2.0, 10.0),
        ];
        let words = "occ is faster than tl2 at 8 cores under all transfer factors (1.10 to 3.00 times)";
        assert_eq!(orders(&runs), [words]);
        let reversed: Vec<VirtualRun> = runs.into_iter().rev().collect();
        assert_eq!(orders(&reversed), [words]);
    }

    #[test]
    fn an_order_that_depends_on_the_factor_is_reported_with_the_factors() {
        let sentence = order("occ", "tl2", 1, &[(0.5, 1.2), (1.0, 1.1), (2.0, 0.9), (4.0, 1.0)]);
        let words = "the order of occ and tl2 at 1 core depends on the transfer factor: occ is faster with 0.5, 1, \
                     tl2 is faster with 2, they are equal with 4";
        assert_eq!(sentence, words);
        let equal = "occ and tl2 are equal at 2 cores under all transfer factors";
        assert_eq!(order("occ", "tl2", 2, &[(1.0, 1.0), (2.0, f64::NAN)]), equal);
        let alone = "occ is faster than tl2 at 2 cores under all transfer factors";
        assert_eq!(order("occ", "tl2", 2, &[(1.0, f64::INFINITY), (2.0, 2.0)]), alone);
    }

    #[test]
    fn each_pair_has_its_sentence() {
        let runs = ["occ", "tl2", "none"].map(|protocol| run(protocol, 1, 1.0, 1.0));
        assert_eq!(orders(&runs).len(), 3);
        assert!(orders(&runs[..1]).is_empty() && orders(&[]).is_empty());
    }
}
