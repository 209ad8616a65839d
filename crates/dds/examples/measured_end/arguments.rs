//! Command line shared by the programs of all systems (`lab/interop/measured/end.h`), and the options of isolane only:
//! `--datapath udp|xdp`, `--waiting sleep|spin` and `--latency-budget-us N`.

use std::{path::PathBuf, time::Duration};

use crate::message::MIN_BYTES;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Ping,
    Pong,
    Writer,
    Reader,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) role: Role,
    pub(crate) domain: u32,
    pub(crate) payload_bytes: usize,
    pub(crate) reliable: bool,
    pub(crate) max_samples: u16,
    pub(crate) seconds: u64,
    /// Readers that a writer waits for.
    pub(crate) readers: usize,
    /// Pings or samples a second; 0, for streams only, for as many as possible.
    pub(crate) rate_hz: u64,
    /// Seed of the nonces.
    pub(crate) seed: u64,
    /// File for the timestamps of round trips.
    pub(crate) rounds_file: Option<PathBuf>,
    /// True if samples use lanes of the first interface other than the loopback; isolane only.
    pub(crate) by_lane: bool,
    /// True for throughput settings instead of the defaults.
    pub(crate) best: bool,
    /// LATENCY_BUDGET of the topics; isolane only.
    pub(crate) latency_budget: Duration,
    /// True if the loop busy-polls instead of sleeping; isolane only.
    pub(crate) spins: bool,
}

impl Arguments {
    /// Parses the arguments after the program's name.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let role = match words.next().as_deref() {
            Some("ping") => Role::Ping,
            Some("pong") => Role::Pong,
            Some("writer") => Role::Writer,
            Some("reader") => Role::Reader,
            _ => return Err("say `ping`, `pong`, `writer` or `reader` first".into()),
        };
        let mut arguments = Self {
            role,
            domain: 0,
            payload_bytes: 32,
            reliable: false,
            max_samples: 256,
            seconds: 2,
            readers: 1,
            rate_hz: 0,
            seed: 0,
            rounds_file: None,
            by_lane: false,
            best: false,
            latency_budget: Duration::ZERO,
            spins: false,
        };
        while let Some(option) = words.next() {
            let mut value = || words.next().ok_or(format!("{option} has no value"));
            match option.as_str() {
                "--reliable" => arguments.reliable = true,
                "--best-effort" => arguments.reliable = false,
                "--domain" => arguments.domain = number(&option, &value()?)?,
                "--payload-bytes" => arguments.payload_bytes = number(&option, &value()?)?,
                "--max-samples" => arguments.max_samples = number(&option, &value()?)?,
                "--seconds" => arguments.seconds = number(&option, &value()?)?,
                "--readers" => arguments.readers = number(&option, &value()?)?,
                "--rate-hz" => arguments.rate_hz = number(&option, &value()?)?,
                "--datapath" => arguments.by_lane = word(&option, &value()?, ["udp", "xdp"])?,
                "--waiting" => arguments.spins = word(&option, &value()?, ["sleep", "spin"])?,
                "--latency-budget-us" => {
                    arguments.latency_budget = Duration::from_micros(number(&option, &value()?)?);
                }
                "--best" => arguments.best = true,
                "--seed" => arguments.seed = number(&option, &value()?)?,
                "--rounds-file" => arguments.rounds_file = Some(value()?.into()),
                _ => return Err(format!("unknown option {option}")),
            }
        }
        if arguments.payload_bytes < MIN_BYTES {
            return Err(format!("--payload-bytes is at least {MIN_BYTES}"));
        }
        if arguments.rate_hz == 0 && matches!(role, Role::Ping | Role::Pong) {
            return Err("round trips need --rate-hz".into());
        }
        Ok(arguments)
    }
}

/// Returns whether the text is the second of two words.
fn word(option: &str, text: &str, words: [&str; 2]) -> Result<bool, String> {
    let place = words.iter().position(|word| *word == text);
    let place = place.ok_or(format!("{option} is {} or {}", words[0], words[1]))?;
    Ok(place == 1)
}

fn number<T: std::str::FromStr>(option: &str, text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("{option}: {text} is not a number that it takes"))
}
