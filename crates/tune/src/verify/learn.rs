//! Learning of a device's receive hash if its key is unreadable. RSS tables are set temporarily. Under each table a
//! peer answers questions, and the queue of each answer is observed ([`rounds`]).
//!
//! Tables are set like plans ([`apply`]). The original values are in the journal before the first change. They are
//! restored at the end, also after an error. If the process is killed, a rollback restores them.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

use isolane_hostnet::rx_queue_probe::{ProbeSocket, ReceiveQueues};
use isolane_wire::level::Level;
use thiserror::Error;

use super::receive_queues::{Answered, ProbeError, raise_descriptor_limit, send_probe};
use crate::apply::{
    ApplyError, Here, Occasion, State, Unrestored, apply_locked, rollback_locked, status,
};
use crate::limits::MAX_PROBE_ATTEMPTS;
use crate::plan::{Plan, SCHEMA, Step, When};
use crate::setting::{Machine, Setting, SettingError, Value};
use crate::steer::{Contradiction, Learner, Tuple, probed_ports, rounds};

/// Profile name of the temporary plans. If the journal's last plan has it, learning was interrupted.
const LEARNING: &str = "learning";

/// Parameters of learning.
#[derive(Clone, Debug)]
pub struct LearnParameters {
    /// Device whose hash is learnt.
    pub interface: String,
    /// Address of the device.
    pub address: Ipv4Addr,
    /// Receive queues of the device.
    pub queues: ReceiveQueues,
    /// Address of the answerer.
    pub peer: Ipv4Addr,
    /// Level whose priority and marking the questions have.
    pub level: Level,
    /// Random identifier that separates this run's answers from others'.
    pub run: u64,
}

