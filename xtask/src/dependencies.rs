//! Check for unused dependencies.
//!
//! A dependency is used if its name occurs in the crate's sources as part of a path or an import. Names in comments do
//! not count. Names in documentation count, because its examples may be the only user of a development dependency. A
//! file that a source includes by `#[path]` is a source too. Nothing is built; `cargo metadata` has the names.

use std::fs;
use std::path::{Path, PathBuf};

use isolane_support::Result;
use isolane_support::steps::Outcome;
use isolane_support::workspace::cargo_metadata;
use serde::Deserialize;

/// Dependencies from `cargo metadata`, which has resolved features, renames and versions.
#[derive(Deserialize)]
struct Metadata {
    /// Package ids of this workspace's own packages.
    workspace_members: Vec<String>,
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    /// Name in the sources: the new name of a renamed dependency, else the name of the package's library.
    name: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    /// `None` for a normal dependency, else "dev" or "build".
    kind: Option<String>,
}

/// Checks every package of the workspace and names its unused dependencies.
pub(crate) fn check() -> Result<Outcome> {
    let metadata: Metadata = cargo_metadata()?;
    let mut unused = Vec::new();
    for package in metadata
        .packages
        .iter()
        .filter(|package| metadata.workspace_members.contains(&package.id))
    {
        let sources = Sources::read(package)?;
        let dependencies = metadata
            .resolve
            .nodes
            .iter()
            .filter(|node| node.id == package.id)
            .flat_map(|node| &node.deps);
        for dependency in dependencies.filter(|dependency| !sources.mention(dependency)) {
            eprintln!(
                "{}: no source of it mentions `{}`",
                package.name, dependency.name
            );
            unused.push(format!("{} in {}", dependency.name, package.name));
        }
    }
    if unused.is_empty() {
        Ok(Outcome::Passed)
    } else {
        Ok(Outcome::Failed(format!("unused: {}", unused.join(", "))))
    }
}

/// All Rust sources of one package, as one text of code and one of documentation.
struct Sources {
    code: String,
    documentation: String,
}

impl Sources {
    fn read(package: &Package) -> Result<Self> {
        let mut sources = Self {
            code: String::new(),
            documentation: String::new(),
        };
        if let Some(folder) = package.manifest_path.parent() {
            sources.read_folder(folder)?;
        }
        Ok(sources)
    }

    fn read_folder(&mut self, folder: &Path) -> Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                // A folder with a manifest is another package; `target` may be a folder of this one.
                if !path.join("Cargo.toml").exists() && entry.file_name() != "target" {
                    self.read_folder(&path)?;
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path)?;
                for shared in shared_files(&text) {
                    self.read_text(&fs::read_to_string(folder.join(shared))?);
                }
                self.read_text(&text);
            }
        }
        Ok(())
    }

    fn read_text(&mut self, text: &str) {
        for line in text.lines().map(str::trim_start) {
            let into = match line.as_bytes() {
                [b'/', b'/', b'/' | b'!', ..] => &mut self.documentation,
                [b'/', b'/', ..] => continue,
                _ => &mut self.code,
            };
            into.push_str(line);
            into.push('\n');
        }
    }

    fn mention(&self, dependency: &Dependency) -> bool {
        let for_development = dependency
            .dep_kinds
            .iter()
            .any(|kind| kind.kind.as_deref() == Some("dev"));
        mentions(&self.code, &dependency.name)
            || for_development && mentions(&self.documentation, &dependency.name)
    }
}

/// Returns the files that a source includes by `#[path = "…"]`, as written there.
fn shared_files(text: &str) -> impl Iterator<Item = &str> {
    let attributes = text.lines().map(str::trim_start);
    attributes.filter_map(|line| line.strip_prefix("#[path = \"")?.strip_suffix("\"]"))
}

/// Returns true when `name` occurs as an identifier that begins a path (`name::`) or is imported (`use name;`, `extern
/// crate name`).
fn mentions(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        let is_whole = !before.ends_with(is_identifier) && !after.starts_with(is_identifier);
        let is_path = after.starts_with("::");
        let is_import = before.ends_with("use ") || before.ends_with("extern crate ");
        is_whole && (is_path || is_import)
    })
}

fn is_identifier(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_taken_from_elsewhere_are_named_by_their_attribute() {
        let text = "mod a;\n#[path = \"../../tests/support/b.rs\"]\nmod b;\n// #[path = \"c.rs\"]";
        assert_eq!(
            shared_files(text).collect::<Vec<_>>(),
            ["../../tests/support/b.rs"]
        );
    }

    #[test]
    fn a_path_or_an_import_is_a_use() {
        assert!(mentions("let page = rustix::param::page_size();", "rustix"));
        assert!(mentions("use serde::Serialize;", "serde"));
        assert!(mentions("use libc;", "libc"));
        assert!(mentions("#[derive(serde::Serialize)]", "serde"));
    }

    #[test]
    fn a_part_of_a_longer_name_or_a_mere_word_is_no_use() {
        assert!(!mentions("use serde_json::Value;", "serde"));
        assert!(!mentions("my_serde::go()", "serde"));
        assert!(!mentions("let toml = read(path);", "toml"));
    }

    fn sources(text: &str) -> Sources {
        let mut sources = Sources {
            code: String::new(),
            documentation: String::new(),
        };
        sources.read_text(text);
        sources
    }

    fn dependency(kind: Option<&str>) -> Dependency {
        let kind = DependencyKind {
            kind: kind.map(str::to_owned),
        };
        Dependency {
            name: "proptest".into(),
            dep_kinds: vec![kind],
        }
    }

    #[test]
    fn documentation_is_a_use_for_development_dependencies_only() {
        let sources = sources("//! proptest::run();\nfn main() {}\n");
        assert!(sources.mention(&dependency(Some("dev"))));
        assert!(!sources.mention(&dependency(None)));
    }

    #[test]
    fn a_comment_is_no_use() {
        assert!(!sources("    // proptest::run();\n").mention(&dependency(Some("dev"))));
    }
}
