//! Describes the machine and the crates of a run. Nothing in it identifies the individual machine.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use tenarc_benches_report::results::Machine;

/// Describes this machine. On systems other than Linux, most fields are unknown.
pub fn this() -> Machine {
    let cpuinfo = read("/proc/cpuinfo");
    let field = |name: &str| {
        let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
    };
    let flags = field("flags").unwrap_or_default();
    Machine {
        cpu: field("model name").unwrap_or("an unknown processor").to_string(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        virtual_machine: flags.split(' ').any(|flag| flag == "hypervisor"),
        os: os(),
        file_system: file_system(),
        rustc: env!("RUSTC_VERSION").to_string(),
    }
}

/// Reads a file of the system. Empty if there is no such file.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// How many bytes of memory programs can still get. `None` if the system does not tell.
#[cfg(target_os = "linux")]
pub fn available_memory() -> Option<u64> {
    let meminfo = read("/proc/meminfo");
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// The distribution and the first two numbers of the kernel's version. The rest of the version could identify a
/// custom kernel.
fn os() -> String {
    let release = read("/etc/os-release");
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let kernel = read("/proc/sys/kernel/osrelease");
    let numbers: Vec<&str> = kernel.split('.').take(2).collect();
    match name {
        Some(name) => format!("{}, Linux {}", name.trim_matches('"'), numbers.join(".")),
        None => std::env::consts::OS.to_string(),
    }
}

/// The type of file system that temporary files are on.
fn file_system() -> String {
    let directory = std::env::temp_dir();
    let mounts = read("/proc/mounts");
    let of_line = |line: &str| {
        let mut fields = line.split(' ').skip(1);
        let (mount, kind) = (fields.next()?, fields.next()?);
        directory.starts_with(mount).then(|| (mount.len(), kind.to_string()))
    };
    // If several file systems are mounted at the same place, the last one is used.
    let closest = mounts.lines().filter_map(of_line).max_by_key(|(len, _)| *len);
    closest.map_or_else(|| "an unknown file system".to_string(), |(_, kind)| kind)
}

/// The date in UTC, such as 2026-01-31.
pub fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date(since.as_secs() / 86_400)
}

/// The date that is `days` days after 1970-01-01.
fn date(mut days: u64) -> String {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

/// The measured crates.
const CRATES: [&str; 17] = [
    "arrow-ipc",
    "bincode",
    "bitcode",
    "burn-pack",
    "cbor4ii",
    "ciborium",
    "minicbor-serde",
    "npyz",
    "postcard",
    "rkyv",
    "rmp-serde",
    "safetensors",
    "serde-zap",
    "serde_json",
    "tenarc",
    "wincode",
    "zip",
];

/// The measured crates with their versions, from the lock file that this program was built with.
pub fn crates() -> Vec<String> {
    versions(include_str!("../../Cargo.lock"))
}

fn versions(lock: &str) -> Vec<String> {
    let packages = || lock.split("[[package]]\n").skip(1);
    let field = |package: &str, name: &str| {
        let mut lines = package.lines().filter_map(|line| line.split_once(" = "));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value.trim_matches('"').to_string())
    };
    let is = |package: &str, name: &str| field(package, "name").as_deref() == Some(name);
    let this = packages().find(|package| is(package, "tenarc-benches")).unwrap_or_default();
    // Lines such as ` "rkyv",`, or ` "bincode 1.3.3",` if there are several versions.
    let dependencies =
        this.lines().filter_map(|line| line.strip_prefix(" \"")?.strip_suffix("\","));
    let measured = dependencies.filter(|dependency| {
        let name = dependency.split(' ').next().unwrap_or_default();
        CRATES.contains(&name)
    });
    let named = measured.map(|dependency| {
        if dependency.contains(' ') {
            return dependency.to_string();
        }
        let package = packages().find(|package| is(package, dependency)).unwrap_or_default();
        format!("{dependency} {}", field(package, "version").unwrap_or_default())
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_as_the_calendar_does() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (789, "1972-02-29"),
            (11_016, "2000-02-29"),
            (20_453, "2025-12-31"),
            (20_454, "2026-01-01"),
        ] {
            assert_eq!(date(days), expected);
        }
    }

    #[test]
    fn every_measured_crate_has_a_version() {
        let found = crates();
        for name in CRATES {
            let mut versions =
                found.iter().filter_map(|it| it.strip_prefix(name)?.strip_prefix(' '));
            assert!(
                versions.any(|version| version.starts_with(|c: char| c.is_ascii_digit())),
                "{name}"
            );
        }
        assert_eq!(found.iter().filter(|it| it.starts_with("bincode ")).count(), 2);
    }
}
