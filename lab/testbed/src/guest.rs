//! A guest: the emulator's command line, its boot, and its result.
//!
//! The guest writes its result, one JSON document, to an I/O port of the emulator, which appends it to a file; its
//! console goes to another file. It exits by writing its exit code to a second port. A write to either port takes
//! effect within the guest's instruction. Devices with concurrent activity, such as virtio, would make runs
//! irreproducible.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use isolane_support::{Result, command};
use serde_json::Value;

use super::inside;
use super::packages::Packages;

/// Memory of a guest: its programs, twice while they are unpacked, and its sockets and rings.
const MEMORY_MIB: u32 = 1_024;
/// Polling interval of a running guest.
const LOOK: Duration = Duration::from_millis(100);
/// Number of last console lines that a failure shows.
const LAST_LINES: usize = 30;

/// Maximum number of starts of a guest that does not reach its first process.
const STARTS: u32 = 3;
/// Kernel message when a virtual processor gets no timer interrupts.
const STALLED: &str = "rcu_preempt detected stalls";

/// Clock of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// Real time, as far as the emulator keeps up. Durations mean nothing. The seed is for random numbers.
    Real { seed: u64 },
    /// Instruction counting, 4 ns each. The run depends on the seed alone, and is the same to the bit each time.
    Counted { seed: u64 },
}

/// Connection of a guest's network devices, all of the model `igb`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Network {
    /// This number of devices on a hub inside the emulator.
    Hub { devices: u8 },
    /// One device, connected to another guest's by a Unix socket.
    Peer {
        socket: PathBuf,
        /// True when this guest listens on the socket. Exactly one of the two guests does.
        listens: bool,
        /// Last byte of its MAC address.
        number: u8,
    },
}

/// Configuration of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Guest {
    /// Stem of its file names.
    pub(super) name: String,
    /// Arguments of its first process, after the hidden command.
    pub(super) task: Vec<String>,
    pub(super) time: Time,
    pub(super) network: Network,
    pub(super) processors: u8,
    /// Timeout of the guest.
    pub(super) patience: Duration,
}

/// Files that guests start from, and the folder for their output.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) packages: Packages,
    pub(super) initramfs: PathBuf,
    pub(super) folder: PathBuf,
}

impl Guest {
    /// Arguments of the emulator.
    pub(super) fn arguments(&self, machine: &Machine) -> Vec<String> {
        let share = |name: &str| {
            let folder = machine.packages.emulator().join("usr/share").join(name);
            folder.display().to_string()
        };
        let mut arguments = words("-nodefaults -no-user-config -display none -monitor none");
        arguments.extend(words("-no-reboot -M q35 -cpu max"));
        arguments.extend(["-L".into(), share("qemu"), "-L".into(), share("seabios")]);
        arguments.extend(words(&format!("-smp {} -m {MEMORY_MIB}", self.processors)));
        arguments.extend(match self.time {
            Time::Real { seed } => words(&format!("-accel tcg,thread=multi -seed {seed}")),
            Time::Counted { seed } => words(&format!(
                "-accel tcg,thread=single -icount shift=2,sleep=off -rtc base=2026-01-01,clock=vm \
                 -seed {seed}"
            )),
        });
        arguments.extend(["-serial".into(), format!("file:{}", self.console(machine))]);
        arguments.extend(words("-device isa-debug-exit,iobase=0xf4,iosize=4"));
        let port = inside::RESULT_PORT;
        arguments.extend([
            "-chardev".into(),
            format!("file,id=result,path={}", self.result(machine)),
        ]);
        arguments.extend(words(&format!(
            "-device isa-debugcon,iobase={port},chardev=result"
        )));
        arguments.extend(self.network.arguments());
        arguments.push("-kernel".into());
        arguments.push(machine.packages.kernel().display().to_string());
        arguments.push("-initrd".into());
        arguments.push(machine.initramfs.display().to_string());
        // After a panic the emulator exits; `tsc=reliable` keeps the clock without a watchdog. The kernel would pass
        // parameters that it does not know to the first process, before that process's own arguments.
        let kernel = "console=ttyS0 quiet panic=-1 tsc=reliable mitigations=off";
        let task = self.task.join(" ");
        arguments.push("-append".into());
        arguments.push(format!("{kernel} -- {} {task}", inside::COMMAND));
        arguments
    }

