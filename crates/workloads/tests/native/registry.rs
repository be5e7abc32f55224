//! The registry of workloads.

use hotrow_workloads::WORKLOADS;

#[test]
fn every_workload_can_be_had_with_its_defaults_and_reports_all_its_options() {
    for workload in WORKLOADS {
        let options = hotrow_workloads::parse(workload.name, &[]).unwrap();
        assert_eq!(options.info(), workload);
        let reported = options.to_json();
        let names = workload.options.iter().map(|option| option.name.replace('-', "_"));
        assert!(names.eq(reported.keys().cloned()), "{reported:?}");
    }
}

#[test]
fn no_two_workloads_have_one_name() {
    let mut names: Vec<_> = WORKLOADS.iter().map(|workload| workload.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), WORKLOADS.len());
}

#[test]
fn an_unknown_workload_is_answered_with_those_there_are() {
    let words = hotrow_workloads::parse("essays", &[]).unwrap_err().to_string();
    assert_eq!(
        words,
        "unknown workload \"essays\"; there are: tpcc, ycsb, articles, tables32, array, tickets, hashtable, vector, priority-queue, stress"
    );
}
