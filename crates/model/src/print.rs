//! Output of a system as a description with all defaults and, optionally, the source of each value. The output parses
//! to the same system.

use core::fmt::{self, Write};

use isolane_datapath::kind::OptionDefault;

use crate::datapath::DatapathSettings;
use crate::duration::format_duration;
use crate::host::Host;
use crate::participant::Participant;
use crate::protect::{HostProtection, InterfaceBudget, OthersBudget};
use crate::source::{Source, Sourced};
use crate::system::System;
use crate::topic::{Budget, History, Topic};
use crate::tuning::Tuning;
use crate::word::Word;

/// Column in which the sources begin; after a longer line, the source follows the line.
const SOURCE_COLUMN: usize = 44;

impl System {
    /// Formats the complete description without sources.
    pub fn to_toml(&self) -> String {
        self.print(false)
    }

    /// Formats the complete description with the source of each value as a comment.
    pub fn to_toml_with_sources(&self) -> String {
        self.print(true)
    }

    fn print(&self, with_sources: bool) -> String {
        let mut printer = Printer {
            out: String::new(),
            with_sources,
        };
        printer
            .system(self)
            .expect("writing to a string does not fail");
        printer.out
    }
}

struct Printer {
    out: String,
    with_sources: bool,
}

impl Printer {
    fn system(&mut self, system: &System) -> fmt::Result {
        self.value(
            "domain",
            &system.domain.value.to_string(),
            &system.domain.source,
        )?;
        self.tuning(&system.tuning)?;
        system.hosts.iter().try_for_each(|host| self.host(host))?;
        system
            .topics
            .iter()
            .try_for_each(|topic| self.topic(topic))?;
        let mut participants = system.participants.iter();
        participants.try_for_each(|participant| self.participant(participant))
    }

    fn tuning(&mut self, tuning: &Tuning) -> fmt::Result {
        // The keys are dotted (`tune.KEY`), because the line of a table header would have no source.
        for (key, value, source) in tuning.entries() {
            self.value(&format!("tune.{key}"), &value, source)?;
        }
        Ok(())
    }

    fn participant(&mut self, participant: &Participant) -> fmt::Result {
        let Participant {
            name,
            host,
            address,
            port,
            announces,
            writes,
            reads,
        } = participant;
        self.header("participant", &name.value, &name.source)?;
        self.value("host", &quoted(&host.value), &host.source)?;
        self.value(
            "address",
            &quoted(&address.value.to_string()),
            &address.source,
        )?;
        self.number("port", port)?;
        self.word("announces", announces)?;
        self.value("writes", &list(&writes.value), &writes.source)?;
        self.value("reads", &list(&reads.value), &reads.source)
    }

    fn host(&mut self, host: &Host) -> fmt::Result {
        self.header("host", &host.name.value, &host.name.source)?;
        self.value(
            "interface",
            &quoted(&host.interface.value),
            &host.interface.source,
        )?;
        match host.core.value {
            Some(core) => self.value("core", &core.to_string(), &host.core.source)?,
            None => self.absent("core: wherever the scheduler puts it", &host.core.source)?,
        }
        let priority = match host.priority.value {
            Some(priority) => priority.to_string(),
            None => quoted("ordinary"),
        };
        self.value("priority", &priority, &host.priority.source)?;
        let lock_memory = &host.lock_memory;
        self.value(
            "lock_memory",
            &lock_memory.value.to_string(),
            &lock_memory.source,
        )?;
        self.word("scheduling", &host.scheduling)?;
        match host.max_participants.value {
            Some(most) => self.value(
                "max_participants",
                &most.to_string(),
                &host.max_participants.source,
            )?,
            None => self.absent(
                "max_participants: 1000, with ten endpoints each",
                &host.max_participants.source,
            )?,
        }
        self.value(
            "fixed_memory",
            &host.fixed_memory.value.to_string(),
            &host.fixed_memory.source,
        )?;
        self.value(
            "sample_memory",
            &host.sample_memory.value.to_string(),
            &host.sample_memory.source,
        )?;
        self.value(
            "datapath",
            &quoted(host.datapath.value.word()),
            &host.datapath.source,
        )?;
        self.word("waiting", &host.waiting)?;
        let level = &host.discovery_level;
        match level.value {
            Some(wanted) => {
                self.value("discovery_level", &wanted.get().to_string(), &level.source)?;
            }
            None => self.absent(
                "discovery_level: one less than the highest in use, at least 1",
                &level.source,
            )?,
        }
        let base = &host.sample_ports;
        match base.value {
            Some(port) => self.value("sample_ports", &port.to_string(), &base.source)?,
            None => self.absent("sample_ports: the kernel chooses the ports", &base.source)?,
        }
        self.protection(&host.protect)?;
        let mut datapaths = host.datapaths.iter();
        datapaths.try_for_each(|settings| self.datapath(settings))
    }

    fn protection(&mut self, protect: &HostProtection) -> fmt::Result {
        match &protect.topics {
            Some(budget) => {
                let InterfaceBudget {
                    capacity,
                    period,
                    reserved,
                } = budget;
                self.number("protect.topics.capacity", capacity)?;
                self.duration("protect.topics.period", period.value, &period.source)?;
                self.number("protect.topics.reserved", reserved)?;
            }
            None => self.absent("protect.topics: none", &Source::Default)?,
        }
        match &protect.others {
            Some(OthersBudget { capacity, period }) => {
                self.number("protect.others.capacity", capacity)?;
                self.duration("protect.others.period", period.value, &period.source)
            }
            None => self.absent("protect.others: none", &Source::Default),
        }
    }

