//! Which datapath a participant uses, chosen when it is built.

use isolane_datapath::{Note, udp::Udp, udp::UdpConfig};
use isolane_datapath_xdp::xdp::{OnFailure, Xdp, XdpConfig, XdpOptions, why_not};

#[cfg(doc)]
use crate::Participant;
use crate::{error::BuildError, transport::Transport};

/// How datagrams move.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DatapathChoice {
    /// By kernel sockets, everywhere.
    #[default]
    Udp,
    /// By AF_XDP lanes of a device, with sockets beside them; not at all where that does not work.
    Xdp(XdpOptions),
    /// By lanes where they work, else by sockets; [`Participant::notes`] then say why.
    Auto(XdpOptions),
}

/// Sockets, or lanes with sockets beside them.
pub(crate) fn network_transport(
    choice: DatapathChoice,
    udp: UdpConfig,
) -> Result<Transport, BuildError> {
    let (options, must_work) = match choice {
        DatapathChoice::Udp => return Ok(Transport::Udp(Box::new(Udp::new(udp)?))),
        DatapathChoice::Xdp(options) => (options, true),
        DatapathChoice::Auto(options) => (options, false),
    };
    let mut config = XdpConfig { udp, options };
    if !must_work {
        if let Some(reason) = why_not(&config) {
            let mut udp = Udp::new(config.udp)?;
            udp.note(Note::NotUsed {
                wanted: "xdp",
                reason,
            });
            return Ok(Transport::Udp(Box::new(udp)));
        }
        // What cannot be seen beforehand: a queue that is taken meanwhile, for one.
        config.options.on_failure = OnFailure::Sockets;
    }
    Ok(Transport::Xdp(Box::new(Xdp::new(config)?)))
}
