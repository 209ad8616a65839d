//! A line of the kernel's trace: `comm-pid [cpu] flags seconds: event: what there is to say`.

/// What a line says, as far as it is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event<'a> {
    /// A thread of that name becomes ready.
    Woken(&'a str),
    /// The processor is given to another thread.
    Switched(Thread<'a>),
    /// Receive work of a device ended: so many frames.
    Polled(u64),
    /// A lock is waited for.
    Contended,
    /// A device's interrupt.
    Interrupted,
    Other,
}

/// A thread that gets the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thread<'a> {
    pub(super) name: &'a str,
    pub(super) id: u32,
    /// The kernel's number: 120 is the ordinary one, 99 less the priority is a real-time one.
    pub(super) priority: u32,
}

/// A function of a stack, the innermost first, in a line of its own.
pub(super) fn function(line: &str) -> Option<&str> {
    line.trim().strip_prefix("=> ")
}

/// The time in nanoseconds and the event; `None`: it is none (a stack, an empty line).
pub(super) fn parse(line: &str) -> Option<(u64, Event<'_>)> {
    // Names hold blanks at times, never a flag's column between brackets and dots.
    let (_, behind) = line.split_once("] ")?;
    let mut parts = behind.splitn(3, ": ");
    let time_ns = time_ns(parts.next()?.split_whitespace().next_back()?)?;
    let (event, text) = (parts.next()?, parts.next().unwrap_or_default());
    Some((time_ns, of(event, text)))
}

fn of<'a>(event: &str, text: &'a str) -> Event<'a> {
    let event = match event {
        "sched_waking" => value(text, "comm=").map(Event::Woken),
        "sched_switch" => next(text).map(Event::Switched),
        "napi_poll" => word_after(text, "work").map(Event::Polled),
        "contention_begin" => Some(Event::Contended),
        "irq_handler_entry" => Some(Event::Interrupted),
        _ => None,
    };
    event.unwrap_or(Event::Other)
}

fn next(text: &str) -> Option<Thread<'_>> {
    Some(Thread {
        name: value(text, "next_comm=")?,
        id: value(text, "next_pid=")?.parse().ok()?,
        priority: value(text, "next_prio=")?.parse().ok()?,
    })
}

/// What stands behind the key, up to the next blank.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (_, behind) = text.split_once(key)?;
    behind.split(' ').next()
}

fn word_after(text: &str, word: &str) -> Option<u64> {
    let mut words = text.split(' ');
    words.find(|&other| other == word)?;
    words.next()?.parse().ok()
}

/// `12.345678`, to the microsecond, as the kernel prints it.
fn time_ns(seconds: &str) -> Option<u64> {
    let (whole, fraction) = seconds.split_once('.')?;
    if fraction.len() != 6 {
        return None;
    }
    let us: u64 = fraction.parse().ok()?;
    Some(whole.parse::<u64>().ok()? * 1_000_000_000 + us * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(line: &str) -> Event<'_> {
        parse(line).unwrap().1
    }

    #[test]
    fn a_switch_names_who_runs_now() {
        let line = "  init-173     [000] d..2.    17.454285: sched_switch: prev_comm=init prev_pid=173 \
                    prev_prio=120 prev_state=R ==> next_comm=publisher next_pid=180 next_prio=29";
        let thread = Thread {
            name: "publisher",
            id: 180,
            priority: 29,
        };
        assert_eq!(parse(line), Some((17_454_285_000, Event::Switched(thread))));
    }

    #[test]
    fn a_stack_has_a_function_a_line() {
        assert_eq!(function(" => rt_spin_lock"), Some("rt_spin_lock"));
        assert_eq!(function("x-1 [000] d..21 1.000007: <stack trace>"), None);
    }

    #[test]
    fn receive_work_tells_its_frames() {
        let line = "irq/30-host-b-r-182     [000] ..s.2    17.454503: napi_poll: napi poll on napi struct \
                    0000000013ab7636 for device host-b work 3 budget 64";
        assert_eq!(event(line), Event::Polled(3));
    }

    #[test]
    fn other_events_have_a_time_and_what_is_no_event_has_none() {
        let waking = "init-1 [000] dNh3.  1.000007: sched_waking: comm=publisher pid=180 prio=29";
        assert_eq!(event(waking), Event::Woken("publisher"));
        assert_eq!(
            event("a-1 [000] d.h.3  1.000007: irq_handler_entry: irq=30"),
            Event::Interrupted
        );
        assert_eq!(
            event("a-1 [000] d.h.3  1.000007: something: new: x"),
            Event::Other
        );
        for line in [
            " => rt_spin_lock",
            "",
            "a-1 [000] d.. x: y: z",
            "a-1 [000] d.. 1.5: y: z",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