    /// Command that starts the emulator, through its own loader, so that its own libraries are found.
    fn command(&self, machine: &Machine) -> Command {
        let root = machine.packages.emulator();
        let libraries = root.join("usr/lib/x86_64-linux-gnu");
        let mut command = Command::new(root.join("usr/lib64/ld-linux-x86-64.so.2"));
        command
            .arg("--library-path")
            .arg(format!(
                "{}:{}",
                libraries.display(),
                libraries.join("pulseaudio").display()
            ))
            .arg(root.join("usr/bin/qemu-system-x86_64"))
            .args(self.arguments(machine))
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    fn file(&self, machine: &Machine, ending: &str) -> String {
        let file = machine.folder.join(format!("{}.{ending}", self.name));
        file.display().to_string()
    }

    /// Path of the console's file.
    pub(super) fn console(&self, machine: &Machine) -> String {
        self.file(machine, "console")
    }

    /// Path of the result's file.
    pub(super) fn result(&self, machine: &Machine) -> String {
        self.file(machine, "json")
    }

    pub(super) fn start<'a>(&'a self, machine: &'a Machine) -> Result<Started<'a>> {
        for file in [self.result(machine), self.console(machine)] {
            fs::write(file, "")?;
        }
        let child = command::spawn(&mut self.command(machine))?;
        Ok(Started {
            guest: self,
            machine,
            child,
            since: Instant::now(),
        })
    }

    /// Starts the guest, waits for its end, and returns its result.
    ///
    /// An emulator with a thread for each processor may die while devices get their addresses, by its own assertion
    /// (`iotlb_to_section`, QEMU's issue 1921). On a busy machine, one of its processors may get no timer interrupts
    /// from the start. In both cases the first process has not run, and the guest is started again.
    pub(super) fn run(&self, machine: &Machine) -> Result<Value> {
        for _ in 1..STARTS {
            let mut started = self.start(machine)?;
            match started.wait(Started::is_stillborn)? {
                None => eprintln!(
                    "guest {}: it did not come to its first process; started again",
                    self.name
                ),
                Some(status) => return started.judge(status),
            }
        }
        self.start(machine)?.finish()
    }
}

impl Network {
    fn arguments(&self) -> Vec<String> {
        match self {
            Network::Hub { devices } => (1..=*devices)
                .flat_map(|number| {
                    let mut words = words(&format!("-netdev hubport,hubid=0,id=n{number}"));
                    words.extend(device(number));
                    words
                })
                .collect(),
            Network::Peer {
                socket,
                listens,
                number,
            } => {
                let role = match listens {
                    true => "server=on",
                    false => "server=off,reconnect-ms=200",
                };
                let socket = socket.display();
                let mut words = words("-netdev");
                words.push(format!(
                    "stream,id=n{number},{role},addr.type=unix,addr.path={socket}"
                ));
                words.extend(device(*number));
                words
            }
        }
    }
}

/// Device behind its own root port: each device reserves bus addresses for possible functions, so two devices on one
/// bus would collide.
fn device(number: u8) -> Vec<String> {
    words(&format!(
        "-device pcie-root-port,id=p{number},chassis={number},slot={number} \
         -device igb,bus=p{number},netdev=n{number},mac=02:00:00:00:00:{number:02x}"
    ))
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// A running guest; killed when dropped.
pub(super) struct Started<'a> {
    guest: &'a Guest,
    machine: &'a Machine,
    child: Child,
    since: Instant,
}

impl Started<'_> {
    /// Waits for the guest's end, and returns its result.
    pub(super) fn finish(mut self) -> Result<Value> {
        let status = self.wait(|_, _| false)?;
        self.judge(status.ok_or("nothing gives it up")?)
    }

