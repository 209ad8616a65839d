//! Replanning: restores settings of earlier plans that the current one no longer needs.
//!
//! A plan has no step for a setting that already has the right value, so a missing step does not mean that the setting
//! is unneeded. The test is: if the setting had its original value, would planning change it? Each setting is tested
//! separately, because one setting may be needed only because of another.
//!
//! Settings that another program has changed since the earlier plan are left alone.

use isolane_hostnet::napi::{Policy, QueueState, ThreadState};

use super::builder::steered_interface;
use super::isolation::forget_document;
use super::{NotPlanned, Plan, Step, When, shell};
use crate::apply::{BootPart, SettingStatus, has_boot_number};
use crate::facts::{Facts, RootQdisc};
use crate::setting::{Setting, Value};

/// Plans for the facts, and adds steps that restore settings of earlier plans that are no longer needed. `standing`:
/// settings of earlier plans, in the order of their steps.
pub fn replan(facts: &Facts, standing: &[SettingStatus], plan: &dyn Fn(&Facts) -> Plan) -> Plan {
    let marked = mark_managed_interrupts(facts, standing);
    let facts = marked.as_ref().unwrap_or(facts);
    let current = plan(facts);
    let is_left = |it: &&SettingStatus| is_restorable(it) && !is_wanted(it, facts, &current, plan);
    let left: Vec<&SettingStatus> = standing.iter().filter(is_left).collect();
    if left.is_empty() {
        return current;
    }
    let mut facts = facts.clone();
    for it in &left {
        facts.simulate(&it.setting, &it.before);
    }
    let mut new = plan(&facts);
    if left.iter().any(|it| must_precede(&it.setting)) {
        new.steps.clear();
        new.preconditions.clear();
        new.not_planned.push(NotPlanned {
            id: String::from("restore.first"),
            why: String::from(
                "this plan restores queues, rings or steering; further changes depend on their restored state",
            ),
            remedy: String::from("apply this plan, then plan again"),
        });
    }
    insert_restoring_steps(&mut new, &left);
    new
}

/// Returns facts in which interrupts that an earlier plan could not move are marked as managed; `None` if there are
/// none. Older kernels show only by their refusal that an interrupt is managed. The journal then has an applied value
/// equal to the original value.
fn mark_managed_interrupts(facts: &Facts, standing: &[SettingStatus]) -> Option<Facts> {
    let mut marked = None;
    for it in standing {
        let has_stayed = it.is_of_this_boot
            && it.before == it.applied
            && !it.id.starts_with(Step::RESTORE_PREFIX);
        if let (true, Setting::Attribute { path }) = (has_stayed, &it.setting) {
            marked
                .get_or_insert_with(|| facts.clone())
                .mark_managed(path);
        }
    }
    marked
}

/// Returns whether the setting still has the value that an earlier plan set since boot, had another value before, and
/// can be restored on its own.
fn is_restorable(standing: &SettingStatus) -> bool {
    let SettingStatus {
        setting,
        before,
        applied,
        ..
    } = standing;
    let can_be_absent = matches!(setting, Setting::Document { .. } | Setting::FlowRule { .. });
    let has_place = *before != Value::Absent || can_be_absent;
    // A queue's discipline disappears with the root discipline.
    let is_own = !matches!(setting, Setting::Folder { .. } | Setting::QueueQdisc { .. });
    standing.in_force
        && standing.is_of_this_boot
        && !before.matches(setting, applied)
        && before.can_be_set()
        && has_place
        && is_own
        && !BootPart::is_own_file(setting)
}

/// Returns whether planning changes the setting from its current or from its original value.
fn is_wanted(
    standing: &SettingStatus,
    facts: &Facts,
    current: &Plan,
    plan: &dyn Fn(&Facts) -> Plan,
) -> bool {
    let SettingStatus {
        setting, applied, ..
    } = standing;
    let mut without = facts.clone();
    without.simulate(setting, &standing.before);
    // Planning may choose another location for the same rule.
    let is_rule = matches!(setting, Setting::FlowRule { .. });
    let is_about = |step: &Step| step.setting == *setting || (is_rule && step.to == *applied);
    current.steps.iter().any(is_about) || plan(&without).steps.iter().any(is_about)
}

