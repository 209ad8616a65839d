//! A socket that answers as the standard and linuxptp's own structures say ptp4l does, and several that do not.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use proptest::prelude::*;

use super::*;
use crate::facts::{PtpDelay, PtpState};

/// What a question is about, as ptp4l sees it.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// Type and majorSdoId, version, domain.
    first: u8,
    domain: u8,
    sequence: [u8; 2],
    id: u16,
}

/// A thread that answers at a socket until it is dropped.
struct Answerer {
    path: PathBuf,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Answerer {
    fn start(name: &str, answers: impl Fn(Asked) -> Vec<Vec<u8>> + Send + 'static) -> Answerer {
        let path = std::env::temp_dir().join(format!("isolane-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket
            .set_read_timeout(Some(Duration::from_millis(20)))
            .expect("a time limit");
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let mut bytes = [0; 256];
            while !is_over.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut bytes) else {
                    continue;
                };
                for answer in answers(asked(&bytes[..length])) {
                    // One that asks no more does not listen.
                    let _ = socket.send_to_addr(&answer, &from);
                }
            }
        });
        Answerer {
            path,
            over,
            thread: Some(thread),
        }
    }

    fn ask(&self) -> Result<Ptp, Silence> {
        ask(&[&self.path])
    }
}

impl Drop for Answerer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            let _ = std::fs::remove_file(&self.path);
            // What it asserts of a question counts, unless the test has failed already.
            assert!(
                ended.is_ok() || std::thread::panicking(),
                "the answering thread panicked: see above"
            );
        }
    }
}

/// Reads a question as strictly as a clock may: what is asserted here is in the standard.
fn asked(bytes: &[u8]) -> Asked {
    assert_eq!(bytes.len(), 54, "header, management, TLV without data");
    assert_eq!(bytes[0] & 0xf, 0xd, "management");
    assert_eq!(bytes[1], 2, "PTP version 2");
    assert_eq!(bytes[2..4], 54_u16.to_be_bytes());
    assert_eq!(bytes[34..44], [0xff; 10], "all clocks and ports");
    assert_eq!(
        bytes[44..46],
        [0, 0],
        "no boundary hops: it is not forwarded into the network"
    );
    assert_eq!(bytes[46] & 0xf, 0, "GET, never SET");
    assert_eq!(bytes[48..52], [0, 1, 0, 2], "a management TLV without data");
    Asked {
        first: bytes[0],
        domain: bytes[4],
        sequence: [bytes[30], bytes[31]],
        id: u16::from_be_bytes([bytes[52], bytes[53]]),
    }
}

