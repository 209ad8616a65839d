//! World: clock, nodes, and the link between them.

use std::{collections::BTreeMap, rc::Rc, time::Duration};

use isolane_rtps::{Destinations, LocalParticipant, MessageReceiver};
use isolane_wire::{locator::Locator, time::Instant};

use crate::{
    ledger::LinkLedger,
    limits::{LANE_DATAGRAMS, LOOPBACK_DELAY, MAX_DATAGRAM_BYTES},
    link::{Fate, LinkConfig},
    node::{DISCOVERY_PORT, Frame, Next, Node, NodeConfig, NodeId, lane_of},
    partition::Partition,
    queue::{Event, Queue},
    random::Random,
    trace,
    user::{ReaderRecord, WriterRecord},
};

/// Many local participants in virtual time, see the [crate] documentation.
#[derive(Debug)]
pub struct World {
    pub(crate) seed: u64,
    pub(crate) now: Instant,
    pub(crate) nodes: Vec<Node>,
    pub(crate) writers: Vec<WriterRecord>,
    pub(crate) readers: Vec<ReaderRecord>,
    pub(crate) ledger: LinkLedger,
    queue: Queue,
    random: Random,
    protocol_seeds: Random,
    link: LinkConfig,
    links: BTreeMap<(NodeId, NodeId), LinkConfig>,
    partitions: Vec<Partition>,
    buffer: Vec<u8>,
    tap: Option<Vec<Vec<u8>>>,
    trace_hash: Option<u64>,
    /// Bytes sent to each unicast address.
    bytes_sent: BTreeMap<[u8; 4], u64>,
    is_traced: bool,
}

