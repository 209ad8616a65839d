//! What programs, libraries and kernel modules say they need, read from their ELF files.

use object::elf;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{LittleEndian, Object, ObjectSection};

use isolane_support::Result;

/// What a program or library takes to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// The path of its loader; libraries have none.
    pub(super) loader: Option<String>,
    /// Names of libraries, in the order they are searched for.
    pub(super) libraries: Vec<String>,
}

/// What a program or library needs. A static program needs nothing.
pub(super) fn needs(bytes: &[u8]) -> Result<Needs> {
    let file = ElfFile64::<LittleEndian>::parse(bytes)?;
    let (header, endian) = (file.elf_header(), file.endian());
    let segments = header.program_headers(endian, bytes)?;
    let mut needs = Needs::default();
    for segment in segments {
        if let Some(loader) = segment.interpreter(endian, bytes)? {
            needs.loader = Some(String::from_utf8(loader.to_vec())?);
        }
    }
    let sections = header.sections(endian, bytes)?;
    let Some((entries, strings)) = sections.dynamic(endian, bytes)? else {
        return Ok(needs);
    };
    let strings = sections.strings(endian, bytes, strings)?;
    for entry in entries {
        if entry.tag(endian) == elf::DT_NEEDED {
            let name = entry.string(endian, strings)?;
            needs.libraries.push(String::from_utf8(name.to_vec())?);
        }
    }
    Ok(needs)
}

/// The modules that a kernel module needs to be loaded before it.
pub(super) fn modules_before(module: &[u8]) -> Result<Vec<String>> {
    let file = ElfFile64::<LittleEndian>::parse(module)?;
    let section = file
        .section_by_name(".modinfo")
        .ok_or("no kernel module: it has no section .modinfo")?;
    Ok(depends(section.data()?))
}

/// The list behind `depends=` in a module's information, which is made of texts that end with zeros.
fn depends(information: &[u8]) -> Vec<String> {
    let texts = information.split(|&byte| byte == 0);
    let lists = texts.filter_map(|text| text.strip_prefix(b"depends="));
    let names = lists.flat_map(|list| list.split(|&byte| byte == b','));
    names
        .filter(|name| !name.is_empty())
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_needs_the_c_library_and_a_loader() {
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let needs = needs(&program).unwrap();
        assert!(needs.libraries.iter().any(|name| name == "libc.so.6"));
        assert!(needs.loader.is_some_and(|loader| loader.starts_with('/')));
    }

    #[test]
    fn what_is_no_program_is_an_error() {
        assert!(needs(b"#!/bin/sh").is_err());
        assert!(modules_before(&[]).is_err());
    }

    #[test]
    fn a_module_lists_what_comes_before_it() {
        let information = b"license=GPL\0depends=dca,i2c-algo-bit\0name=igb\0";
        assert_eq!(depends(information), ["dca", "i2c-algo-bit"]);
        assert!(depends(b"license=GPL\0depends=\0").is_empty());
    }
}