    /// Waits for the guest's end; `None` when it will not reach its first process.
    fn wait(
        &mut self,
        is_given_up: impl Fn(&Self, Option<ExitStatus>) -> bool,
    ) -> Result<Option<ExitStatus>> {
        loop {
            let left = self.child.try_wait()?;
            if is_given_up(self, left) {
                return Ok(None);
            }
            if left.is_some() {
                return Ok(left);
            }
            if self.since.elapsed() > self.guest.patience {
                let seconds = self.guest.patience.as_secs();
                return Err(self.failed(&format!("it did not end within {seconds} s")));
            }
            thread::sleep(LOOK);
        }
    }

    /// Returns true when the guest cannot reach its first process: its emulator has died, or its kernel has stalled.
    fn is_stillborn(&self, left: Option<ExitStatus>) -> bool {
        let console = self.console();
        let is_fatal = match left {
            Some(status) => status.signal().is_some(),
            None => console.contains(STALLED),
        };
        is_fatal && !console.contains(inside::BEGUN)
    }

    /// Console output so far.
    fn console(&self) -> String {
        let file = self.guest.console(self.machine);
        String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).into_owned()
    }

    /// Result of a guest that has ended.
    fn judge(&self, status: ExitStatus) -> Result<Value> {
        let text = fs::read(self.guest.result(self.machine))?;
        match outcome(status, &text) {
            Ok(value) => Ok(value),
            Err(reason) => Err(self.failed(&reason)),
        }
    }

    fn failed(&self, reason: &str) -> Box<dyn std::error::Error> {
        let file = self.guest.console(self.machine);
        let console = self.console();
        let lines: Vec<&str> = console.lines().collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        let name = &self.guest.name;
        format!(
            "guest {name}: {reason}. The end of its console ({file}):\n{}",
            last.join("\n")
        )
        .into()
    }
}

