//! The saved corpus: what was found beyond it joins it, and what is superfluous leaves.

use std::fs;
use std::path::Path;

use super::folder;
use super::libfuzzer::Fuzzer;
use crate::Result;
use crate::workspace::Metadata;

/// Bytes that the corpus of one target may take in the repository.
const MAX_CORPUS_BYTES: u64 = 128 * 1024;

/// Replaces the corpus of these targets by the smallest that reaches as much; says whether it is
/// within its bound.
pub(super) fn grow(metadata: &Metadata, targets: &[&str]) -> Result<bool> {
    let home = metadata.workspace_root.join("fuzz");
    let fuzzer = Fuzzer::build(&home, &folder(metadata))?;
    let mut all_fit = true;
    for target in targets {
        let merged = folder(metadata).join("merged").join(target);
        if merged.exists() {
            fs::remove_dir_all(&merged)?;
        }
        fs::create_dir_all(&merged)?;
        fuzzer.minimise(target, &merged)?;
        let corpus = home.join("corpus").join(target);
        let (before, _) = size(&corpus)?;
        fs::create_dir_all(&corpus)?;
        for entry in fs::read_dir(&corpus)? {
            fs::remove_file(entry?.path())?;
        }
        for entry in fs::read_dir(&merged)? {
            let entry = entry?;
            fs::copy(entry.path(), corpus.join(entry.file_name()))?;
        }
        let (count, bytes) = size(&corpus)?;
        eprintln!("{target}: {before} inputs before, {count} now, {bytes} bytes");
        if bytes > MAX_CORPUS_BYTES {
            eprintln!("{target}: more than {MAX_CORPUS_BYTES} bytes: remove some before saving it");
            all_fit = false;
        }
    }
    Ok(all_fit)
}

/// Files in a folder, and their bytes.
fn size(folder: &Path) -> Result<(usize, u64)> {
    if !folder.exists() {
        return Ok((0, 0));
    }
    let mut total = (0, 0);
    for entry in fs::read_dir(folder)? {
        total = (total.0 + 1, total.1 + entry?.metadata()?.len());
    }
    Ok(total)
}
