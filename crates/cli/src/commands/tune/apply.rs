//! `isolane tune apply`: applies a plan, or at boot the saved plan.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use clap::Args;
use isolane_model::{open_regular, read_opened};
use isolane_tune::apply::{
    Applied, ApplyError, BootError, BootNumbers, BootPart, FailedStep, Links, PlanFile, SavedPlan,
    apply,
};
use isolane_tune::{Plan, PlanError, ThisMachine, here, interfaces};
use rustix::process::geteuid;

use super::failure::{OF_ANOTHER_VERSION, failure};
use super::{StateArguments, await_links, damage_note, damaged};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::RECORDED_BYTES;
use crate::output::{count_of, print, tell};
use crate::stop;

#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// Apply the plan in this file, which `tune plan` wrote
    #[arg(
        value_name = "PLAN",
        required_unless_present = "boot",
        conflicts_with = "boot"
    )]
    plan: Option<PathBuf>,
    #[command(flatten)]
    state: StateArguments,
    /// Apply until the next boot only: do not save the plan, and install no systemd unit
    #[arg(long, conflicts_with = "boot")]
    no_boot: bool,
    /// Apply the saved plan once its interfaces are up; the systemd unit does this at each boot
    #[arg(long)]
    boot: bool,
}

impl Apply {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let stopped = stop::on_signals_only()?;
        let folder = &self.state.state;
        let mut machine = ThisMachine::new();
        let is_stopped = || stopped.load(Ordering::Relaxed);
        // The command line has a file or `--boot`: clap requires one of them.
        let Some(path) = &self.plan else {
            return at_boot(folder, &mut machine, &is_stopped);
        };
        let not_applied = |error: &ApplyError| failure("the plan was not applied", error);
        let plan = read(path)?.admit(&here(), folder);
        let plan = plan.map_err(|error| not_applied(&error))?;
        let plan = match self.no_boot {
            false => kept(plan, folder, &mut machine)?,
            true => plan,
        };
        let links = Links::now();
        let applied = apply(&mut machine, &here(), &plan, folder, false, &is_stopped);
        await_links(&links, &is_stopped);
        let applied = applied.map_err(|error| not_applied(&error))?;
        left_out(&applied.left_out);
        let code = print(&text(&plan, &applied))?;
        if let Some(damaged) = damage_note(&damaged(&self.state)?) {
            tell(format!("note: {damaged}"));
        }
        Ok(code)
    }
}

/// Applies the saved plan once its interfaces are up. The plan is applied in two parts, because the first part may
/// change interface and interrupt numbers that the second part needs.
fn at_boot(
    folder: &Path,
    machine: &mut ThisMachine,
    is_stopped: &dyn Fn() -> bool,
) -> Result<ExitCode, Failure> {
    let saved = saved(folder)?;
    for interface in saved.wait(is_stopped) {
        tell(format!("note: {interface} is not up"));
    }
    let links = Links::now();
    let done = in_two_parts(&saved, folder, machine, is_stopped);
    await_links(&links, is_stopped);
    done
}

fn in_two_parts(
    saved: &SavedPlan,
    folder: &Path,
    machine: &mut ThisMachine,
    is_stopped: &dyn Fn() -> bool,
) -> Result<ExitCode, Failure> {
    let mut carry_out = |plan: &Plan, what: &str| {
        let applied = apply(machine, &here(), plan, folder, true, is_stopped);
        let applied = applied.map_err(|error| failure(what, &error))?;
        left_out(&applied.left_out);
        print(&text(plan, &applied))
    };
    carry_out(&saved.first_part(), "the saved plan was not applied")?;
    let names = saved.interfaces();
    let (plan, lost) = saved.second_part(&BootNumbers::read(names.iter().map(String::as_str)));
    left_out(&lost);
    carry_out(
        &plan,
        "the steps of the saved plan for receive work were not applied",
    )
}

/// Reports the steps that were left out, because they are not possible at boot or the kernel refused them.
fn left_out(obstacles: &[FailedStep]) {
    for FailedStep {
        id, setting, why, ..
    } in obstacles
    {
        tell(format!("note: left out: {id}: {setting}: {why}"));
    }
}

