//! Somebody else's program on the hook: who it is.
//!
//! What can be told is told; a process without CAP_SYS_ADMIN learns the program's number only.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use aya::programs::loaded_programs;
use isolane_hostnet::link;

use super::program::Tag;
use crate::limits::MAX_NAMED_OWNERS;

/// A program that is not ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// The kernel's number for it.
    pub id: u32,
    /// Its name and tag, if we may ask.
    pub name_and_tag: Option<(String, Tag)>,
    /// Some of the processes that hold it, by number and name; none if it is held by the interface
    /// only, or if we may not ask.
    pub owners: Vec<(u32, String)>,
}

impl Foreign {
    /// Program on the XDP hook of an interface.
    pub(crate) fn on(interface_index: u32) -> io::Result<Option<Foreign>> {
        let program = link::xdp_program(&link::describe(interface_index)?);
        Ok(program.map(|id| Foreign {
            id,
            name_and_tag: name_and_tag(id),
            owners: owners(id),
        }))
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "program {}", self.id)?;
        if let Some((name, tag)) = &self.name_and_tag {
            write!(f, " \"{name}\" with tag {tag}")?;
        }
        for (place, (process, name)) in self.owners.iter().enumerate() {
            let joint = if place == 0 { " of" } else { "," };
            write!(f, "{joint} process {process} ({name})")?;
        }
        Ok(())
    }
}

fn name_and_tag(id: u32) -> Option<(String, Tag)> {
    let mut programs = loaded_programs().filter_map(Result::ok);
    let program = programs.find(|program| program.id() == id)?;
    let name = String::from_utf8_lossy(program.name()).into_owned();
    Some((name, Tag(program.tag().to_be_bytes())))
}

/// Processes with a descriptor of the program, or of the link that attached it.
fn owners(id: u32) -> Vec<(u32, String)> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let numbers = processes
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|process| holds(*process, id));
    let named = numbers.map(|process| {
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        (process, name.trim().to_owned())
    });
    named.take(MAX_NAMED_OWNERS).collect()
}

fn holds(process: u32, id: u32) -> bool {
    let directory = format!("/proc/{process}/fdinfo");
    let Ok(descriptors) = fs::read_dir(Path::new(&directory)) else {
        return false;
    };
    descriptors.filter_map(Result::ok).any(|descriptor| {
        fs::read_to_string(descriptor.path()).is_ok_and(|about| names_program(&about, id))
    })
}

fn names_program(about: &str, id: u32) -> bool {
    let numbers = about
        .lines()
        .filter_map(|line| line.strip_prefix("prog_id:"));
    numbers
        .filter_map(|number| number.trim().parse().ok())
        .any(|number: u32| number == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_names_the_program_it_holds() {
        let link =
            "pos:\t0\nlink_type:\txdp\nlink_id:\t7\nprog_tag:\tda\nprog_id:\t12\nifindex:\t3\n";
        assert!(names_program(link, 12));
        assert!(!names_program(link, 1));
        assert!(!names_program("pos:\t0\n", 12));
    }

    #[test]
    fn a_foreign_program_is_told_with_all_that_is_known() {
        let mut foreign = Foreign {
            id: 12,
            name_and_tag: None,
            owners: Vec::new(),
        };
        assert_eq!(foreign.to_string(), "program 12");
        foreign.name_and_tag = Some(("filter".into(), Tag([0xda; 8])));
        foreign.owners = vec![(7, "firewall".into()), (8, "other".into())];
        assert_eq!(
            foreign.to_string(),
            "program 12 \"filter\" with tag dadadadadadadada of process 7 (firewall), process 8 (other)"
        );
    }
}
