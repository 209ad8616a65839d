//! A guest's file system: our programs, a few of Debian's, the libraries that they need, and the kernel modules
//! of its devices, unpacked and numbered in the order in which they are loaded.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cpio::Tree;
use super::elf;
use super::packages::Packages;
use isolane_support::{Result, command};

/// Modules of what guests have; those that they need come with them.
const MODULES: [&str; 2] = ["igb", "sch_mqprio"];

/// Debian's programs, where its packages have them.
const TOOLS: [&str; 6] = [
    "usr/bin/ip",
    "usr/bin/ss",
    "usr/sbin/tc",
    "usr/sbin/ethtool",
    "usr/bin/chrt",
    "usr/bin/setpriv",
];

/// Where programs are looked for.
const PROGRAMS: &str = "usr/bin";
/// Where libraries are.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
/// Where the first process finds modules.
pub(super) const MODULES_FOLDER: &str = "modules";
/// Folders that something is mounted on.
const MOUNTED: [&str; 5] = ["dev", "proc", "run", "sys", "tmp"];
/// How many modules may need each other; a chain that is longer is a circle.
const MAX_MODULES: usize = 100;

/// Makes the archive. `first` becomes `/init`, `programs` are found by their names.
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
    Ok(image.tree.archive())
}

struct Image {
    tree: Tree,
    /// The root that libraries are taken from.
    tools: PathBuf,
}

impl Image {
    /// A program with its loader and all libraries.
    fn program(&mut self, path: &str, bytes: Vec<u8>) -> Result<()> {
        let needs = elf::needs(&bytes).map_err(|error| format!("{path}: {error}"))?;
        self.tree.program(path, bytes);
        if let Some(loader) = &needs.loader {
            // `/lib64` is a link to where packages have it.
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
            let needs = elf::needs(&bytes)?;
            self.tree.file(&place, bytes);
            self.libraries(&place, &needs.libraries)?;
        }
        Ok(())
    }
}

/// All modules that are wanted, each behind those that it needs.
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
    for before in elf::modules_before(&bytes)? {
        add_module(&before, files, ordered)?;
    }
    ordered.push((name.to_owned(), bytes));
    Ok(())
}

/// `i2c-algo-bit` and `i2c_algo_bit` are one module.
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

/// A module as the kernel takes it.
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

#[cfg(test)]
mod tests {
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
}
