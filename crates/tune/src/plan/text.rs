//! Human-readable form of a plan.

use std::fmt::{self, Write as _};

use super::{Plan, Precondition, Step, When};

impl Plan {
    /// Formats the plan: each step with reason and cost, and the changes that it does not make. Lines longer than
    /// `columns` are wrapped between words; `None` wraps nothing.
    pub fn to_text(&self, columns: Option<usize>) -> String {
        let mut text = String::new();
        let _ = self.head(&mut text);
        let mut number = 1;
        for alike in self.steps.chunk_by(are_similar) {
            let _ = match alike {
                [step] => describe(&mut text, step, number),
                steps => describe_all(&mut text, steps, number),
            };
            number += alike.len();
        }
        let _ = self.relied_on(&mut text);
        let _ = self.refused(&mut text);
        wrap_lines(text, columns)
    }

    /// Formats the plan as a diff of current and new values.
    pub fn to_diff(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "--- {} at present ({})",
            line(&self.machine.hostname),
            line(&self.origin)
        );
        let _ = writeln!(
            text,
            "+++ {} with the profile {}",
            line(&self.machine.hostname),
            line(&self.profile)
        );
        for step in &self.steps {
            let _ = writeln!(
                text,
                "@@ {} [{}] @@",
                line(&step.setting.to_string()),
                line(&step.id)
            );
            for (mark, value) in [('-', &step.from), ('+', &step.to)] {
                for part in value.whole().lines() {
                    let _ = writeln!(text, "{mark}{}", line(part));
                }
            }
        }
        text
    }

    fn head(&self, text: &mut String) -> fmt::Result {
        writeln!(
            text,
            "{}: profile {}",
            line(&self.machine.hostname),
            line(&self.profile)
        )?;
        writeln!(text, "facts: {}", line(&self.origin))?;
        let reboots = self.steps.iter().filter(|step| step.when == When::Reboot);
        match (self.steps.len(), reboots.count()) {
            (0, _) => writeln!(text, "nothing to change"),
            (1, 0) => writeln!(text, "1 step"),
            (steps, 0) => writeln!(text, "{steps} steps"),
            (steps, reboots) => writeln!(
                text,
                "{steps} steps; {reboots} of them take effect at the next boot"
            ),
        }
    }

    fn relied_on(&self, text: &mut String) -> fmt::Result {
        if self.preconditions.is_empty() {
            return Ok(());
        }
        writeln!(
            text,
            "\nThe measurements are valid only with these settings:"
        )?;
        for Precondition { setting, value } in &self.preconditions {
            writeln!(
                text,
                "  {}: {}",
                line(&setting.to_string()),
                line(&value.one_line())
            )?;
        }
        Ok(())
    }

    fn refused(&self, text: &mut String) -> fmt::Result {
        if self.not_planned.is_empty() {
            return Ok(());
        }
        writeln!(text, "\nNot planned:")?;
        for not_planned in &self.not_planned {
            writeln!(
                text,
                "  {}  [{}]",
                line(&not_planned.why),
                line(&not_planned.id)
            )?;
            if !not_planned.remedy.is_empty() {
                writeln!(text, "      to do: {}", line(&not_planned.remedy))?;
            }
        }
        Ok(())
    }
}

/// Returns whether two steps move other devices' interrupts in the same way.
fn are_similar(one: &Step, other: &Step) -> bool {
    let of = |step: &Step| step.is_of_other_device() && !step.is_restoring();
    let values = |step: &Step| (step.from.clone(), step.to.clone(), step.when);
    of(one) && of(other) && values(one) == values(other)
}

/// Settings in one text. Paths that differ in one component share the others: `/proc/irq/{8,9}/smp_affinity_list`.
fn folded(settings: &[String]) -> String {
    let paths: Vec<Vec<&str>> = settings
        .iter()
        .map(|path| path.split('/').collect())
        .collect();
    let all = || settings.join(", ");
    let Some((first, others)) = paths.split_first() else {
        return all();
    };
    if others.iter().any(|path| path.len() != first.len()) {
        return all();
    }
    let differs = |place: &usize| others.iter().any(|path| path[*place] != first[*place]);
    let differing: Vec<usize> = (0..first.len()).filter(differs).collect();
    let [place] = differing[..] else {
        return all();
    };
    let values: Vec<&str> = paths.iter().map(|path| path[place]).collect();
    let values = format!("{{{}}}", values.join(","));
    let mut path = first.clone();
    path[place] = &values;
    path.join("/")
}

