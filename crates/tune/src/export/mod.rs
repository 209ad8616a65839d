//! Export of a plan in formats of other tools, for machines that do not run isolane.
//!
//! System tools apply an exported plan at boot. Steps they cannot carry out (single RSS table entries), and steps based
//! on measurements of this boot, are listed in every format and left out: [`Exported::missing`].

mod names;
mod omission;
mod script;
mod systemd;
mod tuned;

pub use omission::Omission;

use omission::line;

use crate::plan::{Plan, Step};

/// Export format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `TuneD` profile.
    Tuned,
    /// systemd unit with a script, and drop-ins.
    Systemd,
    /// Shell script that applies and undoes the plan.
    Shell,
}

/// Exported plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Files of the export.
    pub files: Vec<ExportedFile>,
    /// Ids of omitted steps, with the reason.
    pub missing: Vec<(String, Omission)>,
}

/// File of an exported plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedFile {
    /// Path on the machine.
    pub path: String,
    /// Content of the file.
    pub text: String,
    /// True if the file is executable.
    pub is_executable: bool,
}

/// Exports a plan.
pub fn export(plan: &Plan, format: Format) -> Exported {
    let files = match format {
        Format::Shell => vec![script::whole(plan)],
        Format::Systemd => systemd::files(plan),
        Format::Tuned => tuned::files(plan),
    };
    let missing = plan.steps.iter().filter_map(|step| {
        let omission = line(plan, step).err()?;
        Some((step.id.clone(), omission))
    });
    Exported {
        files,
        missing: missing.collect(),
    }
}

/// Comment at the top of every file: content and origin.
fn head(plan: &Plan, what: &str) -> String {
    format!(
        "# {what}\n# Made by isolane tune export for {}, profile {}.\n# Facts: {}\n",
        comment(&plan.machine.hostname),
        comment(&plan.profile),
        comment(&plan.origin)
    )
}

/// Text made safe for a one-line comment.
fn comment(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ")
}

fn reason(step: &Step) -> String {
    format!("# {}: {}\n", comment(&step.id), comment(&step.why))
}
