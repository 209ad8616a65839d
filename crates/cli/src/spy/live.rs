//! Frames as they pass, from the interfaces of this host.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use isolane_bench::capture;

use super::frame::{Frame, Link};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::CAPTURE_INTERFACES;

/// A listener on some interfaces.
pub(crate) struct Live {
    capture: capture::Capture,
    /// Those that are wanted; all, if there are none.
    wanted: Vec<String>,
    /// Names by number, as far as frames asked for them.
    names: BTreeMap<u32, Option<String>>,
}

impl Live {
    /// Listens on the interfaces of these names, or on all.
    ///
    /// # Errors
    /// A right is missing, or an interface.
    pub(crate) fn open(wanted: &[String]) -> Result<Self, Failure> {
        if let Some(missing) = missing(wanted) {
            return Err(missing);
        }
        let capture = match wanted {
            [only] => capture::Capture::open(Some(only)),
            _ => capture::Capture::open(None),
        };
        Ok(Self {
            capture: capture.map_err(|error| failure(&error))?,
            wanted: wanted.to_vec(),
            names: BTreeMap::new(),
        })
    }

    /// Gives the next frame to `each`, if there is one now; false: there is none.
    ///
    /// # Errors
    /// What `each` returned, or that listening has come to an end.
    pub(crate) fn take(
        &mut self,
        each: impl FnOnce(Frame<'_>) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        let Some(frame) = self.capture.take_frame().map_err(|error| gone(&error))? else {
            return Ok(false);
        };
        let index = frame.interface;
        if self.names.len() > CAPTURE_INTERFACES {
            self.names.clear();
        }
        let name = self
            .names
            .entry(index)
            .or_insert_with(|| capture::interface_name(index))
            .as_deref();
        let is_wanted = self.wanted.len() < 2
            || name.is_some_and(|name| self.wanted.iter().any(|wanted| wanted == name));
        if is_wanted {
            each(Frame {
                link: match frame.link {
                    capture::Link::Ethernet => Link::Ethernet,
                    capture::Link::None => Link::Ip,
                },
                bytes: frame.bytes,
                original_len: frame.original_len,
                time_ns: frame.time_ns,
                interface: name,
            })?;
        }
        Ok(true)
    }

    /// Waits until a frame may be there.
    ///
    /// # Errors
    /// The system refuses to wait.
    pub(crate) fn wait(&self, at_most: Duration) -> Result<(), Failure> {
        self.capture.wait(at_most).map_err(|error| gone(&error))
    }

    /// Frames the kernel had no room for.
    pub(crate) fn dropped(&mut self) -> Option<u64> {
        self.capture.dropped().ok()
    }
}

/// Why one of these interfaces cannot be listened to: it is not there.
fn missing(wanted: &[String]) -> Option<Failure> {
    // Without netlink the kernel will say it, in fewer words.
    let present = isolane_tune::interfaces().ok()?;
    let names: Vec<&str> = present.iter().map(|it| it.name.as_str()).collect();
    let missing = wanted.iter().find(|name| !names.contains(&name.as_str()))?;
    let failure = Failure::new(
        ExitCode::MachineForbids,
        format!("there is no interface {missing}"),
        format!("there are {}", names.join(", ")),
    );
    Some(failure.with_remedy("name one of them, or leave --interface out to listen on all"))
}

fn failure(error: &io::Error) -> Failure {
    const WHAT: &str = "cannot listen to the interfaces";
    if error.kind() == io::ErrorKind::PermissionDenied {
        return Failure::new(
            ExitCode::MachineForbids,
            WHAT,
            "it takes the right CAP_NET_RAW, and this process does not have it",
        )
        .with_remedy(
            "run it as root (sudo isolane spy ...), give the program the right once (sudo setcap \
             cap_net_raw+ep \"$(command -v isolane)\"), or read a capture: isolane spy FILE.pcap",
        );
    }
    Failure::new(ExitCode::MachineForbids, WHAT, error.to_string())
        .with_remedy("`ip link` shows what interfaces there are")
}

fn gone(error: &io::Error) -> Failure {
    Failure::new(
        ExitCode::MachineForbids,
        "listening has come to an end",
        format!("the interface is gone or down ({error})"),
    )
    .with_remedy("bring it up (ip link set NAME up) and start again")
}
