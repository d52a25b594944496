//! The machine the figures were taken on, for those who read them elsewhere.

use std::fs::read_to_string;

/// Processors, memory and kernel in one line.
pub fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let model = field("/proc/cpuinfo", "model name");
    let memory = field("/proc/meminfo", "MemTotal");
    let kilobytes: f64 = memory.trim_end_matches(" kB").parse().unwrap_or_default();
    let kernel = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{cores} cores of {model}, {:.0} GB, Linux {}",
        kilobytes / 1024.0 / 1024.0,
        kernel.trim()
    )
}

/// The value after `name:` in one of the kernel's tables; empty if it has none.
fn field(file: &str, name: &str) -> String {
    let table = read_to_string(file).unwrap_or_default();
    table
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim().to_owned())
        .unwrap_or_default()
}
