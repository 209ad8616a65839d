//! A network namespace with devices whose settings may be changed, and a folder with documents.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use isolane_tune::apply::BootNumbers;
use isolane_tune::{
    CoreList, Device, Document, Interface, LanePrerequisites, Network, Plan, Queues, RootQdisc,
    Setting, Step, Value, When, here, probe,
};

use crate::command::{Folder, isolane};

/// Environment variable that is set when the test has entered its namespace.
const INSIDE: &str = "ISOLANE_TEST_INSIDE";
/// Prepares a separate namespace, in which the kernel sends nothing by itself.
const PREPARE: &str = "mount -t sysfs sysfs /sys; \
    for folder in /etc/security /etc/default; do mount -t tmpfs -o mode=755 tmpfs $folder; done; \
    echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6; \
    ip link set lo up; \
    eval \"$DEVICES\"; exec \"$0\" \"$@\"";
/// Folders of documents, each with a separate file system in this namespace.
const DOCUMENTS: [&str; 2] = ["/etc/security", "/etc/default"];
/// Two devices with four queues. The first one uses two of them, and has a high interrupt moderation.
pub(crate) const DEVICES: &str = "ip link add eth0 numtxqueues 4 numrxqueues 4 type veth \
        peer name eth1 numtxqueues 4 numrxqueues 4; \
    ethtool -L eth0 rx 2 tx 2; ethtool -K eth0 gro on > /dev/null; \
    echo 20000 > /sys/class/net/eth0/gro_flush_timeout; \
    echo 2 > /sys/class/net/eth0/napi_defer_hard_irqs; \
    ip link set eth0 up; ip link set eth1 up";

/// Runs the test again inside a namespace, and there its body.
pub(crate) fn inside(test: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let made = Command::new("unshare")
        .args(["--net", "--mount", "true"])
        .status();
    if !made.is_ok_and(|status| status.success()) {
        let in_ci = std::env::var_os("CI").is_some();
        assert!(!in_ci, "CI must allow network namespaces");
        eprintln!("this takes root: nothing was tried");
        return;
    }
    let own = std::env::current_exe().expect("a test is a program");
    let status = Command::new("unshare")
        .args(["--net", "--mount", "sh", "-ec", PREPARE])
        .arg(own)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .env("DEVICES", DEVICES)
        .status();
    assert!(status.expect("unshare, of util-linux").success());
}

/// Folder and namespace in which a plan is tested.
pub(crate) struct Place(Folder);

/// All settings that a plan may change.
#[derive(Debug, PartialEq)]
pub(crate) struct Looks {
    pub(crate) network: Network,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) devices: Vec<Device>,
    pub(crate) lanes: Vec<LanePrerequisites>,
    /// Documents and folders, with the documents' texts.
    pub(crate) files: BTreeMap<String, Option<String>>,
}

impl Place {
    pub(crate) fn new(test: &str) -> Self {
        let folder = Folder::new(test);
        fs::create_dir_all(folder.file("state")).expect("ours");
        fs::create_dir_all("/etc/default/grub.d").expect("of this namespace");
        fs::write("/etc/default/grub.d/90-isolane.cfg", "old\n").expect("of this namespace");
        Self(folder)
    }

    pub(crate) fn state(&self) -> String {
        self.0.file("state")
    }

    pub(crate) fn plan_file(&self) -> String {
        self.0.file("plan.json")
    }

    /// A call of `tune`, with a journal in this place.
    pub(crate) fn tune(&self, arguments: &[&str]) -> Command {
        let mut command = isolane(&["tune"]);
        command.args(arguments).args(["--state", &self.state()]);
        command
    }

