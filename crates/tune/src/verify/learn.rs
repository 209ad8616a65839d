//! Learning which entry of a device's receive table each datagram of a peer picks, where the key of its
//! hash cannot be read: tables are set for a moment, and questions asked ([`rounds`]).
//!
//! The tables are carried out as plans are ([`apply`]): what was found is in the journal before the first
//! is set, and stands again in the end, whatever happened between. Who kills this process restores
//! it with a rollback.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use isolane_datapath_xdp::landing::{LandingPort, ReceiveQueues};
use isolane_wire::level::Level;

use super::landings::{Answered, PlaceError, ask};
use super::room::make_room;
use crate::apply::{ApplyError, Here, Left, State, apply_locked, rollback_locked, status};
use crate::limits::MAX_QUESTIONS_A_PROBE;
use crate::plan::{Plan, SCHEMA, Step, When};
use crate::setting::{Machine, Setting, SettingError, Value};
use crate::steer::{Contradiction, Learner, Tuple, probed_ports, rounds};

/// The profile of plans that set tables for a moment: where the journal's last one is of it, a learning was
/// killed.
const LEARNING: &str = "learning";

/// What is to be learnt.
#[derive(Clone, Debug)]
pub struct Lesson {
    /// The device whose hash it is.
    pub interface: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its receive queues.
    pub queues: ReceiveQueues,
    /// Who answers.
    pub peer: Ipv4Addr,
    /// What questions are marked as.
    pub level: Level,
    /// Random: tells this run's answers from others'.
    pub run: u64,
}

/// Why nothing was learnt. But for [`LearnError::Left`] the device is as before.
#[derive(Debug)]
pub enum LearnError {
    /// The device has no table that can be set.
    Table(SettingError),
    /// Queues are told apart by at least two of them, and tables are a power of two long.
    Unfit {
        /// Queues that receive.
        queues: u32,
        /// Entries of the table.
        entries: usize,
    },
    /// A table could not be set, or not put back.
    Apply(ApplyError),
    /// The table could not be put back.
    Left(Vec<Left>),
    /// Nobody could be asked.
    Place(PlaceError),
    /// What was seen cannot be of the hash that devices have.
    Contradiction(Contradiction),
    /// An earlier plan, or an earlier learning, was killed half-way.
    Unfinished,
    /// It was told to stop.
    Stopped,
}

impl fmt::Display for LearnError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(error) => write!(formatter, "its receive table: {error}"),
            Self::Unfit { queues, entries } => write!(
                formatter,
                "it has {queues} receive queues and a table of {entries} entries; it takes two queues, and a power \
                 of two of entries"
            ),
            Self::Apply(error) => error.fmt(formatter),
            Self::Left(left) => write!(formatter, "{} settings were not put back", left.len()),
            Self::Place(PlaceError::Port(port, error)) => write!(formatter, "port {port}: {error}"),
            Self::Place(PlaceError::Silent) => formatter.write_str("nobody answers"),
            Self::Place(PlaceError::Restarted) => {
                formatter.write_str("the peer was started anew meanwhile")
            }
            Self::Place(PlaceError::System(error)) => error.fmt(formatter),
            Self::Contradiction(contradiction) => contradiction.fmt(formatter),
            Self::Unfinished => formatter.write_str(
                "an earlier `isolane tune` was killed half-way, and what it set stands still",
            ),
            Self::Stopped => formatter.write_str("it was told to stop"),
        }
    }
}

impl std::error::Error for LearnError {}

impl From<ApplyError> for LearnError {
    fn from(error: ApplyError) -> Self {
        Self::Apply(error)
    }
}

