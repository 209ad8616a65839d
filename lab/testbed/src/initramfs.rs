//! A guest's root file system: isolane's programs, a few of Debian's, their libraries, and the kernel modules of its
//! devices, numbered in load order.
//!
//! ELF files name the libraries and modules they need. The archive has the `newc` form of cpio, which the kernel
//! unpacks as its first file system (Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! The archive is reproducible: entries are sorted, times and owners are 0. A guest's behaviour depends on its memory
//! layout, and must be repeatable to the bit.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use cpio::newc;
use isolane_support::{Result, command};
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{LittleEndian, Object, ObjectSection, elf};

use super::packages::Packages;

/// Modules of a guest's devices; their dependencies are added.
const MODULES: [&str; 2] = ["igb", "sch_mqprio"];

/// Debian's programs, at their paths in the packages.
const TOOLS: [&str; 6] = [
    "usr/bin/ip",
    "usr/bin/ss",
    "usr/sbin/tc",
    "usr/sbin/ethtool",
    "usr/bin/chrt",
    "usr/bin/setpriv",
];

/// Folder of programs.
const PROGRAMS: &str = "usr/bin";
/// Folder of libraries.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
/// Folder in which the first process finds modules.
pub(super) const MODULES_FOLDER: &str = "modules";
/// Mount points.
const MOUNTED: [&str; 5] = ["dev", "proc", "run", "sys", "tmp"];
/// Upper bound of a dependency chain of modules; a longer one is a cycle.
const MAX_MODULES: usize = 100;

/// Builds the archive. `first` becomes `/init`; `programs` keep their names.
pub(super) fn make(packages: &Packages, first: &Path, programs: &[PathBuf]) -> Result<Vec<u8>> {
    let mut image = Image {
        tree: Tree::default(),
        tools: packages.tools(),
    };
    for folder in MOUNTED {
        image.tree.folder(folder);
    }
    for name in ["bin", "sbin", "lib", "lib64"] {
        image.tree.folder(&format!("usr/{name}"));
        image.tree.link(name, &format!("usr/{name}"));
    }
    image.program("init", read(first)?)?;
    for program in programs {
        let name = name_of(program);
        image.program(&format!("{PROGRAMS}/{name}"), read(program)?)?;
    }
    for tool in TOOLS.map(Path::new) {
        let bytes = read(&packages.tools().join(tool))?;
        image.program(&format!("{PROGRAMS}/{}", name_of(tool)), bytes)?;
    }
    for (number, (name, bytes)) in modules(&packages.modules())?.into_iter().enumerate() {
        let path = format!("{MODULES_FOLDER}/{number:02}-{name}.ko");
        image.tree.file(&path, bytes);
    }
    image.tree.archive()
}

struct Image {
    tree: Tree,
    /// Root from which libraries are taken.
    tools: PathBuf,
}

impl Image {
    /// Adds a program with its loader and all libraries.
    fn program(&mut self, path: &str, bytes: Vec<u8>) -> Result<()> {
        let needs = needs(&bytes).map_err(|error| format!("{path}: {error}"))?;
        self.tree.program(path, bytes);
        if let Some(loader) = &needs.loader {
            // `/lib64` is a link; packages have the loader under `/usr`.
            let place = format!("usr/{}", loader.trim_start_matches('/'));
            if !self.tree.has(&place) {
                let bytes = read(&self.tools.join(&place))?;
                self.tree.program(&place, bytes);
            }
        }
        self.libraries(path, &needs.libraries)
    }

    fn libraries(&mut self, of: &str, names: &[String]) -> Result<()> {
        for name in names {
            let place = format!("{LIBRARIES}/{name}");
            if self.tree.has(&place) || name.starts_with("ld-linux") {
                continue;
            }
            let bytes = read(&self.tools.join(&place))
                .map_err(|error| format!("{of} needs the library {name}: {error}"))?;
            let needs = needs(&bytes)?;
            self.tree.file(&place, bytes);
            self.libraries(&place, &needs.libraries)?;
        }
        Ok(())
    }
}

/// All required modules, each after its dependencies.
fn modules(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = BTreeMap::new();
    list_modules(folder, &mut files)?;
    let mut ordered = Vec::new();
    for module in MODULES {
        add_module(module, &files, &mut ordered)?;
    }
    Ok(ordered)
}

fn add_module(
    name: &str,
    files: &BTreeMap<String, PathBuf>,
    ordered: &mut Vec<(String, Vec<u8>)>,
) -> Result<()> {
    if ordered.iter().any(|(other, _)| other == name) {
        return Ok(());
    }
    if ordered.len() >= MAX_MODULES {
        return Err(format!("more than {MAX_MODULES} kernel modules need each other").into());
    }
    let Some(file) = files.get(&in_file_names(name)) else {
        return Err(
            format!("the kernel has no module {name}: is another one packaged now?").into(),
        );
    };
    let bytes = unpacked(file)?;
    for before in modules_before(&bytes)? {
        add_module(&before, files, ordered)?;
    }
    ordered.push((name.to_owned(), bytes));
    Ok(())
}

/// Module name as in file names: `i2c-algo-bit` and `i2c_algo_bit` are one module.
fn in_file_names(module: &str) -> String {
    module.replace('-', "_")
}