    /// Path of a file that is removed with the place.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.file(name)
    }

    /// Returns the call, started by another program.
    pub(crate) fn under(&self, program: &str, arguments: &[&str], call: &Command) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .arg(call.get_program())
            .args(call.get_args());
        command
    }

    /// Returns the same call under strace, with a fault injected into one of its system calls.
    pub(crate) fn traced(&self, call: &Command, what: &str) -> Command {
        self.under("strace", &["-o", &self.0.file("trace"), "-e", what], call)
    }

    /// System calls of the last traced call, one in each line.
    pub(crate) fn trace(&self) -> String {
        fs::read_to_string(self.0.file("trace")).expect("strace wrote it")
    }

    pub(crate) fn look(&self) -> Looks {
        let facts = probe(isolane::DATAPATHS);
        let mut files = BTreeMap::new();
        for folder in DOCUMENTS {
            list(Path::new(folder), &mut files);
        }
        Looks {
            network: facts.network,
            interfaces: facts.interfaces,
            devices: facts.devices,
            lanes: facts.lanes,
            files,
        }
    }

    /// Checks each setting.
    pub(crate) fn assert_is(&self, before: &Looks, when: &str) {
        let now = self.look();
        assert_eq!(now.network, before.network, "{when}");
        assert_eq!(now.interfaces, before.interfaces, "{when}");
        assert_eq!(now.devices, before.devices, "{when}");
        assert_eq!(now.lanes, before.lanes, "{when}");
        assert_eq!(now.files, before.files, "{when}");
        let journal = Path::new(&self.state()).join("tune.journal");
        assert!(!journal.exists(), "{when}: a journal is left");
    }

    pub(crate) fn write_plan(&self, plan: &Plan) {
        let text = serde_json::to_string(plan).expect("JSON");
        self.0.write("plan.json", &text);
    }

    /// Plan with one of each kind of setting that a virtual device and a namespace have.
    pub(crate) fn plan(&self) -> Plan {
        let text = |text: &str| Value::Text(text.into());
        let attribute = |path: &str| Setting::Attribute { path: path.into() };
        let of_device = |file: &str| attribute(&format!("/sys/class/net/eth0/{file}"));
        let document = |document: Document| {
            let path = document.path();
            (Setting::Document { path }, Value::Document(document))
        };
        let (limits, new) = document(Document::RealtimeLimits);
        let (arguments, other) = document(Document::KernelArguments {
            core: 1,
            lists: vec![CoreList::NohzFull],
            interrupts: vec![0],
        });
        let interface = || String::from("eth0");
        let feature = |feature: &str| Setting::Feature {
            interface: interface(),
            feature: feature.into(),
        };
        let queues = |number| {
            Value::Queues(Queues {
                rx: number,
                tx: number,
                combined: 0,
            })
        };
        let channels = Setting::Channels {
            interface: interface(),
        };
        let root = Setting::RootQdisc {
            interface: interface(),
        };
        let default = Value::Qdisc(RootQdisc::Default {
            name: String::from("noqueue"),
        });
        let pfifo = Value::Qdisc(RootQdisc::Pfifo { frames: 128 });
        let ports = attribute("/proc/sys/net/ipv4/ip_local_reserved_ports");
        let (on, off) = (Value::Switch(true), Value::Switch(false));
        let gso = feature("tx-udp-segmentation");
        let tso = feature("tx-tcp-segmentation");
        let (rps, rps_1) = ("queues/rx-0/rps_cpus", "queues/rx-1/rps_cpus");
        let steps = [
            ("queues", channels, queues(2), queues(4)),
            ("gso", gso, on.clone(), off.clone()),
            ("tso", tso, on, off),
            (
                "flush",
                of_device("gro_flush_timeout"),
                text("20000"),
                text("0"),
            ),
            (
                "defer",
                of_device("napi_defer_hard_irqs"),
                text("2"),
                text("0"),
            ),
            ("threaded", of_device("threaded"), text("0"), text("1")),
            ("rps", of_device(rps), text("0"), text("1")),
            ("rps-1", of_device(rps_1), text("0"), text("1")),
            ("ports", ports, text(""), text("7400-7500")),
            ("queueing", root, default, pfifo),
            ("new", limits, Value::Absent, new),
            ("old", arguments, text("old\n"), other),
        ];
        let step = |(id, setting, from, to): (&str, Setting, Value, Value)| Step {
            id: id.into(),
            setting,
            from,
            to,
            why: String::new(),
            topics: Vec::new(),
            costs: String::new(),
            undo: String::new(),
            when: When::Now,
        };
        Plan {
            schema: String::from(isolane_tune::SCHEMA),
            machine: here().machine,
            origin: String::from("test"),
            profile: String::from("test"),
            boot_id: None,
            steps: steps.map(step).into(),
            not_planned: Vec::new(),
            preconditions: Vec::new(),
        }
    }
}

/// Name of the thread that receives from the last queue of an interface in this network namespace.
pub(crate) fn napi_thread(interface: &str) -> String {
    let numbers = BootNumbers::read([interface].into_iter());
    let mut instances = numbers.instances[interface].values();
    let instance = instances.next_back().expect("it has a NAPI instance");
    format!("napi/{interface}-{instance}")
}

/// Names of all threads of the machine that receive for an interface with this name, in any namespace.
pub(crate) fn all_napi_threads(interface: &str) -> BTreeSet<String> {
    let threads = Command::new("ps").args(["-e", "-o", "comm="]).output();
    let threads = String::from_utf8(threads.expect("ps").stdout).expect("UTF-8");
    let start = format!("napi/{interface}-");
    let threads = threads.lines().filter(|name| name.starts_with(&start));
    threads.map(String::from).collect()
}

/// Adds all files and folders below a folder.
fn list(folder: &Path, files: &mut BTreeMap<String, Option<String>>) {
    for entry in fs::read_dir(folder).expect("ours") {
        let path = entry.expect("ours").path();
        let is_folder = path.is_dir();
        let text = (!is_folder).then(|| fs::read_to_string(&path).expect("text"));
        files.insert(path.display().to_string(), text);
        if is_folder {
            list(&path, files);
        }
    }
}
