//! Participants with lanes, one on each host.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use isolane_datapath::{
    Capabilities, Datapath, FlowId, InterfaceRateLimit, Interfaces, Lane, Ledger, NetworkConfig,
    Observation, OpenError, Pool, RateLimit, RateLimitError, RateLimitTarget, ReceiveBurst,
    SendReport, TransmitBurst, Warning,
};
use isolane_datapath_xdp::xdp::{Xdp, XdpConfig, XdpOptions};
use isolane_testkit::conformance::{Fixture, Options};
use isolane_wire::locator::Locator;

use crate::network::{Host, INTERFACE, Segment};

/// Datapath of a host. It opens its sockets in the host's namespace.
pub(crate) struct On<D> {
    pub(crate) host: Host,
    pub(crate) path: D,
}

/// Ethernet segment without participants.
pub(crate) struct XdpOnVeth {
    segment: Segment,
}

/// Configuration for the conformance suite.
pub(crate) fn config(options: &Options) -> XdpConfig {
    let udp = NetworkConfig {
        interfaces: Interfaces::Named(vec![INTERFACE.to_owned()]),
        receive_buffer_bytes: options.queue_bytes,
        pool: options.pool,
        ..NetworkConfig::default()
    };
    let mut lanes = XdpOptions::default();
    if let Some(bytes) = options.queue_bytes {
        // About the same number of datagrams of one kilobyte.
        lanes.receive_entries = [(bytes / 1_024) as u32; 8];
    }
    XdpConfig {
        udp,
        options: lanes,
    }
}

/// Opens lanes on a host.
pub(crate) fn xdp_on(host: Host, config: XdpConfig) -> Result<On<Xdp>, OpenError> {
    let path = host.enter(|| Xdp::new(config))?;
    Ok(On { host, path })
}

impl Fixture for XdpOnVeth {
    type Datapath = On<Xdp>;

    /// The kernel may do its receive work later, on a thread of lower priority.
    const SETTLE: Duration = Duration::from_millis(30);

    fn new() -> XdpOnVeth {
        XdpOnVeth {
            segment: Segment::new(),
        }
    }

    fn attach(&mut self, options: &Options) -> On<Xdp> {
        let host = self.segment.add_host();
        xdp_on(host, config(options)).expect("lanes can be had")
    }
}

impl<D: Datapath> Datapath for On<D> {
    fn name(&self) -> &'static str {
        self.path.name()
    }

    fn capabilities(&self) -> &Capabilities {
        self.path.capabilities()
    }

    fn pool(&self) -> &Pool {
        self.path.pool()
    }

    fn open_lane(&mut self, lane: Lane) -> Result<(), OpenError> {
        self.host.enter(|| self.path.open_lane(lane))
    }

    fn unicast(&self, lane: Lane) -> &[Locator] {
        self.path.unicast(lane)
    }

    fn multicast(&self, lane: Lane) -> &[Locator] {
        self.path.multicast(lane)
    }

    fn receive_burst(&mut self, lane: Lane, limit: usize, burst: &mut ReceiveBurst) -> usize {
        self.path.receive_burst(lane, limit, burst)
    }

    fn send_burst(&mut self, lane: Lane, burst: &mut TransmitBurst) -> SendReport {
        self.path.send_burst(lane, burst)
    }

    fn set_readable(&mut self, lane: Lane, readable: u8) {
        self.path.set_readable(lane, readable);
    }

    fn descriptors(&self) -> Vec<(Lane, BorrowedFd<'_>)> {
        self.path.descriptors()
    }

    fn ready_lanes(&mut self) -> u16 {
        self.path.ready_lanes()
    }

    fn peek_lanes(&mut self) -> Option<u16> {
        self.path.peek_lanes()
    }

    fn recycle(&mut self) -> bool {
        self.path.recycle()
    }

    fn wants_recycling(&mut self) -> bool {
        self.path.wants_recycling()
    }

    fn check_interfaces(&mut self) -> bool {
        self.host.enter(|| self.path.check_interfaces())
    }

    fn open_flow(&mut self, lane: Lane) -> Result<FlowId, OpenError> {
        self.host.enter(|| self.path.open_flow(lane))
    }

    fn flow_unicast(&self, flow: FlowId) -> &[Locator] {
        self.path.flow_unicast(flow)
    }

    fn close_flow(&mut self, flow: FlowId) {
        self.path.close_flow(flow);
    }

    fn set_rate_limit(
        &mut self,
        what: RateLimitTarget,
        with: Option<RateLimit>,
    ) -> Result<(), RateLimitError> {
        self.path.set_rate_limit(what, with)
    }

    fn set_interface_rate_limit(&mut self, with: InterfaceRateLimit) -> Result<(), RateLimitError> {
        self.path.set_interface_rate_limit(with)
    }

    fn observe(&self) -> Observation {
        self.path.observe()
    }

    fn ledger(&self) -> Ledger {
        self.path.ledger()
    }

    fn warnings(&self) -> &[Warning] {
        self.path.warnings()
    }
}