/// Returns whether a change makes the driver restart, which resets other settings.
fn restarts_device(setting: &Setting) -> bool {
    matches!(setting, Setting::Channels { .. } | Setting::Rings { .. })
}

/// Returns whether a setting must be restored before the rest can be planned.
fn must_precede(setting: &Setting) -> bool {
    restarts_device(setting) || steered_interface(setting).is_some()
}

/// Inserts restoring steps before the plan's own steps. Steps that reset other settings stay first.
fn insert_restoring_steps(plan: &mut Plan, left: &[&SettingStatus]) {
    for step in &mut plan.steps {
        // The plan sets a third value: directly from the current value, without a restoring step.
        if let Some(it) = left.iter().find(|it| it.setting == step.setting) {
            step.from = current_value(it);
            step.undo = shell::undo(&step.setting, &step.from);
        }
    }
    let planned = |setting: &Setting| plan.steps.iter().any(|step| step.setting == *setting);
    let is_remade = plan.steps.iter().any(|step| restarts_device(&step.setting))
        || left.iter().any(|it| restarts_device(&it.setting));
    // A restarted device has new interrupts, new threads and a new table.
    let goes = |setting: &Setting| {
        is_remade && (has_boot_number(setting) || matches!(setting, Setting::RssTable { .. }))
    };
    // The setting that was set last is restored first: a rule before the feature that enables rules.
    let back = left
        .iter()
        .rev()
        .filter(|it| !planned(&it.setting) && !goes(&it.setting))
        .map(|it| restore_step(it));
    let (back_first, back_then): (Vec<Step>, Vec<Step>) =
        back.partition(|step| restarts_device(&step.setting));
    let (own_first, own_then): (Vec<Step>, Vec<Step>) = std::mem::take(&mut plan.steps)
        .into_iter()
        .partition(|step| restarts_device(&step.setting));
    plan.steps = [back_first, own_first, back_then, own_then].concat();
}

/// Current value, which is the applied one.
fn current_value(standing: &SettingStatus) -> Value {
    standing.now.as_ref().unwrap_or(&standing.applied).clone()
}

fn restore_step(standing: &SettingStatus) -> Step {
    let SettingStatus {
        id,
        setting,
        before,
        ..
    } = standing;
    let from = current_value(standing);
    let id = id.strip_prefix(Step::RESTORE_PREFIX).unwrap_or(id);
    Step {
        id: format!("{}{id}", Step::RESTORE_PREFIX),
        setting: setting.clone(),
        undo: shell::undo(setting, &from),
        from,
        to: before.clone(),
        why: String::from(
            "no longer needed: an earlier plan set this, but the present description, profile and receive queues do \
             not require it",
        ),
        topics: Vec::new(),
        costs: format!("the effect of {id}"),
        when: match setting {
            Setting::Document { .. } => When::Reboot,
            _ => When::Now,
        },
    }
}

impl Facts {
    /// Applies a step's outcome to the facts, including its side effects.
    pub fn simulate(&mut self, setting: &Setting, value: &Value) {
        match (setting, value) {
            (Setting::Attribute { path }, Value::Text(text)) => {
                self.set_attribute(path, text);
                self.simulate_napi_threads(path, text);
            }
            (Setting::Document { path }, Value::Text(text)) => {
                self.documents.insert(path.clone(), text.clone());
            }
            (Setting::Document { path }, Value::Document(document)) => {
                self.documents.insert(path.clone(), document.text());
            }
            (Setting::Document { path }, Value::Absent) => {
                if self.documents.remove(path).is_some() {
                    forget_document(self, path);
                }
            }
            (Setting::Thread { name }, Value::Thread(class)) => {
                self.set_thread(name, class.fifo, &class.cores);
            }
            (setting, value) => self.simulate_device(setting, value),
        }
    }

