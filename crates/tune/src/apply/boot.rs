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
//!
//! # Where
//!
//! The unit names a program and a folder. Both have to be there at boots, under names that systemd
//! understands: that is looked at before anything is written ([`BootError`], [`BootPart::doubts`]).

mod error;
mod lasting;
mod unit;

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

pub use self::error::{BootError, Unfit};
use super::numbers::Numbers;
use super::saved::SavedPlan;
use super::state::State;
use crate::limits::MAX_JOURNAL_BYTES;
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
    /// The program that runs, started again at boots with this folder.
    ///
    /// # Errors
    /// [`BootError`]: the program is not there under its name any more.
    pub fn of_this_program(folder: &Path) -> Result<Self, BootError> {
        let program = std::env::current_exe().map_err(BootError::System)?;
        let id = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino()));
        let running = id(Path::new("/proc/self/exe")).map_err(BootError::System)?;
        // Another file may have taken the name since, and the kernel tells of one without a name.
        if id(&program).ok() != Some(running) {
            return Err(BootError::Program(program, Unfit::Replaced));
        }
        let folder = lasting::resolved(folder).map_err(BootError::System)?;
        Ok(Self { program, folder })
    }

    /// What may keep it from being carried out at a boot, and cannot be known now: a sentence each, for people.
    #[must_use]
    pub fn doubts(&self) -> Vec<String> {
        let paths = [&self.program, &self.folder].into_iter();
        paths.flat_map(|path| lasting::doubts(path)).collect()
    }

    /// Its two names as text, once it is known that they may stand in a unit and lead somewhere at boots.
    fn names(&self) -> Result<(&str, &str), BootError> {
        let program = |why| BootError::Program(self.program.clone(), why);
        let folder = |why| BootError::Folder(self.folder.clone(), why);
        let names = (
            unit::program_name(&self.program).map_err(program)?,
            unit::name(&self.folder).map_err(folder)?,
        );
        lasting::check(&self.program).map_err(program)?;
        lasting::check(&self.folder).map_err(folder)?;
        Ok(names)
    }

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
    /// There is none ([`io::ErrorKind::NotFound`]), or it cannot be read, or is of another version.
    pub fn load(folder: &Path) -> io::Result<SavedPlan> {
        let state = State::find(folder).map_err(|error| error.error)?;
        let state = state.ok_or(io::ErrorKind::NotFound)?;
        let file = state.open(SAVED, OFlags::RDONLY)?;
        let mut text = String::new();
        file.take(MAX_JOURNAL_BYTES).read_to_string(&mut text)?;
        SavedPlan::from_json(&text).map_err(io::Error::other)
    }

    /// What was saved earlier. One that cannot be read is not written over: what it sets would stay undone after
    /// the next boot, and nobody would know.
    fn earlier(&self) -> Result<Option<SavedPlan>, BootError> {
        match Self::load(&self.folder) {
            Ok(saved) => Ok(Some(saved)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(BootError::Saved(Self::saved(&self.folder), error)),
        }
    }

    /// The plan with steps that save it, all to be done at once; or that take away what is saved, where nothing is
    /// left to be set after a boot.
    ///
    /// # Errors
    /// [`BootError`]: the program or the folder will not be there, or what stands in the places of its files
    /// cannot be read.
    pub fn added_to(
        &self,
        plan: &Plan,
        numbers: Numbers,
        machine: &mut dyn Machine,
    ) -> Result<Plan, BootError> {
        let (program, folder) = self.names()?;
        let saved = SavedPlan::following(plan, self.earlier()?, numbers);
        let text = serde_json::to_string(&saved)
            .map_err(|error| SettingError::System(error.to_string()))?;
        let unit = unit::text(program, folder, &saved.carriers());
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
