//! One simulated system: its faults, and its end without faults.

use std::time::Duration;

use isolane_sim::{
    LinkConfig, NodeConfig, NodeId, Partition, Random, ReaderHandle, Take, World, WriterHandle,
};
use isolane_wire::time::Instant;

use crate::{
    tally::Tally,
    topics::{INSTANCES, KINDS, Kind},
};

pub(crate) const NODES: usize = 4;
/// Maximum number of endpoints of one kind (writers or readers) that exist at a time.
const ENDPOINTS: usize = 14;
const MISFORTUNES: u32 = 40;

const SECOND: Duration = Duration::from_secs(1);
/// Time limit, longer than any step needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);
/// Maximum time for which a process is stopped.
const MAX_STOP: Duration = Duration::from_secs(3);
/// Time after which all running participants have removed a silent one: a lease, the grace after it, and one step.
const LEASE_OVER: Duration = Duration::from_secs(11);

/// Deliberate error in the recorded results, to test that the checks find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plant {
    Nothing,
    /// One received sample is removed from the record.
    ForgetsOneSample,
}

/// Writer, which may have been deleted since.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriterLife {
    pub(crate) node: NodeId,
    pub(crate) kind: Kind,
    pub(crate) handle: WriterHandle,
    pub(crate) created: Instant,
    pub(crate) is_gone: bool,
    /// Last value written.
    last: u64,
    /// Its first instance.
    key: u32,
}

/// Reader, which may have been deleted since.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReaderLife {
    pub(crate) node: NodeId,
    pub(crate) kind: Kind,
    pub(crate) handle: ReaderHandle,
    pub(crate) is_gone: bool,
    /// The reader was created after all samples were written, and must get the whole history.
    pub(crate) is_late: bool,
}

/// System with faults.
pub(crate) struct Ordeal {
    pub(crate) world: World,
    pub(crate) plant: Plant,
    pub(crate) tally: Tally,
    pub(crate) writers: Vec<WriterLife>,
    pub(crate) readers: Vec<ReaderLife>,
    chance: Random,
    down_since: [Option<Duration>; NODES],
}

impl Ordeal {
    pub(crate) fn new(seed: u64, plant: Plant) -> Self {
        let mut chance = Random::new(seed).fork();
        let mut world = World::new(seed).link(LinkConfig::lossy(0.15));
        let config = if chance.chance(0.5) {
            NodeConfig::default()
        } else {
            NodeConfig::with_peers(&(0..NODES).map(NodeId).collect::<Vec<_>>())
        };
        world.nodes(NODES, &config);
        let mut ordeal = Self {
            world,
            plant,
            tally: Tally::default(),
            writers: Vec::new(),
            readers: Vec::new(),
            chance,
            down_since: [None; NODES],
        };
        for node in 0..NODES {
            ordeal.furnish(NodeId(node));
        }
        ordeal
    }

    /// Runs the whole system; returns the counts of what occurred.
    pub(crate) fn endure(mut self) -> Tally {
        for _ in 0..MISFORTUNES {
            self.suffer();
            let pause = self.chance.up_to(SECOND);
            self.world.run_for(pause);
            let imbalance = self.world.imbalance();
            assert_eq!(imbalance, None, "seed {}", self.world.seed());
        }
        self.recover();
        self.judge();
        self.sum_up();
        self.tally
    }

    pub(crate) fn live_writers(&self, kind: Kind) -> Vec<WriterHandle> {
        let live = self
            .writers
            .iter()
            .filter(|life| life.kind == kind && !life.is_gone);
        live.map(|life| life.handle).collect()
    }

    pub(crate) fn live_readers(&self, kind: Kind) -> Vec<ReaderHandle> {
        let live = self
            .readers
            .iter()
            .filter(|life| life.kind == kind && !life.is_gone);
        live.map(|life| life.handle).collect()
    }

    fn a_node(&mut self) -> NodeId {
        NodeId(self.chance.below(NODES as u64) as usize)
    }

    fn others(&self, than: NodeId) -> Vec<NodeId> {
        let all = (0..NODES).map(NodeId);
        all.filter(|&node| node != than).collect()
    }