    fn simulate_device(&mut self, setting: &Setting, value: &Value) {
        let Some(name) = setting.interface() else {
            return;
        };
        let mut devices = self.devices.iter_mut();
        let Some(device) = devices.find(|device| device.interface == name) else {
            return;
        };
        match (setting, value) {
            (Setting::Channels { .. }, Value::Queues(queues)) => {
                // The driver restarts: rings, table, queueing disciplines and interrupts are new.
                device.queues = Some(*queues);
                let gone = std::mem::take(&mut device.interrupts);
                let is_gone = |number| gone.iter().any(|it| it.number == number);
                self.interrupts.retain(|it| !is_gone(it.number));
                let count = (queues.rx + queues.combined).max(1);
                if let Some(hash) = &mut device.receive_hash {
                    let spread =
                        (0..hash.table.len() as u64).map(|it| (it % u64::from(count)) as u32);
                    hash.table = spread.collect();
                }
                if device.root_qdisc.is_some() {
                    device.root_qdisc = Some(RootQdisc::Default {
                        name: String::from("mq"),
                    });
                }
                let lanes = self.lanes.iter_mut();
                for lanes in lanes.filter(|lanes| lanes.interface == name) {
                    lanes.napi.clear();
                }
            }
            (Setting::Rings { .. }, Value::Rings(rings)) => device.rings = Some(*rings),
            (Setting::Coalescing { .. }, Value::Coalescing(coalescing)) => {
                // Fields without a value stay as they are.
                device.coalescing = Some(coalescing.or(device.coalescing.unwrap_or_default()));
            }
            (Setting::Feature { feature, .. }, Value::Switch(on)) => {
                if let Some(known) = device.features.get_mut(feature) {
                    known.is_on = *on;
                }
            }
            (Setting::RssTable { .. }, Value::Table(table)) => {
                if let Some(hash) = &mut device.receive_hash {
                    hash.table.clone_from(table);
                }
            }
            (Setting::UdpHash { .. }, Value::Switch(on)) => {
                if let Some(hash) = &mut device.receive_hash {
                    hash.udp4_hashes_ports = Some(*on);
                }
            }
            (Setting::FlowRule { location, .. }, value) => {
                if let Some(rules) = &mut device.flow_rules {
                    match value {
                        Value::Rule(rule) => {
                            rules.rules.insert(*location, *rule);
                        }
                        _ => {
                            rules.rules.remove(location);
                        }
                    }
                }
            }
            (Setting::RootQdisc { .. }, Value::Qdisc(qdisc)) => {
                device.root_qdisc = Some(qdisc.clone());
            }
            _ => {}
        }
    }

    /// Adds or removes the NAPI threads of a device.
    fn simulate_napi_threads(&mut self, path: &str, text: &str) {
        let interface = path
            .strip_prefix("/sys/class/net/")
            .and_then(|rest| rest.strip_suffix("/threaded"));
        for lanes in self.lanes.iter_mut() {
            if Some(lanes.interface.as_str()) != interface {
                continue;
            }
            for queue in &mut lanes.napi {
                let new = || ThreadState {
                    process_id: 0,
                    policy: Some(Policy::Ordinary),
                    cores: Vec::new(),
                };
                queue.thread = (text == "1").then(|| queue.thread.take().unwrap_or_else(new));
            }
        }
    }

    fn set_thread(&mut self, name: &str, fifo: Option<u8>, cores: &[u16]) {
        for device in &mut self.devices {
            let threads = device
                .interrupts
                .iter_mut()
                .filter_map(|it| it.thread.as_mut());
            for (_, priority) in threads.filter(|(known, _)| known == name) {
                *priority = fifo;
            }
        }
        for lanes in &mut self.lanes {
            let interface = &lanes.interface;
            let is_meant =
                |queue: &&mut QueueState| name == format!("napi/{interface}-{}", queue.instance);
            for queue in lanes.napi.iter_mut().filter(is_meant) {
                if let Some(thread) = &mut queue.thread {
                    thread.policy = Some(fifo.map_or(Policy::Ordinary, Policy::Fifo));
                    if !cores.is_empty() {
                        thread.cores = cores.iter().map(|core| usize::from(*core)).collect();
                    }
                }
            }
        }
    }
}
