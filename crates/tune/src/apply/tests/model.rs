//! In-memory machine with the side effects of devices, and with faults.

use std::collections::BTreeMap;

use crate::apply::Here;
use crate::facts::{Queues, RootQdisc};
use crate::plan::{Identity, Plan, Step, When};
use crate::setting::{Machine, Setting, SettingError, Value};

/// Number of settings: four attributes, two documents in a missing folder, and a device's queues, table, root queueing
/// discipline and offload.
pub(super) const SETTINGS: usize = 10;
const FOLDER: &str = "/etc/isolane.d";
const ENTRIES: u32 = 8;

/// Fault of one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// One write fails.
    Fails,
    /// One write succeeds without effect.
    Ignores,
    /// The kernel does not allow the change.
    Immovable,
    /// The device disappears for good.
    Vanishes,
}

#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) values: BTreeMap<Setting, Value>,
    /// Faults, by index of the operation.
    pub(super) faults: Vec<(usize, Fault)>,
    pub(super) operations: usize,
    /// First operation that does not reach the machine.
    pub(super) dead_from: Option<usize>,
    pub(super) has_vanished: bool,
}

impl Model {
    pub(super) fn new() -> Self {
        let values = (0..SETTINGS).map(|number| (setting(number), value(number, 0)));
        let mut model = Self {
            values: values.collect(),
            faults: Vec::new(),
            operations: 0,
            dead_from: None,
            has_vanished: false,
        };
        model.values.insert(folder(), Value::Absent);
        // A table set by the user, which a new number of queues resets.
        model.values.insert(setting(7), Value::Table(vec![0; 8]));
        model
    }

    /// Changes a setting, as another program would.
    pub(super) fn set(&mut self, number: usize, to: u32) {
        self.values.insert(setting(number), value(number, to));
    }

    /// Returns whether all settings of a plan hold.
    pub(super) fn stands(&self, plan: &Plan) -> bool {
        let last: BTreeMap<&Setting, &Value> = plan
            .steps
            .iter()
            .map(|step| (&step.setting, &step.to))
            .collect();
        last.iter()
            .all(|(setting, value)| self.values.get(setting) == Some(value))
    }

    /// Returns whether all settings are as in `before`, except those that vanished.
    pub(super) fn is_as(&self, before: &Model) -> bool {
        before
            .values
            .iter()
            .filter(|(setting, _)| !(self.has_vanished && is_of_device(setting)))
            .all(|(setting, value)| self.values.get(setting) == Some(value))
    }

    fn reset(&mut self, queues: u32) {
        let table = (0..ENTRIES).map(|entry| entry % queues).collect();
        self.values.insert(setting(7), Value::Table(table));
        self.values.insert(setting(8), value(8, 0));
    }

    fn check(&self, setting: &Setting) -> Result<(), SettingError> {
        let is_dead = self.dead_from.is_some_and(|from| self.operations >= from);
        match (is_dead, self.has_vanished && is_of_device(setting)) {
            (true, _) => Err(SettingError::System(String::from("no such process"))),
            (_, true) => Err(SettingError::Gone),
            _ => Ok(()),
        }
    }
}

fn folder() -> Setting {
    Setting::Folder {
        path: FOLDER.into(),
    }
}

fn is_of_device(setting: &Setting) -> bool {
    (6..SETTINGS).any(|number| super::model::setting(number) == *setting)
}

pub(super) fn setting(number: usize) -> Setting {
    let interface = String::from("eth0");
    match number {
        0..4 => Setting::Attribute {
            path: format!("/sys/{number}"),
        },
        4..6 => Setting::Document {
            path: format!("{FOLDER}/{number}"),
        },
        6 => Setting::Channels { interface },
        7 => Setting::RssTable { interface },
        8 => Setting::RootQdisc { interface },
        _ => Setting::Feature {
            interface,
            feature: String::from("rx-gro"),
        },
    }
}

