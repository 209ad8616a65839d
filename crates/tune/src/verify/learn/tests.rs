//! Tests of learning on an in-memory device with a hidden hash key.

mod killed;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::*;
use crate::apply::{apply, rollback};
use crate::plan::Identity;
use crate::steer::{entry, hash};
use crate::test_folder::Folder;
use crate::verify::receive_queues::ProbeError;

const KEY: [u8; 16] = *b"sixteen byte key";
const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// Device with a table of 128 entries. Its hash includes ports only if `Setting::UdpHash` is on.
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

fn here() -> Here {
    Here {
        machine: Identity {
            hostname: String::from("left"),
            machine_id: None,
        },
        boot_id: String::from("first"),
        cores: vec![0, 1],
    }
}

/// Learns over a function that returns receive queues, instead of sockets.
fn taught(
    device: &mut dyn Machine,
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
    restore_tables(device, place, &found, earlier.as_deref()).expect("it can be put back");
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
        let learnt = learner.entry_of(datagram).map(|entry| entry as usize);
        assert_eq!(learnt, expected, "port {port}");
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
    let silent = |_| Err(LearnError::Probe(ProbeError::Silent));
    let error = taught(&mut device, &folder, 2, silent).expect_err("no answer");
    assert!(matches!(error, LearnError::Probe(ProbeError::Silent)));
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
    // State after a kill: the first table, and the journal with its plan.
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
fn a_contradiction_of_the_hash_is_reported_and_nothing_is_left() {
    let folder = Folder::new();
    let mut device = Device::new();
    let before = device.settings();
    let error = taught(&mut device, &folder, 2, |_| Ok(7)).expect_err("no such queue");
    assert!(matches!(error, LearnError::Contradiction(_)), "{error}");
    let error = taught(&mut device, &folder, 1, |_| Ok(0)).expect_err("one queue");
    assert!(
        matches!(
            error,
            LearnError::Unsuitable {
                queues: 1,
                entries: 128
            }
        ),
        "{error}"
    );
    assert_eq!(device.settings(), before);
}
