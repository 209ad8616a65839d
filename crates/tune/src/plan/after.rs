//! Predicted facts after a step, for replanning and for tests.

use isolane_hostnet::napi::{Policy, QueueState, ThreadState};

use super::slices;
use crate::facts::{Coalescing, Facts, RootQdisc};
use crate::setting::{Setting, Value};

impl Facts {
    /// Applies a step's outcome to the facts, including its side effects.
    pub fn simulate(&mut self, setting: &Setting, value: &Value) {
        match (setting, value) {
            (Setting::Attribute { path }, Value::Text(text)) => {
                self.set_attribute(path, text);
                self.threads_of(path, text);
            }
            (Setting::Document { path }, Value::Text(text)) => {
                self.documents.insert(path.clone(), text.clone());
            }
            (Setting::Document { path }, Value::Document(document)) => {
                self.documents.insert(path.clone(), document.text());
            }
            (Setting::Document { path }, Value::Absent) => {
                if self.documents.remove(path).is_some() {
                    slices::forget(self, path);
                }
            }
            (Setting::Thread { name }, Value::Thread(class)) => {
                self.set_thread(name, class.fifo, &class.cores);
            }
            (setting, value) => self.simulate_device(setting, value),
        }
    }

    fn simulate_device(&mut self, setting: &Setting, value: &Value) {
        let Some(name) = interface_of(setting) else {
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
                for lanes in lanes.filter(|lanes| lanes.ground.interface == name) {
                    lanes.receive_work.clear();
                }
            }
            (Setting::Rings { .. }, Value::Rings(rings)) => device.rings = Some(*rings),
            (Setting::Coalescing { .. }, Value::Coalescing(coalescing)) => {
                let had = device.coalescing.unwrap_or_default();
                // Fields not given stay.
                device.coalescing = Some(Coalescing {
                    rx_usecs: coalescing.rx_usecs.or(had.rx_usecs),
                    rx_frames: coalescing.rx_frames.or(had.rx_frames),
                    tx_usecs: coalescing.tx_usecs.or(had.tx_usecs),
                    tx_frames: coalescing.tx_frames.or(had.tx_frames),
                    adaptive_rx: coalescing.adaptive_rx.or(had.adaptive_rx),
                    adaptive_tx: coalescing.adaptive_tx.or(had.adaptive_tx),
                });
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
    fn threads_of(&mut self, path: &str, text: &str) {
        let interface = path
            .strip_prefix("/sys/class/net/")
            .and_then(|rest| rest.strip_suffix("/threaded"));
        for lanes in self.lanes.iter_mut() {
            if Some(lanes.ground.interface.as_str()) != interface {
                continue;
            }
            for queue in &mut lanes.receive_work {
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
            let interface = &lanes.ground.interface;
            let is_meant =
                |queue: &&mut QueueState| name == format!("napi/{interface}-{}", queue.instance);
            for queue in lanes.receive_work.iter_mut().filter(is_meant) {
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

pub(super) fn interface_of(setting: &Setting) -> Option<&str> {
    match setting {
        Setting::Channels { interface }
        | Setting::Rings { interface }
        | Setting::Coalescing { interface }
        | Setting::Feature { interface, .. }
        | Setting::RssTable { interface }
        | Setting::UdpHash { interface }
        | Setting::FlowRule { interface, .. }
        | Setting::RootQdisc { interface }
        | Setting::QueueQdisc { interface, .. } => Some(interface),
        Setting::Attribute { .. }
        | Setting::Document { .. }
        | Setting::Folder { .. }
        | Setting::Thread { .. } => None,
    }
}
