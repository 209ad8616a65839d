//! Datapath factories: what a participant is given, before anything is opened.

use std::fmt::Debug;

use crate::contract::{Datapath, OpenError};
use crate::network::NetworkConfig;

/// Configured datapath that is not open yet. Its typed options implement this.
pub trait DatapathFactory: Debug {
    /// Name of the datapath, as in [`Datapath::name`].
    fn name(&self) -> &'static str;

    /// Requirements that this machine does not meet, with their remedies; `None` if all known ones are met. Opens
    /// and changes nothing.
    fn unmet(&self, _network: &NetworkConfig) -> Option<String> {
        None
    }

    /// Lets lanes that cannot be opened later use another way of this datapath, with a warning, instead of being
    /// refused.
    fn tolerate_lane_failure(&mut self) {}

    /// Opens the datapath; lanes are opened later.
    ///
    /// # Errors
    /// [`OpenError`]; nothing stays open then.
    fn open(self: Box<Self>, network: NetworkConfig) -> Result<Box<dyn Datapath>, OpenError>;
}
