//! Access to the settings of the machine this process runs on.
//!
//! Only sockets are kept between calls, so each read returns the current value. All settings are of the calling
//! thread's network namespace; `/sys/class/net` shows the namespace it was mounted in.

mod atomic_file;
mod attribute;
mod side_effects;
mod thread;

use isolane_hostnet::ethtool::{Ethtool, ntuple, rss};
use isolane_hostnet::qdisc::Queueing;

use crate::setting::{Machine, Setting, SettingError, Value};

pub(crate) use self::thread::{KernelThreads, class, napi_instance};

/// Machine that this process runs on.
#[derive(Default)]
pub struct ThisMachine {
    ethtool: Option<Ethtool>,
    queueing: Option<Queueing>,
}

impl ThisMachine {
    /// Creates an instance without opening sockets.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn ethtool(&mut self) -> Result<&mut Ethtool, SettingError> {
        if self.ethtool.is_none() {
            let opened = Ethtool::open().map_err(SettingError::from);
            // A kernel without the netlink family supports none of these settings.
            self.ethtool = Some(opened.map_err(|error| match error {
                SettingError::Gone => SettingError::Unsupported,
                other => other,
            })?);
        }
        self.ethtool.as_mut().ok_or(SettingError::Unsupported)
    }

    fn queueing(&mut self) -> Result<&mut Queueing, SettingError> {
        if self.queueing.is_none() {
            let opened = Queueing::open();
            self.queueing = Some(opened.map_err(|error| SettingError::from_io(&error, None))?);
        }
        self.queueing.as_mut().ok_or(SettingError::Unsupported)
    }
}

impl Machine for ThisMachine {
    fn read(&mut self, setting: &Setting) -> Result<Value, SettingError> {
        let lacking = SettingError::Unsupported;
        Ok(match setting {
            Setting::Attribute { path } => Value::Text(attribute::read(path)?),
            Setting::Document { path } => match atomic_file::read(path)? {
                Some(text) => Value::Text(text),
                None => Value::Absent,
            },
            Setting::Folder { path } => match atomic_file::is_folder(path)? {
                true => Value::Present,
                false => Value::Absent,
            },
            Setting::Channels { interface } => {
                let queues = self.ethtool()?.queues(interface)?;
                Value::Queues(queues.ok_or(lacking)?.0)
            }
            Setting::Rings { interface } => {
                Value::Rings(self.ethtool()?.rings(interface)?.ok_or(lacking)?.0)
            }
            Setting::Coalescing { interface } => {
                Value::Coalescing(self.ethtool()?.coalescing(interface)?.ok_or(lacking)?)
            }
            Setting::Feature { interface, feature } => {
                let features = self.ethtool()?.features(interface)?;
                Value::Switch(features.get(feature).ok_or(lacking)?.is_on)
            }
            Setting::RssTable { interface } => {
                let table = rss::table(interface).map_err(of_driver)?;
                Value::Table(
                    Some(table)
                        .filter(|table| !table.is_empty())
                        .ok_or(lacking)?,
                )
            }
            Setting::UdpHash { interface } => {
                Value::Switch(rss::udp4_hashes_ports(interface).map_err(of_driver)?)
            }
            Setting::FlowRule {
                interface,
                location,
            } => rule(interface, *location)?,
            Setting::RootQdisc { interface } => {
                Value::Qdisc(self.queueing()?.root(interface)?.ok_or(lacking)?)
            }
            Setting::QueueQdisc { interface, queue } => {
                let found = self.queueing()?.of_queue(interface, *queue)?;
                Value::QueueQdisc(found.ok_or(SettingError::Gone)?)
            }
            Setting::Thread { name } => Value::Thread(thread::read(name)?),
        })
    }

    fn write(&mut self, setting: &Setting, value: &Value) -> Result<(), SettingError> {
        match (setting, value) {
            (Setting::Attribute { path }, Value::Text(text)) => attribute::write(path, text),
            (Setting::Document { path }, Value::Text(text)) => atomic_file::write(path, text),
            (Setting::Document { path }, Value::Document(document)) => {
                atomic_file::write(path, &document.text())
            }
            (Setting::Document { path }, Value::Absent) => atomic_file::remove(path),
            (Setting::Folder { path }, Value::Present) => atomic_file::make_folder(path),
            (Setting::Folder { path }, Value::Absent) => atomic_file::remove_folder(path),
            (Setting::Channels { interface }, Value::Queues(queues)) => {
                Ok(self.ethtool()?.set_queues(interface, *queues)?)
            }
            (Setting::Rings { interface }, Value::Rings(rings)) => {
                Ok(self.ethtool()?.set_rings(interface, *rings)?)
            }
            (Setting::Coalescing { interface }, Value::Coalescing(coalescing)) => {
                Ok(self.ethtool()?.set_coalescing(interface, *coalescing)?)
            }
            (Setting::Feature { interface, feature }, Value::Switch(is_on)) => Ok(self
                .ethtool()?
                .set_features(interface, &[feature], *is_on)?),
            (Setting::RssTable { interface }, Value::Table(table)) => {
                rss::set_table(interface, table).map_err(of_driver)
            }
            (Setting::UdpHash { interface }, Value::Switch(is_on)) => {
                rss::set_udp4_hashes_ports(interface, *is_on).map_err(of_driver)
            }
            (
                Setting::FlowRule {
                    interface,
                    location,
                },
                value,
            ) => set_rule(interface, *location, value),
            (Setting::RootQdisc { interface }, Value::Qdisc(root)) => {
                Ok(self.queueing()?.set_root(interface, root)?)
            }
            (Setting::QueueQdisc { interface, queue }, Value::QueueQdisc(qdisc)) => {
                Ok(self.queueing()?.set_of_queue(interface, *queue, qdisc)?)
            }
            (Setting::Thread { name }, Value::Thread(class)) => thread::write(name, class),
            (setting, value) => Err(SettingError::System(format!(
                "{setting} cannot be set to {value}: that is another kind of value"
            ))),
        }
    }

    fn side_effects(&mut self, setting: &Setting) -> Vec<Setting> {
        side_effects::side_effects(setting)
    }
}

fn of_driver(error: std::io::Error) -> SettingError {
    SettingError::from_io(&error, None)
}

/// Reads the flow rule at a location of the device.
fn rule(interface: &str, location: u32) -> Result<Value, SettingError> {
    let rules = ntuple::rules(interface).map_err(of_driver)?;
    match rules.rules.get(&location) {
        Some(rule) => Ok(Value::Rule(*rule)),
        None if rules.others.contains(&location) => Err(SettingError::System(String::from(
            "another program has set a rule there that isolane cannot represent",
        ))),
        None => Ok(Value::Absent),
    }
}

fn set_rule(interface: &str, location: u32, value: &Value) -> Result<(), SettingError> {
    let done = match value {
        Value::Rule(rule) => ntuple::insert_rule(interface, location, *rule),
        _ => ntuple::delete_rule(interface, location),
    };
    done.map_err(of_driver)
}