/// All modules below a folder, by name.
fn list_modules(folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            list_modules(&entry.path(), files)?;
        } else if let Some((name, _)) = name_of(&entry.path()).split_once(".ko") {
            files.insert(in_file_names(name), entry.path());
        }
    }
    Ok(())
}

/// Module bytes, decompressed for the kernel.
fn unpacked(file: &Path) -> Result<Vec<u8>> {
    if file.extension().is_some_and(|extension| extension == "xz") {
        command::output(
            Command::new("xz")
                .args(["--decompress", "--stdout"])
                .arg(file),
        )
    } else {
        read(file)
    }
}

fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()).into())
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// File tree of an archive: mode and contents by path; a symbolic link contains its target.
#[derive(Debug, Default)]
struct Tree(BTreeMap<String, (u32, Vec<u8>)>);

impl Tree {
    /// Adds a folder and its parents.
    fn folder(&mut self, path: &str) {
        let parents = path.match_indices('/').map(|(end, _)| &path[..end]);
        for folder in parents.chain([path]) {
            let folder = self.0.entry(folder.to_owned());
            folder.or_insert((0o040_755, Vec::new()));
        }
    }

    /// Adds a world-readable file and its folder.
    fn file(&mut self, path: &str, contents: Vec<u8>) {
        self.put(path, 0o100_644, contents);
    }

    /// Adds an executable file and its folder.
    fn program(&mut self, path: &str, contents: Vec<u8>) {
        self.put(path, 0o100_755, contents);
    }

    /// Adds a symbolic link and its folder.
    fn link(&mut self, path: &str, target: &str) {
        self.put(path, 0o120_777, target.into());
    }

    /// Returns true when the path exists.
    fn has(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// Adds an entry with its type and rights (inode(7)).
    fn put(&mut self, path: &str, mode: u32, contents: Vec<u8>) {
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.folder(folder);
        }
        self.0.insert(path.to_owned(), (mode, contents));
    }

    /// Serializes the tree as an archive.
    fn archive(&self) -> Result<Vec<u8>> {
        let mut archive = Vec::new();
        for (inode, (path, (mode, contents))) in (1..).zip(&self.0) {
            let entry = newc::Builder::new(path).ino(inode).mode(*mode);
            let mut entry = entry.write(&mut archive, contents.len().try_into()?);
            entry.write_all(contents)?;
            entry.finish()?;
        }
        newc::trailer(&mut archive)?;
        Ok(archive)
    }
}

/// Dependencies of a program or library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// The path of its loader; libraries have none.
    pub(super) loader: Option<String>,
    /// Names of libraries in search order.
    pub(super) libraries: Vec<String>,
}

/// Dependencies from ELF headers. A static program has none.
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

/// Modules that must be loaded before a kernel module.
pub(super) fn modules_before(module: &[u8]) -> Result<Vec<String>> {
    let file = ElfFile64::<LittleEndian>::parse(module)?;
    let section = file
        .section_by_name(".modinfo")
        .ok_or("no kernel module: it has no section .modinfo")?;
    Ok(depends(section.data()?))
}

/// The list after `depends=` in a module's `.modinfo`, a sequence of NUL-terminated strings.
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
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_module_is_found_however_its_name_is_written() {
        let folder = std::env::temp_dir().join(format!("isolane-modules-{}", std::process::id()));
        fs::create_dir_all(folder.join("net")).unwrap();
        fs::write(folder.join("net/i2c-algo-bit.ko.xz"), "").unwrap();
        fs::write(folder.join("modules.order"), "").unwrap();
        let mut files = BTreeMap::new();
        list_modules(&folder, &mut files).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(files.len(), 1);
        assert!(files.contains_key(&in_file_names("i2c-algo-bit")));
        assert!(add_module("igb", &files, &mut Vec::new()).is_err());
    }

    /// Mode, name and contents of each entry.
    fn entries(mut archive: &[u8]) -> Vec<(u32, String, Vec<u8>)> {
        let mut entries = Vec::new();
        loop {
            let mut reader = newc::Reader::new(archive).unwrap();
            if reader.entry().is_trailer() {
                return entries;
            }
            let (mode, name) = (reader.entry().mode(), reader.entry().name().to_owned());
            let mut contents = Vec::new();
            reader.read_to_end(&mut contents).unwrap();
            entries.push((mode, name, contents));
            archive = reader.finish().unwrap();
        }
    }

    #[test]
    fn what_was_put_in_comes_out_with_its_folders_before_it() {
        let mut tree = Tree::default();
        tree.program("usr/bin/isolane", b"program".to_vec());
        tree.link("bin", "usr/bin");
        tree.file("modules/0.ko", vec![7; 5]);
        let expected: [(u32, &str, &[u8]); 6] = [
            (0o120_777, "bin", b"usr/bin"),
            (0o040_755, "modules", b""),
            (0o100_644, "modules/0.ko", &[7; 5]),
            (0o040_755, "usr", b""),
            (0o040_755, "usr/bin", b""),
            (0o100_755, "usr/bin/isolane", b"program"),
        ];
        let expected = expected.map(|(mode, path, bytes)| (mode, path.to_owned(), bytes.to_vec()));
        assert_eq!(entries(&tree.archive().unwrap()), expected);
    }

    #[test]
    fn this_program_needs_the_c_library_and_a_loader() {
        let program = fs::read(std::env::current_exe().unwrap()).unwrap();
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
