//! Shell commands that set settings, to carry out or undo a step without isolane.

use std::fmt::Write as _;

use crate::facts::{Coalescing, FlowRule, Queues, RootQdisc, TrafficClasses};
use crate::kernel_lists::list;
use crate::setting::display::on_off;
use crate::setting::{Setting, ThreadClass, Value};
use crate::steer::shared;

pub(super) fn undo(setting: &Setting, from: &Value) -> String {
    line(setting, from).unwrap_or_else(|| String::from("isolane tune rollback"))
}

/// Command that sets a value; `None` if no system tool can.
pub(crate) fn line(setting: &Setting, value: &Value) -> Option<String> {
    Some(match (setting, value) {
        (Setting::Attribute { path }, Value::Text(text)) => {
            format!("echo {} > {}", quoted(text), quoted(path))
        }
        (Setting::Document { path }, Value::Absent) => format!("rm -f {}", quoted(path)),
        (Setting::Document { path }, Value::Text(text)) => document(path, text),
        (Setting::Document { path }, Value::Document(known)) => document(path, &known.text()),
        (Setting::Channels { interface }, Value::Queues(queues)) => channels(interface, *queues),
        (Setting::Rings { interface }, Value::Rings(rings)) => {
            let interface = quoted(interface);
            format!("ethtool -G {interface} rx {} tx {}", rings.rx, rings.tx)
        }
        (Setting::Coalescing { interface }, Value::Coalescing(coalescing)) => {
            moderation(interface, coalescing)
        }
        (Setting::Feature { interface, feature }, Value::Switch(on)) => {
            let (interface, feature) = (quoted(interface), quoted(feature));
            format!("ethtool -K {interface} {feature} {}", on_off(*on))
        }
        (Setting::UdpHash { interface }, Value::Switch(on)) => {
            let fields = if *on { "sdfn" } else { "sd" };
            format!(
                "ethtool -N {} rx-flow-hash udp4 {fields}",
                quoted(interface)
            )
        }
        (Setting::RssTable { interface }, Value::Table(table)) => {
            let spread = spread(table)?;
            format!("ethtool -X {} {spread}", quoted(interface))
        }
        (
            Setting::FlowRule {
                interface,
                location,
            },
            Value::Absent,
        ) => {
            format!("ethtool -N {} delete {location}", quoted(interface))
        }
        (
            Setting::FlowRule {
                interface,
                location,
            },
            Value::Rule(rule),
        ) => flow_rule(interface, *location, rule),
        (Setting::RootQdisc { interface }, Value::Qdisc(qdisc)) => root(interface, qdisc)?,
        (Setting::Thread { name }, Value::Thread(class)) => thread(&exact_pattern(name), class),
        (Setting::Thread { .. }, Value::Absent) => String::from(": it ends by itself"),
        _ => return None,
    })
}

fn document(path: &str, text: &str) -> String {
    let folder = path.rsplit_once('/').map_or("/", |(folder, _)| folder);
    let (folder, text, path) = (quoted(folder), quoted(text), quoted(path));
    format!("mkdir -p {folder} && printf %s {text} > {path}")
}

/// Quotes a text as one shell word.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:,=@+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

pub(crate) fn channels(interface: &str, queues: Queues) -> String {
    let mut line = format!("ethtool -L {}", quoted(interface));
    for (name, count) in [
        ("rx", queues.rx),
        ("tx", queues.tx),
        ("combined", queues.combined),
    ] {
        if count > 0 {
            let _ = write!(line, " {name} {count}");
        }
    }
    line
}

fn moderation(interface: &str, coalescing: &Coalescing) -> String {
    let mut line = format!("ethtool -C {}", quoted(interface));
    for (name, on) in coalescing.adaptive() {
        let _ = on.map(|on| write!(line, " {name} {}", on_off(on)));
    }
    for (name, count) in coalescing.counts() {
        let _ = count.map(|count| write!(line, " {name} {count}"));
    }
    line
}

/// Arguments of `ethtool -X` for a table that has queues in turn, or in blocks by weight. `None` for any other table:
/// ethtool cannot set single entries.
fn spread(table: &[u32]) -> Option<String> {
    let start = *table.iter().min()?;
    let last = *table.iter().max()?;
    let count = last - start + 1;
    let mut in_turn = (0_u32..).zip(table);
    if in_turn.all(|(entry, queue)| start + entry % count == *queue) {
        return Some(match start {
            0 => format!("equal {count}"),
            _ => format!("start {start} equal {count}"),
        });
    }
    let used: Vec<u32> = (0..=last).filter(|queue| table.contains(queue)).collect();
    if shared(table.len(), &used) != table {
        return None;
    }
    let weights: Vec<&str> = (0..=last)
        .map(|queue| if used.contains(&queue) { "1" } else { "0" })
        .collect();
    Some(format!("weight {}", weights.join(" ")))
}

