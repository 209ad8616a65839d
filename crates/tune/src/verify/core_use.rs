//! Interrupts, soft interrupts and threads that ran on a core between two samples.
//!
//! The kernel counts interrupts per core. Of a thread it reports total run time and last core, so a thread that ran on
//! the core and left before the second sample is missed. The result shows repeated disturbances; it does not prove
//! their absence.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::limits::{MAX_ENTRIES, MAX_FILE_BYTES};

/// Activity on a core.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreActivity {
    /// New interrupts, by the kernel's label and name.
    pub interrupts: BTreeMap<String, u64>,
    /// New soft interrupts (`NET_RX`, `TIMER`).
    pub soft_interrupts: BTreeMap<String, u64>,
    /// Threads that ran, and whose last core was this one, by descending run time.
    pub threads: Vec<ThreadActivity>,
}

/// Thread that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadActivity {
    /// Thread id.
    pub thread: u32,
    /// Thread name.
    pub name: String,
    /// Run time on all cores in nanoseconds.
    pub run_ns: u64,
}

/// Sample of a core's counters.
#[derive(Clone, Debug, Default)]
pub struct CoreSample {
    core: u16,
    interrupts: BTreeMap<String, u64>,
    soft_interrupts: BTreeMap<String, u64>,
    threads: BTreeMap<u32, ThreadSample>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ThreadSample {
    name: String,
    core: u16,
    run_ns: u64,
}

impl CoreSample {
    /// Samples this machine. Unreadable parts are empty.
    pub fn at(core: u16) -> Self {
        let table = |path: &str| table(&text(Path::new(path)), core);
        Self {
            core,
            interrupts: table("/proc/interrupts"),
            soft_interrupts: table("/proc/softirqs"),
            threads: threads(),
        }
    }

    /// Activity since an earlier sample of the same core; without the thread `own`.
    pub fn since(&self, before: &Self, own: u32) -> CoreActivity {
        let mut threads: Vec<ThreadActivity> = self
            .threads
            .iter()
            .filter(|(thread, now)| now.core == self.core && **thread != own)
            .filter_map(|(thread, now)| {
                // A new thread has run only since then.
                let before = before.threads.get(thread).map_or(0, |before| before.run_ns);
                let run_ns = now.run_ns.checked_sub(before)?;
                (run_ns > 0).then(|| ThreadActivity {
                    thread: *thread,
                    name: now.name.clone(),
                    run_ns,
                })
            })
            .collect();
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.run_ns));
        CoreActivity {
            interrupts: more(&before.interrupts, &self.interrupts),
            soft_interrupts: more(&before.soft_interrupts, &self.soft_interrupts),
            threads,
        }
    }
}

fn more(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    now.iter()
        .filter_map(|(name, count)| {
            let before = before.get(name).copied().unwrap_or(0);
            let more = count.checked_sub(before)?;
            (more > 0).then(|| (name.clone(), more))
        })
        .collect()
}

/// Column of one core in `/proc/interrupts` or `/proc/softirqs`: a header with the cores, then lines of number or name,
/// counts and (interrupts) description.
fn table(text: &str, core: u16) -> BTreeMap<String, u64> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let wanted = format!("CPU{core}");
    let Some(column) = head.iter().position(|name| *name == wanted) else {
        return BTreeMap::new();
    };
    let row = |line: &str| {
        let (label, rest) = line.split_once(':')?;
        let mut words = rest.split_whitespace();
        let counts: Vec<&str> = words.by_ref().take(head.len()).collect();
        // Some lines (`ERR`) have one count for all cores.
        let count = counts.get(column)?.parse().ok()?;
        let about: Vec<&str> = words.collect();
        let label = label.trim();
        let name = match about.as_slice() {
            [] => label.to_owned(),
            about => format!("{label} {}", about.join(" ")),
        };
        Some((name, count))
    };
    lines.filter_map(row).collect()
}

fn threads() -> BTreeMap<u32, ThreadSample> {
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let numbers = |path: &Path| -> Vec<u32> {
        let entries = std::fs::read_dir(path).into_iter().flatten();
        entries
            .filter_map(|entry| number(entry.ok()?))
            .take(MAX_ENTRIES)
            .collect()
    };
    let processes = Path::new("/proc");
    let mut found = BTreeMap::new();
    for process in numbers(processes) {
        let tasks = processes.join(process.to_string()).join("task");
        for thread in numbers(&tasks) {
            let folder = tasks.join(thread.to_string());
            let state = text(&folder.join("stat"));
            let time = text(&folder.join("schedstat"));
            if let Some(look) = thread_look(&state, &time) {
                found.insert(thread, look);
            }
        }
    }
    found
}