impl World {
    /// Creates an empty world at time 0, with a perfect link.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let protocol_seeds = random.fork();
        Self {
            seed,
            now: Instant::new(0),
            nodes: Vec::new(),
            writers: Vec::new(),
            readers: Vec::new(),
            ledger: LinkLedger::default(),
            queue: Queue::default(),
            random,
            protocol_seeds,
            link: LinkConfig::default(),
            links: BTreeMap::new(),
            partitions: Vec::new(),
            buffer: vec![0; MAX_DATAGRAM_BYTES],
            tap: None,
            trace_hash: None,
            bytes_sent: BTreeMap::new(),
            is_traced: std::env::var_os("ISOLANE_TRACE").is_some(),
        }
    }

    /// Sets the default link between nodes.
    #[must_use]
    pub fn link(mut self, link: LinkConfig) -> Self {
        self.link = link;
        self
    }

    /// Changes the default link between nodes.
    pub fn set_link(&mut self, link: LinkConfig) {
        self.link = link;
    }

    /// Sets a link for one direction between two nodes.
    pub fn set_link_between(&mut self, from: NodeId, to: NodeId, link: LinkConfig) {
        self.links.insert((from, to), link);
    }

    /// Removes all links set by [`Self::set_link_between`].
    pub fn clear_links_between(&mut self) {
        self.links.clear();
    }

    /// Adds a partition.
    pub fn partition(&mut self, partition: Partition) {
        self.partitions.push(partition);
    }

    /// Removes all partitions.
    pub fn heal(&mut self) {
        self.partitions.clear();
    }

    /// Current time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Time since the start of the world.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.now.saturating_since(Instant::new(0))
    }

    /// Seed of all randomness.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Ledger of the links.
    #[must_use]
    pub fn link_ledger(&self) -> &LinkLedger {
        &self.ledger
    }

    /// Starts recording every datagram sent, for [`Self::tapped`].
    pub fn tap(&mut self) {
        self.tap.get_or_insert_default();
    }

    /// Datagrams sent since [`Self::tap`], each once regardless of the number of destinations.
    #[must_use]
    pub fn tapped(&self) -> &[Vec<u8>] {
        self.tap.as_deref().unwrap_or_default()
    }

    /// Starts hashing time, sender, destination and bytes of every datagram sent, for [`Self::trace_hash`].
    pub fn hash_trace(&mut self) {
        self.trace_hash.get_or_insert(trace::HASH_START);
    }

    /// Hash of all datagrams sent since [`Self::hash_trace`]; `None` before.
    #[must_use]
    pub fn trace_hash(&self) -> Option<u64> {
        self.trace_hash
    }

    /// Bytes sent to a node's unicast address, whether they arrived or not.
    #[must_use]
    pub fn bytes_sent_to(&self, id: NodeId) -> u64 {
        self.bytes_sent.get(&id.address()).copied().unwrap_or(0)
    }

    /// Creates a node and starts its participant.
    pub fn node(&mut self, config: NodeConfig) -> NodeId {
        let id = NodeId(self.nodes.len());
        self.nodes.push(Node::new(config));
        self.start(id);
        id
    }

    /// Creates a node without starting it, see [`Self::restart`].
    pub fn node_down(&mut self, config: NodeConfig) -> NodeId {
        self.nodes.push(Node::new(config));
        NodeId(self.nodes.len() - 1)
    }

    /// Creates several nodes with one configuration.
    pub fn nodes(&mut self, count: usize, config: &NodeConfig) -> Vec<NodeId> {
        (0..count).map(|_| self.node(config.clone())).collect()
    }

    fn start(&mut self, id: NodeId) {
        // The number of starts, so identities are unique.
        let identity = self.nodes[id.0].incarnation + 1;
        self.start_as(id, identity);
    }

    fn start_as(&mut self, id: NodeId, identity: u32) {
        let seed = self.protocol_seeds.next();
        self.nodes[id.0].start(id, identity, seed, self.now);
        self.settle(id);
    }

    /// Stops a node without notice. Its endpoints are lost.
    pub fn crash(&mut self, id: NodeId) {
        self.assert_node_balanced(id);
        let node = &mut self.nodes[id.0];
        node.protocol = None;
        node.groups.clear();
        for lane in &mut node.lanes {
            self.ledger.queued -= lane.len() as u64;
            self.ledger.node_down += lane.len() as u64;
            lane.clear();
        }
    }

    /// Announces the end of the participant, then stops the node.
    pub fn leave(&mut self, id: NodeId) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let protocol = self.protocol_mut(id);
        let length = protocol.farewell(&mut buffer);
        let to: Vec<_> = protocol.farewell_to().collect();
        if length > 0 {
            self.send(id, &buffer[..length], &to);
        }
        self.buffer = buffer;
        self.crash(id);
    }

    /// Suspends a node, like a process after SIGSTOP: datagrams wait, and timers expire late.
    pub fn stop_for(&mut self, id: NodeId, time: Duration) {
        self.nodes[id.0].stopped_until = self.now + time;
    }

    /// Changes a node's address to its [other one](NodeId::other_address), or back. The former address becomes
    /// unreachable. The participant learns of the change by [`Self::note_address`].
    pub fn move_node(&mut self, id: NodeId) {
        let node = &mut self.nodes[id.0];
        node.address = match node.address == id.address() {
            true => id.other_address(),
            false => id.address(),
        };
    }

    /// Tells the participant of a node its current address.
    pub fn note_address(&mut self, id: NodeId) {
        let (now, networks) = (self.now, self.nodes[id.0].networks());
        self.protocol_mut(id).set_networks(now, networks);
        self.settle(id);
    }

    /// Restarts a node: same address, new participant, no endpoints. A running node is first stopped without notice.
    pub fn restart(&mut self, id: NodeId) {
        if self.nodes[id.0].protocol.is_some() {
            self.crash(id);
        }
        self.start(id);
    }

    /// Restarts a node with its former GUID prefix. RTPS requires a new one (2.5 §8.2.4.2), but some implementations
    /// derive theirs from values that a restart does not change.
    pub fn restart_as_before(&mut self, id: NodeId) {
        if self.nodes[id.0].protocol.is_some() {
            self.crash(id);
        }
        self.start_as(id, self.nodes[id.0].identity.max(1));
    }

    /// Returns true if a node is up.
    #[must_use]
    pub fn is_up(&self, id: NodeId) -> bool {
        self.nodes[id.0].protocol.is_some()
    }

    /// Returns the local participant of a node that is up.
    #[must_use]
    pub fn protocol(&self, id: NodeId) -> &LocalParticipant {
        self.nodes[id.0].protocol.as_ref().expect("the node runs")
    }

    pub(crate) fn protocol_mut(&mut self, id: NodeId) -> &mut LocalParticipant {
        self.nodes[id.0].protocol.as_mut().expect("the node runs")
    }

    /// Injects a datagram made by the test at a node's port.
    pub fn inject(&mut self, to: Locator, from: Locator, bytes: &[u8]) {
        let target = to.ipv4().and_then(NodeId::of_address);
        let target = target.expect("the address of a node");
        let frame = Frame {
            from,
            bytes: bytes.into(),
        };
        self.ledger.sent += 1;
        self.carry(target, to, frame, Some(Duration::ZERO));
    }

    /// Runs for a time.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.happen(end) {}
        self.now = end;
    }

    /// Runs until `is_so` returns true.
    ///
    /// # Panics
    /// If that takes longer than `patience`; the message describes the state.
    pub fn run_until(
        &mut self,
        what: &str,
        patience: Duration,
        mut is_so: impl FnMut(&Self) -> bool,
    ) {
        let end = self.now + patience;
        while !is_so(self) {
            assert!(
                self.happen(end),
                "seed {}: not within {patience:?}: {what}\n{}",
                self.seed,
                self.describe()
            );
        }
    }

    /// Executes the next event up to `end`; returns false if there is none.
    fn happen(&mut self, end: Instant) -> bool {
        let Some((at, event)) = self.queue.take(end) else {
            return false;
        };
        self.now = at;
        match event {
            Event::Arrival { to, lane, frame } => self.arrive(to, lane, frame),
            Event::Step(node) => self.step(node),
            Event::Timer(node, at) => self.timer(node, at),
            Event::Visit(reader) => self.visit(reader),
            Event::Publish { writer, period } => self.publish_next(writer, period),
        }
        true
    }

    pub(crate) fn schedule(&mut self, at: Instant, event: Event) {
        self.queue.put(at, event);
    }

    fn arrive(&mut self, to: NodeId, lane: usize, frame: Frame) {
        self.ledger.in_flight -= 1;
        let node = &mut self.nodes[to.0];
        if node.protocol.is_none() {
            self.ledger.node_down += 1;
            return;
        }
        if node.lanes[lane].len() >= LANE_DATAGRAMS {
            self.ledger.lane_full += 1;
            return;
        }
        self.ledger.queued += 1;
        node.lanes[lane].push_back(frame);
        self.wake(to);
    }

    fn timer(&mut self, id: NodeId, at: Instant) {
        let now = self.now;
        let node = &mut self.nodes[id.0];
        if node.timer != Some(at) {
            // Superseded by an earlier timer.
            return;
        }
        if now < node.stopped_until {
            let at = node.stopped_until;
            node.timer = Some(at);
            self.schedule(at, Event::Timer(id, at));
            return;
        }
        node.timer = None;
        if let Some(protocol) = &mut node.protocol {
            protocol.advance(now);
            self.settle(id);
        }
    }

    /// Executes one step of a node: a frame or a work item.
    fn step(&mut self, id: NodeId) {
        let now = self.now;
        let node = &mut self.nodes[id.0];
        if now < node.stopped_until {
            let at = node.stopped_until + node.config.step;
            self.schedule(at, Event::Step(id));
            return;
        }
        node.step_filed = false;
        match node.next() {
            None => return,
            Some(Next::Receive { lane }) => {
                if let Some(frame) = node.lanes[lane].pop_front() {
                    self.ledger.queued -= 1;
                    self.ledger.delivered += 1;
                    self.receive(id, &frame);
                }
            }
            Some(Next::Work(priority)) => {
                let now = self.now;
                let mut buffer = std::mem::take(&mut self.buffer);
                let protocol = self.protocol_mut(id);
                // No more room than a caller with frames of several sizes would provide.
                let room = protocol.next_bytes(priority).min(buffer.len());
                if let Some(work) = protocol.poll_transmit(now, priority, &mut buffer[..room])
                    && work.bytes > 0
                {
                    let to = match &work.to {
                        Destinations::Writer(writer) => protocol.destinations(*writer).to_vec(),
                        Destinations::Announce => protocol.announce_to().to_vec(),
                        Destinations::Subset(writer, places) => {
                            protocol.some_destinations(*writer, *places).to_vec()
                        }
                        Destinations::Listed(listed) => listed.to_vec(),
                    };
                    self.send(id, &buffer[..work.bytes], &to);
                }
                self.buffer = buffer;
            }
        }
        self.settle(id);
    }

    fn receive(&mut self, id: NodeId, frame: &Frame) {
        if self.is_traced {
            eprintln!(
                "{:>12?} node {} <- {} {}",
                self.elapsed(),
                id.0,
                frame.from,
                trace::tell(&frame.bytes)
            );
        }
        let now = self.now;
        let waited_ns = self.nodes[id.0].config.socket_wait.as_nanos() as u64;
        let arrived = Instant::new(now.as_nanos().saturating_sub(waited_ns));
        let mut message = MessageReceiver::new(frame.from).arrived_at(arrived);
        while let Some(delivery) = self
            .protocol_mut(id)
            .receive(now, &mut message, &frame.bytes)
        {
            self.view(id, &delivery, &frame.bytes);
        }
    }

    /// Processes the consequences of a call of a local participant: users react, the timer is set, and the node
    /// continues if it has work.
    pub(crate) fn settle(&mut self, id: NodeId) {
        self.users_react(id);
        let node = &mut self.nodes[id.0];
        let next = node.protocol.as_ref().and_then(LocalParticipant::next_time);
        if let Some(at) = next
            && node.timer.is_none_or(|filed| at < filed)
        {
            let at = at.max(self.now);
            node.timer = Some(at);
            self.schedule(at, Event::Timer(id, at));
        }
        self.wake(id);
    }

    fn wake(&mut self, id: NodeId) {
        let node = &mut self.nodes[id.0];
        if !node.step_filed && node.next().is_some() {
            node.step_filed = true;
            let at = self.now + node.config.step;
            self.schedule(at, Event::Step(id));
        }
    }

    /// Sends a datagram from a node to some locators.
    pub(crate) fn send(&mut self, from: NodeId, bytes: &[u8], to: &[Locator]) {
        if let Some(tap) = &mut self.tap {
            tap.push(bytes.to_vec());
        }
        let frame = Frame {
            from: Locator::udpv4(self.nodes[from.0].address, DISCOVERY_PORT),
            bytes: Rc::from(bytes),
        };
        for &locator in to {
            if let Some(hash) = &mut self.trace_hash {
                *hash = trace::hash(*hash, self.now, from, locator, bytes);
            }
            if self.is_traced {
                eprintln!(
                    "{:>12?} node {} -> {locator} {}",
                    self.elapsed(),
                    from.0,
                    trace::tell(bytes)
                );
            }
            if let Some(address) = locator.ipv4().filter(|_| !locator.is_multicast()) {
                *self.bytes_sent.entry(address).or_default() += bytes.len() as u64;
            }
            if locator.is_multicast() && !self.nodes[from.0].config.multicast {
                self.ledger.sent += 1;
                self.ledger.unreachable += 1;
            } else if locator.is_multicast() {
                for target in (0..self.nodes.len()).map(NodeId) {
                    if self.nodes[target.0].groups.contains(&locator) {
                        self.pass(from, target, locator, frame.clone());
                    }
                }
            } else {
                let target = locator.ipv4().and_then(NodeId::of_address);
                let is_there = |id: &NodeId| {
                    let node = self.nodes.get(id.0);
                    node.is_some_and(|node| Some(node.address) == locator.ipv4())
                };
                match target.filter(is_there) {
                    Some(target) => self.pass(from, target, locator, frame.clone()),
                    None => {
                        self.ledger.sent += 1;
                        self.ledger.unreachable += 1;
                    }
                }
            }
        }
    }

    /// Applies the link between two nodes to a datagram.
    fn pass(&mut self, from: NodeId, to: NodeId, locator: Locator, frame: Frame) {
        self.ledger.sent += 1;
        if from == to {
            self.carry(to, locator, frame, Some(LOOPBACK_DELAY));
            return;
        }
        let now = self.now;
        if self.partitions.iter().any(|cut| cut.stops(from, to, now)) {
            self.ledger.partitioned += 1;
            return;
        }
        let link = self.links.get(&(from, to)).unwrap_or(&self.link);
        let Fate {
            arrives,
            arrives_again,
        } = link.fate(&mut self.random);
        if arrives_again.is_some() {
            self.ledger.doubled += 1;
            self.carry(to, locator, frame.clone(), arrives_again);
        }
        self.carry(to, locator, frame, arrives);
    }

    /// Schedules the arrival of a datagram; `None` if it is lost.
    fn carry(&mut self, to: NodeId, locator: Locator, frame: Frame, travels: Option<Duration>) {
        match (lane_of(locator), travels) {
            (None, _) => self.ledger.unreachable += 1,
            (_, None) => self.ledger.lost += 1,
            (Some(lane), Some(travels)) => {
                self.ledger.in_flight += 1;
                self.schedule(self.now + travels, Event::Arrival { to, lane, frame });
            }
        }
    }
}

impl Drop for World {
    /// # Panics
    /// If a ledger does not balance.
    fn drop(&mut self) {
        if !std::thread::panicking()
            && let Some(imbalance) = self.imbalance()
        {
            panic!("seed {}: {imbalance}\n{}", self.seed, self.describe());
        }
    }
}