fn flow_rule(interface: &str, location: u32, rule: &FlowRule) -> String {
    let frames = match rule {
        FlowRule::Port {
            destination,
            destination_port,
            ..
        } => {
            let destination =
                destination.map_or(String::new(), |address| format!(" dst-ip {address}"));
            format!("udp4{destination} dst-port {destination_port}")
        }
        FlowRule::Priority { vlan_priority, .. } => {
            // ethtool's mask has the ignored bits set.
            format!("ether vlan {:#x} m 0x1fff", u16::from(*vlan_priority) << 13)
        }
    };
    format!(
        "ethtool -N {} flow-type {frames} action {} loc {location}",
        quoted(interface),
        rule.queue()
    )
}

fn root(interface: &str, qdisc: &RootQdisc) -> Option<String> {
    let interface = quoted(interface);
    Some(match qdisc {
        RootQdisc::Default { .. } => format!("tc qdisc del dev {interface} root"),
        RootQdisc::Pfifo { frames } => {
            format!("tc qdisc replace dev {interface} root pfifo limit {frames}")
        }
        RootQdisc::Mqprio(classes) => mqprio(&interface, classes),
        RootQdisc::Taprio(_) | RootQdisc::Other { .. } => return None,
    })
}

fn mqprio(interface: &str, classes: &TrafficClasses) -> String {
    let map: Vec<String> = classes
        .class_of_priority
        .iter()
        .map(ToString::to_string)
        .collect();
    let queues: Vec<String> = classes
        .queues
        .iter()
        .map(|(count, first)| format!("{count}@{first}"))
        .collect();
    format!(
        "tc qdisc replace dev {interface} root mqprio num_tc {} map {} queues {} hw {}",
        queues.len(),
        map.join(" "),
        queues.join(" "),
        u8::from(classes.offloaded)
    )
}

/// Command that sets the scheduling of the thread whose whole name matches the pattern.
pub(crate) fn thread(pattern: &str, class: &ThreadClass) -> String {
    scheduling_command(&format!("$(pgrep -x -o {})", quoted(pattern)), class)
}

/// Command that sets the scheduling of a thread. `number`: shell expression for the thread's id.
pub(crate) fn scheduling_command(number: &str, class: &ThreadClass) -> String {
    let mut line = match class.fifo {
        Some(priority) => format!("chrt -f -p {priority} \"{number}\""),
        None => format!("chrt -o -p 0 \"{number}\""),
    };
    if !class.cores.is_empty() {
        let _ = write!(line, " && taskset -pc {} \"{number}\"", list(&class.cores));
    }
    line
}

/// Pattern that matches exactly `name`.
pub(crate) fn exact_pattern(name: &str) -> String {
    let mut pattern = String::with_capacity(name.len());
    for letter in name.chars() {
        if !letter.is_ascii_alphanumeric() && !"/-_:".contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_shell_stay_words() {
        assert_eq!(quoted("eth0"), "eth0");
        assert_eq!(quoted("a b;c"), "'a b;c'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_table_in_turn_can_be_written_and_another_one_cannot() {
        assert_eq!(spread(&[0, 1, 2, 0]).as_deref(), Some("equal 3"));
        assert_eq!(spread(&[1, 2, 1, 2]).as_deref(), Some("start 1 equal 2"));
        assert_eq!(spread(&[0, 0, 2, 2]).as_deref(), Some("weight 1 0 1"));
        assert_eq!(spread(&[0, 1, 1, 0]), None);
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn rules_name_their_frames_and_their_place() {
        let by_priority = FlowRule::Priority {
            vlan_priority: 6,
            queue: 3,
        };
        assert_eq!(
            flow_rule("eth0", 2, &by_priority),
            "ethtool -N eth0 flow-type ether vlan 0xc000 m 0x1fff action 3 loc 2"
        );
        let by_port = FlowRule::Port {
            destination: None,
            destination_port: 7_007,
            queue: 3,
        };
        assert_eq!(
            flow_rule("eth0", 2, &by_port),
            "ethtool -N eth0 flow-type udp4 dst-port 7007 action 3 loc 2"
        );
    }

    #[test]
    fn a_thread_is_found_by_exactly_its_name() {
        let class = ThreadClass {
            fifo: Some(75),
            cores: vec![2, 3],
        };
        assert_eq!(
            thread(&exact_pattern("irq/24-eth0.5"), &class),
            "chrt -f -p 75 \"$(pgrep -x -o 'irq/24-eth0\\.5')\" && taskset -pc 2-3 \
             \"$(pgrep -x -o 'irq/24-eth0\\.5')\""
        );
    }
}
