//! Debian 13 packages of a guest: an emulator with the NIC model `igb`, a kernel with PREEMPT_RT, and the tools for its
//! network.
//!
//! apt fetches them from the machine's own sources under that release's name, and unpacks them into a folder of the
//! testbed. The machine's packages stay untouched: apt writes to separate folders only, and gets an empty list of
//! installed packages, so it resolves all dependencies. No maintainer script runs. apt checks signatures and sums with
//! the machine's keys, and fetches only missing packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use isolane_support::{Result, command};

/// Release of all packages: the first whose emulator has the model `igb`, and whose PREEMPT_RT kernel has all measured
/// features.
pub(super) const RELEASE: &str = "trixie";

/// Packages with all dependencies, each set unpacked into one folder.
const SETS: [(&str, &[&str]); 2] = [
    ("emulator", &["qemu-system-x86", "libc6"]),
    // `ip` and `tc`, `ethtool`, `chrt` and `setpriv`.
    ("tools", &["iproute2", "ethtool", "util-linux", "libc6"]),
];

/// Meta-package that depends on the newest kernel with PREEMPT_RT.
const KERNEL: &str = "linux-image-rt-amd64";

/// File that names the machine's release.
const OS_RELEASE: &str = "/etc/os-release";
/// Debian's lists of package sources, in both formats.
const SOURCE_FILES: [&str; 2] = [
    "/etc/apt/sources.list.d/debian.sources",
    "/etc/apt/sources.list",
];

/// The unpacked packages.
#[derive(Debug)]
pub(super) struct Packages {
    folder: PathBuf,
    /// Kernel release, the name of its modules' folder.
    release: String,
}

impl Packages {
    /// Fetches and unpacks missing packages.
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

    /// Packages of an earlier run, if they are complete for this version.
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

    /// Packages at these paths, unpacked or not.
    #[cfg(test)]
    pub(super) fn at(folder: &Path, release: &str) -> Packages {
        Packages {
            folder: folder.to_owned(),
            release: release.to_owned(),
        }
    }

    /// Root of the emulator's files.
    pub(super) fn emulator(&self) -> PathBuf {
        self.folder.join("emulator")
    }

    /// Root of the guest tools' files.
    pub(super) fn tools(&self) -> PathBuf {
        self.folder.join("tools")
    }

    pub(super) fn kernel(&self) -> PathBuf {
        let name = format!("vmlinuz-{}", self.release);
        self.folder.join("kernel/boot").join(name)
    }

    /// Folder of the kernel's modules.
    pub(super) fn modules(&self) -> PathBuf {
        let modules = self.folder.join("kernel/usr/lib/modules");
        modules.join(&self.release).join("kernel")
    }
}

/// Stamp file that marks a complete folder and its contents.
fn stamp(folder: &Path) -> PathBuf {
    folder.join("packages")
}

/// Contents of this version's stamp.
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

/// apt with its own folders.
struct Apt {
    config: PathBuf,
}