/// The answer to a question: the TLV of that type, with its id and data.
fn response(asked: Asked, kind: u16, value: &[u8]) -> Vec<u8> {
    let length = 48 + 4 + value.len();
    let mut bytes = vec![0; 48];
    bytes[0] = asked.first;
    bytes[1] = 0x12;
    bytes[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    bytes[4] = asked.domain;
    bytes[30..32].copy_from_slice(&asked.sequence);
    bytes[32..34].copy_from_slice(&[4, 0x7f]);
    bytes[46] = 2;
    bytes.extend(kind.to_be_bytes());
    bytes.extend((value.len() as u16).to_be_bytes());
    bytes.extend(value);
    bytes
}

fn data(asked: Asked, data: &[u8]) -> Vec<u8> {
    response(asked, 1, &[&asked.id.to_be_bytes()[..], data].concat())
}

const OWN: [u8; 8] = [0, 0x11, 0x22, 0xff, 0xfe, 0x33, 0x44, 0x55];
const GRANDMASTER: [u8; 8] = [0xaa, 0xbb, 0xcc, 0xff, 0xfe, 0xdd, 0xee, 0xff];

/// A slave on two ports, 250 ns behind its grandmaster, messages of which take 1,234.5 ns.
fn slave(asked: Asked) -> Vec<Vec<u8>> {
    let scaled = |ns_by_65536: i64| ns_by_65536.to_be_bytes();
    let port = |number: u16, state: u8, mechanism: u8| {
        let head = [&OWN[..], &number.to_be_bytes(), &[state, 0]].concat();
        let rest = [1, 3, 0, mechanism, 0, 2];
        data(asked, &[&head[..], &scaled(77 << 16), &rest].concat())
    };
    let properties = |number: u16, name: &str| {
        let head = [&OWN[..], &number.to_be_bytes(), &[9, 1]].concat();
        data(
            asked,
            &[&head[..], &[name.len() as u8], name.as_bytes()].concat(),
        )
    };
    match asked.id {
        0x2000 => {
            let head = [0, 0, 0, 2, 128, 248, 0xfe, 0xff, 0xff, 128];
            vec![data(asked, &[&head[..], &OWN, &[asked.domain, 0]].concat())]
        }
        0x2001 => vec![data(
            asked,
            &[
                &1_u16.to_be_bytes()[..],
                &scaled(-250 << 16),
                &scaled((1_234 << 16) + 32_768),
            ]
            .concat(),
        )],
        0x2003 => vec![data(asked, &[0, 37, 0x3c, 0x20])],
        // The second one first: their order is not promised.
        0x2004 => vec![port(2, 7, 2), port(1, 9, 1)],
        0xc000 => {
            let offset = (-250_i64).to_be_bytes();
            let present = 1_i32.to_be_bytes();
            vec![data(
                asked,
                &[&offset[..], &[0; 30], &present, &GRANDMASTER].concat(),
            )]
        }
        0xc004 => vec![properties(1, "eth0"), properties(2, "eth1")],
        other => panic!("asked for {other:#x}"),
    }
}

/// Answers in one domain only, as ptp4l does.
fn only_in(domain: u8, first: u8) -> impl Fn(Asked) -> Vec<Vec<u8>> {
    move |asked| match asked.domain == domain && asked.first == first {
        true => slave(asked),
        false => Vec::new(),
    }
}

#[test]
fn a_slave_tells_its_offset_its_path_its_grandmaster_and_its_ports() {
    let ptp4l = Answerer::start("slave", only_in(0, 0x0d));
    let told = ptp4l.ask().expect("answers");
    assert_eq!((told.domain, told.is_gptp), (0, false));
    assert_eq!(told.identity.as_deref(), Some("001122.fffe.334455"));
    assert_eq!(told.grandmaster, "aabbcc.fffe.ddeeff");
    assert!(told.has_grandmaster);
    assert_eq!(told.master_offset_ns, -250);
    assert_eq!(told.steps_removed, Some(1));
    assert_eq!(told.mean_path_delay_ns, Some(1_234));
    assert_eq!(
        (told.is_tai, told.utc_offset_s, told.utc_offset_is_valid),
        (Some(true), Some(37), Some(true))
    );
    let ports: Vec<_> = told
        .ports
        .iter()
        .map(|port| (port.number, port.state, port.interface.as_deref()))
        .collect();
    assert_eq!(
        ports,
        [
            (1, PtpState::Slave, Some("eth0")),
            (2, PtpState::Passive, Some("eth1"))
        ]
    );
    let delays = [0, 1].map(|index| told.ports[index].delay);
    assert_eq!(delays, [PtpDelay::EndToEnd, PtpDelay::PeerToPeer]);
    assert_eq!(told.ports[1].peer_delay_ns, 77);
    assert_eq!(told.ports[0].stamps_in_hardware, Some(true));
}

#[test]
fn it_is_found_in_other_domains_and_by_its_profile() {
    let ptp4l = Answerer::start("domains", only_in(44, 0x1d));
    let told = ptp4l.ask().expect("answers");
    assert_eq!((told.domain, told.is_gptp), (44, true));
    assert_eq!(told.ports.len(), 2);
}

#[test]
fn what_it_refuses_to_tell_is_not_known_and_not_waited_for() {
    let ptp4l = Answerer::start("refusing", |asked| match asked.id {
        0xc000 | 0x2001 => only_in(0, 0x0d)(asked),
        // NOT_SUPPORTED, as at the socket that is for everybody.
        id => vec![response(
            asked,
            2,
            &[&6_u16.to_be_bytes()[..], &id.to_be_bytes(), &[0; 4]].concat(),
        )],
    });
    let told = ptp4l.ask().expect("answers");
    assert_eq!(told.mean_path_delay_ns, Some(1_234));
    assert_eq!(
        (told.utc_offset_s, told.identity, told.ports.len()),
        (None, None, 0)
    );
}

/// Flags of TIME_PROPERTIES_DATA_SET, and what is believed of the 37 s beside them.
#[test]
fn the_seconds_to_utc_count_wherever_the_time_is_tai_as_phc2sys_has_it() {
    for (flags, is_tai, offset_s, is_valid) in [
        // linuxptp's grandmaster, as delivered.
        (0x08, true, Some(37), Some(false)),
        (0x0c, true, Some(37), Some(true)),
        // One that stamps in software: its time is the kernel's.
        (0x00, false, None, None),
        (0x04, false, None, None),
    ] {
        let ptp4l = Answerer::start(&format!("flags-{flags}"), move |asked| match asked.id {
            0x2003 if asked.domain == 0 => vec![data(asked, &[0, 37, flags, 0xa0])],
            _ => only_in(0, 0x0d)(asked),
        });
        let told = ptp4l.ask().expect("answers");
        assert_eq!(
            (told.is_tai, told.utc_offset_s, told.utc_offset_is_valid),
            (Some(is_tai), offset_s, is_valid),
            "{flags:#04x}"
        );
    }
}

#[test]
fn a_mechanism_that_is_not_known_measures_no_delay() {
    let mechanisms = [0, 1, 2, 3, 4, 0xfe].map(PtpDelay::of_number);
    let (end, peer, none) = (PtpDelay::EndToEnd, PtpDelay::PeerToPeer, PtpDelay::Unknown);
    assert_eq!(mechanisms, [none, end, peer, peer, none, none]);
}

#[test]
fn one_that_refuses_to_tell_its_state_is_not_waited_for() {
    let daemon = Answerer::start("other", |asked| {
        let value = [&1_u16.to_be_bytes()[..], &asked.id.to_be_bytes(), &[0; 4]].concat();
        vec![response(asked, 2, &value)]
    });
    let begin = Instant::now();
    let Err(Silence::Because(why)) = daemon.ask() else {
        panic!("an answer");
    };
    assert!(why.contains("refuses to tell TIME_STATUS_NP"), "{why}");
    assert!(begin.elapsed() < PTP_PATIENCE, "{:?}", begin.elapsed());
}

#[test]
fn one_that_never_answers_is_left_in_time() {
    let ptp4l = Answerer::start("silent", |_| Vec::new());
    let begin = Instant::now();
    let Err(Silence::Because(why)) = ptp4l.ask() else {
        panic!("an answer");
    };
    assert!(why.contains("does not answer"), "{why}");
    assert!(begin.elapsed() < 3 * PTP_PATIENCE, "{:?}", begin.elapsed());
}

#[test]
fn one_that_does_not_even_read_is_left_in_time() {
    let path = std::env::temp_dir().join(format!("isolane-stopped-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let socket = UnixDatagram::bind(&path).expect("a socket");
    // Its queue is full.
    let filler = UnixDatagram::unbound().expect("a socket");
    filler.set_nonblocking(true).expect("a mode");
    while filler.send_to(b"x", &path).is_ok() {}
    let begin = Instant::now();
    assert!(matches!(ask(&[&path]), Err(Silence::Because(_))));
    assert!(begin.elapsed() < 3 * PTP_PATIENCE, "{:?}", begin.elapsed());
    drop(socket);
    let Err(Silence::Because(why)) = ask(&[&path]) else {
        panic!("an answer of nobody");
    };
    assert!(why.contains("nobody listens"), "{why}");
    std::fs::remove_file(&path).expect("an end");
    assert_eq!(ask(&[&path]), Err(Silence::NoSocket));
}

#[test]
fn one_that_floods_us_with_other_messages_is_left_in_time() {
    let ptp4l = Answerer::start("flood", |asked| {
        let mut of_another = asked;
        of_another.sequence = [0xee, 0xee];
        vec![data(of_another, &[0; 50]); 200]
    });
    let begin = Instant::now();
    assert!(matches!(ptp4l.ask(), Err(Silence::Because(_))));
    assert!(begin.elapsed() < 3 * PTP_PATIENCE, "{:?}", begin.elapsed());
}

#[test]
fn answers_to_other_questions_or_cut_short_are_none() {
    let place = Place {
        domain: 3,
        major_sdo_id: 0,
    };
    let asked = asked(&question(place, 9, 1, DataSet::TimeStatus));
    let good = slave(asked).remove(0);
    let read = |bytes: &[u8]| answer(bytes, place, 9, DataSet::TimeStatus);
    assert!(read(&good).is_some());
    for cut in 0..good.len() {
        assert_eq!(read(&good[..cut]), None, "cut to {cut}");
    }
    let spoilt = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        read(&bytes)
    };
    for (at, value, what) in [
        (0, 0x0b, "no management message"),
        (1, 1, "another version"),
        (3, 47, "a length below the head's"),
        (3, 255, "a length beyond the datagram"),
        (4, 4, "another domain"),
        (31, 8, "another question"),
        (46, 1, "no response"),
        (51, 255, "a TLV beyond the message"),
        (53, 1, "another data set"),
    ] {
        assert_eq!(spoilt(at, value), None, "{what}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_an_answer_or_none(mut bytes in prop::collection::vec(any::<u8>(), 0..120), set in 0_usize..6) {
        const SETS: [DataSet; 6] = [
            DataSet::Default,
            DataSet::Current,
            DataSet::TimeProperties,
            DataSet::TimeStatus,
            DataSet::Port,
            DataSet::PortProperties,
        ];
        let place = Place { domain: 0, major_sdo_id: 0 };
        let _ = answer(&bytes, place, 1, SETS[set]);
        // With a head that is right, so that what is behind it is read.
        let asked = asked(&question(place, 1, 1, SETS[set]));
        bytes.truncate(100);
        let _ = answer(&data(asked, &bytes), place, 1, SETS[set]);
    }
}