    fn datapath(&mut self, settings: &DatapathSettings) -> fmt::Result {
        let name = settings.kind().name();
        for (spec, setting) in settings.entries() {
            let key = format!("{name}.{}", spec.key);
            match (setting.value, spec.default) {
                (Some(value), _) => self.value(&key, &value.to_string(), &setting.source)?,
                (None, OptionDefault::Unset(effect)) => {
                    self.absent(&format!("{key}: {effect}"), &setting.source)?;
                }
                (None, OptionDefault::Value(_)) => {}
            }
        }
        Ok(())
    }

    fn topic(&mut self, topic: &Topic) -> fmt::Result {
        self.header("topic", &topic.name.value, &topic.name.source)?;
        self.value(
            "type",
            &quoted(&topic.type_name.value),
            &topic.type_name.source,
        )?;
        self.value("keyed", &topic.keyed.value.to_string(), &topic.keyed.source)?;
        self.value(
            "level",
            &topic.level.value.get().to_string(),
            &topic.level.source,
        )?;
        match topic.period.value {
            Some(period) => self.duration("period", period, &topic.period.source)?,
            None => self.absent("period: unknown", &topic.period.source)?,
        }
        match topic.deadline.value {
            Some(deadline) => self.duration("deadline", deadline, &topic.deadline.source)?,
            None => self.absent("deadline: none", &topic.deadline.source)?,
        }
        self.value(
            "max_bytes",
            &topic.max_bytes.value.get().to_string(),
            &topic.max_bytes.source,
        )?;
        self.value(
            "reliability",
            &quoted(topic.reliability.value.word()),
            &topic.reliability.source,
        )?;
        self.value(
            "durability",
            &quoted(topic.durability.value.word()),
            &topic.durability.source,
        )?;
        let history = match topic.history.value {
            History::KeepLast(depth) => depth.get().to_string(),
            History::KeepAll => quoted("all"),
        };
        self.value("history", &history, &topic.history.source)?;
        self.value(
            "max_samples",
            &topic.max_samples.value.to_string(),
            &topic.max_samples.source,
        )?;
        match topic.burst_bound.value {
            Some(bound) => self.duration("burst_bound", bound, &topic.burst_bound.source)?,
            None => self.absent(
                "burst_bound: below a more urgent level 50us, or one datagram up to 100 Mbit/s; else 64 KiB",
                &topic.burst_bound.source,
            )?,
        }
        self.value("from", &list(&topic.from.value), &topic.from.source)?;
        self.value("to", &list(&topic.to.value), &topic.to.source)?;
        match &topic.budget {
            Some(budget) => self.budget(budget),
            None => self.absent("budget: none", &Source::Default),
        }
    }

    fn budget(&mut self, budget: &Budget) -> fmt::Result {
        // The keys are dotted instead of an inline table, because each value needs its own line for its source.
        let capacity = budget.capacity.value.to_string();
        self.value("budget.capacity", &capacity, &budget.capacity.source)?;
        self.duration("budget.period", budget.period.value, &budget.period.source)?;
        self.value(
            "budget.over",
            &quoted(budget.over.value.word()),
            &budget.over.source,
        )
    }

    fn header(&mut self, kind: &str, name: &str, source: &Source) -> fmt::Result {
        self.out.write_char('\n')?;
        let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let name = if name.chars().all(bare) {
            name.to_owned()
        } else {
            quoted(name)
        };
        self.line(&format!("[{kind}.{name}]"), source)
    }

    fn duration(&mut self, key: &str, value: core::time::Duration, source: &Source) -> fmt::Result {
        self.value(key, &quoted(&format_duration(value)), source)
    }

    fn number(&mut self, key: &str, setting: &Sourced<impl fmt::Display>) -> fmt::Result {
        self.value(key, &setting.value.to_string(), &setting.source)
    }

    fn word(&mut self, key: &str, setting: &Sourced<impl Word>) -> fmt::Result {
        self.value(key, &quoted(setting.value.word()), &setting.source)
    }

    fn value(&mut self, key: &str, value: &str, source: &Source) -> fmt::Result {
        self.line(&format!("{key} = {value}"), source)
    }

    /// Writes an unset value as a comment: TOML has no null.
    fn absent(&mut self, what: &str, source: &Source) -> fmt::Result {
        if self.with_sources {
            self.line(&format!("# {what}"), source)
        } else {
            Ok(())
        }
    }

    fn line(&mut self, line: &str, source: &Source) -> fmt::Result {
        if self.with_sources {
            // The source is escaped, because a line break in a file name would end the comment.
            let source = source.to_string().escape_debug().to_string();
            writeln!(self.out, "{line:SOURCE_COLUMN$} # {source}")
        } else {
            writeln!(self.out, "{line}")
        }
    }
}

/// Formats a TOML basic string. Names contain no control characters, so only backslash and quote need escapes.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn list(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    format!("[{}]", names.join(", "))
}