impl Apt {
    fn configure(folder: &Path) -> Result<Apt> {
        let apt = folder.join("apt");
        fs::create_dir_all(apt.join("lists/partial"))?;
        let release = fs::read_to_string(OS_RELEASE).unwrap_or_default();
        let sources = SOURCE_FILES.iter().find_map(|file| {
            let text = fs::read_to_string(file).ok()?;
            of_release(&text, codename(&release)?, RELEASE)
        });
        let sources = sources.ok_or_else(|| {
            format!(
                "cannot tell where Debian's packages come from: {} name no server of this machine's \
                 release. The testbed fetches packages of Debian {RELEASE} from there, so it needs a Debian",
                SOURCE_FILES.join(" and ")
            )
        })?;
        let list = apt.join(sources.file_name);
        fs::write(&list, sources.text)?;
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

    /// Unpacks packages and all dependencies into a temporary folder that is renamed when complete, so an interrupted
    /// run starts over.
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

    /// Unpacks the kernel and its modules, without the packages that only its installation needs.
    fn unpack_kernel(&self, folder: &Path) -> Result<()> {
        let mut depends = Command::new("apt-cache");
        depends
            .env("APT_CONFIG", &self.config)
            .args(["depends", KERNEL]);
        let text = String::from_utf8(command::output(&mut depends)?)?;
        let package = first_dependency(&text)
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

/// Empty root with Debian's merged `/usr`: the old folders are links into it.
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

/// Unpacks a package's files, following links to existing folders.
fn unpack(archive: &Path, root: &Path) -> Result<()> {
    let mut reader = Command::new("dpkg-deb");
    reader.arg("--fsys-tarfile").arg(archive);
    let mut child = command::spawn(reader.stdout(Stdio::piped()))?;
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
        // A truncated archive would pass for complete the next time.
        let _ = fs::remove_file(archive);
        Err(format!("`{}`: {status}", command::displayed(&reader)).into())
    }
}

/// Sources of a release, in one of apt's two formats.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sources {
    /// File name, by which apt recognizes the format.
    file_name: &'static str,
    text: String,
}

/// File with paragraphs of fields (`debian.sources`, deb822).
const PARAGRAPHS: &str = "release.sources";
/// File with one source a line (`sources.list`).
const LINES: &str = "release.list";

/// Release codename from `/etc/os-release`.
pub(super) fn codename(os_release: &str) -> Option<&str> {
    let mut lines = os_release.lines();
    let name = lines.find_map(|line| line.strip_prefix("VERSION_CODENAME="))?;
    Some(name.trim_matches('"')).filter(|name| !name.is_empty())
}

/// Sources whose suites are all of release `own`, rewritten for release `wanted`. Other sources may not have the
/// release, and are dropped.
pub(super) fn of_release(text: &str, own: &str, wanted: &str) -> Option<Sources> {
    let is_field = |line: &str| line.starts_with("Types:");
    let (file_name, text) = if text.lines().any(is_field) {
        let paragraphs = text.split("\n\n").filter_map(|paragraph| {
            let mut lines = paragraph.lines();
            let suites = lines.find_map(|line| line.strip_prefix("Suites:"))?;
            let kept = suites.split_whitespace().all(|suite| is_of(suite, own));
            kept.then(|| renamed(paragraph, own, wanted))
        });
        (PARAGRAPHS, paragraphs.collect::<Vec<_>>().join("\n\n"))
    } else {
        let lines = text.lines().filter_map(|line| {
            let mut words = line.split_whitespace().filter(|word| !is_option(word));
            let kept = words.next() == Some("deb") && is_of(words.nth(1)?, own);
            kept.then(|| renamed(line, own, wanted))
        });
        (LINES, lines.collect::<Vec<_>>().join("\n"))
    };
    (!text.is_empty()).then_some(Sources { file_name, text })
}

/// Returns true for `[signed-by=...]` between type and address, in the usual form without blanks.
fn is_option(word: &str) -> bool {
    word.starts_with('[')
}

/// Returns true when the suite is the release's name, or the name with a suffix.
fn is_of(suite: &str, release: &str) -> bool {
    let rest = suite.strip_prefix(release);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '/']))
}

/// Replaces the suites' names; other words and comments stay.
fn renamed(text: &str, own: &str, wanted: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines = lines.map(|line| {
        let words = line.split(' ').map(|word| match is_of(word, own) {
            true => word.replacen(own, wanted, 1),
            false => word.to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    });
    let mut text = lines.collect::<Vec<_>>().join("\n");
    text.push('\n');
    text
}

/// First package in the output of `apt-cache depends`.
pub(super) fn first_dependency(listed: &str) -> Option<&str> {
    let mut lines = listed.lines();
    lines.find_map(|line| line.trim().strip_prefix("Depends: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_the_own_release_become_those_of_the_other() {
        let text = "Types: deb\n# a remark about bookworm\nURIs: http://deb.example/debian\n\
                    Suites: bookworm bookworm-updates\nComponents: main\n\nTypes: deb\n\
                    URIs: http://deb.example/security\nSuites: bookworm-security\nComponents: main\n";
        let sources = of_release(text, "bookworm", "trixie").unwrap();
        assert_eq!(sources.file_name, "release.sources");
        assert!(sources.text.contains("Suites: trixie trixie-updates\n"));
        assert!(sources.text.contains("Suites: trixie-security\n"));
        assert!(!sources.text.contains("bookworm"));
    }

    #[test]
    fn sources_a_line_each_are_understood_with_their_options() {
        let text = "deb [signed-by=/k.gpg] http://deb.example/debian bookworm main\n\
                    deb-src http://deb.example/debian bookworm main\n\
                    deb http://cloud.example/apt cloud-bookworm main\n";
        let sources = of_release(text, "bookworm", "trixie").unwrap();
        let expected = "deb [signed-by=/k.gpg] http://deb.example/debian trixie main\n";
        assert_eq!((sources.file_name, &*sources.text), (LINES, expected));
    }

    #[test]
    fn others_sources_alone_are_none() {
        let others = "Types: deb\nURIs: https://deb.example\nSuites: nodistro\nComponents: main\n";
        assert_eq!(of_release(others, "bookworm", "trixie"), None);
        assert_eq!(of_release("", "bookworm", "trixie"), None);
    }

    #[test]
    fn the_codename_is_what_the_machine_says() {
        let text = "NAME=\"Debian GNU/Linux\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        assert_eq!(codename(text), Some("bookworm"));
        assert_eq!(codename("ID=arch\n"), None);
        assert_eq!(codename("VERSION_CODENAME=\n"), None);
    }

    #[test]
    fn the_kernel_is_what_its_package_depends_on() {
        let text = "linux-image-rt-amd64\n  Depends: linux-image-6.12.1-rt-amd64\n  Suggests: x\n";
        assert_eq!(first_dependency(text), Some("linux-image-6.12.1-rt-amd64"));
        assert_eq!(first_dependency("linux-image-rt-amd64\n"), None);
    }
}