    /// Creates a few endpoints on a participant that has just started.
    fn furnish(&mut self, node: NodeId) {
        for _ in 0..self.chance.between(1, 3) {
            let (written, read) = (self.chance.pick(&KINDS), self.chance.pick(&KINDS));
            self.add_writer(node, written);
            self.add_reader(node, read);
        }
    }

    fn add_writer(&mut self, node: NodeId, kind: Kind) {
        let live = self.writers.iter().filter(|life| !life.is_gone).count();
        if live == ENDPOINTS {
            return;
        }
        self.writers.push(WriterLife {
            node,
            kind,
            handle: self.world.create_writer(node, &kind.topic()),
            created: self.world.now(),
            is_gone: false,
            last: 0,
            key: self.writers.len() as u32 * INSTANCES,
        });
    }

    fn add_reader(&mut self, node: NodeId, kind: Kind) {
        let live = self.readers.iter().filter(|life| !life.is_gone).count();
        if live == ENDPOINTS {
            return;
        }
        let handle = self.world.create_reader(node, &kind.topic());
        if self.chance.chance(0.3) {
            let pause = self.chance.up_to(Duration::from_millis(10));
            self.world.set_take(handle, Take::OneEvery(pause));
        }
        self.readers.push(ReaderLife {
            node,
            kind,
            handle,
            is_gone: false,
            is_late: false,
        });
    }

    /// Causes one fault.
    fn suffer(&mut self) {
        let node = self.a_node();
        let is_up = self.world.is_up(node);
        match self.chance.below(17) {
            0 if is_up => {
                let kind = self.chance.pick(&KINDS);
                self.add_writer(node, kind);
            }
            1 if is_up => {
                let kind = self.chance.pick(&KINDS);
                self.add_reader(node, kind);
            }
            2 => self.delete_one(),
            3 if is_up => self.goes_down(node, World::crash),
            4 if is_up => self.goes_down(node, World::leave),
            5..=7 if !is_up => self.comes_back(node),
            8 => self.cut(node),
            9 => {
                // One direction is lossy, the other is not.
                let to = self.chance.pick(&self.others(node));
                let loss = 0.3 + 0.1 * self.chance.below(4) as f64;
                self.world
                    .set_link_between(node, to, LinkConfig::lossy(loss));
                self.tally.lopsided_links += 1;
            }
            10 if is_up => {
                let time = self.chance.up_to(MAX_STOP);
                self.world.stop_for(node, time);
                self.tally.stops += 1;
            }
            _ => self.write(),
        }
    }

    fn write(&mut self) {
        for at in 0..self.writers.len() {
            let life = self.writers[at];
            if life.is_gone {
                continue;
            }
            let count = self.chance.below(12);
            let samples = life
                .kind
                .samples(count, life.last, life.key, &mut self.chance);
            self.writers[at].last += count;
            self.world.enqueue(life.handle, samples);
        }
    }

    fn delete_one(&mut self) {
        let at = self.chance.next() as usize;
        let is_writer = self.chance.chance(0.5);
        if is_writer {
            let live: Vec<_> = (0..self.writers.len())
                .filter(|&at| !self.writers[at].is_gone)
                .collect();
            if !live.is_empty() {
                let at = live[at % live.len()];
                self.count_writer(at);
                self.writers[at].is_gone = true;
                self.world.delete_writer(self.writers[at].handle);
                self.tally.deletions += 1;
            }
        } else {
            let live: Vec<_> = (0..self.readers.len())
                .filter(|&at| !self.readers[at].is_gone)
                .collect();
            if !live.is_empty() {
                let at = live[at % live.len()];
                self.count_reader(at);
                self.readers[at].is_gone = true;
                self.world.delete_reader(self.readers[at].handle);
                self.tally.deletions += 1;
            }
        }
    }

    fn goes_down(&mut self, node: NodeId, how: fn(&mut World, NodeId)) {
        self.count_node(node);
        for at in 0..self.writers.len() {
            self.writers[at].is_gone |= self.writers[at].node == node;
        }
        for at in 0..self.readers.len() {
            self.readers[at].is_gone |= self.readers[at].node == node;
        }
        let is_crash = std::ptr::fn_addr_eq(how, World::crash as fn(&mut World, NodeId));
        self.tally.crashes += u64::from(is_crash);
        self.tally.farewells += u64::from(!is_crash);
        how(&mut self.world, node);
        self.down_since[node.0] = Some(self.world.elapsed());
    }

