//! Statements about machines on which linuxptp runs: what ptp4l told and what was measured, made up.

use isolane_tune::{
    Clock, DeviceClock, Facts, Finding, Needs, Ptp, PtpDelay, PtpPort, PtpState, Severity, examine,
};

const SECOND_NS: i64 = 1_000_000_000;

fn machine(change: impl FnOnce(&mut Clock, &mut Ptp)) -> Facts {
    let mut clock = Clock {
        is_kept: Some(true),
        maximum_error_us: Some(0),
        devices: vec![DeviceClock {
            number: 3,
            interfaces: vec![String::from("eth0")],
            ahead_ns: 37 * SECOND_NS + 400,
            window_ns: 90,
        }],
        ..Clock::default()
    };
    let mut ptp = Ptp {
        grandmaster: String::from("aabbcc.fffe.ddeeff"),
        has_grandmaster: true,
        master_offset_ns: 35,
        steps_removed: Some(1),
        mean_path_delay_ns: Some(700),
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
    };
    change(&mut clock, &mut ptp);
    // What was taken away stays away.
    clock.ptp = clock.ptp_silence.is_none().then_some(ptp);
    Facts {
        programs: ["phc2sys", "ptp4l"].map(String::from).to_vec(),
        clock,
        ..Facts::default()
    }
}

fn found(facts: &Facts, id: &str) -> Finding {
    let findings = examine(facts, &Needs::of_domain(0));
    let mut all = findings.iter().filter(|finding| finding.id == id);
    let finding = all
        .next()
        .unwrap_or_else(|| panic!("no {id} in {findings:#?}"));
    assert!(all.next().is_none(), "{id} twice");
    if finding.severity > Severity::Ok {
        assert!(
            !finding.cost.is_empty() && !finding.remedy.is_empty(),
            "{finding:?}"
        );
    }
    finding.clone()
}

#[test]
fn a_slave_that_is_near_its_master_is_as_it_should_be() {
    let facts = machine(|_, _| {});
    let findings = examine(&facts, &Needs::of_domain(0));
    let of_ptp = findings.iter().filter(|it| it.id.starts_with("kernel.ptp"));
    let bad: Vec<&Finding> = of_ptp.filter(|it| it.severity > Severity::Ok).collect();
    assert!(bad.is_empty(), "{bad:#?}");
    let error = found(&facts, "kernel.clock-error");
    assert_eq!(error.severity, Severity::Ok);
    for part in ["1.2 us", "aabbcc.fffe.ddeeff", "ptp4l and phc2sys"] {
        assert!(error.what.contains(part), "{part}: {}", error.what);
    }
    let one_way = found(&facts, "kernel.one-way").what;
    assert!(
        one_way.contains("beyond 2.5 us, if PTP's messages wait nowhere"),
        "{one_way}"
    );
    assert!(found(&facts, "kernel.ptp-device").what.contains("37 s"));
}

#[test]
fn a_port_that_follows_nobody_is_named_with_its_state_and_what_to_do() {
    for (state, remedy) in [
        (PtpState::Listening, "domain there (0)"),
        (PtpState::Uncalibrated, "delay requests"),
        (PtpState::Faulty, "ethtool -T"),
    ] {
        let port = found(
            &machine(|_, ptp| ptp.ports[0].state = state),
            "kernel.ptp-port.1",
        );
        assert_eq!(port.severity, Severity::Warn, "{state}");
        assert!(
            port.what.contains(&format!("(eth0) is {state}")),
            "{}",
            port.what
        );
        assert!(port.remedy.contains(remedy), "{}", port.remedy);
    }
    // Beside one that follows, another that waits is not missed.
    let second = machine(|_, ptp| {
        ptp.ports.push(PtpPort {
            number: 2,
            state: PtpState::Listening,
            ..PtpPort::default()
        });
    });
    assert_eq!(found(&second, "kernel.ptp-port.2").severity, Severity::Ok);
}

#[test]
fn no_grandmaster_is_a_warning_and_being_one_is_something_to_know() {
    let alone = machine(|_, ptp| {
        ptp.has_grandmaster = false;
        ptp.ports[0].state = PtpState::Listening;
    });
    assert_eq!(
        found(&alone, "kernel.ptp-grandmaster").severity,
        Severity::Warn
    );
    let master = machine(|_, ptp| {
        ptp.has_grandmaster = false;
        ptp.ports[0].state = PtpState::Master;
    });
    let grandmaster = found(&master, "kernel.ptp-grandmaster");
    assert_eq!(grandmaster.severity, Severity::Info);
    assert!(grandmaster.remedy.contains("clientOnly"));
    assert_eq!(found(&master, "kernel.clock-error").severity, Severity::Ok);
}

fn grandmaster(change: impl FnOnce(&mut Clock)) -> Facts {
    machine(|clock, ptp| {
        ptp.has_grandmaster = false;
        ptp.master_offset_ns = 0;
        ptp.ports[0].state = PtpState::Master;
        change(clock);
    })
}

