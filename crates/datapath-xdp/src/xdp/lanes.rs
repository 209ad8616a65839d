//! Opening and closing of lanes and of topic ports.

use isolane_datapath::limits::MAX_WARNINGS;
use isolane_datapath::udp::interfaces::Interface;
use isolane_datapath::{Datapath, FlowId, Interfaces, Lane, NetworkConfig, OpenError, RateLimit};
use isolane_wire::level::Level;
use isolane_wire::locator::Locator;

use super::device::Device;
use super::error::XdpError;
use super::flows::{Owner, PendingLimits, Topic};
use super::kind::XdpOptions;
use super::plan;
use super::warning;
use super::{Xdp, XdpInterface};
use crate::classifier::{self, Flow};
use crate::limits::{FOLLOWED_BY_A_LOOK, MAX_TOPIC_FLOWS};
use crate::socket::Mode;
use crate::xdp::counters;

/// Selects the interface of the lanes.
pub(super) fn choose(
    udp: &NetworkConfig,
    options: &XdpOptions,
    present: &[Interface],
) -> Result<Interface, XdpError> {
    if let Some(wanted) = &options.interface {
        let found = present.iter().find(|one| one.name == *wanted);
        return found.cloned().ok_or_else(|| XdpError::NotUp {
            interface: wanted.clone(),
            present: names(present),
        });
    }
    let is_used = |one: &&Interface| match &udp.interfaces {
        Interfaces::All => true,
        Interfaces::Named(names) => names.contains(&one.name),
        Interfaces::Loopback => false,
    };
    let mut leaving = present
        .iter()
        .filter(|one| !one.is_loopback)
        .filter(is_used);
    leaving
        .next()
        .cloned()
        .ok_or_else(|| match &udp.interfaces {
            Interfaces::Named(wanted) if !present.iter().any(|one| wanted.contains(&one.name)) => {
                XdpError::NotUp {
                    interface: wanted.join(", "),
                    present: names(present),
                }
            }
            _ => XdpError::NoInterface,
        })
}

/// Configured interface names, for an error message.
pub(super) fn wanted_names(udp: &NetworkConfig, options: &XdpOptions) -> String {
    match (&options.interface, &udp.interfaces) {
        (Some(name), _) => name.clone(),
        (None, Interfaces::Named(names)) => names.join(", "),
        (None, Interfaces::Loopback) => "lo".to_owned(),
        (None, Interfaces::All) => "(any)".to_owned(),
    }
}

fn names(present: &[Interface]) -> String {
    let names: Vec<&str> = present.iter().map(|one| one.name.as_str()).collect();
    names.join(", ")
}

/// IPv4 addresses of an interface.
pub(super) fn addresses_of(interface: &Interface) -> Vec<[u8; 4]> {
    interface.addresses.iter().map(|one| one.address).collect()
}

/// Flows of a lane or topic that arrive by this interface.
fn flows(
    interface: &XdpInterface,
    unicast: &[Locator],
    multicast: &[Locator],
    to: classifier::RedirectAction,
    rate_limit: Option<RateLimit>,
) -> Vec<Flow> {
    let port_of = |locator: &Locator| u16::try_from(locator.port).unwrap_or(0);
    let ours = unicast.iter().filter(|locator| {
        let address = locator.ipv4();
        address.is_some_and(|address| interface.addresses.contains(&address))
    });
    let all = ours.chain(multicast);
    all.filter_map(|locator| {
        Some(Flow {
            destination: locator.ipv4()?,
            port: port_of(locator),
            source: None,
            action: to,
            is_critical: false,
            rate_limit,
        })
    })
    .collect()
}

impl Xdp {
    /// Opens the rings of an open lane, if its level gets a lane.
    pub(super) fn open_on_device(&mut self, lane: Lane) -> Result<(), XdpError> {
        let level = lane
            .level()
            .filter(|level| self.options.levels & 1 << level.get() != 0);
        let Some(interface) = self.interface.as_deref_mut().filter(|it| !it.is_gone) else {
            return Ok(());
        };
        let Some(level) = level else {
            // Registered, so that the classifier counts the lane's flows as own traffic, for the kernel.
            register_for_kernel(interface, &self.udp, lane, &self.pending_limits)?;
            self.warn_waiting();
            return Ok(());
        };
        if interface.device.is_none() {
            let wanted = self.options.queues[usize::from(level.get())];
            let first = interface
                .plan
                .queues
                .iter()
                .position(|one| one.queue == wanted);
            let device = Device::open(
                interface.index,
                &self.options,
                self.looks.wants_stamps,
                &interface.plan,
                &self.pool,
                first.expect("the plan has the queue of every level that gets a lane"),
            )?;
            let device = interface.device.insert(Box::new(device));
            if let Some(rate_limit) = self.pending_limits.interface() {
                // Validated when it was requested.
                let set = device.classifier.set_interface_rate_limit(&rate_limit);
                assert_eq!(set, Ok(()), "it was looked at before");
            }
            for open in Lane::ALL {
                let is_of_kernel = open
                    .level()
                    .is_none_or(|level| self.options.levels & 1 << level.get() == 0);
                if is_of_kernel {
                    register_for_kernel(interface, &self.udp, open, &self.pending_limits)?;
                }
            }
        }
        let unicast = self.udp.unicast(lane);
        let port = unicast.first().map_or(0, |locator| locator.port as u16);
        let to = classifier::RedirectAction::Lane(level);
        let rate_limit = self.pending_limits.lane(lane);
        let flows = flows(interface, unicast, self.udp.multicast(lane), to, rate_limit);
        let XdpInterface { device, plan, .. } = interface;
        let device = device.as_deref_mut().expect("it was opened");
        device.open_lane(level, &self.options, plan, &self.pool, port, &flows)?;
        self.firsts |= lane.bit();
        self.describe();
        Ok(())
    }

