//! Tests of the simulator's subcommands as users call them. Only in builds with the simulator.

mod support;

use serde_json::Value;
use std::fs;
use support::{hotrow, text};

/// The output of a successful command. Standard error is empty, because it is a pipe.
fn printed(arguments: &[&str]) -> String {
    let output = hotrow(arguments);
    let errors = text(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{arguments:?}: {errors}");
    text(&output.stdout)
}

fn json_lines(arguments: &[&str]) -> Vec<Value> {
    printed(arguments).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The arguments of a short simulation.
fn short<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["sim"], arguments, &["--virtual-ms", "1", "--warmup-ms", "0"]].concat()
}

const ARRAY: [&str; 3] = ["array", "--size", "100"];

#[test]
fn the_same_options_give_the_same_bytes_in_another_process() {
    for workload in [&ARRAY[..], &["tpcc", "--scale", "small"]] {
        for format in ["table", "json"] {
            let options = ["--protocol", "occ,tl2", "--cores", "1,3", "--machine", "drp", "--format", format];
            let arguments = short(&[workload, &options].concat());
            let first = printed(&arguments);
            assert_eq!(first, printed(&arguments), "{arguments:?}");
            let other = printed(&[&arguments[..], &["--seed", "2"]].concat());
            assert_ne!(first, other, "{arguments:?} with another seed");
        }
    }
}

