//! Boot part of a plan: the saved plan, and a systemd unit that applies it again after each boot.
//!
//! # Ordering
//!
//! Queue interrupts and their threads exist only while an interface is up, and the network manager brings it up. So the
//! unit runs after network managers and other tuning services (irqbalance, TuneD), and waits for the plan's interfaces.
//! It runs before `network-online.target`, for which services wait that need the final network. A drop-in of
//! `multi-user.target` wants the unit; the drop-in is journaled like other files.
//!
//! # Numbers
//!
//! Interrupt and NAPI numbers change with each boot. So the saved plan also has the name of each interrupt and the
//! queue of each NAPI instance ([`BootNumbers`], [`SavedPlan`]).
//!
//! # Paths
//!
//! The unit names a program and a folder. Both must exist at boot, and their names must be valid in a unit. Both
//! conditions are checked before anything is written ([`BootError`], [`BootPart::warnings`]).

mod persistence;

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use thiserror::Error;

use super::plan_files::{BootNumbers, SavedPlan};
use super::state::State;
use crate::limits::{BOOT_UNIT_TIMEOUT, MAX_JOURNAL_BYTES};
use crate::plan::{Plan, Step, When};
use crate::setting::{Machine, Setting, SettingError, Value};

const UNIT: &str = "/etc/systemd/system/isolane-tune.service";
const SAVED: &str = "tune.plan";
const WANTED_BY: &str = "/etc/systemd/system/multi-user.target.d/isolane-tune.conf";

/// Program and folder that apply a plan after each boot.
#[derive(Clone, Debug)]
pub struct BootPart {
    /// Path of the program that is started at boot.
    pub program: PathBuf,
    /// Journal folder.
    pub folder: PathBuf,
}

impl BootPart {
    /// Boot part with the running program and this folder.
    ///
    /// # Errors
    /// [`BootError`]: the program no longer exists under its name.
    pub fn of_this_program(folder: &Path) -> Result<Self, BootError> {
        let program = std::env::current_exe().map_err(BootError::System)?;
        let id = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino()));
        let running = id(Path::new("/proc/self/exe")).map_err(BootError::System)?;
        // Another file may have taken the program's name. For a deleted program, the kernel reports a name that no file
        // has.
        if id(&program).ok() != Some(running) {
            return Err(BootError::Program(program, PathError::Replaced));
        }
        let folder = persistence::resolved(folder).map_err(BootError::System)?;
        Ok(Self { program, folder })
    }

    /// Reasons for which the boot part might not run, one sentence each. Only the boot shows whether they apply.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let paths = [&self.program, &self.folder].into_iter();
        paths.flat_map(|path| persistence::warnings(path)).collect()
    }

    /// Program and folder as text, after checking that systemd accepts them and that they exist at boot.
    fn names(&self) -> Result<(&str, &str), BootError> {
        let program = |why| BootError::Program(self.program.clone(), why);
        let folder = |why| BootError::Folder(self.folder.clone(), why);
        let names = (
            unit_program_name(&self.program).map_err(program)?,
            unit_name(&self.folder).map_err(folder)?,
        );
        persistence::check(&self.program).map_err(program)?;
        persistence::check(&self.folder).map_err(folder)?;
        Ok(names)
    }

    /// Returns whether systemd started this machine.
    #[must_use]
    pub fn is_possible() -> bool {
        Path::new("/run/systemd/system").is_dir()
    }

    /// Path of the saved plan.
    #[must_use]
    pub fn saved(folder: &Path) -> PathBuf {
        folder.join(SAVED)
    }

    /// Returns whether a setting is one of the boot part's own files, and so not part of the user's plan.
    pub(crate) fn is_own_file(setting: &Setting) -> bool {
        let Setting::Document { path } = setting else {
            return false;
        };
        path == UNIT || path == WANTED_BY || Path::new(path).file_name() == Some(SAVED.as_ref())
    }

    /// Loads the saved plan.
    ///
    /// # Errors
    /// No plan is saved ([`io::ErrorKind::NotFound`]), or it is unreadable or of another version.
    pub fn load(folder: &Path) -> io::Result<SavedPlan> {
        let state = State::find(folder).map_err(|error| error.error)?;
        let state = state.ok_or(io::ErrorKind::NotFound)?;
        let file = state.open(SAVED, OFlags::RDONLY)?;
        let mut text = String::new();
        file.take(MAX_JOURNAL_BYTES).read_to_string(&mut text)?;
        SavedPlan::from_json(&text).map_err(io::Error::other)
    }

    /// Loads the plan saved earlier. An unreadable one is not overwritten: its settings would silently be unset at
    /// boot.
    fn earlier(&self) -> Result<Option<SavedPlan>, BootError> {
        match Self::load(&self.folder) {
            Ok(saved) => Ok(Some(saved)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(BootError::Saved(Self::saved(&self.folder), error)),
        }
    }

    /// Returns `plan` with steps that save it; or that remove the saved plan, if nothing is to be set after a boot.
    ///
    /// # Errors
    /// [`BootError`]: the program or folder will not exist at boot, or the current files cannot be read.
    pub fn added_to(
        &self,
        plan: &Plan,
        numbers: BootNumbers,
        machine: &mut dyn Machine,
    ) -> Result<Plan, BootError> {
        let (program, folder) = self.names()?;
        let saved = SavedPlan::merged(plan, self.earlier()?, numbers);
        let text = serde_json::to_string(&saved)
            .map_err(|error| SettingError::System(error.to_string()))?;
        let unit = unit_text(program, folder, &saved.carriers());
        let files = [
            ("plan", Self::saved(&self.folder), text),
            ("unit", UNIT.into(), unit),
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
                to: match saved.is_empty() {
                    true => Value::Absent,
                    false => Value::Text(text),
                },
                why: String::from("the kernel forgets all settings when it is started again"),
                topics: Vec::new(),
                costs: String::from("nothing while the machine runs"),
                when: When::Now,
            });
        }
        Ok(whole)
    }
}