/// Parses `stat` (proc_pid_stat(5): the name in parentheses may contain anything; field 39 is the core) and `schedstat`
/// (first number: run time in nanoseconds).
fn thread_look(state: &str, time: &str) -> Option<ThreadSample> {
    let (_, name) = state.split_once('(')?;
    let (name, fields) = name.rsplit_once(')')?;
    // The first field after the name is the third.
    let core = fields.split_whitespace().nth(39 - 3)?.parse().ok()?;
    Some(ThreadSample {
        name: name.to_owned(),
        core,
        run_ns: time.split_whitespace().next()?.parse().ok()?,
    })
}

/// Text of a procfs file; empty if unreadable, as after the thread has ended.
fn text(path: &Path) -> String {
    use std::io::Read as _;
    let mut text = Vec::new();
    if let Ok(file) = std::fs::File::open(path) {
        // Truncated or unreadable text only makes the result incomplete.
        let _ = file.take(MAX_FILE_BYTES).read_to_end(&mut text);
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERRUPTS: &str = "            CPU0       CPU2
  24:          1          7  IO-APIC   5-edge      ACPI:Ged
  31:          0         14  PCI-MSIX-0000:01:00.0   1-edge      eth0-TxRx-1
 LOC:     121989     142346   Local timer interrupts
 ERR:          3
";

    #[test]
    fn a_column_is_found_by_the_core_and_not_by_its_place() {
        let second = table(INTERRUPTS, 2);
        assert_eq!(second.get("24 IO-APIC 5-edge ACPI:Ged"), Some(&7));
        assert_eq!(second.get("LOC Local timer interrupts"), Some(&142_346));
        assert_eq!(second.len(), 3, "what no core has is nobody's: {second:?}");
        assert_eq!(table(INTERRUPTS, 1), BTreeMap::new());
        assert_eq!(table("", 0), BTreeMap::new());
    }

    #[test]
    fn a_thread_may_be_called_anything() {
        let mut fields: Vec<String> = (4..=52).map(|field| field.to_string()).collect();
        fields[39 - 4] = String::from("1");
        let state = format!("77 (a) (b) R {}", fields.join(" "));
        let look = thread_look(&state, "500 20 3").expect("a thread");
        assert_eq!(
            (look.name.as_str(), look.core, look.run_ns),
            ("a) (b", 1, 500)
        );
        assert_eq!(thread_look("77 (gone", "500"), None);
        assert_eq!(thread_look(&state, ""), None);
    }

    #[test]
    fn only_what_became_more_on_the_core_ran_there() {
        let thread = |name: &str, core, run_ns| ThreadSample {
            name: name.into(),
            core,
            run_ns,
        };
        let before = CoreSample {
            core: 1,
            interrupts: table(INTERRUPTS, 2),
            threads: BTreeMap::from([(1, thread("idle", 1, 9)), (2, thread("busy", 0, 5))]),
            ..CoreSample::default()
        };
        let mut after = before.clone();
        after.interrupts = table(&INTERRUPTS.replace("142346", "142350"), 2);
        after.threads = BTreeMap::from([
            (1, thread("idle", 1, 9)),
            (2, thread("busy", 1, 8)),
            (3, thread("new", 1, 4)),
            (4, thread("elsewhere", 0, 4)),
            (5, thread("self", 1, 100)),
        ]);
        let used = after.since(&before, 5);
        let timer = String::from("LOC Local timer interrupts");
        assert_eq!(used.interrupts, BTreeMap::from([(timer, 4)]));
        let names: Vec<&str> = used.threads.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["new", "busy"], "the longest first");
        assert_eq!(used.threads[1].run_ns, 3);
    }

    #[test]
    fn this_machine_can_be_looked_at() {
        let before = CoreSample::at(0);
        assert!(before.threads.len() > 1, "at least this test's");
        let used = CoreSample::at(0).since(&before, 0);
        assert!(used.threads.iter().all(|thread| thread.run_ns > 0));
    }
}
