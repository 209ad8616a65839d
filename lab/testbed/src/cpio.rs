//! Archives in the `newc` form of cpio, which the kernel unpacks as its first file system
//! (Documentation/driver-api/early-userspace/buffer-format.rst): an entry is a head of hexadecimal
//! numbers, a name, and contents, the latter two padded to four bytes.
//!
//! The same tree gives the same bytes: entries are sorted, times and owners are 0. What a guest does depends
//! on where things lie in its memory, and is to be repeated to the bit.

use std::collections::BTreeMap;

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Folder,
    File { contents: Vec<u8>, mode: u32 },
    Link { target: String },
}

/// A tree that becomes an archive.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: BTreeMap<String, Node>,
}

/// Types of inodes, as `stat` has them (inode(7)).
const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
/// The part of a mode that is the type.
const TYPE: u32 = 0o170_000;

/// What ends an archive.
const TRAILER: &str = "TRAILER!!!";

impl Tree {
    /// A folder, and those it is in.
    pub(super) fn folder(&mut self, path: &str) {
        let parents = path.match_indices('/').map(|(end, _)| &path[..end]);
        for folder in parents.chain([path]) {
            self.nodes.entry(folder.to_owned()).or_insert(Node::Folder);
        }
    }

    /// A file that everybody may read, in its folder.
    pub(super) fn file(&mut self, path: &str, contents: Vec<u8>) {
        self.put(path, contents, 0o644);
    }

    /// A program, in its folder.
    pub(super) fn program(&mut self, path: &str, contents: Vec<u8>) {
        self.put(path, contents, 0o755);
    }

    /// A symbolic link, in its folder.
    pub(super) fn link(&mut self, path: &str, target: &str) {
        self.folder_of(path);
        let target = target.to_owned();
        self.nodes.insert(path.to_owned(), Node::Link { target });
    }

    /// Whether there is something at that path.
    pub(super) fn has(&self, path: &str) -> bool {
        self.nodes.contains_key(path)
    }

    fn put(&mut self, path: &str, contents: Vec<u8>, mode: u32) {
        self.folder_of(path);
        let node = Node::File { contents, mode };
        self.nodes.insert(path.to_owned(), node);
    }

    fn folder_of(&mut self, path: &str) {
        if let Some((folder, _)) = path.rsplit_once('/') {
            self.folder(folder);
        }
    }

    /// The archive.
    pub(super) fn archive(&self) -> Vec<u8> {
        let mut archive = Vec::new();
        for (inode, (path, node)) in (1..).zip(&self.nodes) {
            let (mode, contents) = match node {
                Node::Folder => (FOLDER | 0o755, &[][..]),
                Node::File { contents, mode } => (FILE | mode, &contents[..]),
                Node::Link { target } => (LINK | 0o777, target.as_bytes()),
            };
            append(&mut archive, inode, mode, path, contents);
        }
        append(&mut archive, 0, 0, TRAILER, &[]);
        archive
    }
}

/// One entry.
fn append(archive: &mut Vec<u8>, inode: usize, mode: u32, path: &str, contents: &[u8]) {
    let is_folder = mode & TYPE == FOLDER;
    let links = if is_folder { 2 } else { 1 };
    let fields: [usize; 13] = [
        inode,
        mode as usize,
        0, // owner
        0, // group
        links,
        0, // time of change
        contents.len(),
        0, // the device it is on, major and minor
        0,
        0, // the device it is, major and minor
        0,
        path.len() + 1,
        0, // checksum, of another form
    ];
    archive.extend_from_slice(b"070701");
    for field in fields {
        archive.extend_from_slice(format!("{field:08x}").as_bytes());
    }
    archive.extend_from_slice(path.as_bytes());
    archive.push(0);
    pad(archive);
    archive.extend_from_slice(contents);
    pad(archive);
}

fn pad(archive: &mut Vec<u8>) {
    archive.resize(archive.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What another reader would make of it: mode, name and contents of each entry.
    fn entries(mut archive: &[u8]) -> Vec<(u32, String, Vec<u8>)> {
        let mut entries = Vec::new();
        loop {
            assert_eq!(&archive[..6], b"070701");
            let field = |number: usize| {
                let text = std::str::from_utf8(&archive[6 + number * 8..][..8]).unwrap();
                usize::from_str_radix(text, 16).unwrap()
            };
            let (mode, length, name_length) = (field(1), field(6), field(11));
            let name_end = 110 + name_length - 1;
            let name = String::from_utf8(archive[110..name_end].to_vec()).unwrap();
            assert_eq!(archive[name_end], 0, "names end with a zero");
            let start = (110 + name_length).next_multiple_of(4);
            let contents = archive[start..][..length].to_vec();
            archive = &archive[(start + length).next_multiple_of(4)..];
            if name == TRAILER {
                assert!(archive.is_empty());
                return entries;
            }
            entries.push((mode as u32, name, contents));
        }
    }

    #[test]
    fn what_was_put_in_comes_out_with_its_folders_before_it() {
        let mut tree = Tree::default();
        tree.program("usr/bin/isolane", b"program".to_vec());
        tree.file("modules/0.ko", vec![7; 5]);
        tree.link("bin", "usr/bin");
        let entries = entries(&tree.archive());
        let expected: [(u32, &str, &[u8]); 6] = [
            (0o120_777, "bin", b"usr/bin"),
            (0o040_755, "modules", b""),
            (0o100_644, "modules/0.ko", &[7; 5]),
            (0o040_755, "usr", b""),
            (0o040_755, "usr/bin", b""),
            (0o100_755, "usr/bin/isolane", b"program"),
        ];
        assert_eq!(entries.len(), expected.len());
        for (entry, (mode, path, contents)) in entries.iter().zip(expected) {
            assert_eq!(entry, &(mode, path.to_owned(), contents.to_vec()));
        }
    }

    #[test]
    fn the_same_tree_gives_the_same_bytes_in_whatever_order_it_was_made() {
        let make = |paths: [&str; 2]| {
            let mut tree = Tree::default();
            for path in paths {
                tree.file(path, path.as_bytes().to_vec());
            }
            tree.archive()
        };
        assert_eq!(make(["a/b", "c"]), make(["c", "a/b"]));
    }

    #[test]
    fn an_entry_begins_on_a_multiple_of_four_bytes() {
        for length in 0..5 {
            let mut tree = Tree::default();
            tree.file("x", vec![1; length]);
            let archive = tree.archive();
            assert_eq!(archive.len() % 4, 0);
            assert_eq!(entries(&archive)[0].2.len(), length);
        }
    }
}