    /// Warns that this process, not the kernel, replenishes the budgets.
    pub(super) fn warn_replenisher(&mut self) {
        if !self.device().is_some_and(|device| device.replenishes) {
            return;
        }
        if let Some(interface) = &self.interface {
            self.warn(warning::replenished_here(&interface.name));
        }
    }

    /// Updates the capabilities from the device's mode.
    fn describe(&mut self) {
        let mode = self.device().and_then(Device::mode);
        let is_zero_copy = mode == Some(Mode::ZeroCopy);
        self.capabilities.zero_copy = is_zero_copy;
        self.capabilities.kernel_copies = if is_zero_copy { 0 } else { 1 };
    }

    /// Alternates between kernel sockets and ring; true if the sockets are first this time.
    pub(super) fn take_turn(&mut self, level: Level) -> bool {
        let place = usize::from(level.get());
        let device = self.device_mut();
        let lane = device.and_then(|device| device.lanes[place].as_deref_mut());
        lane.is_some_and(|lane| {
            lane.kernel_first = !lane.kernel_first;
            lane.kernel_first
        })
    }

    /// Opens a dedicated port for a topic within an open lane.
    pub(super) fn open_topic(&mut self, lane: Lane) -> Result<FlowId, OpenError> {
        let level = lane.level().filter(|_| self.is_on_device(lane));
        let none = OpenError::NoFlows { datapath: "xdp" };
        let (Some(level), Some(interface)) = (level, self.interface.as_deref_mut()) else {
            return Err(none);
        };
        let socket = self.udp.open_flow_socket(lane)?;
        let to = classifier::RedirectAction::Lane(level);
        let unicast = self.udp.flow_socket_unicast(lane, socket);
        let mut flows = flows(interface, unicast, &[], to, None);
        let Some(device) = interface.device.as_deref_mut() else {
            return Err(none);
        };
        let is_critical = device.lanes.iter().rev().flatten().next();
        let is_critical = is_critical.is_some_and(|highest| highest.level == level);
        flows
            .iter_mut()
            .for_each(|flow| flow.is_critical = is_critical);
        let Some(flow) = device.slots.add_topic(Topic { lane, socket }) else {
            self.udp.close_flow_socket(lane, socket);
            let limit = MAX_TOPIC_FLOWS;
            return Err(OpenError::TooManyFlows { limit });
        };
        let owner = Owner {
            lane,
            topic: Some(flow),
        };
        let Device {
            slots, classifier, ..
        } = device;
        if let Err(source) = slots.add(classifier, owner, &flows) {
            slots.remove_topic(flow);
            self.udp.close_flow_socket(lane, socket);
            return Err(source.on(interface.name.clone()));
        }
        Ok(flow)
    }

    /// Closes a topic's port.
    pub(super) fn close_topic(&mut self, flow: FlowId) {
        let Some(device) = self.device_mut() else {
            return;
        };
        let Some(topic) = device.slots.remove_topic(flow) else {
            return;
        };
        let owner = Owner {
            lane: topic.lane,
            topic: Some(flow),
        };
        let Device {
            slots, classifier, ..
        } = device;
        let dropped = slots.remove(classifier, owner);
        let receive = &mut self.udp.lane_ledger_mut(topic.lane).receive;
        for (reason, count) in dropped {
            receive.note_dropped(reason, count);
        }
        self.udp.close_flow_socket(topic.lane, topic.socket);
    }

    /// Applies a few notifications about routes, neighbours and the interface. Notifications wake discovery's lane, so
    /// more critical work waits for at most one such step.
    pub(super) fn follow_news(&mut self) {
        if let Some(interface) = self.interface.as_deref_mut() {
            interface.router.follow_at_most(FOLLOWED_BY_A_LOOK);
            self.looks.martians.follow(&interface.router);
        }
    }

