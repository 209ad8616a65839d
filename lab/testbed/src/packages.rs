//! What a guest is made of: an emulator with the NIC model `igb`, a kernel with PREEMPT_RT, and the tools that
//! set up its network, as Debian 13 packages them.
//!
//! They are unpacked into a folder of ours. The machine's own packages stay as they are: apt is given
//! folders for everything it writes, and a list of installed packages that is empty, so that it names all
//! that a program takes. No script of a package runs. apt checks signatures and sums, with the
//! machine's own keys, and fetches again only what is missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::sources;
use isolane_support::{Result, command};

/// The release that everything is from: the first with an emulator that has the model and a kernel with
/// PREEMPT_RT that has all of what is measured.
pub(super) const RELEASE: &str = "trixie";

/// Packages, with all that they depend on, unpacked into one folder each set.
const SETS: [(&str, &[&str]); 2] = [
    ("emulator", &["qemu-system-x86", "libc6"]),
    // `ip` and `tc`, `ethtool`, `chrt` and `setpriv`.
    ("tools", &["iproute2", "ethtool", "util-linux", "libc6"]),
];

/// The package that depends on the newest kernel with PREEMPT_RT.
const KERNEL: &str = "linux-image-rt-amd64";

/// Where the machine says which release it is.
const OS_RELEASE: &str = "/etc/os-release";
/// Where a Debian lists its sources, in its two forms.
const SOURCE_FILES: [&str; 2] = [
    "/etc/apt/sources.list.d/debian.sources",
    "/etc/apt/sources.list",
];

/// The unpacked packages.
#[derive(Debug)]
pub(super) struct Packages {
    folder: PathBuf,
    /// The kernel's release, as its modules' folder is called.
    release: String,
}

impl Packages {
    /// Fetches and unpacks what is not there yet.
    pub(super) fn fetch(folder: &Path) -> Result<Packages> {
        if let Some(packages) = Packages::there(folder) {
            return Ok(packages);
        }
        if std::env::consts::ARCH != "x86_64" {
            return Err(
                "the testbed's packages are for x86_64: on this processor it cannot run".into(),
            );
        }
        fs::create_dir_all(folder)?;
        let apt = Apt::configure(folder)?;
        eprintln!(
            "fetching an emulator, a kernel and tools of Debian {RELEASE}: about 250 MB, once"
        );
        command::run(apt.get().args(["-qq", "update"])).map_err(|error| unreachable(&*error))?;
        for (set, packages) in SETS {
            apt.unpack(folder, set, packages)?;
        }
        apt.unpack_kernel(folder)?;
        fs::write(stamp(folder), wanted())?;
        Packages::there(folder).ok_or_else(|| {
            format!("what was unpacked into {} is not whole", folder.display()).into()
        })
    }

    /// What an earlier run left, if it is all that is wanted now.
    fn there(folder: &Path) -> Option<Packages> {
        let is_whole = fs::read_to_string(stamp(folder)).is_ok_and(|text| text == wanted());
        if !is_whole {
            return None;
        }
        let modules = fs::read_dir(folder.join("kernel/usr/lib/modules")).ok()?;
        let release = modules.flatten().next()?.file_name().into_string().ok()?;
        let folder = folder.to_owned();
        let packages = Packages { folder, release };
        let parts = [
            packages.emulator().join("usr/bin/qemu-system-x86_64"),
            packages.tools().join("usr/sbin/ethtool"),
            packages.kernel(),
        ];
        parts.iter().all(|part| part.is_file()).then_some(packages)
    }

    /// As if they were unpacked there.
    #[cfg(test)]
    pub(super) fn at(folder: &Path, release: &str) -> Packages {
        Packages {
            folder: folder.to_owned(),
            release: release.to_owned(),
        }
    }

    /// The root of the emulator's files.
    pub(super) fn emulator(&self) -> PathBuf {
        self.folder.join("emulator")
    }

    /// The root of the files that tools in the guest are taken from.
    pub(super) fn tools(&self) -> PathBuf {
        self.folder.join("tools")
    }

    /// The kernel.
    pub(super) fn kernel(&self) -> PathBuf {
        let name = format!("vmlinuz-{}", self.release);
        self.folder.join("kernel/boot").join(name)
    }

    /// The kernel's modules.
    pub(super) fn modules(&self) -> PathBuf {
        let modules = self.folder.join("kernel/usr/lib/modules");
        modules.join(&self.release).join("kernel")
    }
}

/// Says that a folder is whole, and of what.
fn stamp(folder: &Path) -> PathBuf {
    folder.join("packages")
}

/// The stamp of a folder with what this version wants.
fn wanted() -> String {
    let sets = SETS.map(|(set, packages)| format!("{set}: {}\n", packages.join(" ")));
    format!("{RELEASE}\n{}kernel: {KERNEL}\n", sets.concat())
}

fn unreachable(error: &dyn std::error::Error) -> String {
    format!(
        "cannot fetch the testbed's packages: {error}. They are Debian {RELEASE}'s, from the servers that this \
         machine's own packages come from: see whether `apt-get update` reaches them"
    )
}