impl Drop for Started<'_> {
    fn drop(&mut self) {
        // Both calls are harmless after the guest's end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Result of a guest, or the reason for its absence.
fn outcome(status: ExitStatus, result: &[u8]) -> std::result::Result<Value, String> {
    let parsed = serde_json::from_slice::<inside::GuestResult>(result);
    match (status.code().map(inside::exit_code), parsed) {
        (Some(Some(0)), Ok(inside::GuestResult::Done(value))) => Ok(value),
        (_, Ok(inside::GuestResult::Failed(reason))) => Err(reason),
        (Some(Some(_)), Err(error)) => Err(format!("its result is not whole: {error}")),
        _ => Err(format!("it ended without a result ({status}): a panic?")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn machine() -> Machine {
        Machine {
            packages: Packages::at(Path::new("/p"), "6.12"),
            initramfs: "/w/initramfs".into(),
            folder: "/w".into(),
        }
    }

    fn guest(time: Time, network: Network) -> Guest {
        Guest {
            name: "one".into(),
            task: vec!["paper".into(), "a".into()],
            time,
            network,
            processors: 1,
            patience: Duration::from_secs(1),
        }
    }

    fn arguments(time: Time, network: Network) -> String {
        guest(time, network).arguments(&machine()).join(" ")
    }

    #[test]
    fn counted_time_is_of_one_thread_and_a_seed() {
        let hub = Network::Hub { devices: 2 };
        let counted = arguments(Time::Counted { seed: 7 }, hub.clone());
        assert!(counted.contains("-accel tcg,thread=single -icount shift=2,sleep=off"));
        assert!(counted.contains("clock=vm -seed 7"));
        assert!(!arguments(Time::Real { seed: 1 }, hub).contains("icount"));
    }

    #[test]
    fn each_device_of_a_hub_is_behind_its_own_port() {
        let text = arguments(Time::Real { seed: 1 }, Network::Hub { devices: 2 });
        for number in [1, 2] {
            assert!(text.contains(&format!(
                "igb,bus=p{number},netdev=n{number},mac=02:00:00:00:00:0{number}"
            )));
            assert!(text.contains(&format!("pcie-root-port,id=p{number}")));
        }
    }

    #[test]
    fn of_two_guests_one_waits_for_the_other() {
        let peer = |listens| {
            arguments(
                Time::Real { seed: 1 },
                Network::Peer {
                    socket: "/w/link".into(),
                    listens,
                    number: 1,
                },
            )
        };
        assert!(peer(true).contains("server=on,addr.type=unix,addr.path=/w/link"));
        assert!(peer(false).contains("server=off,reconnect-ms=200"));
    }

    #[test]
    fn the_first_process_gets_its_task_as_arguments() {
        let text = arguments(Time::Real { seed: 1 }, Network::Hub { devices: 1 });
        assert!(text.ends_with(&format!("-- {} paper a", inside::COMMAND)));
    }

    #[test]
    fn a_result_counts_only_with_the_exit_code_of_success() {
        let status = |code: i32| ExitStatus::from_raw(code << 8);
        let done = br#"{"done":{"x":1}}"#;
        assert_eq!(outcome(status(1), done).unwrap()["x"], 1);
        assert!(outcome(status(3), done).is_err());
        assert!(outcome(status(0), done).is_err(), "it panicked");
        let failed = outcome(status(3), br#"{"failed":"no such device"}"#);
        assert_eq!(failed.unwrap_err(), "no such device");
        assert!(outcome(status(1), b"{\"done\":").is_err(), "cut off");
    }

    /// Runs a guest whose emulator is a script: at its first start it writes `words` to its console and does `first`,
    /// at its second it ends. Returns the result and the number of starts.
    fn run_twice(name: &str, words: &str, first: &str) -> (Result<Value>, usize) {
        let folder = format!("isolane-guest-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        let loader = folder.join("emulator/usr/lib64/ld-linux-x86-64.so.2");
        fs::create_dir_all(loader.parent().unwrap()).unwrap();
        let place = folder.display();
        let script = format!(
            "#!/bin/sh\necho >>'{place}/starts'\n\
             if [ $(wc -l <'{place}/starts') = 1 ]; then\n    \
             printf '{words}' >'{place}/one.console'\n    {first}\nfi\n\
             echo '{{\"done\":{{\"x\":1}}}}' >'{place}/one.json'\nexit 1\n"
        );
        // Another process writes the script: if this one did, a child that another test forks meanwhile would hold it
        // open for writing, and it could not be executed (ETXTBSY).
        let text = folder.join("script");
        fs::write(&text, script).unwrap();
        let mut install = Command::new("install");
        install.args(["-m", "755"]).args([&text, &loader]);
        assert!(install.status().unwrap().success());
        let machine = Machine {
            packages: Packages::at(&folder, "6.12"),
            initramfs: folder.join("initramfs"),
            folder: folder.clone(),
        };
        let guest = Guest {
            patience: Duration::from_secs(30),
            ..guest(Time::Real { seed: 1 }, Network::Hub { devices: 1 })
        };
        let result = guest.run(&machine);
        let starts = fs::read_to_string(folder.join("starts")).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        (result, starts.lines().count())
    }

    #[test]
    fn a_guest_that_does_not_come_to_its_first_process_is_started_again() {
        for (name, words, first) in [
            ("died", "", "kill -ABRT $$"),
            (
                "stalled",
                "[ 22.3] rcu_preempt detected stalls",
                "exec sleep 60",
            ),
        ] {
            let (result, starts) = run_twice(name, words, first);
            assert_eq!((result.unwrap()["x"].as_i64(), starts), (Some(1), 2));
        }
    }

    #[test]
    fn one_that_dies_at_its_work_is_not_started_again() {
        let words = format!("{}\\na: done\\n", inside::BEGUN);
        let (result, starts) = run_twice("late", &words, "kill -ABRT $$");
        let error = result.unwrap_err().to_string();
        assert!(error.contains("SIGABRT") && error.contains("a: done"));
        assert_eq!(starts, 1);
    }
}