#[test]
fn bad_input_gets_one_line_and_status_2() {
    let directory = tempfile::tempdir().unwrap();
    let malformed = directory.path().join("malformed.toml");
    fs::write(&malformed, "name = \"abacus\"\nbeads = 10\n").unwrap();
    let malformed = malformed.to_str().unwrap();
    for (arguments, words) in [
        (&["sim", "nothing"][..], "unknown workload \"nothing\""),
        (&["sim", "array", "--machine", "abacus"], "unknown machine \"abacus\"; there are: drp, "),
        (&["sim", "array", "--machine", "./nowhere.toml"], "cannot read the machine model ./nowhere.toml"),
        (&["sim", "array", "--machine", malformed], "malformed.toml is not a machine model: "),
        (
            &["sim", "array", "--machine", "sto", "--cores", "25"],
            "machine sto has 24 hardware threads, not 25",
        ),
        (&["sim", "array", "--cores", "0"], "--cores 0: expected a number from 1 to 1024"),
        (&["sim", "array", "--cores", "1,,2"], "--cores \"\": expected a whole number"),
        (
            &["sim", "array", "--cores", "2", "--protocol", "none"],
            "protocol none admits at most 1 thread, not 2",
        ),
        (&["sim", "array", "--think-us", "1"], "--think-us delays the operations of procedures"),
        (
            &["sim", "array", "--plot", "p.svg", "--plot-kind", "latency", "--plot-at", "3"],
            "--plot-at 3: no run has 3 cores",
        ),
        (&["sim", "array", "--virtual-ms", "0"], "--virtual-ms 0: expected a number from 1 to 1000000"),
        (&["sim", "array", "--transfer-factor", "0"], "expected a number from 0.01 to 100"),
        (&["sim", "array", "--transfer-factor", "1,NaN"], "expected a number from 0.01 to 100"),
        (&["explore", "--schedules", "0"], "--schedules 0: expected a number from 1 to 1000000000"),
        (&["explore", "--protocol", "none"], "protocol none admits at most 1 thread, not 4"),
        (&["fidelity", "--machine", "abacus"], "unknown machine \"abacus\"; there are: drp, "),
        (
            &["fidelity", "--workload", "stress"],
            "--workload stress: expected array, tpcc, ycsb, tables32 or all",
        ),
        (&["fidelity", "--seconds", "0"], "expected seconds from 0.001 to 86400"),
    ] {
        let output = hotrow(arguments);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
        assert!(errors.starts_with("hotrow: ") && errors.lines().count() == 1, "{arguments:?}: {errors}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let inside_of_none = directory.path().join("none").join("file");
    for path in [inside_of_none.as_path(), directory.path()] {
        let path = path.to_str().unwrap();
        for arguments in [&["sim", "array", "--plot", path][..], &["fidelity", "--save", path]] {
            let output = hotrow(arguments);
            let errors = text(&output.stderr);
            assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()), "{errors}");
            assert!(errors.starts_with(&format!("hotrow: cannot write {path}: ")), "{errors}");
            assert_eq!(errors.lines().count(), 1, "{errors}");
        }
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
}

const EXPLORE: [&str; 5] = ["explore", "--schedules", "60", "--threads", "1"];

#[test]
fn explored_schedules_pass_and_repeat_exactly() {
    let first = printed(&EXPLORE);
    assert!(first.lines().count() >= 2, "{first}");
    for line in first.lines() {
        assert!(line.contains(": 60 schedules without a violation (seeds 1 to 60; "), "{line}");
    }
    assert_eq!(first, printed(&EXPLORE));
}

#[test]
fn other_seeds_explore_other_schedules() {
    let of_seed = |seed| printed(&["explore", "--schedules", "20", "--threads", "1", "--seed", seed]);
    assert_ne!(of_seed("1"), of_seed("2"));
}

#[test]
fn traces_of_explored_schedules_are_the_same_in_two_processes() {
    // A trace numbers the words that the cores touch, so it also shows if the allocator places them otherwise.
    let arguments = "explore --schedules 60 --threads 1 --protocol drp,tictoc --trace";
    let trace = || printed(&arguments.split(' ').collect::<Vec<_>>());
    assert!(trace() == trace(), "the traces of two processes differ");
}

#[test]
fn every_simulated_table_states_the_error_of_the_simulator() {
    let table = printed(&short(&[&ARRAY[..], &["--cores", "1"]].concat()));
    let last = table.lines().last().unwrap();
    assert!(last.starts_with("error against real runs") && last.contains("`hotrow fidelity`"), "{table}");
    let reports = json_lines(&short(&[&ARRAY[..], &["--cores", "1", "--format", "json"]].concat()));
    assert_eq!(reports[0]["error_against_real_runs"], last);
    assert_eq!((&reports[0]["virtual"], &reports[0]["transfer_factor"]), (&true.into(), &1.0.into()));
}

#[test]
fn a_profile_accounts_for_all_of_the_cores_time_and_names_what_limits_the_run() {
    let run =
        ["array", "--size", "2", "--ops", "1", "--increment-share", "1", "--machine", "drp", "--profile"];
    let protocols = ["--protocol", "occ,wound-wait", "--cores", "1,8"];
    let arguments = short(&[&run[..], &protocols, &["--format", "json"]].concat());
    let reports = json_lines(&arguments);
    for report in &reports {
        let (profile, cores) = (&report["profile"], report["threads"].as_f64().unwrap());
        let number = |value: &Value| value.as_f64().unwrap();
        let times = ["work_ns", "private_cache_ns", "memory_ns", "transfer_ns", "wait_ns"];
        let of = |state: &str, names: &[&str]| {
            let labels = profile[state].as_array().unwrap();
            labels.iter().flat_map(|label| names.iter().map(|name| number(&label[*name]))).sum::<f64>()
        };
        let all: f64 = ["committed", "aborted", "between"].iter().map(|state| of(state, &times)).sum();
        let core_time = number(&profile["core_time_ns"]);
        assert_eq!(core_time, 1e6 * cores, "{profile}");
        // Each entry is rounded down to a nanosecond.
        assert!((core_time - 100.0..=core_time).contains(&all), "{all} of {core_time}: {profile}");
        assert!(of("committed", &["work_ns"]) > 0.0, "{profile}");
        let listed = |list: &str| profile[list].as_array().unwrap();
        if cores == 1.0 {
            assert!(listed("waits").is_empty() && listed("lines").is_empty(), "{profile}");
            continue;
        }
        // Two-phase locking shares the queues of its locks, too. Which of them lie in one line is decided by where values lie.
        let dearest = listed("lines")[0]["on"].as_str().unwrap();
        let is_queue = report["protocol"] == "wound-wait" && dearest == "the lists beside locks";
        assert!(is_queue || dearest.starts_with("array "), "{profile}");
        let busiest = &listed("resources")[0];
        assert!(busiest["on"].as_str().unwrap().starts_with("array "), "{profile}");
        let busy = number(&busiest["busy_percent"]);
        assert!((30.0..=100.0).contains(&busy), "{profile}");
        // A commit takes the same time of it, however many there are.
        let reached = number(&busiest["bound_commits_per_s"]) * busy / 100.0;
        let throughput = number(&profile["commits"]) * 1e3;
        assert!((reached / throughput - 1.0).abs() < 0.01, "{reached} of {throughput}: {profile}");
        assert!(profile["limit"].as_str().unwrap().contains("was busy for"), "{profile}");
        if report["protocol"] == "wound-wait" {
            assert_eq!(busiest["kind"], "lock", "{profile}");
            let mut waits = listed("waits").iter().filter(|wait| wait["kind"] == "its lock");
            let wait = waits.next().expect("eight cores share two locks");
            assert!(wait["on"].as_str().unwrap().starts_with("array "), "{profile}");
        }
    }
    let again = printed(&arguments);
    assert_eq!(again, printed(&arguments));
    let table = printed(&short(&[&run[..], &["--cores", "2"]].concat()));
    assert!(
        table.contains("profile of array under occ on 2 cores of drp") && table.contains("limit: "),
        "{table}"
    );
}

#[test]
fn each_transfer_factor_is_a_run_and_the_orders_are_compared() {
    let options = ["--cores", "1,4", "--protocol", "occ,tl2", "--transfer-factor", "0.5,2"];
    let table = printed(&short(&[&ARRAY[..], &options].concat()));
    assert!(table.contains("transfers") && table.contains("0.5x") && table.contains("2x"), "{table}");
    let sentences =
        table.lines().filter(|line| line.contains("at 4 cores") && line.contains("transfer factor"));
    assert_eq!(sentences.count(), 1, "{table}");
    let reports = json_lines(&short(&[&ARRAY[..], &options, &["--format", "json"]].concat()));
    let factors = reports.iter().map(|report| report["transfer_factor"].as_f64().unwrap());
    assert_eq!(factors.collect::<Vec<_>>(), [0.5, 0.5, 2.0, 2.0, 0.5, 0.5, 2.0, 2.0]);
    assert!(
        reports[1]["commits"].as_u64() > reports[3]["commits"].as_u64(),
        "dearer transfers cost throughput"
    );
    // A single core transfers no lines. (Each run has a process of its own, because the heap that earlier runs leave
    // decides which values share a line.)
    let commits = |factor| {
        let alone = ["--cores", "1", "--protocol", "occ", "--transfer-factor", factor, "--format", "json"];
        json_lines(&short(&[&ARRAY[..], &alone].concat()))[0]["commits"].clone()
    };
    assert_eq!(commits("0.5"), commits("2"));
}

#[test]
fn stolen_operations_are_counted_in_the_measured_time_only() {
    const OPERATIONS: f64 = 32.0;
    let run = ["sim", "tables32", "--hot-records", "1", "--records", "1000", "--machine", "stealdb"];
    let time = ["--warmup-ms", "2", "--virtual-ms", "1"];
    let shared = ["--protocol", "steal,2pl-mcs", "--cores", "8"];
    let reports = json_lines(&[&run[..], &time, &shared, &["--format", "json"]].concat());
    let number = |value: &Value| value.as_f64().unwrap();
    let counters = &reports[0]["counters"];
    let (own, stolen) = (number(&counters["own_operations"]), number(&counters["stolen_operations"]));
    assert!(own > 0.0 && stolen > 0.0, "{counters}");
    assert_eq!(number(&counters["stolen_share"]), stolen / (own + stolen));
    assert!(
        number(&counters["own_mean_us"]) > 0.0 && number(&counters["stolen_mean_us"]) > 0.0,
        "{counters}"
    );
    // If those of the warm-up were counted, there would be more than the measured transactions have.
    let attempts = number(&reports[0]["commits"]) + number(&reports[0]["aborts"]);
    assert!(own + stolen <= attempts * OPERATIONS, "{}", reports[0]);
    assert!(reports[1].get("counters").is_none(), "{}", reports[1]);

    let table = printed(&[&run[..], &time, &shared].concat());
    assert!(table.contains("stolen share: ") && table.contains("stolen mean µs"), "{table}");
    let plain = printed(&[&run[..], &time, &["--protocol", "2pl-mcs", "--cores", "2"]].concat());
    assert!(!plain.contains("stolen"), "{plain}");
}

#[test]
fn a_plot_is_an_svg_of_all_protocols() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plot.svg");
    let options = ["--cores", "1,2,16", "--protocol", "occ,tl2", "--plot", path.to_str().unwrap()];
    let arguments = short(&[&ARRAY[..], &options].concat());
    printed(&arguments);
    let svg = fs::read_to_string(&path).unwrap();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
    for words in
        ["occ", "tl2", "cores", "commits/s", "99th percentile", "array on virtual cores of server-128"]
    {
        assert!(svg.contains(words), "{words} in {svg}");
    }
    printed(&arguments);
    assert_eq!(svg, fs::read_to_string(&path).unwrap(), "the same run is the same picture");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_plot_of_latency_has_a_line_for_each_protocol_in_both_charts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plot.svg");
    let mut lines = Vec::new();
    for protocols in ["occ", "occ,tl2"] {
        let options = ["--cores", "1,2,4", "--protocol", protocols, "--plot", path.to_str().unwrap()];
        let kind = ["--plot-kind", "latency", "--plot-at", "2"];
        printed(&short(&[&ARRAY[..], &options, &kind].concat()));
        let svg = fs::read_to_string(&path).unwrap();
        for words in [
            "99.9th percentile of latency, µs",
            "thousand commits/s (1, 2, 4 cores)",
            "percentile of transactions (2 cores)",
            "latency, µs",
            "99.9",
        ] {
            assert!(svg.lines().any(|line| line == words), "{words} in {svg}");
        }
        assert!(svg.contains("error against real runs"), "{svg}");
        lines.push(svg.matches("<polyline ").count());
    }
    assert!(lines[1] >= lines[0] + 2, "a line in each chart: {lines:?}");
}