    /// Housekeeping: follows routes, neighbours and the interface, and acts on changes.
    pub(super) fn check_device(&mut self) {
        let Some(interface) = self.interface.as_deref_mut() else {
            return;
        };
        interface.router.follow();
        self.looks.martians.follow(&interface.router);
        interface.router.keep_fresh();
        if interface.router.device().is_gone && !interface.is_gone {
            interface.is_gone = true;
            let gone = warning::interface_gone(&interface.name);
            self.close_device();
            self.warn(gone);
            return;
        }
        if let Some(device) = interface.device.as_deref_mut() {
            // Handles completions after the last send: the lane may be idle from then on.
            device.take_home(&self.pool);
            device.wake();
        }
        self.look_at_mtu();
        let stamps = self.looks.finds_stamps;
        let unstamped = self
            .device()
            .map_or(0, |device| device.classifier.unstamped());
        if stamps && unstamped > 0 {
            // Since the first frame without a stamp, no stamp was read on that queue. From now on none is read on any
            // queue.
            self.looks.finds_stamps = false;
            if let Some(interface) = &self.interface {
                self.warn(warning::no_stamps(&interface.name));
            }
        }
    }

    /// Registers all flows again after the interface's addresses changed: flows are keyed by destination address.
    /// Frames that arrive meanwhile pass to the kernel, whose sockets have the same ports.
    pub(super) fn follow_addresses(&mut self) {
        let Some(interface) = self.interface.as_deref_mut() else {
            return;
        };
        let mut interfaces = self.udp.interfaces().iter();
        let Some(current) = interfaces.find(|one| one.name == interface.name) else {
            return;
        };
        interface.addresses = addresses_of(current);
        let Some(device) = interface.device.as_deref() else {
            return;
        };
        let mut owners: Vec<(Owner, Flow, Option<Topic>)> = Vec::new();
        for (_, owner, flow) in device.slots.used() {
            if !owners.iter().any(|(known, ..)| *known == owner) {
                let topic = owner.topic.and_then(|topic| device.slots.topic(topic));
                owners.push((owner, *flow, topic));
            }
        }
        for (owner, former, topic) in owners {
            let (unicast, multicast) = match topic {
                None => (self.udp.unicast(owner.lane), self.udp.multicast(owner.lane)),
                Some(topic) => (
                    self.udp.flow_socket_unicast(topic.lane, topic.socket),
                    &[][..],
                ),
            };
            let mut flows = flows(
                interface,
                unicast,
                multicast,
                former.action,
                former.rate_limit,
            );
            for flow in &mut flows {
                flow.is_critical = former.is_critical;
            }
            let Some(Device {
                slots, classifier, ..
            }) = interface.device.as_deref_mut()
            else {
                return;
            };
            let dropped = slots.remove(classifier, owner);
            let added = slots.add(classifier, owner, &flows);
            let receive = &mut self.udp.lane_ledger_mut(owner.lane).receive;
            for (reason, count) in dropped {
                receive.note_dropped(reason, count);
            }
            if let Err(error) = added
                && self.warnings.len() < MAX_WARNINGS
            {
                let changed = warning::address_changed(&interface.name, owner.lane, &error);
                self.warnings.push(changed);
            }
        }
    }

    /// Warns of an MTU that exceeds the chunks: the kernel drops longer frames.
    fn look_at_mtu(&mut self) {
        let Some(interface) = self.interface.as_deref().filter(|it| it.device.is_some()) else {
            return;
        };
        let mtu_bytes = interface.router.device().mtu_bytes;
        let room_bytes = plan::room_bytes(interface.plan.chunk_bytes);
        if mtu_bytes > room_bytes {
            let raised = warning::mtu_raised(&interface.name, mtu_bytes, room_bytes);
            self.warn(raised);
        }
    }

    /// Closes all lanes: counts what is in their rings and returns all frames to the pool.
    pub(super) fn close_device(&mut self) {
        let device = self.interface.as_mut().and_then(|it| it.device.take());
        let Some(mut device) = device else {
            return;
        };
        device.take_all_completed();
        let mut before = isolane_datapath::Ledger::default();
        device.add_to(&mut before);
        let Device {
            classifier,
            lanes,
            queues,
            mut held,
            ..
        } = *device;
        // No more frames arrive; those received so far are counted.
        drop(classifier);
        drop(lanes);
        drop(queues);
        for frame in held.drain() {
            let isolane_datapath::Class::Transmit(lane) = frame.class() else {
                continue;
            };
            let transmit = &mut self.udp.lane_ledger_mut(lane).transmit;
            let bytes = frame.len() as u64;
            transmit.note_unsent(counters::DEVICE_GONE, 1, bytes);
        }
        for lane in Lane::ALL {
            *self.udp.lane_ledger_mut(lane) += before.lane(lane);
        }
        self.describe();
    }
}

/// Registers a lane's ports as flows to the kernel.
fn register_for_kernel(
    interface: &mut XdpInterface,
    udp: &isolane_datapath::Udp,
    lane: Lane,
    asked: &PendingLimits,
) -> Result<(), XdpError> {
    let kernel = classifier::RedirectAction::Kernel;
    let (unicast, multicast) = (udp.unicast(lane), udp.multicast(lane));
    let flows = flows(interface, unicast, multicast, kernel, asked.lane(lane));
    let Some(device) = interface.device.as_deref_mut() else {
        return Ok(());
    };
    let owner = Owner { lane, topic: None };
    let Device {
        slots, classifier, ..
    } = device;
    slots.add(classifier, owner, &flows)
}
