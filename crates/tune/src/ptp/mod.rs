//! Asking ptp4l, by its management socket, how well it keeps the time.
//!
//! The socket is one of datagrams on this machine. There are two: at one anybody may ask (linuxptp since 3.1), at the
//! other, root; only there ports tell their interfaces. What comes back is believed to be a message of a program that runs
//! as root, and read as bytes of a stranger. All of it takes at most [`PTP_PATIENCE`], whether anybody answers or not.

mod message;
#[cfg(test)]
mod tests;

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use self::message::{Answer, DataSet, Place, answer, question};
use crate::facts::{Ptp, PtpPort};
use crate::limits::{
    MAX_PTP_ANSWERS, MAX_PTP_PORTS, PTP_DOMAINS, PTP_PATIENCE, PTP_PORTS_PATIENCE,
};

/// Where ptp4l listens unless its `uds_address` and `uds_ro_address` say otherwise; the first tells more.
pub(crate) const SOCKETS: [&str; 2] = ["/var/run/ptp4l", "/var/run/ptp4lro"];

/// Bytes of a datagram that are read: the longest of these answers has some 80.
const MAX_ANSWER_BYTES: usize = 1_500;

/// What keeps ptp4l from telling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// There is no such socket.
    NoSocket,
    /// Something else, in words.
    Because(String),
}

/// Asks at the first socket that answers.
pub(crate) fn ask(sockets: &[impl AsRef<Path>]) -> Result<Ptp, Silence> {
    let until = Instant::now() + PTP_PATIENCE;
    let mut silence = Silence::NoSocket;
    for socket in sockets {
        match ask_at(socket.as_ref(), until) {
            Ok(told) => return Ok(told),
            Err(because @ Silence::Because(_)) => silence = because,
            Err(Silence::NoSocket) => {}
        }
    }
    Err(silence)
}

fn ask_at(socket: &Path, until: Instant) -> Result<Ptp, Silence> {
    let mut asker = Asker::connect(socket, until).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Silence::NoSocket,
        io::ErrorKind::PermissionDenied => {
            Silence::Because(format!("{} is for root only", socket.display()))
        }
        io::ErrorKind::ConnectionRefused => {
            Silence::Because(format!("nobody listens at {} any more", socket.display()))
        }
        _ => Silence::Because(format!("{}: {error}", socket.display())),
    })?;
    let failed = |error: io::Error| Silence::Because(format!("{}: {error}", socket.display()));
    let mut told = asker.find().map_err(failed)?.ok_or_else(|| {
        Silence::Because(format!(
            "it does not answer at {} (asked in the domains {}, within {} ms)",
            socket.display(),
            PTP_DOMAINS.map(|domain| domain.to_string()).join(", "),
            PTP_PATIENCE.as_millis()
        ))
    })?;
    asker.complete(&mut told).map_err(failed)?;
    Ok(told)
}

/// Number of questions so far, so that no two askers of a process have one name.
static ASKERS: AtomicU32 = AtomicU32::new(0);

/// A socket that is connected to ptp4l's: nobody else's datagrams get in.
struct Asker {
    socket: UnixDatagram,
    place: Place,
    sequence: u16,
    until: Instant,
    answers: usize,
}