/// Learns the hash. Calls `progress` with number and count of rounds at the start of each.
///
/// # Errors
/// [`LearnError`].
pub fn learn(
    machine: &mut dyn Machine,
    (here, folder): (&Here, &Path),
    lesson: &LearnParameters,
    is_stopped: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Learner, LearnError> {
    let mut asker = ProbeClient::new(lesson)?;
    // The lock keeps other processes from applying or rolling back between rounds.
    let state = State::make(folder).map_err(ApplyError::from)?;
    let _lock = state.lock().map_err(ApplyError::from)?;
    let earlier = earlier(machine, here, folder)?;
    let found = found(machine, &lesson.interface)?;
    let learnt = all_rounds(
        machine,
        (here, &state),
        (lesson.queues.count(), (lesson.peer, lesson.address), &found),
        &mut |datagram| asker.landing(datagram),
        is_stopped,
        progress,
    );
    // The tables are restored also after an error.
    restore_tables(machine, (here, &state), &found, earlier.as_deref())?;
    learnt
}

/// Profile of the applied plan; `None` if there is none.
fn earlier(
    machine: &mut dyn Machine,
    here: &Here,
    folder: &Path,
) -> Result<Option<String>, LearnError> {
    match status(machine, here, folder)? {
        Some(status) if status.profile == LEARNING || !status.is_complete => {
            Err(LearnError::Unfinished)
        }
        status => Ok(status.map(|status| status.profile)),
    }
}

/// Current values of the settings that learning changes.
fn found(machine: &mut dyn Machine, interface: &str) -> Result<Vec<(Setting, Value)>, LearnError> {
    let interface = || interface.to_owned();
    let table = Setting::RssTable {
        interface: interface(),
    };
    let standing = machine.read(&table).map_err(LearnError::Table)?;
    let mut found = vec![(table, standing)];
    let ports = Setting::UdpHash {
        interface: interface(),
    };
    // If the driver does not report the hashed fields, they are left unchanged.
    if let Ok(value) = machine.read(&ports) {
        found.push((ports, value));
    }
    Ok(found)
}

fn all_rounds(
    machine: &mut dyn Machine,
    (here, state): (&Here, &State),
    (queues, pair, found): (u32, (Ipv4Addr, Ipv4Addr), &[(Setting, Value)]),
    landing: &mut dyn FnMut(Tuple) -> Result<u32, LearnError>,
    is_stopped: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Learner, LearnError> {
    let entries = found.iter().find_map(|(_, value)| match value {
        Value::Table(table) => Some(table.len()),
        _ => None,
    });
    let entries = entries.unwrap_or_default();
    let unfit = || LearnError::Unsuitable { queues, entries };
    let all: Vec<u32> = (0..queues).collect();
    let rounds = rounds(entries, &all, &[pair]);
    let mut learner = Learner::new(entries)
        .filter(|_| !rounds.is_empty())
        .ok_or_else(unfit)?;
    let count = rounds.len();
    let mut standing = found.to_vec();
    for (number, round) in (1..).zip(rounds) {
        progress(number, count);
        let wanted = |setting: &Setting| match setting {
            Setting::RssTable { .. } => Value::Table(round.table.clone()),
            _ => Value::Switch(true),
        };
        let plan = plan(here, &standing, wanted);
        apply_locked(machine, here, &plan, state, Occasion::Learning, is_stopped)?;
        for (setting, value) in &mut standing {
            *value = wanted(setting);
        }
        for datagram in &round.datagrams {
            if is_stopped() {
                return Err(LearnError::Stopped);
            }
            learner
                .observe(*datagram, &round.table, landing(*datagram)?)
                .map_err(LearnError::Contradiction)?;
        }
    }
    Ok(learner)
}

/// Plan that changes these settings from their current values.
fn plan(here: &Here, standing: &[(Setting, Value)], to: impl Fn(&Setting) -> Value) -> Plan {
    let step = |(setting, from): &(Setting, Value)| Step {
        id: String::from("learning"),
        setting: setting.clone(),
        from: from.clone(),
        to: to(setting),
        why: String::from("where datagrams land tells the bits of the hash"),
        topics: Vec::new(),
        costs: String::from("other traffic comes to other queues meanwhile"),
        undo: String::from("isolane tune rollback"),
        when: When::ThisBoot,
    };
    Plan {
        schema: SCHEMA.into(),
        machine: here.machine.clone(),
        origin: LEARNING.into(),
        profile: LEARNING.into(),
        boot_id: Some(here.boot_id.clone()),
        steps: standing.iter().map(step).collect(),
        not_planned: Vec::new(),
        preconditions: Vec::new(),
    }
}

/// Restores the original values: by a rollback, or by a further plan if the journal has an earlier plan.
fn restore_tables(
    machine: &mut dyn Machine,
    (here, state): (&Here, &State),
    found: &[(Setting, Value)],
    earlier: Option<&str>,
) -> Result<(), LearnError> {
    let Some(profile) = earlier else {
        let done = rollback_locked(machine, here, state)?;
        let left = done.restored.map_or_else(Vec::new, |done| done.left);
        return match left.is_empty() {
            true => Ok(()),
            false => Err(LearnError::Unrestored(left)),
        };
    };
    let standing: Result<Vec<(Setting, Value)>, SettingError> = found
        .iter()
        .map(|(setting, _)| Ok((setting.clone(), machine.read(setting)?)))
        .collect();
    let standing = standing.map_err(LearnError::Table)?;
    let of = |setting: &Setting| {
        let found = found.iter().find(|(known, _)| known == setting);
        found.map_or(Value::Absent, |(_, value)| value.clone())
    };
    let back = Plan {
        profile: profile.into(),
        ..plan(here, &standing, of)
    };
    // The restore is not interruptible: a requested stop waits for it.
    apply_locked(machine, here, &back, state, Occasion::Learning, &|| false)?;
    Ok(())
}

pub(super) struct ProbeClient<'a> {
    lesson: &'a LearnParameters,
    sockets: BTreeMap<u16, ProbeSocket>,
    number: u32,
}

impl<'a> ProbeClient<'a> {
    /// Opens all sockets first, so that a failure precedes the first table change.
    pub(super) fn new(lesson: &'a LearnParameters) -> Result<Self, LearnError> {
        let [_, ports] = probed_ports();
        raise_descriptor_limit(ports.len(), lesson.queues);
        let mut sockets = BTreeMap::new();
        for port in ports {
            let address = SocketAddrV4::new(lesson.address, port);
            let socket = ProbeSocket::bind(address, lesson.level, lesson.queues)
                .map_err(|error| LearnError::Probe(ProbeError::Port(port, error)))?;
            sockets.insert(port, socket);
        }
        Ok(Self {
            lesson,
            sockets,
            number: 0,
        })
    }

    /// Receive queue of an answer whose addresses and ports are those of `datagram`.
    pub(super) fn landing(&mut self, datagram: Tuple) -> Result<u32, LearnError> {
        // Rounds contain no other ports.
        let Some(socket) = self.sockets.get(&datagram.destination_port) else {
            return Err(LearnError::Probe(ProbeError::Silent));
        };
        let peer = SocketAddrV4::new(datagram.source, datagram.source_port);
        for _ in 0..MAX_PROBE_ATTEMPTS {
            self.number += 1;
            let answer = send_probe(socket, (self.lesson.run, self.number), peer);
            let answer = answer.map_err(|error| LearnError::Probe(ProbeError::System(error)))?;
            match answer {
                Some(Answered {
                    back: Some(queue), ..
                }) => return Ok(queue),
                Some(_) => {
                    let why = "the kernel does not report the receive queue of datagrams";
                    return Err(LearnError::Probe(ProbeError::System(io::Error::other(why))));
                }
                None => {}
            }
        }
        Err(LearnError::Probe(ProbeError::Silent))
    }
}

/// Reason that learning failed. Except for [`LearnError::Unrestored`], the device is as before.
#[derive(Debug, Error)]
pub enum LearnError {
    /// The device has no settable table.
    #[error("its RSS table: {0}")]
    Table(SettingError),
    /// Learning needs at least two queues, and a table whose length is a power of two.
    #[error(
        "it has {queues} receive queues and an RSS table of {entries} entries; learning needs two queues, and a power of \
         two of entries"
    )]
    Unsuitable {
        /// Number of receive queues.
        queues: u32,
        /// Number of table entries.
        entries: usize,
    },
    /// A table could not be set or restored.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// Settings that could not be restored.
    #[error("{} settings were not restored", .0.len())]
    Unrestored(Vec<Unrestored>),
    /// The peer could not be asked.
    #[error(transparent)]
    Probe(ProbeError),
    /// Observations contradict the Toeplitz hash.
    #[error(transparent)]
    Contradiction(Contradiction),
    /// An earlier plan or learning was killed before its end.
    #[error(
        "an earlier `isolane tune` was killed before its end, and its settings are still in force"
    )]
    Unfinished,
    /// Stopped on request.
    #[error("it was stopped on request")]
    Stopped,
}

#[cfg(test)]
mod tests;
