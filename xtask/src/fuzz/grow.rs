//! The saved corpus: what was found beyond it joins it, and what is superfluous leaves. Where the
//! rest is too much for a repository the longest inputs leave as well: they are the slowest to run,
//! and mutating the others finds most of them again.

use std::fs;
use std::path::{Path, PathBuf};

use super::folder;
use super::libfuzzer::Fuzzer;
use isolane_support::Result;
use isolane_support::workspace::Metadata;

/// Bytes that the corpus of one target may take in the repository: all of them stay below 1 MiB.
const MAX_CORPUS_BYTES: u64 = 120 * 1024;

/// Replaces the corpus of these targets by the smallest that reaches as much, within its bound.
pub(super) fn grow(metadata: &Metadata, targets: &[&str]) -> Result<bool> {
    let home = metadata.workspace_root.join("lab/fuzz");
    let fuzzer = Fuzzer::build(&home, &folder(metadata), targets)?;
    for target in targets {
        let merged = folder(metadata).join("merged").join(target);
        if merged.exists() {
            fs::remove_dir_all(&merged)?;
        }
        fs::create_dir_all(&merged)?;
        fuzzer.minimise(target, &merged)?;
        let corpus = home.join("corpus").join(target);
        fs::create_dir_all(&corpus)?;
        let before = inputs(&corpus)?;
        for (_, path) in &before {
            fs::remove_file(path)?;
        }
        let mut bytes = 0;
        let mut kept = 0;
        for (length, path) in inputs(&merged)? {
            if bytes + length <= MAX_CORPUS_BYTES {
                fs::copy(&path, corpus.join(path.file_name().unwrap_or_default()))?;
                (bytes, kept) = (bytes + length, kept + 1);
            }
        }
        eprintln!(
            "{target}: {} inputs before, {kept} now, {bytes} bytes",
            before.len()
        );
    }
    Ok(true)
}

/// Files in a folder, the shortest first.
fn inputs(folder: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let mut inputs = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        inputs.push((entry.metadata()?.len(), entry.path()));
    }
    inputs.sort();
    Ok(inputs)
}
