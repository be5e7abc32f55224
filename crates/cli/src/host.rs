//! The machine and this process, for reports.

use hotrow_workloads::{Host, Machine};
use std::cell::RefCell;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, Pid, ProcessRefreshKind, ProcessesToUpdate, System};

/// The machine and this process, as the operating system describes them.
pub(crate) struct ThisHost {
    /// `None` if the operating system gives no information.
    system: Option<RefCell<System>>,
    process: Option<Pid>,
    machine: Machine,
}

impl ThisHost {
    pub(crate) fn new() -> Self {
        let mut system = System::new().ok();
        let mut memory_bytes = 0;
        let mut cpu = None;
        if let Some(system) = &mut system {
            system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
            memory_bytes = system.total_memory();
            system.refresh_cpu_specifics(CpuRefreshKind::nothing());
            cpu = system
                .cpus()
                .first()
                .map(|cpu| cpu.brand().trim().to_owned())
                .filter(|name| !name.is_empty());
        }
        let unknown = || "unknown".to_owned();
        let machine = Machine {
            cores: hotrow::sync::thread::parallelism(),
            memory_bytes,
            cpu: cpu.unwrap_or_else(unknown),
            os: System::long_os_version().unwrap_or_else(|_| unknown()),
        };
        Self { system: system.map(RefCell::new), process: sysinfo::get_current_pid().ok(), machine }
    }

    /// The memory that this process could still get, in bytes; `None` if the system does not tell.
    pub(crate) fn available_bytes(&self) -> Option<u64> {
        let mut system = self.system.as_ref()?.borrow_mut();
        system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
        let available = system.available_memory();
        // In a container the container's limit counts. (Its free memory would leave out the page cache, which the
        // system reclaims.)
        let limits = system.cgroup_limits();
        Some(limits.map_or(available, |limits| available.min(limits.total_memory.saturating_sub(limits.rss))))
    }
}

impl Host for ThisHost {
    fn resident_bytes(&self) -> u64 {
        let (Some(system), Some(process)) = (&self.system, self.process) else { return 0 };
        let mut system = system.borrow_mut();
        system.refresh_processes_specifics(
            ProcessesToUpdate::Some(&[process]),
            false,
            ProcessRefreshKind::nothing().with_memory(),
        );
        system.process(process).map_or(0, sysinfo::Process::memory)
    }

    fn machine(&self) -> Machine {
        self.machine.clone()
    }

    fn revision(&self) -> &str {
        env!("HOTROW_REVISION")
    }
}
