//! Machines whose clocks are kept by PTP, and what is not known of some of them.

use super::*;
use crate::clock::{clock_error, one_way_bound};
use crate::facts::{Clock, Device, Timestamps};

/// A slave 250 ns behind its grandmaster, over a path of 1.2 us, whose kernel's clock is 90 ns from its device's.
fn slave_machine() -> Facts {
    Facts {
        programs: ["phc2sys", "ptp4l"].map(String::from).to_vec(),
        clock: Clock {
            is_kept: Some(true),
            maximum_error_us: Some(0),
            tai_offset_s: Some(0),
            ptp: Some(Ptp {
                grandmaster: String::from("aabbcc.fffe.ddeeff"),
                has_grandmaster: true,
                master_offset_ns: -250,
                steps_removed: Some(1),
                mean_path_delay_ns: Some(1_200),
                utc_offset_s: Some(37),
                ports: vec![PtpPort {
                    number: 1,
                    state: PtpState::Slave,
                    interface: Some(String::from("eth0")),
                    stamps_in_hardware: Some(true),
                    delay: PtpDelay::EndToEnd,
                    ..PtpPort::default()
                }],
                ..Ptp::default()
            }),
            devices: vec![DeviceClock {
                number: 0,
                interfaces: vec![String::from("eth0")],
                ahead_ns: 37 * SECOND_NS - 90,
                window_ns: 60,
            }],
            ..Clock::default()
        },
        ..Facts::default()
    }
}

fn with(change: impl FnOnce(&mut Ptp)) -> Facts {
    let mut facts = slave_machine();
    change(facts.clock.ptp.as_mut().expect("PTP"));
    facts
}

fn doubt(facts: &Facts) -> PtpDoubt {
    let doubt = bound(facts).expect_err("no bound");
    let ClockError::Untold { why, ask, .. } = clock_error(facts) else {
        panic!("a bound");
    };
    assert_eq!((why, ask), (doubt.to_string(), String::from(doubt.ask())));
    doubt
}

#[test]
fn a_slaves_error_is_its_offset_its_path_and_its_kernel_from_its_device() {
    assert_eq!(
        clock_error(&slave_machine()),
        ClockError::Bound {
            nanoseconds: 250 + 1_200 + 90 + 60,
            keeper: String::from("ptp4l and phc2sys"),
            against: String::from("grandmaster aabbcc.fffe.ddeeff in PTP domain 0 less 37 s"),
            provided: Some(String::from(WITHOUT_WAITING)),
        }
    );
    let said = clock_error(&slave_machine()).to_string();
    assert!(said.contains("wait nowhere on the way"), "{said}");
    let two = one_way_bound(
        &clock_error(&slave_machine()),
        &clock_error(&slave_machine()),
    );
    assert_eq!(two.expect("a bound").nanoseconds(), 3_200);
}

#[test]
fn a_kernel_is_on_utc_by_the_grandmasters_word_by_its_own_or_not_at_all() {
    for (ahead_s, grandmaster_s, kernel_s) in [
        (37, Some(37), Some(0)),
        (37, None, Some(37)),
        (0, Some(37), Some(37)),
        (0, None, None),
    ] {
        let mut facts = with(|ptp| ptp.utc_offset_s = grandmaster_s);
        facts.clock.tai_offset_s = kernel_s;
        facts.clock.devices[0].ahead_ns = ahead_s * SECOND_NS + 90;
        assert_eq!(bound(&facts).expect("a bound").device_ns, 150, "{ahead_s}");
    }
    // Nobody said 37 s of TAI: then the two are 37 s apart.
    let mut facts = with(|ptp| ptp.utc_offset_s = None);
    facts.clock.devices[0].ahead_ns = 37 * SECOND_NS;
    assert!(bound(&facts).expect("a bound").device_ns > 36_000_000_000);
}

#[test]
fn machines_of_two_grandmasters_or_with_other_whole_seconds_have_no_common_bound() {
    let one = clock_error(&slave_machine());
    let other = with(|ptp| ptp.grandmaster = String::from("another"));
    assert!(one_way_bound(&one, &clock_error(&other)).is_err());
    let mut on_tai = slave_machine();
    on_tai.clock.devices[0].ahead_ns = 20;
    assert!(
        one_way_bound(&one, &clock_error(&on_tai)).is_err(),
        "37 s apart"
    );
}

