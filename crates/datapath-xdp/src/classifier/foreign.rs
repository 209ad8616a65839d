//! Identification of another process's program on the XDP hook.
//!
//! Without CAP_SYS_ADMIN only the program id is available.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use aya::programs::loaded_programs;
use isolane_hostnet::link;

use super::program::Tag;
use crate::limits::MAX_NAMED_OWNERS;

/// XDP program that another process attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Program id.
    pub id: u32,
    /// Name and tag, if permitted to query.
    pub name_and_tag: Option<(String, Tag)>,
    /// Some of the processes that hold it, by process id and name. Empty if only the interface
    /// holds it, or without permission.
    pub owners: Vec<(u32, String)>,
}

impl Foreign {
    /// Returns the program on the XDP hook of an interface.
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

/// Processes with a descriptor of the program or of the link that attached it.
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
    fn a_foreign_program_is_reported_with_all_that_is_known() {
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
