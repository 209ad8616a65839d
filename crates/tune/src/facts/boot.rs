//! How a machine starts.

use serde::{Deserialize, Serialize};

/// How a machine starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Boot {
    /// What gives them to it; `None`: not known.
    pub loader: Option<Loader>,
    /// Whether systemd runs services.
    pub has_systemd: Option<bool>,
    /// The cores that it may run on itself, which all that it starts inherits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub systemd_cores: Option<Vec<u16>>,
}

/// What starts the kernel, as far as its arguments can be added to by a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loader {
    /// GRUB with `update-grub`, which takes a folder of settings in (`/etc/default/grub.d`), as Debian and Ubuntu
    /// have it.
    Grub,
    /// Another one.
    Other,
}