#[test]
fn the_grandmaster_is_off_itself_by_its_device_only() {
    let facts = with(|ptp| {
        ptp.has_grandmaster = false;
        ptp.master_offset_ns = 0;
        ptp.steps_removed = Some(0);
        ptp.ports[0].state = PtpState::Master;
    });
    let bound = bound(&facts).expect("a bound");
    assert_eq!(
        (bound.offset_ns, bound.path_ns, bound.device_ns),
        (0, 0, 150)
    );
    // Where nothing is on the way, nothing is provided.
    assert_eq!(bound.provided, None);
    // It is kept by nobody, and that is as it should be.
    let mut unkept = facts.clone();
    unkept.clock.is_kept = Some(false);
    assert_eq!(clock_error(&unkept), clock_error(&facts));
    // To a slave of it there is a bound.
    assert!(one_way_bound(&clock_error(&facts), &clock_error(&slave_machine())).is_ok());
}

#[test]
fn a_kernel_that_calls_itself_unsynchronised_follows_no_device() {
    let mut facts = slave_machine();
    facts.clock.is_kept = Some(false);
    assert_eq!(doubt(&facts), PtpDoubt::NotFollowed);
    // Two programs run: nobody is told to start them.
    let said = clock_error(&facts).to_string();
    assert!(
        said.contains("phc2sys, ptp4l") && said.contains("unsynchronised"),
        "{said}"
    );
}

#[test]
fn what_is_not_known_is_no_bound() {
    let mut silent = slave_machine();
    silent.clock.ptp = None;
    silent.clock.ptp_silence = Some(String::from("it is for root only"));
    assert!(doubt(&silent).to_string().contains("for root only"));
    let state = |state| doubt(&with(|ptp| ptp.ports[0].state = state));
    for waiting in [
        PtpState::Listening,
        PtpState::Uncalibrated,
        PtpState::Faulty,
    ] {
        assert_eq!(state(waiting), PtpDoubt::NoMaster);
    }
    assert_eq!(
        doubt(&with(|ptp| ptp.has_grandmaster = false)),
        PtpDoubt::NoMaster
    );
    assert_eq!(
        doubt(&with(|ptp| ptp.steps_removed = Some(3))),
        PtpDoubt::Between(3)
    );
    for delay in [None, Some(0), Some(-5)] {
        assert_eq!(
            doubt(&with(|ptp| ptp.mean_path_delay_ns = delay)),
            PtpDoubt::NoPath
        );
    }
    let mut unread = slave_machine();
    unread.clock.devices.clear();
    assert_eq!(doubt(&unread), PtpDoubt::NoDevice);
}

#[test]
fn a_peers_delay_counts_only_where_the_peer_must_be_the_master() {
    let peer = |is_gptp| {
        with(|ptp| {
            ptp.is_gptp = is_gptp;
            ptp.ports[0].delay = PtpDelay::PeerToPeer;
            ptp.ports[0].peer_delay_ns = 400;
        })
    };
    assert_eq!(bound(&peer(true)).expect("a bound").path_ns, 400);
    assert_eq!(doubt(&peer(false)), PtpDoubt::FirstLinkOnly);
    let none = with(|ptp| ptp.ports[0].delay = PtpDelay::Unknown);
    assert_eq!(doubt(&none), PtpDoubt::NoPath);
}

#[test]
fn a_device_that_is_not_the_ports_is_none_also_where_it_is_the_only_one() {
    for interfaces in [vec![], vec![String::from("eth1")]] {
        let mut facts = slave_machine();
        // That of the host, in a guest (ptp_kvm), or of another device.
        facts.clock.devices[0].interfaces = interfaces;
        assert_eq!(doubt(&facts), PtpDoubt::NoDevice);
        // Unless ethtool says that it is: of several ports of a device sysfs names one.
        facts.devices.push(Device {
            interface: String::from("eth0"),
            timestamps: Some(Timestamps {
                clock: Some(0),
                ..Timestamps::default()
            }),
            ..Device::default()
        });
        assert_eq!(bound(&facts).expect("a bound").device_ns, 150);
    }
    let mut of_another = slave_machine();
    of_another.devices.push(Device {
        interface: String::from("eth0"),
        timestamps: Some(Timestamps {
            clock: Some(1),
            ..Timestamps::default()
        }),
        ..Device::default()
    });
    assert_eq!(doubt(&of_another), PtpDoubt::NoDevice);
}