/// apt with folders of its own.
struct Apt {
    config: PathBuf,
}

impl Apt {
    fn configure(folder: &Path) -> Result<Apt> {
        let apt = folder.join("apt");
        fs::create_dir_all(apt.join("lists/partial"))?;
        let release = fs::read_to_string(OS_RELEASE).unwrap_or_default();
        let text = SOURCE_FILES.iter().find_map(|file| {
            let text = fs::read_to_string(file).ok()?;
            sources::of_release(&text, sources::codename(&release)?, RELEASE)
        });
        let text = text.ok_or_else(|| {
            format!(
                "cannot tell where Debian's packages come from: {} name no server of this machine's \
                 release. The testbed fetches packages of Debian {RELEASE} from there, so it needs a Debian",
                SOURCE_FILES.join(" and ")
            )
        })?;
        let list = apt.join(text.file_name());
        fs::write(&list, text.text())?;
        fs::write(apt.join("status"), "")?;
        let config = apt.join("apt.conf");
        let folder = apt.display();
        let text = format!(
            "Dir::Etc::sourcelist \"{}\";\nDir::Etc::sourceparts \"-\";\nDir::State \"{folder}\";\n\
             Dir::State::status \"{folder}/status\";\nDir::Cache \"{folder}/cache\";\n\
             APT::Install-Recommends \"false\";\nAPT::Sandbox::User \"root\";\nAcquire::Retries \"3\";\n",
            list.display()
        );
        fs::write(&config, text)?;
        Ok(Apt { config })
    }

    fn get(&self) -> Command {
        let mut command = Command::new("apt-get");
        command.env("APT_CONFIG", &self.config);
        command
    }

    /// Packages and all that they depend on. Unpacked beside the place where they belong, and moved there
    /// when all is: what is interrupted is done again.
    fn unpack(&self, folder: &Path, set: &str, packages: &[&str]) -> Result<()> {
        let archives = folder.join("archives").join(set);
        fs::create_dir_all(archives.join("partial"))?;
        let mut install = self.get();
        install
            .args(["-qq", "install", "-y", "--download-only", "-o"])
            .arg(format!("Dir::Cache::archives={}/", archives.display()))
            .args(packages);
        command::run(&mut install).map_err(|error| unreachable(&*error))?;
        let new = fresh(folder, set)?;
        for archive in archives_in(&archives)? {
            unpack(&archive, &new)?;
        }
        replace(&new, &folder.join(set))
    }

    /// The kernel and its modules, without what installing it would take.
    fn unpack_kernel(&self, folder: &Path) -> Result<()> {
        let mut depends = Command::new("apt-cache");
        depends
            .env("APT_CONFIG", &self.config)
            .args(["depends", KERNEL]);
        let text = String::from_utf8(command::output(&mut depends)?)?;
        let package = sources::first_dependency(&text)
            .ok_or_else(|| format!("{KERNEL} of Debian {RELEASE} depends on no kernel"))?;
        let archives = folder.join("archives/kernel");
        fs::create_dir_all(&archives)?;
        let mut download = self.get();
        download
            .args(["-qq", "download", package])
            .current_dir(&archives);
        command::run(&mut download).map_err(|error| unreachable(&*error))?;
        let new = fresh(folder, "kernel")?;
        for archive in archives_in(&archives)? {
            unpack(&archive, &new)?;
        }
        replace(&new, &folder.join("kernel"))
    }
}

/// An empty root in the form that Debian has: the old folders are links into `/usr`.
fn fresh(folder: &Path, set: &str) -> Result<PathBuf> {
    let new = folder.join(format!("{set}.new"));
    if new.exists() {
        fs::remove_dir_all(&new)?;
    }
    for name in ["bin", "sbin", "lib", "lib64"] {
        fs::create_dir_all(new.join("usr").join(name))?;
        std::os::unix::fs::symlink(format!("usr/{name}"), new.join(name))?;
    }
    Ok(new)
}

fn replace(new: &Path, place: &Path) -> Result<()> {
    if place.exists() {
        fs::remove_dir_all(place)?;
    }
    Ok(fs::rename(new, place)?)
}

fn archives_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut archives = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            archives.push(path);
        }
    }
    archives.sort();
    Ok(archives)
}

/// A package's files, through links to folders that are there.
fn unpack(archive: &Path, root: &Path) -> Result<()> {
    let mut reader = Command::new("dpkg-deb");
    reader.arg("--fsys-tarfile").arg(archive);
    let mut child = reader
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| command::cannot_start(&reader, &error))?;
    let mut tar = Command::new("tar");
    tar.args(["-x", "--keep-directory-symlink", "--no-same-owner", "-C"])
        .arg(root);
    if let Some(output) = child.stdout.take() {
        tar.stdin(output);
    }
    let unpacked = command::run(&mut tar);
    let status = child.wait()?;
    unpacked?;
    if status.success() {
        Ok(())
    } else {
        // Half of one would be taken for whole the next time.
        let _ = fs::remove_file(archive);
        Err(format!("`{}`: {status}", command::displayed(&reader)).into())
    }
}
