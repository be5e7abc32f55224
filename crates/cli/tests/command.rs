//! Tests of the command as users call it: arguments, output and exit status.

mod support;

use serde_json::Value;
use support::{hotrow, text};

/// The output of a successful command. Standard error has no progress, because it is a pipe.
fn printed(arguments: &[&str]) -> String {
    let output = hotrow(arguments);
    let errors = text(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    let is_note = |line: &str| line.contains("is left out") || line.starts_with("hotrow: takes about ");
    assert!(errors.lines().all(is_note), "{arguments:?}: {errors}");
    text(&output.stdout)
}

fn json_lines(arguments: &[&str]) -> Vec<Value> {
    printed(arguments).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Options of a short run.
const SHORT: [&str; 6] = ["--seconds", "0.2", "--warmup", "0", "--format", "json"];

fn short<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &SHORT].concat()
}

/// The reports of a run in which transactions have committed. On a busy machine a short one may have none.
fn reports_of_commits(arguments: &[&str]) -> Vec<Value> {
    for seconds in ["0.2", "2", "20"] {
        let arguments = [arguments, &["--seconds", seconds], &SHORT[2..]].concat();
        let reports = json_lines(&arguments);
        if reports.iter().all(|report| report["commits"].as_u64().unwrap() > 0) {
            return reports;
        }
    }
    panic!("{arguments:?}: no commits in twenty seconds");
}

