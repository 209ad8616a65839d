//! Observation of lanes: current state and kernel counters.

use isolane_datapath::{
    FlowObservation, InterfaceObservation, Lane, Ledger, Observation, RingObservation,
};

use super::Xdp;
use super::device::Device;
use crate::classifier::AttachMode;
use crate::socket::{Mode, Statistics};
use crate::xdp::counters;
use isolane_wire::locator::Locator;

impl Device {
    /// Adds each lane's drops by the kernel and the classifier.
    pub(super) fn add_to(&self, ledger: &mut Ledger) {
        let counts = self.classifier.counts();
        for lane in Lane::ALL {
            let receive = &mut ledger.lane_mut(lane).receive;
            for (reason, count) in self.slots.drops(&counts, lane) {
                receive.note_dropped(reason, count);
            }
        }
        for open in self.lanes.iter().flatten() {
            let statistics = open.receive.statistics().unwrap_or_default();
            let receive = &mut ledger.lane_mut(Lane::Level(open.level)).receive;
            receive.note_dropped(counters::RING_FULL, statistics.receive_ring_full);
            receive.note_dropped(counters::FILL_EMPTY, statistics.dropped);
        }
    }

    /// Lanes with frames in their rings.
    pub(super) fn waiting(&mut self) -> u16 {
        let (mut seen, mut left) = (0, self.open_levels);
        while left != 0 {
            let place = left.trailing_zeros();
            left &= left - 1;
            if let Some(open) = &mut self.lanes[place as usize]
                && open.receive.ring.waiting() > 0
            {
                seen |= 1 << place;
            }
        }
        Lane::of_levels(seen)
    }

    /// Busy-polls each queue's device in this thread, through its most critical lane.
    pub(super) fn poll(&mut self) {
        for place in 0..self.queues.len() {
            let Some(level) = self.highest_on(place) else {
                continue;
            };
            if let Some(open) = self.lanes[usize::from(level.get())].as_deref() {
                // An error means that the interface is down or gone: there are no frames.
                let _ = open.receive.poll_device();
            }
        }
    }
}

impl Xdp {
    pub(super) fn observation(&self) -> Observation {
        let Some((interface, device)) = self.interface.as_deref().zip(self.device()) else {
            return Observation::default();
        };
        let counts = device.classifier.counts();
        let interface = InterfaceObservation {
            name: interface.name.clone(),
            mode: match (self.options().attach, device.mode()) {
                (AttachMode::Generic, _) => "generic",
                (AttachMode::Native, Some(Mode::ZeroCopy)) => "native, zero copy",
                (AttachMode::Native, _) => "native, copy",
            }
            .to_owned(),
            program_tag: device.classifier.tag().to_string(),
            decisions: counts.others.named().collect(),
        };
        let flows = device
            .slots
            .used()
            .map(|(slot, owner, flow)| FlowObservation {
                lane: owner.lane,
                flow: owner.topic,
                destination: Locator::udpv4(flow.destination, flow.port),
                rate_limit: flow.rate_limit,
                left: device.classifier.left(slot),
                decisions: device.slots.counted(&counts, slot),
            });
        Observation {
            interfaces: vec![interface],
            flows: flows.collect(),
            rings: rings(device),
        }
    }
}

fn rings(device: &Device) -> Vec<RingObservation> {
    let mut rings = Vec::new();
    for open in device.queues.iter().flatten() {
        let queue = open.queue.number();
        let ring = |kind, entries, used, missed| RingObservation {
            kind,
            queue,
            lane: None,
            entries,
            used,
            missed,
        };
        let missed = open.queue.fill_missed().unwrap_or(0);
        let fill = &open.queue.fill;
        let completion = &open.queue.completion;
        rings.push(ring("fill", fill.entries(), fill.peek_used(), missed));
        let waiting = completion.peek_waiting();
        rings.push(ring("completion", completion.entries(), waiting, 0));
    }
    for open in device.lanes.iter().flatten() {
        let queue = device.queues[open.queue].as_ref();
        let queue = queue.map_or(0, |queue| queue.queue.number());
        let lane = Some(Lane::Level(open.level));
        let received: Statistics = open.receive.statistics().unwrap_or_default();
        let sent = open.transmit.statistics().unwrap_or_default();
        let (receive, transmit) = (&open.receive.ring, &open.transmit.ring);
        rings.push(RingObservation {
            kind: "receive",
            queue,
            lane,
            entries: receive.entries(),
            used: receive.peek_waiting(),
            missed: received.receive_ring_full,
        });
        rings.push(RingObservation {
            kind: "transmit",
            queue,
            lane,
            entries: transmit.entries(),
            used: transmit.peek_used(),
            missed: sent.invalid_transmitted,
        });
    }
    rings
}
