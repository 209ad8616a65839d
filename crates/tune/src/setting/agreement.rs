//! Comparison of values regardless of the kernel's formatting.

use super::{Setting, Value};
use crate::facts::{Coalescing, QueueQdisc, RootQdisc};

impl Value {
    /// Returns whether `found` satisfies this value, wanted or found earlier. Unset fields of this value
    /// ([`Coalescing`], cores of a thread) match anything.
    #[must_use]
    pub fn matches(&self, setting: &Setting, found: &Value) -> bool {
        match (self, found) {
            (Self::Document(document), other) | (other, Self::Document(document)) => match other {
                Self::Document(other) => document == other,
                Self::Text(text) => document.text() == *text,
                _ => false,
            },
            (Self::Text(wanted), Self::Text(found)) => match setting {
                Setting::Attribute { path } => canonical(path, wanted) == canonical(path, found),
                _ => wanted == found,
            },
            (Self::Coalescing(wanted), Self::Coalescing(found)) => agree(wanted, found),
            (Self::Thread(wanted), Self::Thread(found)) => {
                let has_cores = wanted.cores.is_empty() || wanted.cores == found.cores;
                wanted.fifo == found.fifo && has_cores
            }
            // Without a length, the device's applies.
            (
                Self::QueueQdisc(QueueQdisc::Pfifo { frames: None }),
                Self::QueueQdisc(QueueQdisc::Pfifo { .. }),
            ) => true,
            // The kernel chooses its default discipline itself.
            (Self::Qdisc(RootQdisc::Default { .. }), Self::Qdisc(RootQdisc::Default { .. })) => {
                true
            }
            (wanted, found) => wanted == found,
        }
    }

    /// Returns whether the value can be set again: false for disciplines of other programs in an unknown form.
    pub(crate) fn can_be_set(&self) -> bool {
        !matches!(
            self,
            Self::Qdisc(RootQdisc::Other { .. }) | Self::QueueQdisc(QueueQdisc::Other { .. })
        )
    }
}

fn agree(wanted: &Coalescing, found: &Coalescing) -> bool {
    let number = |wanted: Option<u32>, found| wanted.is_none() || wanted == found;
    let switch = |wanted: Option<bool>, found| wanted.is_none() || wanted == found;
    number(wanted.rx_usecs, found.rx_usecs)
        && number(wanted.rx_frames, found.rx_frames)
        && number(wanted.tx_usecs, found.tx_usecs)
        && number(wanted.tx_frames, found.tx_frames)
        && switch(wanted.adaptive_rx, found.adaptive_rx)
        && switch(wanted.adaptive_tx, found.adaptive_tx)
}

/// Canonical text of an attribute: the kernel accepts `3` and `0-1`, and prints `00000003` and `0,1`.
fn canonical(path: &str, text: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    if name == "smp_affinity" || name == "rps_cpus" || name == "xps_cpus" {
        let digits = text.replace(',', "");
        return digits.trim_start_matches('0').to_ascii_lowercase();
    }
    if name.ends_with("affinity_list") || name.starts_with("cpuset.cpus") {
        let mut cores = crate::probe::number_list(text);
        cores.sort_unstable();
        cores.dedup();
        return format!("{cores:?}");
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::ThreadClass;

    fn attribute(path: &str, wanted: &str, found: &str) -> bool {
        let setting = Setting::Attribute { path: path.into() };
        Value::Text(wanted.into()).matches(&setting, &Value::Text(found.into()))
    }

    #[test]
    fn the_kernels_way_of_writing_makes_no_difference() {
        assert!(attribute("/q/rx-0/rps_cpus", "3", "00000000,00000003"));
        assert!(attribute("/q/rx-0/rps_cpus", "0", "00"));
        assert!(!attribute("/q/rx-0/rps_cpus", "3", "30"));
        assert!(attribute("/proc/irq/9/smp_affinity_list", "0,1,2", "0-2"));
        assert!(!attribute("/proc/irq/9/smp_affinity_list", "0,1", "0-2"));
        assert!(attribute("/proc/sys/net/ipv4/udp_mem", "1 2 3", "1\t2\t3"));
        assert!(!attribute("/proc/sys/net/core/busy_read", "50", "0"));
    }

    #[test]
    fn what_was_not_said_may_be_anything() {
        let setting = Setting::Thread { name: "a".into() };
        let thread = |fifo, cores: &[u16]| {
            Value::Thread(ThreadClass {
                fifo,
                cores: cores.to_vec(),
            })
        };
        assert!(thread(Some(7), &[]).matches(&setting, &thread(Some(7), &[1])));
        assert!(!thread(Some(7), &[0]).matches(&setting, &thread(Some(7), &[1])));
        assert!(!thread(None, &[]).matches(&setting, &thread(Some(7), &[1])));
        let rx = |usecs, adaptive| {
            Value::Coalescing(Coalescing {
                rx_usecs: usecs,
                adaptive_rx: adaptive,
                ..Coalescing::default()
            })
        };
        assert!(rx(Some(0), None).matches(&setting, &rx(Some(0), Some(true))));
        assert!(!rx(Some(0), Some(false)).matches(&setting, &rx(Some(0), Some(true))));
    }
}