#[test]
fn bad_input_gets_one_line_and_status_2() {
    for (arguments, words) in [
        (
            &["bench", "nothing"][..],
            "unknown workload \"nothing\"; there are: tpcc, ycsb, articles, tables32, array, tickets, hashtable",
        ),
        (
            &["compare", "nothing"],
            "unknown workload \"nothing\"; there are: tpcc, ycsb, articles, tables32, array, tickets, hashtable",
        ),
        (&["measure", "tpcc"], "unknown command \"measure\"; there are: bench, compare, check, chop, log, "),
        (
            &["bench", "array", "--durability", "group"],
            "--durability is for workloads with durable tables, and array has none",
        ),
        #[cfg(feature = "remote")]
        (
            // Said before the store is asked, which is not there.
            &["bench", "tickets", "--protocol", "drp", "--store", "etcd://127.0.0.1:1/x"],
            "--protocol is for tables of this process, not for those in a distributed store",
        ),
        (
            &["bench", "tickets", "--durability", "group", "--log-dir", "/nowhere/at/all"],
            "/nowhere/at/all is no directory",
        ),
        (&["log", "verify", "src"], "src has no log of a database"),
        (&["log", "dump", "/nowhere/at/all"], "/nowhere/at/all: No such file or directory"),
        (&["chop", "array"], "the transactions of array are no procedures, so they cannot be chopped"),
        (&["chop", "tpcc", "--refine", "much"], "--refine much: expected default, snapshots or full"),
        (
            &["bench", "tickets", "--protocol", "two-mutexes"],
            "unknown protocol \"two-mutexes\"; there are: occ",
        ),
        (&["bench", "tpcc", "--protocol", "one-mutex"], "unknown protocol \"one-mutex\"; there are: occ"),
        (
            &["bench", "tickets", "--protocol", "one-mutex", "--think-us", "10"],
            "--think-us is for protocols, and one-mutex is a baseline without one",
        ),
        // A run in a process of its own: its message and its status are passed on, and come once.
        (
            &["bench", "tickets", "--protocol", "one-mutex,occ", "--think-us", "10"],
            "--think-us is for protocols, and one-mutex is a baseline without one",
        ),
        (&["compare", "array", "--part-of-runs", "99:0"], "--part-of-runs: there is no such run"),
        (&["bench", "tpcc", "--protocol", "occ,"], "unknown protocol \"\"; there are: occ"),
        (
            &["bench", "tpcc", "--protocol", "none", "--threads", "2"],
            "protocol none admits at most 1 thread, not 2",
        ),
        (&["bench", "tpcc", "--warehouses", "0"], "--warehouses 0: expected a number from 1 to"),
        (&["bench", "tpcc", "--warehouses", "-3"], "--warehouses -3: expected a number from 1 to"),
        (&["bench", "tpcc", "--mix", "none"], "new-order+payment"),
        (&["bench", "array", "--size", "0"], "--size 0: expected a number from 1 to"),
        (
            &["bench", "array", "--increment-share", "NaN"],
            "--increment-share NaN: expected a number from 0 to 1",
        ),
        (&["bench", "array", "--threads", "0"], "expected a number from 1 to"),
        (&["bench", "array", "--threads", "many"], "expected a number from 1 to"),
        (&["compare", "array", "--threads", "1,0"], "expected a number from 1 to"),
        (&["compare", "array", "--threads", "1,,2"], "expected a number from 1 to"),
        (&["compare", "array", "--plot-kind", "latency"], "--plot <FILE.svg>"),
        (
            &["compare", "array", "--plot", "p.svg", "--plot-kind", "pie"],
            "--plot-kind pie: expected throughput or latency",
        ),
        (
            &["compare", "array", "--threads", "1,2", "--plot", "p.svg", "--plot-at", "4"],
            "--plot-at 4: no run has 4 threads",
        ),
        (
            &[
                "compare",
                "array",
                "--threads",
                "2",
                "--plot",
                "p.svg",
                "--plot-kind",
                "throughput",
                "--plot-at",
                "2",
            ],
            "--plot-at chooses a distribution of latency, which --plot-kind latency draws",
        ),
        (&["bench", "array", "--plot", "p.svg"], "unknown option --plot; "),
        (
            &["bench", "array", "--think-us", "10"],
            "--think-us delays the operations of procedures, and array has none",
        ),
        (&["compare", "stress", "--think-us", "10"], "and stress has none: it runs closures"),
        (&["bench", "tpcc", "--think-us", "-1"], "--think-us -1: expected a number from 0 to 1000000"),
        (&["bench", "array", "--seconds", "0"], "expected seconds from 0.001 to 86400"),
        (&["bench", "array", "--seconds", "-1"], "expected seconds from 0.001 to 86400"),
        (&["bench", "array", "--seconds", "NaN"], "expected seconds from 0.001 to 86400"),
        (&["bench", "array", "--seconds", "1e9"], "expected seconds from 0.001 to 86400"),
        (&["bench", "array", "--repeat", "0"], "--repeat 0: expected a number from 1 to 1000"),
        (&["bench", "array", "--repeat", "few"], "--repeat few: expected a whole number"),
        (&["bench", "array", "--seconds"], "--seconds needs a value: --seconds <S>"),
        (&["bench", "array", "--warehouses", "1"], "unknown option --warehouses; "),
        (&["bench", "array", "-x"], "unknown option -x; "),
        (
            &["bench", "--protocol", "occ", "tpcc"],
            "--protocol comes too early; write: hotrow bench tpcc --protocol",
        ),
        (&["bench", "array", "--format", "xml"], "--format xml: expected table or json"),
        (&["bench", "ycsb", "--preset", "z"], "--preset z: expected a, b, c or f"),
        (&["check"], "missing <FILE>; hotrow check --help shows what there is"),
        (&["check", "file", "--require", "all"], "--require all: expected serializable, strict or opaque"),
        (&["list", "everything"], "unknown workload \"everything\"; there are: tpcc, ycsb, "),
        (&["list", "tpcc", "ycsb"], "unexpected argument ycsb; hotrow list --help shows what there is"),
        (&["list", "tpcc", "--all"], "'[WORKLOAD]' cannot be used with '--all'"),
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
fn a_misspelt_name_gets_the_nearest_one() {
    for (arguments, words) in [
        (&["benhc", "tpcc"][..], "unknown command \"benhc\"; did you mean bench?"),
        (&["log", "verfy", "data"], "unknown subcommand \"verfy\"; did you mean verify?"),
        (&["bench", "tpc"], "unknown workload \"tpc\"; did you mean tpcc?"),
        (&["compare", "tiket"], "unknown workload \"tiket\"; did you mean tickets?"),
        (&["list", "ysb"], "unknown workload \"ysb\"; did you mean ycsb?"),
        (&["bench", "tpcc", "--warehouse", "2"], "unknown option --warehouse; did you mean --warehouses?"),
        (&["bench", "tpcc", "--warehouse=2"], "unknown option --warehouse; did you mean --warehouses?"),
        (&["bench", "--thraeds", "2", "tpcc"], "unknown option --thraeds; did you mean --threads?"),
        (&["check", "file", "--requre", "strict"], "unknown option --requre; did you mean --require?"),
        (&["bench", "tpcc", "--protocol", "ocm"], "unknown protocol \"ocm\"; did you mean occ?"),
        (&["bench", "tpcc", "--protocol", "occ,wait"], "unknown protocol \"wait\"; did you mean wait-die?"),
        (
            &["bench", "tickets", "--protocol", "one-mutx"],
            "unknown protocol \"one-mutx\"; did you mean one-mutex?",
        ),
        (&["bench", "tpcc", "--mix", "new-ordr"], "--mix new-ordr: did you mean new-order?"),
        (&["bench", "tpcc", "--durability", "grup"], "--durability grup: did you mean group?"),
        (&["chop", "tpcc", "--refine", "ful"], "--refine ful: did you mean full?"),
        (&["completions", "basch"], "SHELL basch: did you mean bash?"),
        #[cfg(feature = "sim")]
        (
            &["sim", "tpcc", "--machine", "servr-128"],
            "unknown machine \"servr-128\"; did you mean server-128?",
        ),
        #[cfg(feature = "sim")]
        (&["figures", "--only", "plor.66"], "unknown figure \"plor.66\"; did you mean plor.6?"),
        #[cfg(feature = "serve")]
        (&["serve", "--protocol", "plr"], "unknown protocol \"plr\"; did you mean plor?"),
        #[cfg(feature = "stamp")]
        (&["bench", "stamp", "vacatio"], "unknown application \"vacatio\"; did you mean vacation?"),
        #[cfg(feature = "stamp")]
        (&["bench", "stamp", "vacation", "--preset", "hgih"], "unknown preset \"hgih\"; did you mean high?"),
        #[cfg(feature = "stamp")]
        (
            &["bench", "stamp", "vacation", "--set", "quries=3"],
            "unknown option \"quries\"; did you mean queries?",
        ),
    ] {
        let output = hotrow(arguments);
        assert_eq!(text(&output.stderr), format!("hotrow: {words}\n"), "{arguments:?}");
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()), "{arguments:?}");
    }
}