/// Learns by asking; tells `progress` which round of how many begins.
///
/// # Errors
/// [`LearnError`].
pub fn learn(
    machine: &mut dyn Machine,
    (here, folder): (&Here, &Path),
    lesson: &Lesson,
    is_stopped: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Learner, LearnError> {
    let mut asker = Asker::new(lesson)?;
    // Nobody applies or rolls back between two rounds.
    let state = State::make(folder).map_err(ApplyError::from)?;
    let _lock = state.lock().map_err(ApplyError::from)?;
    let earlier = earlier(machine, here, folder)?;
    let found = found(machine, &lesson.interface)?;
    let learnt = all_rounds(
        machine,
        (here, &state),
        (lesson.queues.count(), (lesson.peer, lesson.address), &found),
        &mut |datagram| asker.landing(datagram),
        is_stopped,
        progress,
    );
    // Whatever happened.
    put_back(machine, (here, &state), &found, earlier.as_deref())?;
    learnt
}

/// The profile of the plan that is applied; `None`: none is.
fn earlier(
    machine: &mut dyn Machine,
    here: &Here,
    folder: &Path,
) -> Result<Option<String>, LearnError> {
    match status(machine, here, folder)? {
        Some(status) if status.profile == LEARNING || !status.is_complete => {
            Err(LearnError::Unfinished)
        }
        status => Ok(status.map(|status| status.profile)),
    }
}

/// The settings that are about to change, as they are.
fn found(machine: &mut dyn Machine, interface: &str) -> Result<Vec<(Setting, Value)>, LearnError> {
    let interface = || interface.to_owned();
    let table = Setting::RssTable {
        interface: interface(),
    };
    let standing = machine.read(&table).map_err(LearnError::Table)?;
    let mut found = vec![(table, standing)];
    let ports = Setting::UdpHash {
        interface: interface(),
    };
    // A driver that does not say what it hashes is taken as it is.
    if let Ok(value) = machine.read(&ports) {
        found.push((ports, value));
    }
    Ok(found)
}

fn all_rounds(
    machine: &mut dyn Machine,
    (here, state): (&Here, &State),
    (queues, pair, found): (u32, (Ipv4Addr, Ipv4Addr), &[(Setting, Value)]),
    landing: &mut dyn FnMut(Tuple) -> Result<u32, LearnError>,
    is_stopped: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Learner, LearnError> {
    let entries = found.iter().find_map(|(_, value)| match value {
        Value::Table(table) => Some(table.len()),
        _ => None,
    });
    let entries = entries.unwrap_or_default();
    let unfit = || LearnError::Unfit { queues, entries };
    let all: Vec<u32> = (0..queues).collect();
    let rounds = rounds(entries, &all, &[pair]);
    let mut learner = Learner::new(entries)
        .filter(|_| !rounds.is_empty())
        .ok_or_else(unfit)?;
    let count = rounds.len();
    let mut standing = found.to_vec();
    for (number, round) in (1..).zip(rounds) {
        progress(number, count);
        let wanted = |setting: &Setting| match setting {
            Setting::RssTable { .. } => Value::Table(round.table.clone()),
            _ => Value::Switch(true),
        };
        let plan = plan(here, &standing, wanted);
        apply_locked(machine, here, &plan, state, false, is_stopped)?;
        for (setting, value) in &mut standing {
            *value = wanted(setting);
        }
        for datagram in &round.datagrams {
            if is_stopped() {
                return Err(LearnError::Stopped);
            }
            learner
                .observe(*datagram, &round.table, landing(*datagram)?)
                .map_err(LearnError::Contradiction)?;
        }
    }
    Ok(learner)
}

/// A plan that sets these settings from what stands there.
fn plan(here: &Here, standing: &[(Setting, Value)], to: impl Fn(&Setting) -> Value) -> Plan {
    let step = |(setting, from): &(Setting, Value)| Step {
        id: String::from("learning"),
        setting: setting.clone(),
        from: from.clone(),
        to: to(setting),
        why: String::from("where datagrams land tells the bits of the hash"),
        topics: Vec::new(),
        costs: String::from("other traffic comes to other queues meanwhile"),
        undo: String::from("isolane tune rollback"),
        when: When::ThisBoot,
    };
    Plan {
        schema: SCHEMA.into(),
        machine: here.machine.clone(),
        origin: LEARNING.into(),
        profile: LEARNING.into(),
        boot_id: Some(here.boot_id.clone()),
        steps: standing.iter().map(step).collect(),
        refusals: Vec::new(),
        relies_on: Vec::new(),
    }
}

/// What was found stands again: by the journal, or where that holds another plan, on top of it.
fn put_back(
    machine: &mut dyn Machine,
    (here, state): (&Here, &State),
    found: &[(Setting, Value)],
    earlier: Option<&str>,
) -> Result<(), LearnError> {
    let Some(profile) = earlier else {
        let done = rollback_locked(machine, here, state)?;
        let left = done.restored.map_or_else(Vec::new, |done| done.left);
        return match left.is_empty() {
            true => Ok(()),
            false => Err(LearnError::Left(left)),
        };
    };
    let standing: Result<Vec<(Setting, Value)>, SettingError> = found
        .iter()
        .map(|(setting, _)| Ok((setting.clone(), machine.read(setting)?)))
        .collect();
    let standing = standing.map_err(LearnError::Table)?;
    let of = |setting: &Setting| {
        let found = found.iter().find(|(known, _)| known == setting);
        found.map_or(Value::Absent, |(_, value)| value.clone())
    };
    let back = Plan {
        profile: profile.into(),
        ..plan(here, &standing, of)
    };
    // Not to be stopped: it is what a stop waits for.
    apply_locked(machine, here, &back, state, false, &|| false)?;
    Ok(())
}

/// Asks, with a socket for each of its ports.
struct Asker<'a> {
    lesson: &'a Lesson,
    sockets: BTreeMap<u16, LandingPort>,
    number: u32,
}

impl<'a> Asker<'a> {
    /// With all its sockets, so that it fails before any table is set.
    fn new(lesson: &'a Lesson) -> Result<Self, LearnError> {
        let [_, ports] = probed_ports();
        make_room(ports.len(), lesson.queues);
        let mut sockets = BTreeMap::new();
        for port in ports {
            let address = SocketAddrV4::new(lesson.address, port);
            let socket = LandingPort::bind(address, lesson.level, lesson.queues)
                .map_err(|error| LearnError::Place(PlaceError::Port(port, error)))?;
            sockets.insert(port, socket);
        }
        Ok(Self {
            lesson,
            sockets,
            number: 0,
        })
    }

    /// The queue that an answer comes by which is this datagram.
    fn landing(&mut self, datagram: Tuple) -> Result<u32, LearnError> {
        // Rounds name no other ports.
        let Some(socket) = self.sockets.get(&datagram.destination_port) else {
            return Err(LearnError::Place(PlaceError::Silent));
        };
        let peer = SocketAddrV4::new(datagram.source, datagram.source_port);
        for _ in 0..MAX_QUESTIONS_A_PROBE {
            self.number += 1;
            let answer = ask(socket, (self.lesson.run, self.number), peer);
            let answer = answer.map_err(|error| LearnError::Place(PlaceError::System(error)))?;
            match answer {
                Some(Answered {
                    back: Some(queue), ..
                }) => return Ok(queue),
                Some(_) => {
                    let why = "the kernel does not tell by which queue datagrams come";
                    return Err(LearnError::Place(PlaceError::System(io::Error::other(why))));
                }
                None => {}
            }
        }
        Err(LearnError::Place(PlaceError::Silent))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fs;
    use std::path::PathBuf;
    use std::rc::Rc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::apply::{apply, rollback};
    use crate::plan::Identity;
    use crate::steer::{entry, hash};

    const KEY: [u8; 16] = *b"sixteen byte key";
    const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    /// A device with a table of 128 entries; its hash takes ports in once it is told to.
    #[derive(Clone, Debug)]
    struct Device(Rc<RefCell<BTreeMap<Setting, Value>>>);

    fn of(kind: impl Fn(String) -> Setting) -> Setting {
        kind(String::from("eth0"))
    }

    fn table() -> Setting {
        of(|interface| Setting::RssTable { interface })
    }

    fn ports() -> Setting {
        of(|interface| Setting::UdpHash { interface })
    }

    impl Device {
        fn new() -> Self {
            let own = (0..128).map(|entry| entry / 64).collect();
            let settings = [
                (table(), Value::Table(own)),
                (ports(), Value::Switch(false)),
            ];
            Self(Rc::new(RefCell::new(BTreeMap::from(settings))))
        }

        fn settings(&self) -> BTreeMap<Setting, Value> {
            self.0.borrow().clone()
        }

        /// Where a datagram comes to.
        fn queue(&self, mut datagram: Tuple) -> u32 {
            let settings = self.settings();
            if settings[&ports()] == Value::Switch(false) {
                (datagram.source_port, datagram.destination_port) = (0, 0);
            }
            let hash = hash(&KEY, datagram).expect("a key");
            match &settings[&table()] {
                Value::Table(table) => table[entry(hash, 128).expect("an entry")],
                other => panic!("{other}"),
            }
        }
    }

    impl Machine for Device {
        fn read(&mut self, setting: &Setting) -> Result<Value, SettingError> {
            self.settings().remove(setting).ok_or(SettingError::Gone)
        }

        fn write(&mut self, setting: &Setting, value: &Value) -> Result<(), SettingError> {
            self.0.borrow_mut().insert(setting.clone(), value.clone());
            Ok(())
        }
    }

    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            static NUMBER: AtomicUsize = AtomicUsize::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("isolane-learn-{}-{number}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn here() -> Here {
        Here {
            machine: Identity {
                hostname: String::from("left"),
                machine_id: None,
            },
            boot_id: String::from("first"),
        }
    }

    /// Learns with a network that brings datagrams where this says, instead of sockets.
    fn taught(
        device: &mut Device,
        folder: &Folder,
        count: u32,
        landing: impl Fn(Tuple) -> Result<u32, LearnError>,
    ) -> Result<Learner, LearnError> {
        let here = here();
        let state = State::make(&folder.0).expect("a folder");
        let place = (&here, &state);
        let earlier = earlier(device, &here, &folder.0)?;
        let found = found(device, "eth0").expect("a table");
        let learnt = all_rounds(
            device,
            place,
            (count, (PEER, OWN), &found),
            &mut |datagram| landing(datagram),
            &|| false,
            &mut |_, _| {},
        );
        put_back(device, place, &found, earlier.as_deref()).expect("it can be put back");
        learnt
    }

    #[test]
    fn what_was_learnt_holds_for_every_port_and_the_device_is_as_before() {
        let folder = Folder::new();
        let mut device = Device::new();
        let before = device.settings();
        let network = device.clone();
        let learner = taught(&mut device, &folder, 2, |datagram| {
            Ok(network.queue(datagram))
        });
        let learner = learner.expect("it can be learnt");
        assert_eq!(device.settings(), before);
        assert!(!folder.0.join("tune.journal").exists());
        for port in [7_007, 7_015, 50_000] {
            let datagram = Tuple {
                source: PEER,
                destination: OWN,
                source_port: port,
                destination_port: port ^ 0xff,
            };
            let expected = entry(hash(&KEY, datagram).expect("a key"), 128);
            let told = learner.entry_of(datagram).map(|entry| entry as usize);
            assert_eq!(told, expected, "port {port}");
        }
    }

    #[test]
    fn a_plan_that_was_applied_before_still_stands() {
        let folder = Folder::new();
        let mut device = Device::new();
        let before = device.settings();
        let wanted = |_: &Setting| Value::Switch(true);
        let only_ports = [(ports(), Value::Switch(false))];
        let earlier = Plan {
            profile: String::from("latency"),
            ..plan(&here(), &only_ports, wanted)
        };
        let applied = apply(&mut device, &here(), &earlier, &folder.0, false, &|| false);
        applied.expect("it can be applied");
        let applied = device.settings();
        let silent = |_| Err(LearnError::Place(PlaceError::Silent));
        let error = taught(&mut device, &folder, 2, silent).expect_err("nobody answers");
        assert!(matches!(error, LearnError::Place(PlaceError::Silent)));
        assert_eq!(device.settings(), applied);
        let standing = status(&mut device, &here(), &folder.0).expect("a journal");
        assert_eq!(
            standing.map(|status| status.profile).as_deref(),
            Some("latency")
        );
        rollback(&mut device, &here(), &folder.0).expect("a journal");
        assert_eq!(device.settings(), before);
    }

    #[test]
    fn after_a_learning_that_was_killed_nothing_is_learnt_before_a_rollback() {
        let folder = Folder::new();
        let mut device = Device::new();
        let before = device.settings();
        // What a killed one leaves: its first table, and a journal that tells.
        let found = found(&mut device, "eth0").expect("a table");
        let first = plan(&here(), &found, |setting| match setting {
            Setting::RssTable { .. } => Value::Table(vec![1; 128]),
            _ => Value::Switch(true),
        });
        let set = apply(&mut device, &here(), &first, &folder.0, false, &|| false);
        set.expect("it can be set");
        let network = device.clone();
        let landing = |datagram| Ok(network.queue(datagram));
        let error = taught(&mut device, &folder, 2, landing).expect_err("it was not put back");
        assert!(matches!(error, LearnError::Unfinished), "{error}");
        rollback(&mut device, &here(), &folder.0).expect("a journal");
        assert_eq!(device.settings(), before);
        taught(&mut device, &folder, 2, landing).expect("it can be learnt now");
    }

    #[test]
    fn what_cannot_be_of_a_hash_is_told_and_nothing_is_left() {
        let folder = Folder::new();
        let mut device = Device::new();
        let before = device.settings();
        let error = taught(&mut device, &folder, 2, |_| Ok(7)).expect_err("no such queue");
        assert!(matches!(error, LearnError::Contradiction(_)), "{error}");
        let error = taught(&mut device, &folder, 1, |_| Ok(0)).expect_err("one queue");
        assert!(
            matches!(
                error,
                LearnError::Unfit {
                    queues: 1,
                    entries: 128
                }
            ),
            "{error}"
        );
        assert_eq!(device.settings(), before);
    }
}