/// Reason that a plan cannot be saved for the next boot. Nothing was changed.
#[derive(Debug, Error)]
pub enum BootError {
    /// The program to start does not persist: install it elsewhere.
    #[error("the unit would start {}, and {}", .0.display(), .1)]
    Program(PathBuf, PathError),
    /// The journal folder, which would hold the plan, does not persist: choose another one.
    #[error("the plan would be saved in {}, and {}", .0.display(), .1)]
    Folder(PathBuf, PathError),
    /// The plan saved earlier in this file cannot be read.
    #[error("the plan saved earlier in {} cannot be read: {}", .0.display(), .1)]
    Saved(PathBuf, io::Error),
    /// The current content of the unit files cannot be read.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The system does not report the running program or its path.
    #[error(transparent)]
    System(io::Error),
}

/// Reason that a path cannot be used at boot.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PathError {
    /// The path is not UTF-8, which systemd units require.
    #[error("its name is not UTF-8, which systemd units require")]
    NotText,
    /// The path contains characters that a unit cannot hold. The value describes them.
    #[error("its name contains {0}, which systemd does not accept")]
    Characters(&'static str),
    /// The path is in this folder, which is empty after a boot.
    #[error("it is in {}, which is empty after a boot", .0.display())]
    Temporary(PathBuf),
    /// The path is on a file system in memory.
    #[error("its file system is in memory and is empty after a boot")]
    InMemory,
    /// The running program was removed, or another file has taken its name.
    #[error("it was removed or replaced since it was started")]
    Replaced,
}

/// Path as text that a unit can hold.
pub(super) fn unit_name(path: &Path) -> Result<&str, PathError> {
    let name = path.to_str().ok_or(PathError::NotText)?;
    match name.contains(|letter: char| letter.is_control()) {
        // A line feed would end the line of the unit.
        true => Err(PathError::Characters("control characters")),
        false => Ok(name),
    }
}

/// Path as text that a unit can hold as a program.
pub(super) fn unit_program_name(path: &Path) -> Result<&str, PathError> {
    let name = unit_name(path)?;
    match has_quotes(name) {
        true => Err(PathError::Characters("quotes or backslashes")),
        false => Ok(name),
    }
}

fn has_quotes(name: &str) -> bool {
    name.contains(['"', '\'', '\\'])
}

/// Text of the unit that starts `program` with the plan in `folder`, ordered after `interfaces`.
pub(super) fn unit_text(program: &str, folder: &str, interfaces: &[String]) -> String {
    let saved = BootPart::saved(Path::new(folder));
    let devices: Vec<String> = interfaces.iter().map(|name| device_unit(name)).collect();
    let devices = match devices.join(" ") {
        none if none.is_empty() => none,
        // `After=` alone: the other settings are applied even if an interface is missing. With `Wants=`, systemd would
        // wait 90 s for the interface; the program itself waits for a shorter time.
        devices => format!("After={devices}\n"),
    };
    format!(
        "# Made by `isolane tune apply`; `isolane tune rollback` takes it away.\n\
         [Unit]\n\
         Description=Settings of this machine for critical topics\n\
         ConditionPathExists={saved}\n\
         RequiresMountsFor={mounts}\n\
         {devices}\
         After=network.target systemd-sysctl.service irqbalance.service tuned.service\n\
         Before=network-online.target\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         TimeoutSec={timeout}\n\
         ExecStart=\"{program}\" tune apply --boot --state {state}\n",
        saved = without_specifiers(&saved.display().to_string()),
        mounts = [program, folder].map(mount_path).join(" "),
        timeout = BOOT_UNIT_TIMEOUT.as_secs(),
        program = without_specifiers(program),
        state = exec_argument(folder),
    )
}

/// Path for `RequiresMountsFor=`. Quotes cannot be escaped there, so a path is cut before its first part with quotes.
fn mount_path(path: &str) -> String {
    let mut above = Path::new(path).ancestors().filter_map(Path::to_str);
    let plain = above.find(|path| !has_quotes(path)).unwrap_or("/");
    format!("\"{}\"", without_specifiers(plain))
}

