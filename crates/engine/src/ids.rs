//! Handles by which the user of an engine names its endpoints.

/// A local writer. Valid from `create_writer` to `delete_writer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WriterId(pub(crate) u16);

/// A local reader. Valid from `create_reader` to `delete_reader`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReaderId(pub(crate) u16);

/// A group of local writers. Valid from `create_publisher` to `delete_publisher`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublisherId(pub(crate) u16);

/// A group of local readers. Valid from `create_subscriber` to `delete_subscriber`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SubscriberId(pub(crate) u16);

impl WriterId {
    /// The index in tables that are kept beside the engine's.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl ReaderId {
    /// The index in tables that are kept beside the engine's.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