#[test]
fn help_lists_what_the_build_has_and_nothing_else() {
    let (help, bench) = (printed(&["--help"]), printed(&["bench", "--help"]));
    let has =
        |help: &str, name: &str| help.lines().any(|line| line.trim_start().starts_with(&format!("{name} ")));
    for name in ["sim", "explore", "fidelity", "figures"] {
        assert_eq!(has(&help, name), cfg!(feature = "sim"), "{name} in {help}");
    }
    assert_eq!(has(&help, "serve"), cfg!(feature = "serve"), "{help}");
    assert_eq!(has(&help, "copy"), cfg!(feature = "remote"), "{help}");
    assert_eq!(has(&bench, "stamp"), cfg!(feature = "stamp"), "{bench}");
    assert_eq!(has(&bench, "--store"), cfg!(feature = "remote"), "{bench}");
    assert_eq!(printed(&["list"]).contains("Machines"), cfg!(feature = "sim"));
    for option in ["--protocol <P[,P...]|all>", "--threads <N[,N...]>", "--seconds <S>", "--format <FORMAT>"]
    {
        assert!(bench.contains(option), "{option} in {bench}");
    }
    assert!(bench.contains("in seconds [default: 5]"), "{bench}");
}

#[cfg(not(feature = "stamp"))]
#[test]
fn a_build_without_the_stamp_applications_says_how_to_get_them() {
    let output = hotrow(&["bench", "stamp", "all", "--threads", "1,2"]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("cargo run --release --features stamp -- bench stamp"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

#[test]
fn a_workload_that_needs_more_memory_than_available_is_refused_with_both_figures() {
    for arguments in
        [&["bench", "array", "--size", "1000000000000"][..], &["bench", "tpcc", "--warehouses", "65535"]]
    {
        let output = hotrow(arguments);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(" needs about ") && errors.contains(" are available"), "{errors}");
        assert_eq!(errors.matches(" GB").count() + errors.matches(" MB").count(), 2, "{errors}");
    }
}

#[test]
fn help_has_an_example_for_every_subcommand() {
    for arguments in [
        &["--help"][..],
        &["list", "--help"],
        &["check", "--help"],
        &["bench", "--help"],
        &["compare", "--help"],
        &["bench", "tpcc", "--help"],
        &["compare", "array", "--help"],
    ] {
        let help = printed(arguments);
        assert!(help.contains("Example:\n  hotrow "), "{arguments:?}: {help}");
    }
    let help = printed(&["bench", "tpcc", "--help"]);
    assert!(help.contains("--warehouses <N>") && help.contains("--threads <N[,N...]>"), "{help}");
    assert!(help.contains("--think-us <N>") && !help.contains("--plot"), "{help}");
    let help = printed(&["compare", "tpcc", "--help"]);
    assert!(help.contains("--plot <FILE.svg>") && !help.contains("--part-of-runs"), "{help}");
    assert!(help.starts_with("orders and payments"), "the description of the workload comes first: {help}");
}

#[test]
fn without_a_workload_help_is_shown_and_the_status_is_2() {
    for arguments in [&[][..], &["bench"], &["compare"]] {
        let output = hotrow(arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("Example:"));
    }
}

#[test]
fn list_names_every_protocol_and_workload() {
    let list = json_lines(&["list", "--format", "json"]).remove(0);
    let names = |key: &str| -> Vec<String> {
        let entries = list[key].as_array().unwrap().iter();
        entries.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    assert!(names("protocols").contains(&"occ".to_owned()));
    assert_eq!(
        names("workloads"),
        [
            "tpcc",
            "ycsb",
            "articles",
            "tables32",
            "array",
            "tickets",
            "hashtable",
            "vector",
            "priority-queue",
            "stress"
        ]
    );
    let words = printed(&["list"]);
    for name in names("workloads") {
        assert!(listed_in(&words, &name), "{name} in {words}");
    }
}

/// True if a line of the list is about this name.
fn listed_in(list: &str, name: &str) -> bool {
    list.lines().any(|line| line.starts_with(&format!("  {name} ")))
}

#[test]
fn list_shows_the_protocols_for_comparison_apart_and_only_if_asked() {
    let list = json_lines(&["list", "--format", "json"]).remove(0);
    assert_eq!(list, json_lines(&["list", "--all", "--format", "json"]).remove(0));
    let (plain, all) = (printed(&["list"]), printed(&["list", "--all"]));
    // Machines have names of protocols.
    let [shown, shown_all] = [&plain, &all].map(|list| list.split_once("\nWorkloads\n").unwrap().0);
    let (first, apart) = shown_all.split_once("\nProtocols for comparison\n").unwrap();
    for protocol in list["protocols"].as_array().unwrap() {
        let name = protocol["name"].as_str().unwrap();
        let for_comparison = protocol["for_comparison"].as_bool().unwrap();
        let found = [shown, first, apart].map(|list| listed_in(list, name));
        assert_eq!(found, [!for_comparison, !for_comparison, for_comparison], "{name}");
    }
    for (name, is_first) in [("occ", true), ("plor", true), ("plor+dwa", false), ("none", true)] {
        assert_eq!(listed_in(shown, name), is_first, "{name}");
    }
    let more = list["protocols"].as_array().unwrap().iter();
    let more = more.filter(|protocol| protocol["for_comparison"] == true).count();
    assert!(
        plain.ends_with(&format!("\n{more} more protocols, for comparison: hotrow list --all\n")),
        "{plain}"
    );
    for list in [plain, all] {
        assert!(list.contains("\nOptions of a workload: hotrow list WORKLOAD\n"), "{list}");
    }
    assert!(printed(&["list", "--help"]).contains("--all lists these, too"));
}

#[test]
fn list_shows_the_options_of_the_workload_that_is_asked_for() {
    assert!(!printed(&["list"]).contains("--warehouses"));
    let list = json_lines(&["list", "--format", "json"]).remove(0);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    for workload in list["workloads"].as_array().unwrap() {
        let name = text(&workload["name"]);
        assert_eq!(&json_lines(&["list", &name, "--format", "json"])[..], std::slice::from_ref(workload));
        // The words of a wrapped column stand on several lines, beside nothing.
        let shown = printed(&["list", &name]).split_whitespace().collect::<Vec<_>>().join(" ");
        for option in workload["options"].as_array().unwrap() {
            let [option, value, default, summary] =
                ["name", "value", "default", "summary"].map(|key| text(&option[key]));
            let line = format!("--{option} {value} [{default}] {summary}");
            assert!(shown.contains(&line), "{line} in {shown}");
        }
        for baseline in workload["baselines"].as_array().unwrap() {
            let line = format!("{} {}", text(&baseline["name"]), text(&baseline["summary"]));
            assert!(shown.contains(&line), "{line} in {shown}");
        }
    }
}

#[test]
fn lists_are_no_wider_than_a_terminal() {
    let list = json_lines(&["list", "--format", "json"]).remove(0);
    let workloads = list["workloads"].as_array().unwrap().iter();
    let workloads = workloads.map(|workload| vec!["list", workload["name"].as_str().unwrap()]);
    for arguments in [vec!["list"], vec!["list", "--all"]].into_iter().chain(workloads) {
        for line in printed(&arguments).lines() {
            assert!(line.chars().count() <= 80, "{arguments:?}: {line}");
        }
    }
}

#[test]
fn a_run_of_the_array_is_reported_as_one_json_object() {
    let reports = reports_of_commits(&["bench", "array", "--size", "100", "--ops", "4", "--threads", "2"]);
    let [report] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!((&report["workload"], &report["protocol"]), (&"array".into(), &"occ".into()));
    assert_eq!((&report["threads"], &report["virtual"]), (&2.into(), &false.into()));
    assert_eq!((&report["options"]["size"], &report["options"]["ops"]), (&100.into(), &4.into()));
    let number = |value: &Value| value.as_f64().unwrap();
    let (commits, seconds) = (number(&report["commits"]), number(&report["seconds"]));
    assert!(commits > 0.0 && seconds >= 0.2);
    assert!((number(&report["throughput_per_s"]) - commits / seconds).abs() < 1.0);
    let latency = &report["latency_us"];
    let percentiles = ["p50", "p90", "p99", "p999", "max"].map(|name| number(&latency[name]));
    assert!(percentiles[0] > 0.0 && percentiles.is_sorted(), "{latency}");
    let reasons = report["abort_reasons"].as_object().unwrap().values().map(number).sum::<f64>();
    assert_eq!(reasons, number(&report["aborts"]));
    let kinds = report["by_transaction"].as_object().unwrap().values();
    assert_eq!(kinds.map(|kind| number(&kind["commits"])).sum::<f64>(), commits);
    let checks = report["checks"].as_array().unwrap();
    assert!(!checks.is_empty() && checks.iter().all(|check| check["passed"] == true), "{checks:?}");
    assert_eq!(report["memory_bytes"], report["memory"]["resident_bytes_end"]);
    assert!(report["memory"]["retained_bytes_end"].is_u64(), "{report}");
    assert!(number(&report["memory"]["resident_bytes_loaded"]) > 0.0);
    assert!(number(&report["memory"]["payload_bytes_loaded"]) >= 800.0);
    assert!(!report["revision"].as_str().unwrap().is_empty());
    assert!(number(&report["machine"]["cores"]) >= 1.0);
}

#[test]
fn a_live_run_is_shown_while_it_goes_on_and_names_both_sides() {
    let run =
        ["bench", "tickets", "--threads", "4", "--protocol", "no-wait", "--warmup", "0", "--format", "json"];
    let live = hotrow(&[&run[..], &["--seconds", "1.2", "--live"]].concat());
    let shown = text(&live.stderr);
    assert!(live.status.success() && shown.lines().count() >= 1, "{shown}");
    assert!(
        shown.lines().all(|line| line.contains(" commits/s, ") && line.contains("; hottest: ")),
        "{shown}"
    );
    let report: Value = serde_json::from_slice(&live.stdout).unwrap();
    let rows = report["hot_rows"].as_array().unwrap();
    let rivalries = rows.iter().flat_map(|row| row["rivalries"].as_array().unwrap());
    let known = rivalries.filter(|rivalry| rivalry["winner"].is_string()).count();
    assert!(rows.is_empty() || known > 0, "{report}");
    let report = json_lines(&[&run[..], &["--seconds", "0.2"]].concat()).remove(0);
    assert!(
        report["hot_rows"].as_array().unwrap().iter().all(|row| row.get("rivalries").is_none()),
        "{report}"
    );
}

#[test]
fn tame_transactions_are_counted_under_deferring_protocols_only() {
    let run = ["bench", "array", "--size", "10", "--ops", "4", "--threads", "2", "--protocol"];
    for protocol in ["drp+tame", "deferred-2pl"] {
        let report = reports_of_commits(&[&run[..], &[protocol]].concat()).remove(0);
        assert!(report["commits"].as_u64().unwrap() > 0);
        let counters = &report["counters"];
        assert_eq!(counters["tame_commits"], report["commits"], "{report}");
        assert_eq!((&counters["tame_aborts"], &report["aborts"]), (&0.into(), &0.into()), "{report}");
        assert!(counters.get("stolen_operations").is_none(), "{report}");
    }
    let report = json_lines(&short(&[&run[..], &["occ"]].concat())).remove(0);
    assert!(report.get("counters").is_none(), "{report}");
}

#[test]
fn stealable_operations_are_counted_under_stealing_protocols_only() {
    let run =
        ["bench", "tables32", "--records", "1000", "--hot-records", "1", "--threads", "2", "--protocol"];
    for protocol in ["steal", "steal-basic"] {
        let report = json_lines(&short(&[&run[..], &[protocol]].concat())).remove(0);
        let counters = &report["counters"];
        for count in ["own_operations", "stolen_operations"] {
            assert!(counters[count].is_u64(), "{report}");
        }
        for figure in ["stolen_share", "own_mean_us", "stolen_mean_us"] {
            assert!(counters.get(figure).is_some_and(|value| value.is_null() || value.is_f64()), "{report}");
        }
    }
    let report = json_lines(&short(&[&run[..], &["2pl-mcs"]].concat())).remove(0);
    assert!(report.get("counters").is_none(), "{report}");
}

#[test]
fn tpcc_passes_its_twelve_conditions_under_every_protocol() {
    let reports =
        reports_of_commits(&["bench", "tpcc", "--scale", "small", "--protocol", "all", "--threads", "2"]);
    assert!(reports.len() >= 2);
    for report in reports {
        let checks = report["checks"].as_array().unwrap();
        assert!(checks.len() >= 12, "{checks:?}");
        assert!(report["commits"].as_u64().unwrap() > 0, "{report}");
        for kind in ["new_order", "payment", "order_status", "delivery", "stock_level"] {
            assert!(report["by_transaction"].get(kind).is_some(), "{kind} in {report}");
        }
    }
}

#[test]
fn a_protocol_for_one_worker_runs_on_one_thread_by_default() {
    let reports = json_lines(&short(&["bench", "array", "--size", "100", "--protocol", "none"]));
    assert_eq!(reports[0]["threads"], 1);
}

#[test]
fn compare_interleaves_protocols_and_gives_each_round_a_seed() {
    let run =
        ["compare", "array", "--size", "100", "--protocol", "tl2,occ", "--threads", "1", "--repeat", "2"];
    let reports = json_lines(&short(&run));
    let order: Vec<(&str, u64)> = reports
        .iter()
        .map(|report| (report["protocol"].as_str().unwrap(), report["seed"].as_u64().unwrap()))
        .collect();
    assert_eq!(order, [("tl2", 1), ("occ", 1), ("tl2", 2), ("occ", 2)]);
}

#[test]
fn a_baseline_takes_turns_with_protocols_and_passes_the_same_checks() {
    // Not the default of a million elements, each of which all protocols would have to load.
    for (workload, option, baseline) in
        [("array", ["--size", "50000"], "ordered-mutexes"), ("tickets", ["--events", "1"], "one-mutex")]
    {
        let protocols = format!("serial,{baseline}");
        let run = ["compare", workload, "--protocol", &protocols, "--threads", "2", "--repeat", "2"];
        let reports = reports_of_commits(&[&run[..], &option].concat());
        let names: Vec<_> = reports.iter().map(|report| report["protocol"].as_str().unwrap()).collect();
        assert_eq!(names, ["serial", baseline, "serial", baseline]);
        for pair in reports.chunks(2) {
            let checks = |report: &Value| {
                let checks = report["checks"].as_array().unwrap();
                assert!(checks.iter().all(|check| check["passed"] == true), "{checks:?}");
                checks.iter().map(|check| check["name"].clone()).collect::<Vec<_>>()
            };
            assert_eq!(checks(&pair[0]), checks(&pair[1]));
            for same in ["workload", "threads", "seed", "options"] {
                assert_eq!(pair[0][same], pair[1][same], "{same}");
            }
        }
        let run = ["bench", workload, "--protocol", "all", "--threads", "1"];
        let all = json_lines(&short(&[&run[..], &option].concat()));
        assert_eq!(all.last().unwrap()["protocol"], baseline);
    }
}

#[test]
fn no_run_is_charged_with_memory_that_an_earlier_one_has_left_behind() {
    // A protocol that is chosen at run time has the largest header of all beside each element; `occ` has a version.
    let run = ["compare", "array", "--size", "2000000", "--protocol", "plor,occ", "--threads", "1"];
    let reports = json_lines(&short(&[&run[..], &["--repeat", "2"]].concat()));
    let loaded = |report: &Value| report["memory"]["resident_bytes_loaded"].as_u64().unwrap();
    for (number, report) in reports.iter().enumerate().filter(|(_, report)| report["protocol"] == "occ") {
        let before = &reports[number - 1];
        assert!(loaded(report) + 8_000_000 < loaded(before), "{report} after {before}");
    }
}

/// Waits for a process to end, but not for ever.
#[cfg(target_os = "linux")]
fn wait(process: &mut std::process::Child) -> std::process::ExitStatus {
    for _ in 0..6_000 {
        if let Some(status) = process.try_wait().unwrap() {
            return status;
        }
        hotrow::sync::thread::sleep(std::time::Duration::from_millis(10));
    }
    process.kill().unwrap();
    panic!("it does not end");
}

/// A comparison that takes ten minutes, and the process of its first run.
#[cfg(target_os = "linux")]
fn long_comparison() -> (std::process::Child, String) {
    let comparison = std::process::Command::new(env!("CARGO_BIN_EXE_hotrow"))
        .args(["compare", "array", "--size", "100", "--seconds", "600", "--protocol", "occ,none"])
        .args(["--threads", "1"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let children = format!("/proc/{0}/task/{0}/children", comparison.id());
    let first = (0..6_000).find_map(|_| {
        hotrow::sync::thread::sleep(std::time::Duration::from_millis(10));
        let found = std::fs::read_to_string(&children).unwrap();
        found.split_whitespace().next().map(str::to_owned)
    });
    (comparison, first.expect("it starts a process"))
}

#[cfg(target_os = "linux")]
#[test]
fn the_process_of_a_run_ends_with_the_one_that_has_started_it() {
    let (mut comparison, part) = long_comparison();
    comparison.kill().unwrap();
    wait(&mut comparison);
    let is_gone = || !std::fs::exists(format!("/proc/{part}/fd/0")).unwrap();
    for _ in 0..6_000 {
        if is_gone() {
            return;
        }
        hotrow::sync::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("it goes on");
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_whose_process_is_killed_ends_the_comparison_with_status_1() {
    let (mut comparison, part) = long_comparison();
    assert!(std::process::Command::new("kill").args(["-9", &part]).status().unwrap().success());
    assert_eq!(wait(&mut comparison).code(), Some(1));
    let output = comparison.wait_with_output().unwrap();
    assert_eq!(text(&output.stdout), "");
    let errors = text(&output.stderr);
    let (forecast, error) = errors.split_once('\n').unwrap();
    let expected = "takes about 1 h 40 min, and the time to load the data: 10 runs (2 protocols, 5 rounds), each with 1 s of \
                    warm-up and 10 min of measurement";
    assert_eq!(forecast, format!("hotrow: {expected}"));
    assert!(error.starts_with("hotrow: the process for the run of occ failed: signal: 9"), "{errors}");
}

#[test]
fn tables_name_their_units_and_have_no_colour_codes() {
    let run = ["array", "--size", "100", "--threads", "1", "--seconds", "0.2", "--warmup", "0"];
    let bench = printed(&[&["bench"], &run[..]].concat());
    assert!(
        bench.contains("commits/s") && bench.contains("latency in µs") && bench.contains(" MB "),
        "{bench}"
    );
    assert!(bench.contains(" passed"), "{bench}");
    let compare = printed(&[&["compare"], &run[..], &["--protocol", "occ,tl2", "--repeat", "1"]].concat());
    assert!(compare.contains("ratios to occ") && compare.contains("1.00x"), "{compare}");
    let rows = |words: &str| {
        words.lines().filter(|line| line.contains(" passed")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(rows(&compare).len(), 2, "{compare}");
    let details = [&["compare"], &run[..], &["--protocol", "occ,tl2", "--repeat", "2", "--details"]].concat();
    let details = printed(&details);
    let rows = rows(details.split_once("\nall rounds\n").unwrap().0);
    assert!(rows.len() == 2 && rows.iter().all(|row| row.contains(" MB ")), "{details}");
    assert!(!bench.contains('\u{1b}') && !compare.contains('\u{1b}'));
}

#[test]
fn compare_runs_each_protocol_at_each_number_of_threads_in_each_round() {
    let run =
        ["compare", "array", "--size", "100", "--protocol", "tl2,occ", "--threads", "2,1", "--repeat", "2"];
    let reports = json_lines(&short(&run));
    let order: Vec<(&str, u64, u64)> = reports
        .iter()
        .map(|report| {
            let number = |name: &str| report[name].as_u64().unwrap();
            (report["protocol"].as_str().unwrap(), number("threads"), number("seed"))
        })
        .collect();
    let round = |seed| [("tl2", 2, seed), ("occ", 2, seed), ("tl2", 1, seed), ("occ", 1, seed)];
    assert_eq!(order, [round(1), round(2)].concat());
}

#[test]
fn compare_shows_each_number_of_threads_and_each_type_of_transaction() {
    let run = ["compare", "tpcc", "--scale", "small", "--mix", "new-order+payment", "--protocol", "occ,tl2"];
    let rest = ["--threads", "1,3", "--seconds", "0.2", "--warmup", "0", "--repeat", "1"];
    let words = printed(&[&run[..], &rest, &["--details"]].concat());
    let (words, _) = words.split_once("\nall rounds\n").unwrap_or_else(|| panic!("{words}"));
    assert!(words.contains("ratios to occ with as many threads; latency in µs; attempts: "), "{words}");
    // All transactions first, then each type that ran.
    let (all, kinds) = words.split_once("\nnew_order\n").unwrap_or_else(|| panic!("{words}"));
    let (new_order, payment) = kinds.split_once("\npayment\n").unwrap_or_else(|| panic!("{words}"));
    for table in [all, new_order, payment] {
        let header = table.lines().find(|line| line.contains("protocol")).unwrap();
        for column in ["threads", "commits/s", "p50", "p90", "p99", "p99.9", "max", "aborts/commit"] {
            assert!(header.split_whitespace().any(|word| word == column), "{column} in {table}");
        }
        let rows: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .filter(|row| row.first().is_some_and(|name| ["occ", "tl2"].contains(name)))
            .collect();
        let names: Vec<_> = rows.iter().map(|row| (row[0], row[1])).collect();
        assert_eq!(names, [("occ", "1"), ("tl2", "1"), ("occ", "3"), ("tl2", "3")], "{table}");
        assert!(rows.iter().filter(|row| row[0] == "occ").all(|row| row[3] == "1.00x"), "{table}");
    }
    assert!(all.contains("attempts") && all.contains("checks"), "{all}");
    assert!(!words.contains("delivery"), "a type that did not run is left out: {words}");
}

#[test]
fn a_comparison_ends_with_one_sentence() {
    let run =
        ["compare", "array", "--size", "100", "--protocol", "occ,tl2", "--threads", "1", "--repeat", "2"];
    let words = printed(&[&run[..], &["--seconds", "0.2", "--warmup", "0"]].concat());
    let sentence = words.lines().last().unwrap();
    assert!(sentence.starts_with("First is ") && sentence.ends_with('.'), "{words}");
    assert!(sentence.contains(", the second (rounds ") && sentence.contains("overlap"), "{words}");
    assert!(words.lines().take(6).all(|line| line.chars().count() <= 80), "{words}");
    assert!(!words.contains("p99"), "latencies are details: {words}");
}

#[test]
fn tables_have_no_figure_without_sense() {
    let short = ["--seconds", "0.001", "--warmup", "0", "--threads", "2"];
    for arguments in [
        &["bench", "tickets"][..],
        &["bench", "tickets", "--capacity", "1", "--protocol", "steal"],
        &["bench", "tickets", "--protocol", "one-mutex"],
        &["bench", "array", "--size", "10"],
        &["compare", "tickets", "--protocol", "one-mutex,occ", "--repeat", "1", "--details"],
        // Mostly without a commit.
        &[
            "compare",
            "tpcc",
            "--scale",
            "small",
            "--protocol",
            "occ,steal",
            "--repeat",
            "1",
            "--think-us",
            "9000",
            "--details",
        ],
    ] {
        let words = printed(&[arguments, &short[..]].concat());
        for word in words.split(|c: char| c.is_whitespace() || "(),".contains(c)) {
            let is_ratio = word.strip_suffix('x').is_some_and(|number| number.parse::<f64>().is_ok());
            assert!(!["null", "NaN", "inf", "-inf"].contains(&word), "{word} in {words}");
            assert!(!is_ratio || word.len() <= "99.99x".len(), "{word} in {words}");
        }
    }
}

#[test]
fn a_plot_of_a_comparison_has_a_line_for_each_protocol() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plot.svg");
    let file = path.to_str().unwrap();
    let lines_of = |protocols: &str| {
        let run = ["compare", "array", "--size", "100", "--repeat", "1", "--threads", "1,2,3"];
        printed(&short(&[&run[..], &["--protocol", protocols, "--plot", file]].concat()));
        let svg = std::fs::read_to_string(&path).unwrap();
        for words in [
            "99.9th percentile of latency, µs",
            "percentile of transactions (3 threads)",
            "latency, µs",
            "99.9",
        ] {
            assert!(svg.lines().any(|line| line == words), "{words} in {svg}");
        }
        assert!(svg.contains("commits/s (1, 2, 3 threads)"), "{svg}");
        for name in protocols.split(',') {
            assert!(svg.lines().any(|line| line == name), "{name} in {svg}");
        }
        svg.matches("<polyline ").count()
    };
    let (one, two) = (lines_of("occ"), lines_of("occ,tl2"));
    assert!(two >= one + 2, "a line in each chart: {one} and {two}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_plot_that_cannot_be_written_is_refused_before_the_runs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("none").join("plot.svg");
    let path = path.to_str().unwrap();
    let output = hotrow(&short(&["compare", "array", "--threads", "1", "--plot", path]));
    let errors = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()), "{errors}");
    assert!(errors.starts_with(&format!("hotrow: cannot write {path}: ")), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

#[test]
fn operations_can_be_made_to_arrive_one_at_a_time() {
    let tpcc = ["bench", "tpcc", "--scale", "small", "--mix", "new-order", "--threads", "2"];
    let reports = json_lines(&short(&[&tpcc[..], &["--think-us", "200"]].concat()));
    let report = &reports[0];
    assert_eq!(report["options"]["think_us"], 200, "{report}");
    // An order of five lines has at least 20 operations, each with its delay.
    let p50 = report["latency_us"]["p50"].as_f64().unwrap();
    assert!(p50 >= 20.0 * 200.0, "{report}");
    assert_eq!(json_lines(&short(&tpcc))[0]["options"].get("think_us"), None);
}

#[cfg(not(feature = "sim"))]
#[test]
fn without_the_simulator_its_subcommands_give_the_command_that_builds_it() {
    for name in ["sim", "explore", "fidelity"] {
        for arguments in [&[name][..], &[name, "tpcc", "--cores", "4"], &[name, "--help"]] {
            let output = hotrow(arguments);
            let errors = text(&output.stderr);
            assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()), "{errors}");
            let words = format!(
                "this build has no simulator, because a simulator would slow measurements down; use: cargo run --release --features sim -- {name}\n"
            );
            assert_eq!(errors, format!("hotrow: {words}"), "{arguments:?}");
        }
    }
}

#[test]
fn completions_and_manual_pages_know_every_workload() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = printed(&["completions", shell]);
        for word in ["tpcc", "tickets", "durability", "verify"] {
            assert!(script.contains(word), "{shell}: no {word}");
        }
    }
    let pages = tempfile::tempdir().unwrap();
    printed(&["man", pages.path().to_str().unwrap()]);
    let page = std::fs::read_to_string(pages.path().join("hotrow-bench-tpcc.1")).unwrap();
    assert!(page.contains("warehouses"), "{page}");
    assert!(printed(&["man"]).contains(".SH SUBCOMMANDS"));
}