#[test]
fn think_time_delays_each_operation_in_virtual_time() {
    const THINK_US: f64 = 1_000.0;
    let run = ["sim", "tpcc", "--scale", "small", "--mix", "new-order", "--cores", "1", "--warmup-ms", "0"];
    let latency = |rest: [&str; 4]| {
        let report = json_lines(&[&run[..], &["--format", "json"], &rest].concat()).remove(0);
        assert_eq!(report["attempts_max"], 1, "no other transaction runs: {report}");
        let percentile = |name: &str| report["latency_us"][name].as_f64().unwrap();
        (percentile("p50"), percentile("max"))
    };
    // An order has 5 operations, and 3 for each of its 5 to 15 lines.
    let (p50, max) = latency(["--virtual-ms", "400", "--think-us", "1000"]);
    assert!((20.0 * THINK_US..51.0 * THINK_US).contains(&p50), "{p50}");
    assert!((p50..51.0 * THINK_US).contains(&max), "{max}");
    assert!(
        latency(["--virtual-ms", "1", "--think-us", "0"]).1 < THINK_US,
        "without delays a transaction is short"
    );
}

#[test]
fn fidelity_compares_each_point_with_the_machine_and_saves_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fidelity.toml");
    let path = path.to_str().unwrap();
    let run =
        ["fidelity", "--workload", "array", "--protocol", "occ,none", "--repeat", "1", "--seconds", "0.1"];
    let quick =
        ["--virtual-ms", "1", "--warmup-ms", "0", "--warmup", "0", "--format", "json", "--save", path];
    let points = json_lines(&[&run[..], &quick].concat());
    // 10 and 50 operations; protocol `none` admits one thread only.
    let two = hotrow::sync::thread::parallelism() >= 2;
    assert_eq!(points.len(), if two { 6 } else { 4 }, "{points:?}");
    for point in &points {
        let number = |name: &str| point[name].as_f64().unwrap();
        let expected = (number("simulated_per_s") / number("real_per_s") - 1.0) * 100.0;
        assert!((number("error_percent") - expected).abs() <= 0.051, "{point}");
    }
    let saved = fs::read_to_string(path).unwrap();
    assert_eq!(saved.matches("[[point]]").count(), points.len(), "{saved}");
    let command =
        "command = \"hotrow fidelity --protocol occ,none --workload array --repeat 1 --seconds 0.1 ";
    assert!(saved.contains(command) && saved.contains("revision = "), "{saved}");
    assert!(!saved.contains(path), "{saved}");
}

