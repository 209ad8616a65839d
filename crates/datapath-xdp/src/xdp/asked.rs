//! What receivers are to be protected with, kept from when it is asked for until something is there
//! that counts, and from then on for lanes that are opened later.
//!
//! A participant is told what protects it when it is made, and lanes come with its endpoints. So
//! what is asked for a lane that is not open yet, or for an interface before its device is taken, is
//! looked at, kept, and in force before the first frame of the lane comes. Where no device can be
//! had it is refused at once, or said in a [`Note`] when that turns out. A level that is to have no
//! lane is counted from the first lane of another level on; until there is one, a note says so.

use isolane_datapath::{
    Datapath, InterfaceProtection, Lane, Note, ProtectError, Protected, Protection,
};

use super::Xdp;
use super::device::Device;
use super::slots::Owner;
use crate::classifier;

/// What was asked for last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    lanes: [Option<Protection>; Lane::COUNT],
    interface: Option<InterfaceProtection>,
}

impl Asked {
    /// Of a lane's own port and groups.
    pub(super) fn lane(&self, lane: Lane) -> Option<Protection> {
        self.lanes[lane.index()]
    }

    /// Of the interface; `None`: nobody said anything.
    pub(super) fn interface(&self) -> Option<InterfaceProtection> {
        self.interface
    }

    fn is_anything(&self) -> bool {
        let interface = self.interface.unwrap_or_default();
        self.lanes.iter().any(Option::is_some)
            || interface.flows.is_some()
            || interface.others.is_some()
    }
}

impl Xdp {
    /// Protects a lane or a topic's flow, now or as soon as the lane is open.
    pub(super) fn protect_now_or_later(
        &mut self,
        what: Protected,
        with: Option<Protection>,
    ) -> Result<(), ProtectError> {
        self.can_count()?;
        if let Some(protection) = &with {
            classifier::check_budget(&protection.budget)?;
        }
        let is_closed = |lane: Lane| self.device().is_none() || self.udp.unicast(lane).is_empty();
        if let Protected::Lane(lane) = what
            && is_closed(lane)
        {
            self.asked.lanes[lane.index()] = with;
            self.note_waiting();
            return Ok(());
        }
        let device = self.device_mut().ok_or(ProtectError::NoFlow)?;
        let owner = match what {
            Protected::Lane(lane) => Owner { lane, topic: None },
            Protected::Flow(flow) => {
                let topic = device.slots.topic(flow).ok_or(ProtectError::NoFlow)?;
                Owner {
                    lane: topic.lane,
                    topic: Some(flow),
                }
            }
        };
        let Device {
            slots, classifier, ..
        } = device;
        if !slots.protect(classifier, owner, with)? {
            return Err(ProtectError::NoFlow);
        }
        if let Protected::Lane(lane) = what {
            self.asked.lanes[lane.index()] = with;
        }
        self.note_protected();
        Ok(())
    }

    /// Protects the interface, now or as soon as its device is taken.
    pub(super) fn protect_interface_now_or_later(
        &mut self,
        with: InterfaceProtection,
    ) -> Result<(), ProtectError> {
        self.can_count()?;
        classifier::check_interface(&with)?;
        if let Some(device) = self.device_mut() {
            device.classifier.protect_interface(&with)?;
            self.note_protected();
        }
        self.asked.interface = Some(with);
        self.note_waiting();
        Ok(())
    }

    /// Whether there is, or is to be, a device that counts datagrams before they are received.
    fn can_count(&self) -> Result<(), ProtectError> {
        let way = self.way.as_ref().filter(|way| !way.is_gone);
        let is_wanted = |_: &&_| self.options.levels != 0;
        match way.filter(is_wanted) {
            Some(way) if way.device.is_some() || !way.is_refused => Ok(()),
            _ => Err(ProtectError::NoLanes),
        }
    }

    /// Budgets may have been set.
    pub(super) fn note_protected(&mut self) {
        if let Some(device) = self.device_mut() {
            device.note_protected();
        }
        self.note_replenisher();
    }

    /// Says so where something was asked for, levels are open, and none of them has a lane, so that
    /// nobody counts yet.
    pub(super) fn note_waiting(&mut self) {
        let Some(way) = self.way.as_deref().filter(|way| !way.is_gone) else {
            return;
        };
        let is_open = |lane: &Lane| lane.level().is_some() && !self.udp.unicast(*lane).is_empty();
        let waits = way.device.is_none() && !way.is_refused && self.asked.is_anything();
        if waits && Lane::ALL.iter().any(is_open) {
            let interface = way.interface.clone();
            self.note(Note::Device {
                interface,
                what:
                    "budgets of levels and of the interface are not enforced until an endpoint of \
                       a level with a lane is made: the levels so far have none"
                        .to_owned(),
            });
        }
    }

    /// The lane has sockets only, because its rings could not be had. Says so where what was asked for
    /// has nobody who counts.
    pub(super) fn note_unprotected(&mut self, lane: Lane) {
        let Some(way) = self.way.as_deref() else {
            return;
        };
        let what = match way.device {
            None if self.asked.is_anything() => {
                "budgets of levels and of the interface are not enforced: without lanes nothing \
                 counts datagrams before they are received"
                    .to_owned()
            }
            Some(_) if self.asked.lane(lane).is_some() => {
                format!(
                    "the budget of {lane} is not enforced: it has no lane, nothing counts there"
                )
            }
            _ => return,
        };
        let interface = way.interface.clone();
        self.note(Note::Device { interface, what });
    }
}