    /// Restarts a participant at its former address. It gets its former GUID prefix only if no peer knows that any
    /// more: earlier, two participants would have one GUID prefix.
    fn comes_back(&mut self, node: NodeId) {
        let since = self.down_since[node.0].take().unwrap_or_default();
        // A stopped participant checks leases when it continues.
        let is_forgotten = self.world.elapsed() - since > LEASE_OVER + MAX_STOP;
        if is_forgotten && self.chance.chance(0.7) {
            self.world.restart_as_before(node);
            self.tally.restarts_as_before += 1;
        } else {
            self.world.restart(node);
            self.tally.restarts_anew += 1;
        }
        self.furnish(node);
    }

    fn cut(&mut self, node: NodeId) {
        let others = self.others(node);
        let (cut, tally) = (self.chance.below(3), &mut self.tally);
        let cut = match cut {
            0 => {
                tally.cuts += 1;
                Partition::between(&[node], &others)
            }
            cut => {
                tally.one_way_cuts += 1;
                match cut {
                    1 => Partition::one_way(&[node], &others),
                    _ => Partition::one_way(&others, &[node]),
                }
            }
        };
        // Shorter or longer than a lease.
        let from = self.world.elapsed();
        let window = from..from + self.chance.up_to(15 * SECOND);
        self.world.partition(cut.during(window));
    }

    /// Ends all faults: all nodes are up, no link is cut, and each kind has a writer and a reader.
    fn recover(&mut self) {
        self.world.heal();
        self.world.clear_links_between();
        // The loss is so low that no lease expires by chance.
        self.world.set_link(LinkConfig::lossy(0.05));
        if self.chance.chance(0.5) {
            // The others remove the nodes that are down.
            self.world.run_for(LEASE_OVER + MAX_STOP);
        }
        for node in (0..NODES).map(NodeId) {
            if !self.world.is_up(node) {
                self.comes_back(node);
            }
        }
        // Long enough for the leases of nodes that are gone to expire.
        self.world.run_for(LEASE_OVER + SECOND);
        for kind in KINDS {
            if self.live_writers(kind).is_empty() {
                self.make_room();
                let node = self.a_node();
                self.add_writer(node, kind);
            }
            if self.live_readers(kind).is_empty() {
                self.make_room();
                let node = self.a_node();
                self.add_reader(node, kind);
            }
        }
        for kind in KINDS {
            let (writers, readers) = (self.live_writers(kind), self.live_readers(kind));
            self.world.until_matched(&writers, &readers);
        }
        // Endpoints without a local match are announced, too.
        self.world.run_for(5 * SECOND);
        self.assert_nothing_is_stale();
        self.write_last();
        self.join_late();
        // Time in which superfluous samples would arrive.
        self.world.run_for(SECOND);
    }

    /// Deletes one endpoint of a kind that has several, if the maximum number exists.
    fn make_room(&mut self) {
        let live = |kind| self.live_writers(kind).len();
        if KINDS.into_iter().map(live).sum::<usize>() == ENDPOINTS {
            let kind = KINDS.into_iter().max_by_key(|&kind| live(kind));
            let at = self
                .writers
                .iter()
                .position(|life| Some(life.kind) == kind && !life.is_gone);
            let at = at.expect("some kind has several");
            self.count_writer(at);
            self.writers[at].is_gone = true;
            self.world.delete_writer(self.writers[at].handle);
        }
        let live = |kind| self.live_readers(kind).len();
        if KINDS.into_iter().map(live).sum::<usize>() == ENDPOINTS {
            let kind = KINDS.into_iter().max_by_key(|&kind| live(kind));
            let at = self
                .readers
                .iter()
                .position(|life| Some(life.kind) == kind && !life.is_gone);
            let at = at.expect("some kind has several");
            self.count_reader(at);
            self.readers[at].is_gone = true;
            self.world.delete_reader(self.readers[at].handle);
        }
    }

