//! Boot configuration of a machine.

use serde::{Deserialize, Serialize};

/// Boot loader and service manager.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Boot {
    /// Source of the kernel's arguments; `None` if unknown.
    pub loader: Option<Loader>,
    /// True if systemd is the service manager.
    pub has_systemd: Option<bool>,
    /// CPU affinity of systemd, which all its services inherit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub systemd_cores: Option<Vec<u16>>,
}

/// Boot loader, by how kernel arguments can be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loader {
    /// GRUB with `update-grub` and a settings folder (`/etc/default/grub.d`), as in Debian and Ubuntu.
    Grub,
    /// Any other boot loader.
    Other,
}
