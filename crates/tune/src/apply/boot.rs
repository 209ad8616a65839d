//! The part of a plan that sets everything again after each boot: the plan, saved, and a unit of
//! systemd that has it carried out.
//!
//! # When
//!
//! Interrupts of queues and their threads exist only once an interface is up, and who switches it on
//! is the network manager. So the unit comes after network managers and after what else sets such
//! things (irqbalance, TuneD), waits for the plan's interfaces, and comes before
//! `network-online.target`: whoever needs the network as it will stay waits for that, and so for the
//! plan. It is wanted by a drop-in of `multi-user.target`, which is a plain file like the others,
//! made and taken away with the journal.
//!
//! # Numbers
//!
//! The numbers of interrupts and of NAPI instances are others after a boot. What they stand for is
//! saved with the plan: an interrupt's name, an instance's queue ([`Numbers`], [`SavedPlan`]).

use std::path::{Path, PathBuf};

use super::numbers::Numbers;
use super::saved::SavedPlan;
use crate::plan::{Plan, Step, When};
use crate::setting::{Machine, Setting, SettingError, Value};

const UNIT: &str = "/etc/systemd/system/isolane-tune.service";
const SAVED: &str = "tune.plan";
const WANTED_BY: &str = "/etc/systemd/system/multi-user.target.d/isolane-tune.conf";

/// What has a plan carried out after each boot.
#[derive(Clone, Debug)]
pub struct BootPart {
    /// The program, as it is started then.
    pub program: PathBuf,
    /// The folder of the journal.
    pub folder: PathBuf,
}

impl BootPart {
    /// Whether this machine was started by systemd.
    #[must_use]
    pub fn is_possible() -> bool {
        Path::new("/run/systemd/system").is_dir()
    }

    /// Where the plan is saved.
    #[must_use]
    pub fn saved(folder: &Path) -> PathBuf {
        folder.join(SAVED)
    }

    /// Whether a setting is one of its own files: it is not what a plan is about.
    pub(crate) fn owns(setting: &Setting) -> bool {
        let Setting::Document { path } = setting else {
            return false;
        };
        path == UNIT || path == WANTED_BY || Path::new(path).file_name() == Some(SAVED.as_ref())
    }

    /// Reads a saved plan.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn load(folder: &Path) -> std::io::Result<SavedPlan> {
        let text = std::fs::read_to_string(Self::saved(folder))?;
        Ok(serde_json::from_str(&text)?)
    }

    /// The plan with steps that save it, all to be done at once.
    ///
    /// # Errors
    /// What stands in the places of its files cannot be read.
    pub fn added_to(
        &self,
        plan: &Plan,
        numbers: Numbers,
        machine: &mut dyn Machine,
    ) -> Result<Plan, SettingError> {
        let earlier = Self::load(&self.folder).ok();
        let saved = SavedPlan::following(plan, earlier, numbers);
        let text = serde_json::to_string(&saved)
            .map_err(|error| SettingError::System(error.to_string()))?;
        let files = [
            ("plan", Self::saved(&self.folder), text),
            ("unit", UNIT.into(), self.unit(&saved.interfaces())),
            (
                "wanted",
                WANTED_BY.into(),
                String::from("[Unit]\nWants=isolane-tune.service\n"),
            ),
        ];
        let mut whole = plan.clone();
        for (name, path, text) in files {
            let path = path.display().to_string();
            let setting = Setting::Document { path };
            let from = machine.read(&setting)?;
            whole.steps.push(Step {
                id: format!("boot.{name}"),
                undo: format!("rm {setting}"),
                setting,
                from,
                to: Value::Text(text),
                why: String::from("the kernel forgets all settings when it is started again"),
                topics: Vec::new(),
                costs: String::from("nothing while the machine runs"),
                when: When::Now,
            });
        }
        Ok(whole)
    }

    fn unit(&self, interfaces: &[String]) -> String {
        let devices: Vec<String> = interfaces
            .iter()
            .map(|name| format!("sys-subsystem-net-devices-{}.device", escaped(name)))
            .collect();
        let devices = devices.join(" ");
        let (program, folder) = (self.program.display(), self.folder.display());
        format!(
            "# Made by `isolane tune apply`; `isolane tune rollback` takes it away.\n\
             [Unit]\n\
             Description=Settings of this machine for critical topics\n\
             ConditionPathExists={saved}\n\
             Wants={devices}\n\
             After={devices}\n\
             After=network.target systemd-sysctl.service irqbalance.service tuned.service\n\
             Before=network-online.target\n\
             \n\
             [Service]\n\
             Type=oneshot\n\
             RemainAfterExit=yes\n\
             ExecStart=\"{program}\" tune apply --boot --state \"{folder}\"\n",
            saved = Self::saved(&self.folder).display(),
        )
    }
}

/// A name in a unit's name: what is not a letter, a digit or one of `:_.` is its number.
fn escaped(name: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b':' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        byte => format!("\\x{byte:02x}"),
    };
    name.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_waits_for_its_interfaces_and_is_waited_for() {
        let part = BootPart {
            program: "/usr/bin/isolane".into(),
            folder: "/var/lib/isolane".into(),
        };
        let unit = part.unit(&["eth0".into(), "en-p1".into()]);
        for line in [
            "After=sys-subsystem-net-devices-eth0.device sys-subsystem-net-devices-en\\x2dp1.device",
            "Before=network-online.target",
            "ConditionPathExists=/var/lib/isolane/tune.plan",
            "ExecStart=\"/usr/bin/isolane\" tune apply --boot --state \"/var/lib/isolane\"",
        ] {
            assert!(
                unit.lines().any(|known| known == line),
                "no {line} in {unit}"
            );
        }
    }
}
