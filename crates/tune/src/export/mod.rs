//! A plan in the forms of other tools, for machines that are not to run this program.
//!
//! What is exported is carried out at boots, by tools of the system. What these cannot set (single entries of a receive
//! table), and what rests on a measurement of this boot, is named in every form, and left out: [`Exported::missing`].

mod names;
mod omission;
mod script;
mod systemd;
mod tuned;

pub use omission::Omission;

use omission::line;

use crate::plan::{Plan, Step};

/// The forms there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// A profile of `TuneD`.
    Tuned,
    /// A unit of systemd, its script, and drop-ins.
    Systemd,
    /// A script of a shell that applies and undoes.
    Shell,
}

/// A plan in another form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The files it takes.
    pub files: Vec<ExportedFile>,
    /// The ids of steps that it leaves out, and why.
    pub missing: Vec<(String, Omission)>,
}

/// A file of an exported plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedFile {
    /// Where it belongs on the machine.
    pub path: String,
    /// What it holds.
    pub text: String,
    /// Whether it is a program.
    pub is_executable: bool,
}

/// A plan in another form.
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

/// The head of every file: what it is and where it comes from, as comments.
fn head(plan: &Plan, what: &str) -> String {
    format!(
        "# {what}\n# Made by isolane tune export for {}, profile {}.\n# Facts: {}\n",
        comment(&plan.machine.hostname),
        comment(&plan.profile),
        comment(&plan.origin)
    )
}

/// Text that stays in a line of comment.
fn comment(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ")
}

/// A step's line of comment.
fn reason(step: &Step) -> String {
    format!("# {}: {}\n", comment(&step.id), comment(&step.why))
}
