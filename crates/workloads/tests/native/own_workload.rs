//! A workload that the registry does not know: its options and its transactions are all that it has to define.

use hotrow::protocols::PROTOCOLS;
use hotrow::sync::random::Random;
use hotrow::{Database, Protocol, TArray, Worker};
use hotrow_workloads::{
    BenchError, Check, End, Host, LogSpec, Machine, Observer, On, OptionError, OptionInfo, OptionValues, Ran,
    RunOutcome, RunSpec, Settings, Unobserved, Workload, WorkloadDefinition, WorkloadInfo, WorkloadOptions,
    prepare_and_run,
};
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;

/// The accounts that transactions move money between.
#[derive(Debug, Serialize)]
struct TransferOptions {
    accounts: u32,
    first_balance: i64,
}

impl WorkloadDefinition for TransferOptions {
    type Loaded<P: Protocol> = Transfers<P>;

    const INFO: WorkloadInfo = WorkloadInfo {
        name: "transfers",
        summary: "moves money between accounts",
        source: "this test",
        runs_procedures: false,
        is_durable: false,
        options: &[
            OptionInfo { name: "accounts", value: "N", default: "8", summary: "Accounts, from 2 to 1000" },
            OptionInfo { name: "first-balance", value: "N", default: "100", summary: "Balances at first" },
        ],
        baselines: &[],
        example: "--accounts 2",
    };

    fn parse(values: &OptionValues<'_>) -> Result<Self, OptionError> {
        let accounts = values.number("accounts", 2..=1_000)?;
        Ok(Self { accounts, first_balance: values.number("first-balance", 0..=1_000_000)? })
    }

    fn data_bytes_estimate(&self) -> u64 {
        u64::from(self.accounts) * 16
    }

    fn load<P: Protocol>(
        &self,
        database: &Database<P>,
        _threads: usize,
        _seed: u64,
        observer: &dyn Observer,
    ) -> Result<Transfers<P>, BenchError> {
        let balances = TArray::named(database, "balances", self.accounts as usize, |_| self.first_balance);
        observer.loading(1, 1);
        Ok(Transfers { balances, first_balance: self.first_balance })
    }
}

struct Transfers<P: Protocol> {
    balances: TArray<i64, P>,
    first_balance: i64,
}

impl<P: Protocol> Workload<P> for Transfers<P> {
    type Client = Random;

    fn kinds(&self) -> &'static [&'static str] {
        &["transfer"]
    }

    fn client(&self, worker: usize, _workers: usize, seed: u64) -> Random {
        Random::stream(seed, worker as u64)
    }

    fn run_one(&self, worker: &mut Worker<P>, random: &mut Random) -> Ran {
        let [from, to] = [0; 2].map(|_| random.below(self.balances.len() as u64) as usize);
        let ended = worker.transact(|tx| {
            self.balances.update(tx, from, |balance| *balance -= 1)?;
            self.balances.update(tx, to, |balance| *balance += 1)
        });
        let end = ended.map_or_else(|error| End::Failed(error.to_string()), |()| End::Committed);
        Ran { kind: 0, end }
    }

    fn checks(&self, worker: &mut Worker<P>, _clients: Vec<Random>) -> Vec<Check> {
        let balances = worker.transact(|tx| {
            (0..self.balances.len())
                .map(|account| self.balances.get(tx, account))
                .collect::<Result<Vec<_>, _>>()
        });
        let found = match balances {
            Ok(balances) => {
                let (sum, expected) =
                    (balances.iter().sum::<i64>(), self.first_balance * balances.len() as i64);
                if sum == expected { Ok(()) } else { Err(format!("{sum} instead of {expected}")) }
            }
            Err(error) => Err(error.to_string()),
        };
        vec![Check::new("money is kept", found)]
    }

    fn payload_bytes(&self, _worker: &mut Worker<P>) -> u64 {
        (self.balances.len() * size_of::<i64>()) as u64
    }
}

/// A host of which nothing is known.
struct Nowhere;

impl Host for Nowhere {
    fn resident_bytes(&self) -> u64 {
        0
    }

    fn machine(&self) -> Machine {
        Machine { cores: 0, memory_bytes: 0, cpu: String::new(), os: String::new() }
    }

    fn revision(&self) -> &str {
        "none"
    }
}

fn spec(workload: WorkloadOptions, protocol: &str, threads: usize) -> RunSpec {
    let settings = Settings { threads, warmup: Duration::ZERO, measured: Duration::from_millis(20), seed: 7 };
    RunSpec {
        log: LogSpec::default(),
        store: None,
        workload,
        protocol: protocol.to_owned(),
        on: On::Threads(settings),
        think: Duration::ZERO,
        record_bytes_max: None,
        both_sides: false,
    }
}

fn parse(given: &[(&str, &str)]) -> Result<WorkloadOptions, OptionError> {
    WorkloadOptions::parse_as::<TransferOptions>(given)
}

#[test]
fn a_workload_from_outside_runs_from_its_options_to_its_report_under_every_protocol() {
    let workload = parse(&[("first-balance", "5")]).unwrap();
    let mut commits = 0;
    for protocol in PROTOCOLS.iter() {
        let threads = protocol.workers_max.min(2) as usize;
        let spec = spec(workload.clone(), protocol.name, threads);
        let RunOutcome { report, .. } = prepare_and_run(&spec, &Nowhere, &Unobserved).unwrap();
        let names = (&*report.workload, report.protocol.as_str(), report.threads);
        assert_eq!(names, ("transfers", protocol.name, threads));
        assert_eq!(Value::from(report.options), json!({ "accounts": 8, "first_balance": 5 }));
        assert_eq!(report.memory.payload_bytes_loaded, 64);
        assert_eq!(report.by_transaction[0].0, "transfer");
        let passed = Check { name: "money is kept".to_owned(), passed: true, detail: None };
        assert_eq!(report.checks, [passed], "{}", protocol.name);
        commits += report.commits;
    }
    assert!(commits > 0, "transactions ran");
}

#[test]
fn options_from_outside_are_read_refused_and_described_as_those_of_registered_workloads() {
    let words = |given: &[(&str, &str)]| parse(given).unwrap_err().to_string();
    assert_eq!(words(&[("accounts", "1")]), "--accounts 1: expected a number from 2 to 1000");
    assert_eq!(words(&[("warehouses", "1")]), "transfers has no option --warehouses");
    let few = WorkloadOptions::from(TransferOptions { accounts: 2, first_balance: 1 });
    assert_eq!(Value::from(few.to_json()), json!({ "accounts": 2, "first_balance": 1 }));
    assert_eq!(few.info(), &TransferOptions::INFO);
    let many = parse(&[("accounts", "1000")]).unwrap();
    assert_eq!(many.resident_bytes_estimate() - few.resident_bytes_estimate(), 998 * 16);
}

#[test]
fn a_workload_from_outside_that_runs_closures_cannot_have_a_delay_before_each_operation() {
    let delayed = RunSpec { think: Duration::from_micros(1), ..spec(parse(&[]).unwrap(), "occ", 1) };
    let words = prepare_and_run(&delayed, &Nowhere, &Unobserved).unwrap_err().to_string();
    assert!(words.ends_with("transfers has none: it runs closures"), "{words}");
}