/// Breaks the lines of a text between words where they are longer than `columns`; `None` breaks nothing.
pub fn wrap_lines(text: String, columns: Option<usize>) -> String {
    match columns {
        Some(columns) => text.lines().map(|line| wrapped(line, columns)).collect(),
        None => text,
    }
}

/// Line broken between words where it is longer than `columns`. Further lines are indented like the text after the label
/// at the beginning (`     why:   `, `  WARN   `), or by four columns.
fn wrapped(line: &str, columns: usize) -> String {
    let text = line.trim_start();
    let mut head = line.len() - text.len();
    let mut indent = head + 4;
    if let Some((label, rest)) = text.split_once(' ')
        && (label.ends_with([':', '.']) || rest.starts_with(' '))
    {
        head = line.len() - rest.trim_start().len();
        indent = head;
    }
    let (head, rest) = line.split_at(head);
    let mut wrapped = head.to_owned();
    let mut width = head.chars().count();
    for (place, word) in rest.split(' ').enumerate() {
        let length = word.chars().count();
        if place > 0 && width + 1 + length > columns {
            wrapped.truncate(wrapped.trim_end().len());
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(indent));
            width = indent;
        } else if place > 0 {
            wrapped.push(' ');
            width += 1;
        }
        wrapped.push_str(word);
        width += length;
    }
    wrapped.push('\n');
    wrapped
}

/// Describes similar steps together, with the reason of the first.
fn describe_all(text: &mut String, steps: &[Step], number: usize) -> fmt::Result {
    let [first, ..] = steps else {
        return Ok(());
    };
    let last = number + steps.len() - 1;
    writeln!(
        text,
        "\n{number:>3}. to {last}. {} interrupts of other devices (why and undo are those of the first)",
        steps.len()
    )?;
    let settings = steps.iter().map(|step| line(&step.setting.to_string()));
    let settings: Vec<String> = settings.collect();
    writeln!(text, "     {}", folded(&settings))?;
    about(text, first)
}

fn describe(text: &mut String, step: &Step, number: usize) -> fmt::Result {
    writeln!(
        text,
        "\n{number:>3}. {}  [{}]",
        line(&step.setting.to_string()),
        line(&step.id)
    )?;
    about(text, step)
}

fn about(text: &mut String, step: &Step) -> fmt::Result {
    writeln!(
        text,
        "     {} -> {}",
        line(&step.from.one_line()),
        line(&step.to.one_line())
    )?;
    writeln!(text, "     why:   {}", line(&step.why))?;
    if !step.topics.is_empty() {
        writeln!(text, "     for:   {}", line(&step.topics.join(", ")))?;
    }
    writeln!(text, "     costs: {}", line(&step.costs))?;
    writeln!(text, "     undo:  {}", line(&step.undo))?;
    match step.when {
        When::Now => Ok(()),
        When::ThisBoot => writeln!(
            text,
            "     when:  until the next boot; then measure the receive queues again"
        ),
        When::Reboot => writeln!(text, "     when:  from the next boot on"),
    }
}

/// Escapes a text, so that it stays on one line: names of interfaces and programs may contain any character.
fn line(what: &str) -> String {
    what.escape_debug()
        .to_string()
        .replace("\\\"", "\"")
        .replace("\\'", "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_differ_in_one_component_share_the_others() {
        let paths = ["/proc/irq/8/list", "/proc/irq/24/list"].map(String::from);
        assert_eq!(folded(&paths), "/proc/irq/{8,24}/list");
        let others = ["/proc/irq/8/list", "/sys/irq/24/list"].map(String::from);
        assert_eq!(folded(&others), "/proc/irq/8/list, /sys/irq/24/list");
        assert_eq!(folded(&[String::from("a"), String::from("b/c")]), "a, b/c");
    }

    #[test]
    fn long_lines_are_wrapped_below_their_text() {
        let line = "     why:   one two three";
        assert_eq!(
            wrapped(line, 20),
            "     why:   one two\n            three\n"
        );
        assert_eq!(wrapped(line, 80), format!("{line}\n"));
        assert_eq!(wrapped("abcdef ghi", 4), "abcdef\n    ghi\n");
        assert_eq!(
            wrapped("  WARN   abc def", 12),
            "  WARN   abc\n         def\n"
        );
        assert_eq!(wrapped("", 4), "\n");
    }
}
