//! Handles of local endpoints and groups.

/// Local writer. Valid from `create_writer` to `delete_writer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WriterId(pub(crate) u16);

/// Local reader. Valid from `create_reader` to `delete_reader`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReaderId(pub(crate) u16);

/// Group of local writers. Valid from `create_publisher` to `delete_publisher`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublisherId(pub(crate) u16);

/// Group of local readers. Valid from `create_subscriber` to `delete_subscriber`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriberId(pub(crate) u16);

impl WriterId {
    /// Returns the index for tables that the caller keeps per writer.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl ReaderId {
    /// Returns the index for tables that the caller keeps per reader.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