impl Asker {
    fn connect(path: &Path, until: Instant) -> io::Result<Asker> {
        // Answers go to our name. One without a file leaves none behind.
        let number = ASKERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("isolane-ptp-{}-{number}", std::process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
        socket.connect(path)?;
        Ok(Asker {
            socket,
            place: Place {
                domain: 0,
                major_sdo_id: 0,
            },
            sequence: 0,
            until,
            answers: 0,
        })
    }

    /// Asks in all domains for TIME_STATUS_NP: ptp4l is in one, and silent about others.
    fn find(&mut self) -> io::Result<Option<Ptp>> {
        let places = PTP_DOMAINS.iter().flat_map(|&domain| {
            [0, 1].map(|major_sdo_id| Place {
                domain,
                major_sdo_id,
            })
        });
        let mut asked = Vec::new();
        for place in places {
            asked.push((place, self.send(place, DataSet::TimeStatus)?));
        }
        let until = self.until;
        let mut buffer = [0; MAX_ANSWER_BYTES];
        while let Some(bytes) = self.receive(&mut buffer, until)? {
            for &(place, sequence) in &asked {
                match answer(bytes, place, sequence, DataSet::TimeStatus) {
                    Some(Answer::TimeStatus {
                        master_offset_ns,
                        has_grandmaster,
                        grandmaster,
                    }) => {
                        self.place = place;
                        return Ok(Some(Ptp {
                            domain: place.domain,
                            is_gptp: place.major_sdo_id == 1,
                            grandmaster,
                            has_grandmaster,
                            master_offset_ns,
                            ..Ptp::default()
                        }));
                    }
                    Some(Answer::Refused(error)) => {
                        return Err(io::Error::other(format!(
                            "it refuses to tell TIME_STATUS_NP (managementErrorId {error}): it is not linuxptp's"
                        )));
                    }
                    _ => {}
                }
            }
        }
        Ok(None)
    }

    /// Asks for all else. What is not told stays unknown.
    fn complete(&mut self, told: &mut Ptp) -> io::Result<()> {
        let mut ports = 1;
        for data_set in [DataSet::Default, DataSet::Current, DataSet::TimeProperties] {
            match self.ask(data_set, 1)?.pop() {
                Some(Answer::Default {
                    identity,
                    ports: number,
                }) => {
                    told.identity = Some(identity);
                    ports = usize::from(number).clamp(1, MAX_PTP_PORTS);
                }
                Some(Answer::Current {
                    steps_removed,
                    mean_path_delay_ns,
                }) => {
                    told.steps_removed = Some(steps_removed);
                    told.mean_path_delay_ns = Some(mean_path_delay_ns);
                }
                Some(Answer::TimeProperties {
                    utc_offset_s,
                    utc_offset_is_valid,
                    is_tai,
                }) => {
                    told.is_tai = Some(is_tai);
                    // Of another time than TAI the number says nothing.
                    told.utc_offset_s = is_tai.then_some(utc_offset_s);
                    told.utc_offset_is_valid = is_tai.then_some(utc_offset_is_valid);
                }
                _ => {}
            }
        }
        for answer in self.ask(DataSet::Port, ports)? {
            if let Answer::Port(port) = answer {
                told.ports.push(port);
            }
        }
        told.ports.sort_by_key(|port| port.number);
        told.ports.dedup_by_key(|port| port.number);
        for answer in self.ask(DataSet::PortProperties, ports)? {
            if let Answer::PortProperties {
                number,
                stamps_in_hardware,
                interface,
            } = answer
            {
                let is_it = |port: &&mut PtpPort| port.number == number;
                if let Some(port) = told.ports.iter_mut().find(is_it) {
                    port.interface = interface;
                    port.stamps_in_hardware = Some(stamps_in_hardware);
                }
            }
        }
        Ok(())
    }

    /// So many answers to a question, or those that came in time.
    fn ask(&mut self, data_set: DataSet, wanted: usize) -> io::Result<Vec<Answer>> {
        let sequence = self.send(self.place, data_set)?;
        let until = (Instant::now() + PTP_PORTS_PATIENCE).min(self.until);
        let mut buffer = [0; MAX_ANSWER_BYTES];
        let mut answers = Vec::new();
        while answers.len() < wanted {
            let Some(bytes) = self.receive(&mut buffer, until)? else {
                break;
            };
            match answer(bytes, self.place, sequence, data_set) {
                Some(Answer::Refused(_)) => break,
                Some(told) => answers.push(told),
                None => {}
            }
        }
        Ok(answers)
    }

    fn send(&mut self, place: Place, data_set: DataSet) -> io::Result<u16> {
        self.sequence += 1;
        let asker = std::process::id() as u16;
        let question = question(place, self.sequence, asker, data_set);
        self.socket.set_write_timeout(Some(self.left(self.until)))?;
        self.socket.send(&question)?;
        Ok(self.sequence)
    }

    /// The next datagram; `None`: none came in time, or too many did.
    fn receive<'a>(
        &mut self,
        buffer: &'a mut [u8],
        until: Instant,
    ) -> io::Result<Option<&'a [u8]>> {
        self.answers += 1;
        if self.answers > MAX_PTP_ANSWERS {
            return Ok(None);
        }
        while Instant::now() < until {
            self.socket.set_read_timeout(Some(self.left(until)))?;
            match self.socket.recv(buffer) {
                Ok(length) => return Ok(buffer.get(..length)),
                Err(error) => match error.kind() {
                    // A signal says nothing of whoever is asked.
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => return Ok(None),
                    _ => return Err(error),
                },
            }
        }
        Ok(None)
    }

    /// A time of zero would be for ever.
    fn left(&self, until: Instant) -> Duration {
        let left = until.saturating_duration_since(Instant::now());
        left.max(Duration::from_millis(1))
    }
}