#[test]
fn figures_are_judged_on_a_page_and_go_on_after_an_interruption() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().to_str().unwrap();
    let call = || printed(&["figures", "--only", "sto.6", "--quick", "--out", out]);
    let page = || fs::read_to_string(directory.path().join("index.html")).unwrap();
    let reports = directory.path().join("reports.jsonl");
    let lines = || fs::read_to_string(&reports).unwrap().lines().map(str::to_owned).collect::<Vec<_>>();
    let first = call();
    assert!(first.contains("of 3 claims hold; the page is "), "{first}");
    let (written, page_of_all) = (lines(), page());
    assert_eq!(written.len(), 6);
    for words in ["<svg", "<polyline", "sto §5.3, Figure 6", "hotrow sim hashtable", "--quick --out DIR"] {
        assert!(page_of_all.contains(words), "{words}");
    }
    assert!(!page_of_all.contains("http"), "the page asks nobody else");
    // Killed while it wrote the last line. The others are not measured again.
    fs::write(&reports, format!("{}\n{}", written[..5].join("\n"), &written[5][..40])).unwrap();
    assert_eq!((call(), page()), (first.clone(), page_of_all));
    assert_eq!(lines()[..5], written[..5], "what was measured stays");
    assert_eq!(lines()[6..], written[5..], "the point that was cut off is measured once more");
    // Of another revision: not used.
    let revision =
        serde_json::from_str::<Value>(&written[0]).unwrap()["revision"].as_str().unwrap().to_owned();
    let [this, other] =
        [revision.as_str(), "older"].map(|name| format!("\"revision\":\"{name}\",\"report\""));
    fs::write(&reports, format!("{}\n", written.join("\n").replace(&this, &other))).unwrap();
    assert_eq!(call(), first);
    assert_eq!(lines().len(), 12, "each point was measured once more");
    // From the reports of another revision, without a run.
    fs::write(&reports, format!("{}\n", written.join("\n").replace(&this, &other))).unwrap();
    for (name, text) in [("machines.json", "{}"), ("subjects.json", "[]"), ("measured.jsonl", "")] {
        fs::write(directory.path().join(name), text).unwrap();
    }
    let words = printed(&["figures", "--from-archive", "--out", out]);
    assert!(words.contains("README.md"), "{words}");
    let results = fs::read_to_string(directory.path().join("README.md")).unwrap();
    assert!(results.contains("Revision older.") && page().contains("<p>Revision older, on "), "{results}");
    assert!(results.contains("| sto | 11 | 1 | 21 | 3 |"), "{results}");
    assert_eq!(lines().len(), 6, "nothing was measured");
}

#[test]
fn list_names_the_machines() {
    let list = json_lines(&["list", "--format", "json"]).remove(0);
    let machines = list["machines"].as_array().unwrap();
    let drp = machines.iter().find(|machine| machine["name"] == "drp").unwrap();
    assert_eq!((&drp["sockets"], &drp["cores_per_socket"]), (&4.into(), &15.into()));
    let words = printed(&["list"]);
    for machine in machines {
        assert!(words.contains(machine["name"].as_str().unwrap()), "{machine} in {words}");
    }
    assert!(words.contains("4 x 15 x 2"), "{words}");
}

#[test]
fn help_has_an_example() {
    for arguments in
        [&["sim", "--help"][..], &["sim", "tpcc", "--help"], &["explore", "--help"], &["fidelity", "--help"]]
    {
        let help = printed(arguments);
        let has_one =
            ["Example:\n  hotrow ", "Examples:\n  hotrow "].iter().any(|words| help.contains(words));
        assert!(has_one, "{arguments:?}: {help}");
    }
}
