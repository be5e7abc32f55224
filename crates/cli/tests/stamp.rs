//! Tests of `hotrow bench stamp`, and of `hotrow sim stamp` where there is a simulator, as users call them. Only in builds with
//! the applications.

mod support;

use serde_json::Value;
use support::{hotrow, text};

#[test]
fn an_application_runs_on_every_store_and_is_verified() {
    let output = hotrow(&[
        "bench",
        "stamp",
        "intruder",
        "--set",
        "flows=60",
        "--set",
        "packets_max=8",
        "--protocol",
        "occ,drp",
        "--threads",
        "1,2",
        "--repeat",
        "2",
        "--format",
        "json",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Two rounds, each of the sequential run and, at both numbers of threads, 4 variants of occ and 5 of drp.
    assert_eq!(lines.len(), 2 * (1 + 2 * (4 + 5)));
    assert!(lines.iter().all(|run| run["verified"] == true && run["counts"]["flows"] == 60));
    let items = |variant: &str| {
        let mut of_variant = lines.iter().filter(|run| run["variant"] == variant);
        of_variant.next().unwrap()["items_max"].as_u64().unwrap()
    };
    assert!(items("words") > 5 * items("datatypes"), "{} and {}", items("words"), items("datatypes"));
}

#[test]
fn vacation_runs_on_boosted_maps() {
    let output = hotrow(&[
        "bench",
        "stamp",
        "vacation",
        "--set",
        "relations=20",
        "--set",
        "transactions=500",
        "--variant",
        "boosted",
        "--threads",
        "3",
        "--format",
        "json",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let variants: Vec<&str> = lines.iter().map(|run| run["variant"].as_str().unwrap()).collect();
    assert_eq!(variants, ["sequential", "boosted"]);
    assert!(lines.iter().all(|run| run["verified"] == true && run["counts"]["transactions"] == 500));
}

#[test]
fn the_table_has_a_row_for_each_run() {
    let output =
        hotrow(&["bench", "stamp", "kmeans", "--set", "points=50", "--threads", "2", "--variant", "words"]);
    let table = text(&output.stdout);
    assert!(output.status.success() && table.starts_with("kmeans (one run each)\n"), "{table}");
    assert_eq!(table.lines().filter(|line| line.contains("right")).count(), 2, "{table}");
}

#[test]
fn bad_input_gets_one_line_and_status_2() {
    for (arguments, words) in [
        (&["sudoku"][..], "unknown application \"sudoku\"; there are: "),
        (&["intruder", "--set", "flows"], "--set flows: expected KEY=VALUE"),
        (&["intruder", "--set", "flows=0"], "flows=0: expected a number from 1"),
        (&["intruder", "--preset", "abacus"], "unknown preset \"abacus\"; there are: "),
        (
            &["intruder", "--protocol", "plor"],
            "unknown protocol of the STAMP applications \"plor\"; there are: occ, tl2, drp, wait-die",
        ),
        (&["intruder", "--variant", "deferred"], "variant deferred needs a protocol that defers: drp"),
        (&["all", "--threads", "0"], "expected a number from 1 to"),
    ] {
        let output = hotrow(&[&["bench", "stamp"], arguments].concat());
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(words) && errors.lines().count() == 1, "{arguments:?}: {errors}");
    }
}

#[cfg(feature = "sim")]
#[test]
fn an_application_on_virtual_cores_is_verified_and_takes_the_same_virtual_time_again() {
    let arguments =
        "sim stamp kmeans --set points=50 --cores 1,3 --machine sto --variant datatypes,words --format json";
    let printed = || {
        let output = hotrow(&arguments.split(' ').collect::<Vec<_>>());
        assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let first = printed();
    assert_eq!(first, printed());
    let runs: Vec<Value> = first.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let order: Vec<_> = runs.iter().map(|run| (run["cores"].as_u64(), run["variant"].as_str())).collect();
    let expected = [(1, "words"), (1, "datatypes"), (3, "words"), (3, "datatypes")];
    assert_eq!(order, expected.map(|(cores, variant)| (Some(cores), Some(variant))), "the words come first");
    let seconds = |run: &Value| run["virtual_seconds"].as_f64().unwrap();
    for pair in runs.chunks(2) {
        assert!(pair.iter().all(|run| run["verified"] == true && run["commits"].as_u64() > Some(50)));
        let (ratio, to_words) =
            (seconds(&pair[0]) / seconds(&pair[1]), pair[1]["to_words"].as_f64().unwrap());
        assert!((to_words / ratio - 1.0).abs() < 1e-9, "{to_words} beside {ratio}, apart from rounding");
    }
    assert!(seconds(&runs[3]) < seconds(&runs[1]), "three cores share the work");
}

#[cfg(feature = "sim")]
#[test]
fn an_application_that_does_not_end_in_time_is_an_error() {
    let arguments = "sim stamp kmeans --set points=2000 --cores 2 --variant datatypes --virtual-ms-max 1";
    let output = hotrow(&arguments.split(' ').collect::<Vec<_>>());
    let expected =
        "hotrow: simulation: kmeans datatypes under occ on 2 cores: the limit of virtual time was reached\n";
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), expected.to_owned()));
    assert!(output.stdout.is_empty());
}