fn exec_argument(text: &str) -> String {
    let text = without_specifiers(text).replace('$', "$$");
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

fn without_specifiers(text: &str) -> String {
    text.replace('%', "%%")
}

/// Name of the interface's device unit, which is active while the interface exists.
pub(crate) fn device_unit(interface: &str) -> String {
    format!("sys-subsystem-net-devices-{}.device", escaped(interface))
}

/// Escapes a name for a unit name: other bytes than letters, digits and `:_.` become `\xNN` (systemd.unit(5)).
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
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use isolane_hostnet::limits::NETLINK_PATIENCE;

    use crate::limits::BOOT_INTERFACE_TIMEOUT;

    fn assert_has(unit: &str, lines: &[&str]) {
        for line in lines {
            assert!(
                unit.lines().any(|known| known == *line),
                "no {line} in {unit}"
            );
        }
    }

    #[test]
    fn the_unit_waits_for_its_interfaces_and_is_waited_for() {
        let interfaces = ["eth0".into(), "en-p1".into()];
        let unit = unit_text("/usr/bin/isolane", "/var/lib/isolane", &interfaces);
        assert_has(
            &unit,
            &[
                "After=sys-subsystem-net-devices-eth0.device sys-subsystem-net-devices-en\\x2dp1.device",
                "Before=network-online.target",
                "ConditionPathExists=/var/lib/isolane/tune.plan",
                "RequiresMountsFor=\"/usr/bin/isolane\" \"/var/lib/isolane\"",
                "ExecStart=\"/usr/bin/isolane\" tune apply --boot --state \"/var/lib/isolane\"",
            ],
        );
        let unit = unit_text("/usr/bin/isolane", "/var/lib/isolane", &[]);
        assert!(!unit.contains(".device"), "{unit}");
        assert!(
            !unit.contains("\nAfter=\n") && !unit.contains("Wants="),
            "{unit}"
        );
    }

    #[test]
    fn the_unit_of_the_package_is_the_one_for_its_paths() {
        let packaged = include_str!("../../../cli/debian/isolane-tune.service");
        let is_comment = |line: &&str| line.starts_with('#');
        let packaged: Vec<_> = packaged.lines().skip_while(is_comment).collect();
        let unit = unit_text("/usr/bin/isolane", crate::apply::STATE_FOLDER, &[]);
        let mut lines: Vec<_> = unit.lines().skip_while(is_comment).collect();
        lines.extend(["", "[Install]", "WantedBy=multi-user.target"]);
        assert_eq!(packaged, lines);
    }

    #[test]
    fn a_boot_is_not_kept_waiting_for_ever_nor_tried_again_for_ever() {
        let unit = unit_text("/usr/bin/isolane", "/var/lib/isolane", &[]);
        // systemd has no default timeout for units of this type.
        assert_has(&unit, &["Type=oneshot", "TimeoutSec=180"]);
        assert!(BOOT_UNIT_TIMEOUT > BOOT_INTERFACE_TIMEOUT + 2 * NETLINK_PATIENCE);
        assert!(!unit.contains("Restart="), "{unit}");
    }

    #[test]
    fn names_with_special_characters_are_escaped_for_systemd() {
        let unit = unit_text(
            "/opt/a $x 100% b/isolane",
            "/var/$HOME 5%h \"it's\" \\b",
            &[],
        );
        assert_has(
            &unit,
            &[
                "ConditionPathExists=/var/$HOME 5%%h \"it's\" \\b/tune.plan",
                "RequiresMountsFor=\"/opt/a $x 100%% b/isolane\" \"/var\"",
                "ExecStart=\"/opt/a $x 100%% b/isolane\" tune apply --boot --state \
                 \"/var/$$HOME 5%%h \\\"it's\\\" \\\\b\"",
            ],
        );
    }

    #[test]
    fn names_that_a_unit_cannot_hold_are_refused() {
        let odd = Path::new(OsStr::from_bytes(b"/opt/\xff"));
        assert_eq!(unit_name(odd), Err(PathError::NotText));
        let lines = Path::new("/opt/a\nExecStart=/bin/other");
        assert!(matches!(unit_name(lines), Err(PathError::Characters(_))));
        for path in ["/opt/it's/isolane", "/opt/\"a\"/isolane", "/opt/a\\b"] {
            let path = Path::new(path);
            assert!(unit_name(path).is_ok());
            assert!(matches!(
                unit_program_name(path),
                Err(PathError::Characters(_))
            ));
        }
        assert_eq!(unit_program_name(Path::new("/opt/$a %b")), Ok("/opt/$a %b"));
    }
}

#[cfg(test)]
mod systemd_tests {
    use super::escaped;

    #[test]
    fn names_of_interfaces_are_those_of_their_units() {
        assert_eq!(escaped("eth0.5"), "eth0.5");
        assert_eq!(escaped("br-lan"), "br\\x2dlan");
    }
}