    /// Writes after the last fault, and waits for all samples.
    fn write_last(&mut self) {
        for at in 0..self.writers.len() {
            let life = self.writers[at];
            if life.is_gone {
                continue;
            }
            if life.kind == Kind::Ticks {
                // Some of these best-effort samples arrive.
                let ticks = life.kind.samples(40, life.last, life.key, &mut self.chance);
                self.world
                    .publish(life.handle, Duration::from_millis(5), ticks);
            } else {
                let last = life.kind.last_samples(life.last, life.key);
                self.world.enqueue(life.handle, last);
            }
        }
        let live = self.readers.iter().filter(|reader| !reader.is_gone);
        let live: Vec<_> = live.copied().collect();
        self.until_last("what is written in peace comes", &live);
    }

    /// Runs until these readers have the last sample of each instance of all writers of their kinds.
    fn until_last(&mut self, what: &str, readers: &[ReaderLife]) {
        let writers = &self.writers;
        self.world.run_until(what, PATIENCE, |world| {
            readers.iter().all(|reader| {
                let its = |writer: &&WriterLife| !writer.is_gone && writer.kind == reader.kind;
                let mut its = writers.iter().filter(its);
                its.all(|writer| has_last(world, writer, reader))
            })
        });
    }

    /// Creates late readers, and checks that they get the whole history.
    fn join_late(&mut self) {
        let mut late = Vec::new();
        for kind in KINDS.into_iter().filter(|kind| kind.has_history()) {
            let node = self.a_node();
            let reader = ReaderLife {
                node,
                kind,
                handle: self.world.create_reader(node, &kind.topic()),
                is_gone: false,
                is_late: true,
            };
            self.readers.push(reader);
            late.push(reader);
        }
        self.until_last("who comes late has the history", &late);
    }
}

/// Adds counters to the totals before their owner is removed.
impl Ordeal {
    fn count_node(&mut self, node: NodeId) {
        for at in 0..self.writers.len() {
            if self.writers[at].node == node && !self.writers[at].is_gone {
                self.count_writer(at);
            }
        }
        for at in 0..self.readers.len() {
            if self.readers[at].node == node && !self.readers[at].is_gone {
                self.count_reader(at);
            }
        }
        self.tally.leases += self.world.protocol(node).counters().leases_expired;
    }

    fn count_writer(&mut self, at: usize) {
        let handle = self.writers[at].handle;
        let ledger = self.world.writer_ledger(handle);
        let tally = &mut self.tally;
        tally.written += ledger.written;
        tally.repaired += ledger.repaired;
        tally.history += ledger.history;
        tally.fragments += ledger.fragments;
        tally.fragments_repaired += ledger.fragments_repaired;
        tally.refused += self.world.refused(handle);
    }

    fn count_reader(&mut self, at: usize) {
        let handle = self.readers[at].handle;
        let ledger = self.world.reader_ledger(handle);
        self.tally.taken += ledger.delivered;
        self.tally.out_of_order += ledger.duplicates + ledger.waiting;
        let changes = self.world.matches_of_reader(handle);
        let ended = |peer| {
            changes
                .iter()
                .any(|change| !change.begins && change.peer == peer)
        };
        let again = changes
            .iter()
            .filter(|change| change.begins && ended(change.peer))
            .count();
        self.tally.rematches += again as u64;
    }

    /// Adds the counters of all remaining nodes and endpoints.
    fn sum_up(&mut self) {
        for node in (0..NODES).map(NodeId) {
            self.count_node(node);
        }
        let link = self.world.link_ledger();
        self.tally.lost += link.lost;
        self.tally.doubled += link.doubled;
        self.tally.stopped += link.partitioned;
    }
}

/// Returns whether a reader has the last sample of each instance of a writer; for a best-effort reader, any sample.
fn has_last(world: &World, writer: &WriterLife, reader: &ReaderLife) -> bool {
    let guid = world.writer_guid(writer.handle);
    let count = match writer.kind {
        Kind::State => INSTANCES as usize,
        _ => 1,
    };
    if world.unwritten(writer.handle) > 0 {
        return false;
    }
    let written = world.written(writer.handle);
    let received = world.received(reader.handle);
    let came = |number| {
        received.iter().rev().any(|received| {
            received.info.writer == guid
                && received.info.received >= writer.created
                && received.info.sequence == number
        })
    };
    let last = &written[written.len().saturating_sub(count)..];
    match writer.kind.is_reliable() {
        true => last.iter().all(|written| came(written.sequence)),
        false => written
            .iter()
            .rev()
            .take(40)
            .any(|written| came(written.sequence)),
    }
}