pub(super) fn value(number: usize, which: u32) -> Value {
    match (number, which) {
        (4 | 5, 0) => Value::Absent,
        (0..6, which) => Value::Text(which.to_string()),
        (6, which) => Value::Queues(Queues {
            combined: 4 - which,
            ..Queues::default()
        }),
        (7, which) => Value::Table((0..ENTRIES).map(|entry| entry % (which + 1)).collect()),
        (8, 0) => Value::Qdisc(RootQdisc::Default {
            name: String::from("mq"),
        }),
        (8, frames) => Value::Qdisc(RootQdisc::Pfifo { frames }),
        (_, which) => Value::Switch(which % 2 == 0),
    }
}

pub(super) fn here() -> Here {
    Here {
        machine: Identity {
            hostname: String::from("bench"),
            machine_id: Some(String::from("0123")),
        },
        boot_id: String::from("first"),
        cores: vec![0, 1],
    }
}

/// Plan for a machine, from numbers of settings and of their values.
pub(super) fn plan(machine: &Model, steps: &[(usize, u32)]) -> Plan {
    let mut values = machine.values.clone();
    let mut step = |(place, (number, which)): (usize, &(usize, u32))| {
        let (setting, to) = (setting(*number), value(*number, *which));
        Step {
            id: format!("step.{place}"),
            from: values.insert(setting.clone(), to.clone()).expect("known"),
            setting,
            to,
            why: String::new(),
            topics: Vec::new(),
            costs: String::new(),
            undo: String::new(),
            when: When::Now,
        }
    };
    Plan {
        schema: String::from(crate::plan::SCHEMA),
        machine: here().machine,
        origin: String::from("test"),
        profile: String::from("test"),
        boot_id: None,
        steps: steps.iter().enumerate().map(&mut step).collect(),
        not_planned: Vec::new(),
        preconditions: Vec::new(),
    }
}

impl Machine for Model {
    fn read(&mut self, setting: &Setting) -> Result<Value, SettingError> {
        self.check(setting)?;
        self.values.get(setting).cloned().ok_or(SettingError::Gone)
    }

    fn write(&mut self, setting: &Setting, value: &Value) -> Result<(), SettingError> {
        self.check(setting)?;
        let operation = self.operations;
        self.operations += 1;
        let fault = self.faults.iter().find(|(at, _)| *at == operation);
        match fault.map(|(_, fault)| *fault) {
            Some(Fault::Fails) => return Err(SettingError::System(String::from("not now"))),
            Some(Fault::Immovable) => return Err(SettingError::Immovable(String::from("EIO"))),
            Some(Fault::Ignores) => return Ok(()),
            Some(Fault::Vanishes) => self.has_vanished = true,
            None => {}
        }
        self.check(setting)?;
        let refused = Err(SettingError::System(String::from("it does not fit")));
        match (setting, value) {
            (Setting::Document { .. }, Value::Text(_))
                if self.values[&folder()] == Value::Absent =>
            {
                return refused;
            }
            (Setting::Folder { .. }, Value::Absent) => {
                let is_empty = [4, 5]
                    .map(setting_of)
                    .iter()
                    .all(|path| self.values.get(path) == Some(&Value::Absent));
                if !is_empty {
                    return refused;
                }
            }
            (Setting::Channels { .. }, Value::Queues(queues)) => self.reset(queues.combined),
            (Setting::RssTable { .. }, Value::Table(table)) => {
                if let Some(Value::Queues(queues)) = self.values.get(&setting_of(6))
                    && table.iter().any(|queue| *queue >= queues.combined)
                {
                    return refused;
                }
            }
            _ => {}
        }
        self.values.insert(setting.clone(), value.clone());
        Ok(())
    }

    fn side_effects(&mut self, setting: &Setting) -> Vec<Setting> {
        match setting {
            Setting::Channels { .. } => vec![setting_of(7), setting_of(8)],
            Setting::Document { .. } if self.values[&folder()] == Value::Absent => vec![folder()],
            _ => Vec::new(),
        }
    }
}

fn setting_of(number: usize) -> Setting {
    setting(number)
}
