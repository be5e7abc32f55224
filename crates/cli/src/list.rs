//! `hotrow list`: the protocols, the workloads, and the machines that can be simulated; or the options of one workload.

use crate::arguments::{Format, Refusal, THREADS_MAX, about, shortened};
use crate::text::{self, listing};
use clap::{ArgMatches, Args, Command, FromArgMatches as _};
use hotrow::protocols::{PROTOCOLS, ProtocolInfo};
#[cfg(feature = "sim")]
use hotrow_sim::{Machine, Topology};
use hotrow_workloads::{WORKLOADS, WorkloadInfo};
use serde_json::{Value, json};
use std::io;

#[derive(Debug, Args)]
struct ListArguments {
    /// List the options of this workload, with their meaning, unit and default, and its baselines
    #[arg(value_name = "WORKLOAD")]
    workload: Option<String>,
    /// List all protocols: also those that exist for comparison, as one factor of a paper's analysis or as a baseline
    #[arg(long, conflicts_with = "workload")]
    all: bool,
    /// Output format: "table", or "json" for one object, complete also without --all
    #[arg(long, value_enum, default_value_t = Format::Table, hide_possible_values = true)]
    format: Format,
}

/// A request for a list.
#[derive(Debug)]
pub(crate) struct ListPlan {
    /// The workload whose options are listed; otherwise protocols, workloads and machines are.
    workload: Option<&'static WorkloadInfo>,
    all: bool,
    format: Format,
}

pub(crate) fn command() -> Command {
    ListArguments::augment_args(Command::new("list"))
        .about(if cfg!(feature = "sim") {
            "Lists protocols, workloads and machines, or the options of a workload"
        } else {
            "Lists protocols and workloads, or the options of a workload"
        })
        .after_help(
            "The list shows the protocols that people choose first. Others exist for comparison: one factor of a \
             paper's analysis, a baseline, a use of hardware transactions. --all lists these, too. All can be named \
             wherever a protocol is, and \"--protocol all\" runs them, too.\n\n\
             Example:\n  hotrow list --all\n  hotrow list tpcc",
        )
}

pub(crate) fn plan(matches: &ArgMatches) -> Result<ListPlan, Refusal> {
    let ListArguments { workload, all, format } =
        ListArguments::from_arg_matches(matches).map_err(shortened)?;
    let workload = workload.map(|name| hotrow_workloads::parse(&name, &[])).transpose()?;
    Ok(ListPlan { workload: workload.map(|options| options.info()), all, format })
}

pub(crate) fn print(plan: &ListPlan) -> io::Result<()> {
    text::print(&match (plan.format, plan.workload) {
        (Format::Table, None) => in_words(plan.all),
        (Format::Table, Some(workload)) => workload_in_words(workload),
        (Format::Json, None) => format!("{}\n", in_json()),
        (Format::Json, Some(workload)) => format!("{}\n", workload_in_json(workload)),
    })
}

fn in_words(all: bool) -> String {
    let protocols = |for_comparison| {
        let listed = PROTOCOLS.iter().filter(move |protocol| protocol.for_comparison == for_comparison);
        listing(listed.map(|protocol| [protocol.name.to_owned(), described(protocol)]))
    };
    let mut words =
        format!("Protocols (strictly serializable where nothing else is said)\n{}", protocols(false));
    if all {
        words += &format!("\nProtocols for comparison\n{}", protocols(true));
    }
    let workloads = WORKLOADS.iter().map(|workload| [workload.name.to_owned(), about(workload)]);
    words += &format!("\nWorkloads\n{}", listing(workloads));
    #[cfg(feature = "sim")]
    {
        let machines = machines().map(|machine| {
            let Topology { sockets, cores_per_socket, threads_per_core, .. } = machine.topology;
            let topology = format!("{sockets} x {cores_per_socket} x {threads_per_core}");
            [machine.name, topology, machine.description]
        });
        words +=
            &format!("\nMachines to simulate (sockets x cores x threads of a core)\n{}", listing(machines));
    }
    words += "\nOptions of a workload: hotrow list WORKLOAD\n";
    if !all {
        let more = PROTOCOLS.iter().filter(|protocol| protocol.for_comparison).count();
        words += &format!("{more} more protocols, for comparison: hotrow list --all\n");
    }
    words
}

/// The summary of a protocol, with its source, and its claims where they are not those of most.
fn described(protocol: &ProtocolInfo) -> String {
    let threads = match protocol.workers_max as usize {
        1 => Some("one thread".to_owned()),
        most if most < THREADS_MAX => Some(format!("up to {most} threads")),
        _ => None,
    };
    let notes = [
        (protocol.source != "-").then(|| protocol.source.to_owned()),
        (!protocol.strict).then(|| "not strict".to_owned()),
        protocol.opaque.then(|| "opaque".to_owned()),
        threads,
    ];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    format!("{} ({})", protocol.summary, notes.join("; "))
}

fn workload_in_words(workload: &WorkloadInfo) -> String {
    let options = workload.options.iter().map(|option| {
        let [name, default] =
            [format!("--{} {}", option.name, option.value), format!("[{}]", option.default)];
        [name, default, option.summary.to_owned()]
    });
    let mut words = format!(
        "Workload\n{}\nOptions [defaults]\n{}",
        listing([[workload.name.to_owned(), about(workload)]]),
        listing(options)
    );
    if !workload.baselines.is_empty() {
        let baselines = workload.baselines.iter();
        let baselines = baselines.map(|baseline| [baseline.name, baseline.summary].map(str::to_owned));
        words += &format!("\nBaselines, to be named in the place of a protocol\n{}", listing(baselines));
    }
    words
}

fn in_json() -> Value {
    let protocols = PROTOCOLS.iter().map(|protocol| {
        json!({
            "name": protocol.name,
            "summary": protocol.summary,
            "source": protocol.source,
            "for_comparison": protocol.for_comparison,
            "strict": protocol.strict,
            "opaque": protocol.opaque,
            "workers_max": protocol.workers_max,
        })
    });
    let workloads = WORKLOADS.iter().map(workload_in_json);
    #[cfg_attr(not(feature = "sim"), expect(unused_mut, reason = "machines come with the simulator"))]
    let mut list =
        json!({ "protocols": protocols.collect::<Vec<_>>(), "workloads": workloads.collect::<Vec<_>>() });
    #[cfg(feature = "sim")]
    {
        list["machines"] = machines_in_json();
    }
    list
}

fn workload_in_json(workload: &WorkloadInfo) -> Value {
    let options = workload
        .options
        .iter()
        .map(|option| {
            json!({ "name": option.name, "value": option.value, "summary": option.summary, "default": option.default })
        });
    let baselines = workload.baselines.iter();
    let baselines = baselines.map(|baseline| json!({ "name": baseline.name, "summary": baseline.summary }));
    json!({
        "name": workload.name,
        "summary": workload.summary,
        "source": workload.source,
        "options": options.collect::<Vec<_>>(),
        "baselines": baselines.collect::<Vec<_>>(),
    })
}

/// The machines that come with the simulator.
#[cfg(feature = "sim")]
fn machines() -> impl Iterator<Item = Machine> {
    let named = |name| Machine::named(name).expect("the simulator tests its own models");
    Machine::names().into_iter().map(named)
}

#[cfg(feature = "sim")]
fn machines_in_json() -> Value {
    let machines = machines().map(|machine| {
        json!({
            "name": machine.name,
            "description": machine.description,
            "sockets": machine.topology.sockets,
            "cores_per_socket": machine.topology.cores_per_socket,
            "threads_per_core": machine.topology.threads_per_core,
        })
    });
    machines.collect()
}
