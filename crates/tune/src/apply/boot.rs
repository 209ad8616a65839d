//! Boot part of a plan: the saved plan, and a systemd unit that applies it again after each boot.
//!
//! # Ordering
//!
//! Queue interrupts and their threads exist only while an interface is up, and the network manager brings it up. So the
//! unit runs after network managers and after other tuning services (irqbalance, TuneD), waits for the plan's
//! interfaces, and runs before `network-online.target`, for which services that need the final network wait. A drop-in
//! of `multi-user.target` wants it: a plain file, journaled like the others.
//!
//! # Numbers
//!
//! Interrupt and NAPI numbers change with each boot. The plan saves an interrupt's name and an instance's queue with
//! them ([`BootNumbers`], [`SavedPlan`]).
//!
//! # Paths
//!
//! The unit names a program and a folder. Both must exist at boot under names that systemd accepts; this is checked
//! before anything is written ([`BootError`], [`BootPart::warnings`]).

mod error;
mod lasting;
mod unit;

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

pub use self::error::{BootError, PathError};
use super::numbers::BootNumbers;
use super::saved::SavedPlan;
use super::state::State;
use crate::limits::MAX_JOURNAL_BYTES;
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
        // Another file may have taken the name; for a deleted file, the kernel reports a name that does not exist.
        if id(&program).ok() != Some(running) {
            return Err(BootError::Program(program, PathError::Replaced));
        }
        let folder = lasting::resolved(folder).map_err(BootError::System)?;
        Ok(Self { program, folder })
    }

    /// Reasons that the boot part might not run at boot, which cannot be decided now; one sentence each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let paths = [&self.program, &self.folder].into_iter();
        paths.flat_map(|path| lasting::warnings(path)).collect()
    }

    /// Program and folder as text, after checking that systemd accepts them and that they exist at boot.
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

    /// Loads the plan saved earlier. An unreadable one is not overwritten: its settings would silently stay unset after
    /// the next boot.
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