/// Reads a plan. The file is opened only once, so that the checked file is the one that is read.
fn read(path: &Path) -> Result<PlanFile, Failure> {
    let failed = |why: String| {
        Failure::wrong_usage(format!("cannot read the plan in {}", path.display()), why)
    };
    let of_system = |error: io::Error| failed(error.to_string());
    let file = open_regular(path).map_err(of_system)?;
    let metadata = file.metadata().map_err(of_system)?;
    if let Err(why) = check_writers(&metadata) {
        let remedy = "check the plan; then allow only yourself to write to it (chown, chmod go-w), or plan again";
        return Err(failed(why).with_remedy(remedy));
    }
    let bytes = read_opened(file, RECORDED_BYTES).map_err(of_system)?;
    let text = str::from_utf8(&bytes).map_err(|error| failed(error.to_string()))?;
    PlanFile::from_json(text).map_err(|error| {
        let failure = failed(error.to_string());
        match error {
            PlanError::Form(_) => failure.with_remedy(OF_ANOTHER_VERSION),
            PlanError::Text(_) => failure,
        }
    })
}

/// Checks that only root, this user or the caller of sudo(8) can write to a file.
///
/// # Errors
/// A sentence on who else can write to the file.
fn check_writers(metadata: &Metadata) -> Result<(), String> {
    let sudo = std::env::var("SUDO_UID").ok();
    let mut trusted = vec![0, geteuid().as_raw()];
    trusted.extend(sudo.and_then(|user| user.parse::<u32>().ok()));
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    match (trusted.contains(&owner), mode & 0o022) {
        (false, _) => Err(format!(
            "it belongs to user {owner}, and root would carry out its steps"
        )),
        (true, 0) => Ok(()),
        (true, _) => Err(format!(
            "others can write to it (its mode is {mode:04o}), and root would carry out its steps"
        )),
    }
}

/// Adds the systemd unit that applies the plan after each boot. Without systemd, prints a note and returns the plan
/// unchanged.
fn kept(plan: Plan, folder: &Path, machine: &mut ThisMachine) -> Result<Plan, Failure> {
    if !BootPart::is_possible() {
        tell(
            "note: this machine was not started by systemd: the plan is in effect until the next boot; apply it again \
             then (`isolane tune apply PLAN`)",
        );
        return Ok(plan);
    }
    let part = BootPart::of_this_program(folder).map_err(not_kept)?;
    for doubt in part.warnings() {
        tell(format!("note: {doubt}"));
    }
    let names = interfaces().unwrap_or_default();
    let numbers = BootNumbers::read(names.iter().map(|interface| interface.name.as_str()));
    part.added_to(&plan, numbers, machine).map_err(not_kept)
}

/// Failure for a plan that cannot be saved for the next boot, with a remedy.
fn not_kept(error: BootError) -> Failure {
    let remedy = match &error {
        BootError::Program(..) => {
            "install isolane in a permanent place (/usr/local/bin) and start it from there; or apply the plan until \
             the next boot only: --no-boot"
        }
        BootError::Folder(..) => {
            "name a folder on a disk (--state DIR); or apply the plan until the next boot only: --no-boot"
        }
        BootError::Saved(..) => {
            "isolane tune rollback removes it, and restores all settings; or apply the plan until the next boot only: \
             --no-boot"
        }
        BootError::Setting(_) | BootError::System(_) => {
            "--no-boot applies the plan until the next boot only"
        }
    };
    Failure::forbidden(
        "the plan cannot be saved for the next boot, and nothing was changed",
        error.to_string(),
    )
    .with_remedy(remedy)
}

fn saved(folder: &Path) -> Result<SavedPlan, Failure> {
    BootPart::load(folder).map_err(|error| {
        let folder = folder.display();
        let (what, remedy) = match error.kind() {
            io::ErrorKind::NotFound => (
                format!("there is no saved plan in {folder}"),
                "isolane tune apply PLAN saves a plan",
            ),
            _ => (
                format!("the saved plan in {folder} cannot be read, and nothing was changed"),
                "isolane tune rollback removes it; then plan and apply again",
            ),
        };
        Failure::forbidden(what, error).with_remedy(remedy)
    })
}

fn text(plan: &Plan, applied: &Applied) -> String {
    if plan.steps.is_empty() {
        return String::from("nothing to do: the plan has no steps\n");
    }
    let mut lines = Vec::new();
    for step in &plan.steps {
        let has = |ids: &[String]| ids.contains(&step.id);
        let said = match (has(&applied.changed), has(&applied.unexpected)) {
            (false, _) => continue,
            (true, false) => format!("{} -> {}", step.from, step.to),
            (true, true) => format!(
                "{}, although the value before was not {}",
                step.to, step.from
            ),
        };
        let reboot = match has(&applied.after_reboot) {
            true => "  (after the next boot)",
            false => "",
        };
        lines.push(format!("  {}: {}: {said}{reboot}\n", step.id, step.setting));
    }
    lines.push(format!(
        "{} set, {} already in effect; isolane tune rollback undoes the plan\n",
        count_of(applied.changed.len() as u64, "setting"),
        applied.already.len(),
    ));
    lines.concat()
}
