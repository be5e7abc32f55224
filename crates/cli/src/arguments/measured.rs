//! The arguments that commands which measure share: protocols, threads, times and delays.

use super::{Refusal, unknown};
use clap::Args;
use hotrow::protocols::{PROTOCOLS, ProtocolInfo, find};
use hotrow_workloads::{BaselineInfo, OptionError, WorkloadOptions};
use std::time::Duration;

/// The option to delay operations.
#[derive(Debug, Args)]
pub(crate) struct ThinkArguments {
    /// Delay in microseconds before each operation of a transaction, as if operations came over a network; locks stay
    /// held meanwhile. A thread sleeps, which takes about 60 µs longer than given (exact if simulated)
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1_000_000), allow_negative_numbers = true)]
    think_us: u32,
}

impl ThinkArguments {
    /// The delay; an error if the workload cannot have one.
    pub(crate) fn of(&self, workload: &WorkloadOptions) -> Result<Duration, Refusal> {
        let info = workload.info();
        if self.think_us > 0 && !info.runs_procedures {
            return Err(OptionError::NoProcedures { workload: info.name }.into());
        }
        Ok(Duration::from_micros(self.think_us.into()))
    }
}

/// A baseline in the place of a protocol. It stays in memory until the process ends.
fn in_place_of_protocol(baseline: &BaselineInfo) -> &'static ProtocolInfo {
    let BaselineInfo { name, summary } = *baseline;
    let source = "-";
    Box::leak(Box::new(ProtocolInfo {
        name,
        summary,
        source,
        for_comparison: true,
        opaque: true,
        strict: true,
        concurrent: true,
        defers: false,
        steals: false,
        locks_ranges: false,
        workers_max: u32::MAX,
    }))
}

/// The named protocols and baselines, each with its number of threads; and those of `all` that do not admit the number.
pub(crate) fn protocols(
    names: &str,
    threads: Option<usize>,
    cores: usize,
    baselines: &[BaselineInfo],
) -> Result<(Vec<(&'static ProtocolInfo, usize)>, Vec<&'static ProtocolInfo>), Refusal> {
    let admits = |protocol: &ProtocolInfo, threads: usize| threads <= protocol.workers_max as usize;
    if names == "all" {
        let threads = threads.unwrap_or(cores);
        let (fit, left_out): (Vec<_>, Vec<_>) =
            PROTOCOLS.iter().partition(|protocol| admits(protocol, threads));
        if fit.is_empty() {
            return Err(Refusal::Message(format!("no protocol admits {threads} threads")));
        }
        let all = fit.into_iter().chain(baselines.iter().map(in_place_of_protocol));
        return Ok((all.map(|protocol| (protocol, threads)).collect(), left_out));
    }
    let named = names.split(',').map(|name| {
        let name = name.trim();
        let protocol = match baselines.iter().find(|baseline| baseline.name == name) {
            Some(baseline) => in_place_of_protocol(baseline),
            None => known_protocol(name, baselines)?,
        };
        let workers_max = protocol.workers_max as usize;
        let threads = threads.unwrap_or(cores.min(workers_max));
        if !admits(protocol, threads) {
            return Err(Refusal::Message(format!(
                "protocol {name} admits at most {workers_max} thread{}, not {threads}",
                if workers_max == 1 { "" } else { "s" }
            )));
        }
        Ok((protocol, threads))
    });
    Ok((named.collect::<Result<_, _>>()?, Vec::new()))
}

/// The protocol of a name that is no baseline's. The refusal names the nearest of protocols and baselines.
pub(crate) fn known_protocol(
    name: &str,
    baselines: &[BaselineInfo],
) -> Result<&'static ProtocolInfo, Refusal> {
    let protocols = PROTOCOLS.iter().map(|protocol| protocol.name);
    let known = protocols.chain(baselines.iter().map(|baseline| baseline.name));
    find(name).map_err(|_| Refusal::Message(unknown("protocol", name, known)))
}

/// The most threads that a run may have.
pub(crate) const THREADS_MAX: usize = 1024;

pub(crate) fn parse_threads(text: &str) -> Result<usize, String> {
    let threads = text.parse().ok().filter(|threads| (1..=THREADS_MAX).contains(threads));
    threads.ok_or_else(|| format!("expected a number from 1 to {THREADS_MAX}"))
}

/// The longest measurement or warm-up, in seconds: a day.
const SECONDS_MAX: f64 = 86_400.0;

pub(crate) fn parse_measured(text: &str) -> Result<Duration, String> {
    parse_seconds(text, 0.001)
}

pub(crate) fn parse_warmup(text: &str) -> Result<Duration, String> {
    parse_seconds(text, 0.0)
}

fn parse_seconds(text: &str, least: f64) -> Result<Duration, String> {
    // No range contains NaN.
    let seconds = text.parse().ok().filter(|seconds| (least..=SECONDS_MAX).contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("expected seconds from {least} to {SECONDS_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_leaves_out_the_protocols_that_do_not_admit_the_threads() {
        let (two, left_out) = protocols("all", Some(2), 8, &[]).unwrap();
        assert!(two.iter().all(|(protocol, threads)| *threads == 2 && protocol.workers_max >= 2));
        assert!(left_out.iter().any(|protocol| protocol.name == "none"));
        let (one, left_out) = protocols("all", None, 1, &[]).unwrap();
        assert_eq!((one.len(), left_out.len()), (PROTOCOLS.len(), 0));
    }

    #[test]
    fn a_named_protocol_gets_as_many_threads_as_it_admits_unless_they_are_given() {
        let threads = |names, threads| {
            let (protocols, _) = protocols(names, threads, 8, &[])?;
            Ok::<_, Refusal>(protocols.into_iter().map(|(_, threads)| threads).collect::<Vec<_>>())
        };
        assert_eq!(threads("occ,none", None).unwrap(), [8, 1]);
        assert_eq!(threads("occ, occ", Some(3)).unwrap(), [3, 3]);
        assert!(
            matches!(threads("occ,none", Some(2)), Err(Refusal::Message(words)) if words.contains("none"))
        );
        let misspelt = threads("ocm", None);
        assert!(matches!(misspelt, Err(Refusal::Message(words)) if words.ends_with("did you mean occ?")));
    }

    #[test]
    fn baselines_stand_beside_protocols() {
        let baselines = &[BaselineInfo { name: "by-hand", summary: "without Hotrow" }];
        let names = |given: &str| {
            let (chosen, _) = protocols(given, Some(2), 8, baselines)?;
            Ok::<_, Refusal>(chosen.iter().map(|(protocol, _)| protocol.name).collect::<Vec<_>>())
        };
        assert_eq!(names("occ,by-hand").unwrap(), ["occ", "by-hand"]);
        let all = names("all").unwrap();
        assert!(all.contains(&"occ") && all.last() == Some(&"by-hand"), "{all:?}");
        let Err(Refusal::Message(words)) = names("by-bicycle") else { panic!("it is not known") };
        assert!(words.ends_with(", by-hand"), "{words}");
    }

    #[test]
    fn invalid_seconds_and_thread_counts_are_refused() {
        for text in ["0", "-1", "NaN", "inf", "86401", "five", ""] {
            assert!(parse_measured(text).is_err(), "{text}");
        }
        assert_eq!(parse_measured("0.2"), Ok(Duration::from_millis(200)));
        assert_eq!(parse_warmup("0"), Ok(Duration::ZERO));
        assert!(parse_threads("0").is_err() && parse_threads("1025").is_err());
    }
}
