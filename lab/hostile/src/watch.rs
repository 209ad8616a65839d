//! External observation of the victim: its samples, its log, its memory.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use isolane_support::Result;
use isolane_support::process::resident_bytes;
use serde_json::Value;

/// Sampling interval of the victim's memory.
const LOOK: Duration = Duration::from_secs(1);
/// Sampling interval of a short run. It gives enough points for a regression over half of them.
const SHORT_LOOK: Duration = Duration::from_millis(250);

/// Critical sample that the victim printed.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub(super) at: Instant,
    pub(super) writer: String,
    pub(super) sequence: i64,
}

/// Observations of the victim.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) samples: Vec<Arrival>,
    /// Lines of the victim's log.
    pub(super) log: Vec<(Instant, String)>,
    /// Resident memory of the victim in bytes during the attack.
    pub(super) resident: Vec<(Instant, u64)>,
    /// Number of packets that the kernel dropped at its receive backlog, before the sockets of any host.
    pub(super) backlog_drops: u64,
}

impl Seen {
    pub(super) fn log_text(&self) -> String {
        self.log.iter().fold(String::new(), |mut text, (_, line)| {
            let _ = writeln!(text, "{line}");
            text
        })
    }
}

/// Threads that read the victim's output until it ends.
pub(super) struct Watch {
    seen: Arc<Mutex<Seen>>,
    attacked: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Watch {
    /// Starts threads that read the victim's output streams.
    pub(super) fn of(victim: &mut Child) -> Result<Self> {
        let seen = Arc::<Mutex<Seen>>::default();
        let attacked = Arc::<AtomicBool>::default();
        let ended = Arc::<AtomicBool>::default();
        let output = victim.stdout.take().ok_or("the victim has no output")?;
        let log = victim.stderr.take().ok_or("the victim has no log")?;
        let threads = vec![
            read_lines(output, Arc::clone(&seen), |seen, at, line| {
                seen.samples.extend(arrival(at, &line));
            }),
            read_lines(log, Arc::clone(&seen), |seen, at, line| {
                seen.log.push((at, line));
            }),
            look_at_memory(victim.id(), &seen, &attacked, &ended),
        ];
        Ok(Self {
            seen,
            attacked,
            ended,
            threads,
        })
    }

    /// Number of samples so far.
    pub(super) fn samples(&self) -> usize {
        lock(&self.seen).samples.len()
    }

    pub(super) fn begin_attack(&self) {
        self.attacked.store(true, Ordering::Relaxed);
    }

    pub(super) fn end_attack(&self) {
        self.attacked.store(false, Ordering::Relaxed);
    }

    /// Waits for the end of the victim's output streams, and returns the observations.
    pub(super) fn finish(self) -> Seen {
        self.ended.store(true, Ordering::Relaxed);
        for thread in self.threads {
            // A panic of the thread has been printed already.
            let _ = thread.join();
        }
        std::mem::take(&mut lock(&self.seen))
    }
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_lines(
    stream: impl Read + Send + 'static,
    seen: Arc<Mutex<Seen>>,
    note: impl Fn(&mut Seen, Instant, String) + Send + 'static,
) -> JoinHandle<()> {
    thread::spawn(move || {
        for line in BufReader::new(stream)
            .split(b'\n')
            .map_while(|line| line.ok())
        {
            let line = String::from_utf8_lossy(&line).into_owned();
            note(&mut lock(&seen), Instant::now(), line);
        }
    })
}

/// Parses a line of `isolane sub --json`; `None` for the end of an instance.
fn arrival(at: Instant, line: &str) -> Option<Arrival> {
    let line: Value = serde_json::from_str(line).ok()?;
    let info = &line["info"];
    (!line["value"].is_null()).then_some(Arrival {
        at,
        writer: info["writer"].as_str()?.to_owned(),
        sequence: info["sequence"].as_i64()?,
    })
}

fn look_at_memory(
    process: u32,
    seen: &Arc<Mutex<Seen>>,
    attacked: &Arc<AtomicBool>,
    ended: &Arc<AtomicBool>,
) -> JoinHandle<()> {
    let (seen, attacked, ended) = (Arc::clone(seen), Arc::clone(attacked), Arc::clone(ended));
    thread::spawn(move || {
        let mut looks = 0;
        while !ended.load(Ordering::Relaxed) {
            if attacked.load(Ordering::Relaxed) {
                let resident = resident_bytes(process);
                let now = Instant::now();
                lock(&seen)
                    .resident
                    .extend(resident.map(|bytes| (now, bytes)));
                looks += 1;
            }
            thread::sleep(if looks < 20 { SHORT_LOOK } else { LOOK });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_distinguished_from_the_end_of_an_instance() {
        let now = Instant::now();
        let sample = r#"{"value":{"x":1},"info":{"writer":"a","sequence":7}}"#;
        let sample = arrival(now, sample).expect("a sample");
        assert_eq!((sample.writer.as_str(), sample.sequence), ("a", 7));
        let end = r#"{"value":null,"info":{"writer":"a","sequence":8}}"#;
        assert!(arrival(now, end).is_none());
        assert!(arrival(now, "not json").is_none());
    }
}