/// The same, by stamps of the kernel: without phc2sys, and without a device's clock.
fn in_software(change: impl FnOnce(&mut Ptp)) -> Facts {
    let mut facts = with(|ptp| {
        ptp.is_tai = Some(true);
        ptp.utc_offset_is_valid = Some(true);
        ptp.ports[0].stamps_in_hardware = Some(false);
        change(ptp);
    });
    facts.programs = vec![String::from("ptp4l")];
    facts.clock.devices.clear();
    facts
}

#[test]
fn by_stamps_of_the_kernel_ptp4l_keeps_its_clock_alone() {
    let ClockError::Bound {
        nanoseconds,
        keeper,
        against,
        ..
    } = clock_error(&in_software(|_| {}))
    else {
        panic!("no bound");
    };
    assert_eq!((nanoseconds, keeper.as_str()), (1_450, "ptp4l"));
    assert!(
        against.ends_with("less 37 s"),
        "as phc2sys has it: {against}"
    );
    let of_kernel = in_software(|ptp| {
        ptp.is_tai = Some(false);
        ptp.utc_offset_s = None;
    });
    let of_kernel = bound(&of_kernel).expect("a bound");
    assert!(
        of_kernel.against.ends_with("domain 0"),
        "{}",
        of_kernel.against
    );
    // What ptp4l was built with counts where the grandmaster's number is not valid: nobody here knows it.
    for valid in [Some(false), None] {
        let unsure = in_software(|ptp| ptp.utc_offset_is_valid = valid);
        assert_eq!(doubt(&unsure), PtpDoubt::NoSeconds);
    }
    // With stamps of the device it keeps the device's clock, and nobody the kernel's.
    let mut in_hardware = slave_machine();
    in_hardware.programs = vec![String::from("ptp4l")];
    assert!(matches!(
        clock_error(&in_hardware),
        ClockError::Untold { .. }
    ));
}

#[test]
fn whole_seconds_that_are_not_certain_are_no_common_source() {
    // What ptp4l makes in the device of a time that is not TAI, its version tells.
    let of_software = with(|ptp| ptp.is_tai = Some(false));
    assert_eq!(doubt(&of_software), PtpDoubt::NoSeconds);
    // A grandmaster whose ports' clocks are 37 s apart.
    let mut two = with(|ptp| {
        ptp.has_grandmaster = false;
        ptp.ports[0].state = PtpState::Master;
        let mut second = ptp.ports[0].clone();
        second.interface = Some(String::from("eth1"));
        ptp.ports.push(second);
    });
    let second = DeviceClock {
        number: 1,
        interfaces: vec![String::from("eth1")],
        ..two.clock.devices[0].clone()
    };
    two.clock.devices.push(second);
    assert!(bound(&two).is_ok());
    two.clock.devices[1].ahead_ns = 20;
    assert_eq!(doubt(&two), PtpDoubt::NoSeconds);
}

#[test]
fn of_several_devices_it_is_that_of_the_port_or_none() {
    let mut facts = slave_machine();
    let other = DeviceClock {
        number: 1,
        interfaces: vec![String::from("eth1")],
        ahead_ns: 0,
        window_ns: 5_000,
    };
    facts.clock.devices.insert(0, other);
    assert_eq!(bound(&facts).expect("a bound").device_ns, 150);
    let port = |facts: &mut Facts| {
        facts
            .clock
            .ptp
            .as_mut()
            .map(|ptp| ptp.ports[0].interface.take())
    };
    port(&mut facts);
    assert_eq!(
        doubt(&facts),
        PtpDoubt::NoDevice,
        "anybody but root is not told the interface"
    );
}

#[test]
fn numbers_without_measure_are_errors_without_measure() {
    let mut facts = with(|ptp| {
        ptp.master_offset_ns = i64::MIN;
        ptp.mean_path_delay_ns = Some(i64::MAX);
    });
    facts.clock.devices[0].ahead_ns = i64::MIN;
    facts.clock.devices[0].window_ns = u64::MAX;
    let ClockError::Bound { nanoseconds, .. } = clock_error(&facts) else {
        panic!("no bound");
    };
    assert_eq!(nanoseconds, u64::MAX);
}
