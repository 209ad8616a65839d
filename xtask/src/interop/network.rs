//! The network of one run: two hosts and the cable between them, gone with the run.

use std::process::Command;

use isolane_bench::cable::{Cable, Config};
use isolane_bench::child::Program;
use isolane_bench::namespace::{Host, Testbed, TestbedConfig};

use super::cell::Loss;
use super::recording::Recording;
use crate::{CABLE_COMMAND, Result};

/// Two hosts that reach each other and nothing else.
pub(super) struct Network {
    testbed: Testbed,
    cable: Cable,
}

impl Network {
    /// With the cable's usual rate, of which no cell takes much.
    pub(super) fn new(loss: Loss) -> Result<Self> {
        Self::with_rate(loss, Config::default().bits_per_s)
    }

    pub(super) fn with_rate(loss: Loss, bits_per_s: u64) -> Result<Self> {
        // The lanes of a device are on one of its queues, and where there are two the kernel chooses for
        // each frame: half of them would show sockets only.
        let testbed = Testbed::new(&TestbedConfig {
            queues: 1,
            ..TestbedConfig::default()
        })?;
        // Behaviour is tested here, not time: the queue holds the largest sample of a peer's burst,
        // so that the network loses nothing unless a cell asks it to.
        let config = Config {
            queue_frames: 4096,
            bits_per_s,
            loss: isolane_bench::cable::Loss {
                probability: loss.probability(),
                ..Default::default()
            },
            ..Config::default()
        };
        let cable = Cable::start(&testbed, &Program::current(&[CABLE_COMMAND])?, &config)?;
        Ok(Self { testbed, cable })
    }

    /// Makes the command start on a host, and die with us.
    pub(super) fn command(&self, host: Host, command: Command) -> Command {
        self.testbed.command(host, command)
    }

    /// Listens on both hosts from now on.
    pub(super) fn record(&self) -> Result<Recording> {
        Recording::start(&self.testbed)
    }

    /// Takes the network down; an error when it lost frames it should not have.
    pub(super) fn finish(self) -> Result<()> {
        Ok(self.cable.finish()?.validate()?)
    }
}