#[test]
fn a_grandmaster_whose_kernel_follows_the_network_is_as_it_should_be() {
    let id = "kernel.clock-keepers";
    for keeper in ["chronyd", "ntpd", "systemd-timesyn"] {
        let mut master = grandmaster(|_| {});
        master.programs.push(String::from(keeper));
        let keepers = found(&master, id);
        assert_eq!(keepers.severity, Severity::Ok, "{keepers:?}");
        assert!(keepers.what.contains(keeper), "{keepers:?}");
        let programs = found(&master, "kernel.ptp").what;
        assert!(
            programs.contains("the device's by the kernel's"),
            "{programs}"
        );
        // On a slave the two pull one clock to and fro.
        let mut slave = machine(|_, _| {});
        slave.programs.push(String::from(keeper));
        assert_eq!(found(&slave, id).severity, Severity::Warn);
    }
    let apart = grandmaster(|clock| clock.devices[0].ahead_ns += 5_000_000);
    let device = found(&apart, "kernel.ptp-device");
    assert_eq!(device.severity, Severity::Warn);
    assert!(device.remedy.contains("-a -rr"), "{device:?}");
}

#[test]
fn ptp4l_alone_is_enough_where_it_stamps_by_the_kernel() {
    let alone = |in_hardware| {
        let mut facts = machine(|clock, ptp| {
            ptp.is_tai = Some(true);
            ptp.utc_offset_is_valid = Some(true);
            ptp.ports[0].stamps_in_hardware = Some(in_hardware);
            clock.devices.clear();
        });
        facts.programs = vec![String::from("ptp4l")];
        facts
    };
    let in_software = alone(false);
    assert_eq!(found(&in_software, "kernel.ptp").severity, Severity::Ok);
    let error = found(&in_software, "kernel.clock-error");
    assert_eq!(error.severity, Severity::Ok, "{error:?}");
    assert!(
        error.what.contains("less 37 s, according to ptp4l,"),
        "{error:?}"
    );
    let error = found(&alone(true), "kernel.clock-error");
    assert_eq!(error.severity, Severity::Info, "{error:?}");
}

#[test]
fn two_programs_that_keep_nothing_yet_are_not_to_be_started() {
    let waiting = machine(|clock, _| clock.is_kept = Some(false));
    let error = found(&waiting, "kernel.clock-error");
    assert!(error.what.contains("unsynchronised"), "{error:?}");
    assert!(
        error.remedy.contains("journalctl") && !error.remedy.contains("run chrony"),
        "{error:?}"
    );
}

#[test]
fn offsets_that_are_too_large_are_warned_of_where_they_are() {
    let off = machine(|_, ptp| ptp.master_offset_ns = -2_000_000);
    let offset = found(&off, "kernel.ptp-offset");
    assert_eq!(offset.severity, Severity::Warn);
    assert!(offset.what.contains("2000 us"), "{}", offset.what);
    assert_eq!(found(&off, "kernel.ptp-device").severity, Severity::Ok);
    assert_eq!(found(&off, "kernel.clock-error").severity, Severity::Info);

    let unfollowed = machine(|clock, _| clock.devices[0].ahead_ns += 5_000_000);
    let device = found(&unfollowed, "kernel.ptp-device");
    assert_eq!(device.severity, Severity::Warn);
    assert!(
        device.what.contains("/dev/ptp3") && device.what.contains("5000 us"),
        "{}",
        device.what
    );
    assert_eq!(
        found(&unfollowed, "kernel.ptp-offset").severity,
        Severity::Ok
    );
}

#[test]
fn what_nobody_can_know_here_is_said_with_whom_to_ask() {
    let silent = machine(|clock, _| {
        clock.ptp_silence = Some(String::from("/var/run/ptp4l is for root only"));
    });
    assert_eq!(found(&silent, "kernel.ptp-answer").severity, Severity::Info);
    let error = found(&silent, "kernel.clock-error");
    assert!(
        error.what.contains("for root only") && error.remedy.contains("as root"),
        "{error:?}"
    );

    let far = machine(|_, ptp| ptp.steps_removed = Some(3));
    let path = found(&far, "kernel.ptp-path");
    assert_eq!(path.severity, Severity::Info);
    assert!(
        path.what.contains("2 clocks stand between"),
        "{}",
        path.what
    );

    let unread = machine(|clock, _| clock.devices.clear());
    assert_eq!(found(&unread, "kernel.ptp-device").severity, Severity::Info);
}

#[test]
fn what_ptp4l_told_can_be_recorded_and_read_again() {
    let facts = machine(|clock, _| clock.tai_offset_s = Some(37));
    let text = serde_json::to_string(&facts).expect("JSON");
    assert!(text.contains(r#""state":"SLAVE""#), "{text}");
    assert_eq!(serde_json::from_str::<Facts>(&text).expect("facts"), facts);
}
