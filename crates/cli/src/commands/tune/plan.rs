//! `isolane tune plan` and `isolane tune export`: plan changes with reasons and costs. They print the plan, or write it
//! in another tool's format, and do not change the machine.

use std::fs::{File, Permissions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::Args;
use isolane_model::{ProfileName, Source, Sourced, Tuning, Word, read_regular_text};
use isolane_tune::apply::{SettingStatus, status};
use isolane_tune::{
    Exported, ExportedFile, Facts, FlowQueues, Format, Plan, ThisMachine, here, probe, replan,
};
use rustix::fs::OFlags;
use serde::de::DeserializeOwned;

use super::StateArguments;
use crate::datapaths::kinds;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::RECORDED_BYTES;
use crate::output::{print, print_json, tell, terminal_columns, write_text};
use crate::settings::Settings;
use crate::values::{Destination, one_of};

const FORMATS: &[(&str, Format)] = &[
    ("tuned", Format::Tuned),
    ("systemd", Format::Systemd),
    ("sh", Format::Shell),
];

/// Sources of a plan.
#[derive(Debug, Args)]
struct PlanSource {
    /// Use this profile: balanced (needs no reboot), latency (isolates the executor's core; needs a reboot), or a TOML
    /// file with keys of [tune] [default: the description's, else balanced]
    #[arg(long, value_name = "NAME|FILE")]
    profile: Option<String>,
    /// Use [host.NAME] of the description for this machine [default: the entry of its host name, else the only entry]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Plan for the facts in this file (from `doctor --facts`, perhaps on another machine) instead of this machine
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,
    /// Use the receive queues in this file, from `tune ports --json` or `tune learn --json`; may be repeated. The plan
    /// sets priorities of receive threads only with a file of `tune ports`
    #[arg(long, value_name = "FILE")]
    receive_queues: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PlanChanges {
    /// Write the plan to this file as JSON, for `tune apply`
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    from: PlanSource,
    #[command(flatten)]
    state: StateArguments,
    /// Print only the changes, as a diff of old and new values
    #[arg(long)]
    diff: bool,
    /// Write the plan as JSON to this file; `-` is standard output
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    json: Option<Destination>,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Select the format: sh (a script), systemd (a unit with script and drop-ins) or tuned (a TuneD profile)
    #[arg(long, value_name = "FORMAT", value_parser = one_of(FORMATS), hide_possible_values = true)]
    format: Format,
    #[command(flatten)]
    from: PlanSource,
    /// Write the files below this folder, each at its path on the machine [default: print them]
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
}

impl PlanChanges {
    /// Prints the plan, and writes it as JSON if a destination is named.
    pub(super) fn run(self, mut settings: Settings) -> Result<ExitCode, Failure> {
        let tuning = self.from.tuning(&mut settings)?;
        settings.begin()?;
        let plan = self.from.plan(&settings, &tuning, &self.standing())?;
        let destination = self.file.map(Destination::File).or(self.json);
        if let Some(destination) = &destination {
            print_json(&plan, destination)?;
        }
        if destination == Some(Destination::StandardOutput) {
            return Ok(ExitCode::Done);
        }
        match self.diff {
            true => print(&plan.to_diff())?,
            false => print(&plan.to_text(terminal_columns()))?,
        };
        match destination {
            Some(Destination::File(path)) => {
                keep_from_others(&path).map_err(|error| {
                    let what = format!("cannot restrict who may write to {}", path.display());
                    Failure::forbidden(what, error)
                })?;
                print(&written(&path, &self.from, &plan))
            }
            _ => Ok(ExitCode::Done),
        }
    }

    /// Settings that earlier plans applied. The new plan restores those that are no longer needed.
    fn standing(&self) -> Vec<SettingStatus> {
        // The recorded facts may be of another machine, whose journal is not here.
        if self.from.facts.is_some() {
            return Vec::new();
        }
        match status(&mut ThisMachine::new(), &here(), &self.state.state) {
            Ok(status) => status.map_or_else(Vec::new, |it| it.settings),
            Err(error) => {
                tell(format!(
                    "note: cannot read which settings earlier plans set ({error}), so this plan restores none of them"
                ));
                Vec::new()
            }
        }
    }
}

impl Export {
    /// Prints the files, or writes them below a folder.
    pub(super) fn run(self, mut settings: Settings) -> Result<ExitCode, Failure> {
        let tuning = self.from.tuning(&mut settings)?;
        settings.begin()?;
        let plan = self.from.plan(&settings, &tuning, &[])?;
        let exported = isolane_tune::export(&plan, self.format);
        for (id, omission) in &exported.missing {
            tell(format!("note: {id} is left out: {}", omission.reason()));
        }
        match &self.to {
            Some(folder) => {
                for file in &exported.files {
                    write(file, folder)?;
                }
                Ok(ExitCode::Done)
            }
            None => print(&text(&exported)),
        }
    }
}

impl PlanSource {
    /// Profile and switches to plan with. The name of a profile replaces the description's profile, and keeps the
    /// switches that the description sets. A file replaces both.
    fn tuning(&self, settings: &mut Settings) -> Result<Tuning, Failure> {
        settings.check_host(self.host.as_ref())?;
        let described = settings.system.as_ref();
        let described = described
            .map(|system| system.tuning().clone())
            .unwrap_or_default();
        let tuning = match &self.profile {
            Some(profile) => chosen(profile, described)?,
            None => described,
        };
        for (switch, value, source) in tuning.entries() {
            settings.set(switch, value, source);
        }
        Ok(tuning)
    }

    fn plan(
        &self,
        settings: &Settings,
        tuning: &Tuning,
        standing: &[SettingStatus],
    ) -> Result<Plan, Failure> {
        let facts: Facts = match &self.facts {
            Some(path) => recorded(path, "facts", FACTS)?,
            None => probe(kinds()),
        };
        let mut placement = FlowQueues::default();
        for path in &self.receive_queues {
            let form = "isolane tune learn --json FILE, isolane tune ports --json FILE";
            let more: FlowQueues = recorded(path, "receive queues", form)?;
            if more.is_of_other_boot(facts.boot_id.as_deref()) {
                return Err(outdated(path));
            }
            placement.flows.extend(more.flows);
        }
        let needs = settings.needs(self.host.as_deref(), &facts.hostname)?;
        let plan = |facts: &Facts| isolane_tune::plan(facts, &needs, tuning, &placement);
        Ok(replan(&facts, standing, &plan))
    }
}

fn chosen(profile: &str, described: Tuning) -> Result<Tuning, Failure> {
    if let Some(name) = ProfileName::from_word(profile) {
        return Ok(described.over(Sourced::new(name, Source::CommandLine("--profile"))));
    }
    if !profile.contains('/') && !profile.ends_with(".toml") && !Path::new(profile).exists() {
        let names: Vec<&str> = ProfileName::WORDS.iter().map(|(word, _)| *word).collect();
        return Err(Failure::wrong_usage(
            format!("there is no profile \"{}\"", profile.escape_debug()),
            format!("profiles are {}; and no file has that name", names.join(", ")),
        )
        .with_remedy("name one of these profiles, or a file with keys of [tune]: isolane config prints the keys"));
    }
    Tuning::load(profile).map_err(Failure::Description)
}

/// Restricts write permission on a plan to its owner, as `tune apply` requires. Does not follow symbolic links, which
/// another user may have placed.
fn keep_from_others(path: &Path) -> io::Result<()> {
    if !path.symlink_metadata()?.is_file() {
        return Ok(());
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut plan = File::options();
    plan.read(true).custom_flags(flags.bits().cast_signed());
    let plan = plan.open(path)?;
    let metadata = plan.metadata()?;
    match metadata.is_file() && metadata.mode() & 0o022 != 0 {
        true => plan.set_permissions(Permissions::from_mode(metadata.mode() & 0o755)),
        false => Ok(()),
    }
}

/// Text that says where the plan is, and how to apply it.
fn written(path: &Path, from: &PlanSource, plan: &Plan) -> String {
    let path = path.display();
    let next = match (plan.steps.is_empty(), &from.facts) {
        (true, _) => String::from("there is nothing to apply"),
        (false, None) => format!("to apply it: sudo isolane tune apply {path}"),
        (false, Some(_)) => {
            format!(
                "to apply it, on {}: sudo isolane tune apply {path}",
                plan.machine.hostname
            )
        }
    };
    format!("\nThe plan is written to {path}; {next}\n")
}

/// Failure for receive queues of another boot.
fn outdated(path: &Path) -> Failure {
    Failure::new(
        ExitCode::AnswerIsNo,
        format!(
            "the receive queues in {} are from another boot than the facts",
            path.display()
        ),
        "devices have another RSS hash key after each boot: the same datagrams may arrive on other queues now",
    )
    .with_remedy(
        "learn and measure again: isolane tune learn PEER -i NAME --json FILE, isolane tune ports PEER -i NAME \
         --json FILE",
    )
}

/// Command that records the facts of a machine.
pub(in crate::commands) const FACTS: &str = "isolane doctor --facts --json FILE";

/// Reads a JSON file. The command `form` writes such files, and `what` names their content.
pub(in crate::commands) fn recorded<T: DeserializeOwned>(
    path: &Path,
    what: &str,
    form: &str,
) -> Result<T, Failure> {
    let failed = |why: String| {
        Failure::wrong_usage(format!("cannot read the {what} in {}", path.display()), why)
            .with_remedy(format!("this command writes such files: {form}"))
    };
    let text =
        read_regular_text(path, RECORDED_BYTES).map_err(|error| failed(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| failed(error.to_string()))
}

/// Text of the exported files. If there are several, each follows its path.
fn text(exported: &Exported) -> String {
    match exported.files.as_slice() {
        [only] => only.text.clone(),
        files => {
            let file = |file: &ExportedFile| format!("#### {}\n{}\n", file.path, file.text);
            files.iter().map(file).collect()
        }
    }
}

fn write(file: &ExportedFile, folder: &Path) -> Result<(), Failure> {
    let path = folder.join(file.path.trim_start_matches('/'));
    let failed = |error: io::Error| not_written(file, folder, &error);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    write_text(&file.text, &path)?;
    let mode = if file.is_executable { 0o755 } else { 0o644 };
    fs::set_permissions(&path, Permissions::from_mode(mode)).map_err(failed)
}

fn not_written(file: &ExportedFile, folder: &Path, error: &io::Error) -> Failure {
    Failure::forbidden(
        format!("{} cannot be written below {}", file.path, folder.display()),
        error.to_string(),
    )
}
