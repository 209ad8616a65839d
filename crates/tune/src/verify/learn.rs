//! Learning which entry of a device's receive table each datagram of a peer picks, where the key of its
//! hash cannot be read: tables are set for a moment, and questions asked ([`rounds`]).
//!
//! The tables are carried out as plans are ([`apply`]): what was found is in the journal before the first
//! is set, and stands again in the end, whatever happened between. Who kills this process restores
//! it with a rollback.

mod asker;
mod error;

use std::net::Ipv4Addr;
use std::path::Path;

use isolane_hostnet::rx_queue_probe::ReceiveQueues;
use isolane_wire::level::Level;

use self::asker::Asker;
pub use self::error::LearnError;
use crate::apply::{ApplyError, Here, Occasion, State, apply_locked, rollback_locked, status};
use crate::plan::{Plan, SCHEMA, Step, When};
use crate::setting::{Machine, Setting, SettingError, Value};
use crate::steer::{Learner, Tuple, rounds};

/// The profile of plans that set tables for a moment: where the journal's last one is of it, a learning was
/// killed.
const LEARNING: &str = "learning";

/// What is to be learnt.
#[derive(Clone, Debug)]
pub struct Lesson {
    /// The device whose hash it is.
    pub interface: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its receive queues.
    pub queues: ReceiveQueues,
    /// Who answers.
    pub peer: Ipv4Addr,
    /// What questions are marked as.
    pub level: Level,
    /// Random: tells this run's answers from others'.
    pub run: u64,
}

/// Learns by asking; tells `progress` which round of how many begins.
///
/// # Errors
/// [`LearnError`].
pub fn learn(
    machine: &mut dyn Machine,
    (here, folder): (&Here, &Path),
    lesson: &Lesson,
    is_stopped: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Learner, LearnError> {
    let mut asker = Asker::new(lesson)?;
    // Nobody applies or rolls back between two rounds.
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
    // Whatever happened.
    put_back(machine, (here, &state), &found, earlier.as_deref())?;
    learnt
}

/// The profile of the plan that is applied; `None`: none is.
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

/// The settings that are about to change, as they are.
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
    // A driver that does not say what it hashes is taken as it is.
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
    let unfit = || LearnError::Unfit { queues, entries };
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

/// A plan that sets these settings from what stands there.
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
        refusals: Vec::new(),
        relies_on: Vec::new(),
    }
}

/// What was found stands again: by the journal, or where that holds another plan, on top of it.
fn put_back(
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
            false => Err(LearnError::Left(left)),
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
    // Not to be stopped: it is what a stop waits for.
    apply_locked(machine, here, &back, state, Occasion::Learning, &|| false)?;
    Ok(())
}

#[cfg(test)]
mod tests;
