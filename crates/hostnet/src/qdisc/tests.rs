//! Tests of requests as bytes, and of decoding them again.
//!
//! **Unproven on hardware**: no machine these tests have run on has a device that offloads classes, gates, shapers or
//! launch times. The bytes are those of `linux/pkt_sched.h` and `linux/rtnetlink.h`, written by hand.

use super::*;

/// Two classes, the critical one alone on queue 1.
fn two_classes(offloaded: bool) -> TrafficClasses {
    let mut class_of_priority = [0; 16];
    class_of_priority[5] = 1;
    TrafficClasses {
        class_of_priority,
        queues: vec![(1, 0), (1, 1)],
        offloaded,
    }
}

/// Encoding of these classes in the kernel's structure.
fn two_classes_bytes(offloaded: u8) -> Vec<u8> {
    let mut bytes = vec![2];
    bytes.extend([0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    bytes.push(offloaded);
    let numbers: [u16; 16] = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let firsts: [u16; 16] = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend(numbers.iter().flat_map(|number| number.to_ne_bytes()));
    bytes.extend(firsts.iter().flat_map(|first| first.to_ne_bytes()));
    bytes
}

/// Encoding of an attribute: length, kind, value, padding.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = (value.len() as u16 + 4).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

const NESTED: u16 = 0x8000;

#[test]
fn a_root_with_classes_is_requested_in_the_kernels_bytes() {
    // tc qdisc replace dev X root handle 1501: mqprio num_tc 2 map 0 0 0 0 0 1 0 ... queues 1@0 1@1 hw 1
    let payload = Request::put(7, OURS, ROOT, &options::mqprio(&two_classes(true))).payload;
    let mut expected = vec![0, 0, 0, 0];
    for field in [7_u32, 0x1501_0000, 0xffff_ffff, 0] {
        expected.extend(field.to_ne_bytes());
    }
    expected.extend(attribute(1, b"mqprio\0"));
    expected.extend(attribute(2, &two_classes_bytes(1)));
    assert_eq!(payload, expected);
}

/// Requests in short: message type and parent.
fn asked(standing: &RootQdisc, root: &RootQdisc) -> Vec<(u16, u32)> {
    let requests = requests_of_root(7, Some(standing), root).expect("it is known");
    let asked = |request: &Request| {
        let (index, parent, _, _) = parse_header(&request.payload).expect("a whole header");
        assert_eq!(index, 7);
        (request.kind, parent)
    };
    requests.iter().map(asked).collect()
}

#[test]
fn a_root_with_classes_is_taken_away_before_another_one_is_put_there() {
    let gates = RootQdisc::Taprio(GateSchedule {
        classes: two_classes(true),
        base_time_ns: 0,
        entries: vec![(3, 1_000_000)],
    });
    let classes = RootQdisc::Mqprio(two_classes(true));
    let other = RootQdisc::Other {
        name: String::from("htb"),
    };
    let default = RootQdisc::Default {
        name: String::from("mq"),
    };
    let pfifo = RootQdisc::Pfifo { frames: 64 };
    // tc qdisc del dev X root
    let delete = Request::delete_root(7);
    let mut expected = vec![0, 0, 0, 0];
    for field in [7_u32, 0, 0xffff_ffff, 0] {
        expected.extend(field.to_ne_bytes());
    }
    assert_eq!(
        (delete.kind, delete.flags, delete.payload),
        (37, 0, expected)
    );
    let put = [(36, 0xffff_ffff), (36, 0x1501_0001), (36, 0x1501_0002)];
    for new in [&classes, &gates] {
        for standing in [&classes, &gates, &other] {
            let mut with_delete = vec![(37, 0xffff_ffff)];
            with_delete.extend(put);
            assert_eq!(asked(standing, new), with_delete, "{standing:?} {new:?}");
        }
        for standing in [&default, &pfifo] {
            assert_eq!(asked(standing, new), put, "{standing:?} {new:?}");
        }
    }
    assert_eq!(asked(&classes, &pfifo), [(36, 0xffff_ffff)]);
    assert_eq!(asked(&classes, &default), [(37, 0xffff_ffff)]);
    assert!(asked(&default, &default).is_empty());
    assert_eq!(requests_of_root(7, Some(&default), &other), None);
}

#[test]
fn gates_are_requested_in_the_kernels_bytes() {
    // tc qdisc replace dev X root taprio num_tc 2 map ... queues ... base-time 1000 sched-entry S 02 200000 sched-entry
    // S 01 800000 flags 0x2
    let schedule = GateSchedule {
        classes: two_classes(true),
        base_time_ns: 1_000,
        entries: vec![(2, 200_000), (1, 800_000)],
    };
    let entry = |index: u32, open: u32, interval: u32| {
        let inner = [
            attribute(1, &index.to_ne_bytes()),
            attribute(2, &[0]),
            attribute(3, &open.to_ne_bytes()),
            attribute(4, &interval.to_ne_bytes()),
        ];
        attribute(1 | NESTED, &inner.concat())
    };
    let entries = [entry(0, 2, 200_000), entry(1, 1, 800_000)].concat();
    let options = [
        attribute(1, &two_classes_bytes(0)),
        attribute(2 | NESTED, &entries),
        attribute(3, &1_000_i64.to_ne_bytes()),
        attribute(10, &2_u32.to_ne_bytes()),
    ];
    let mut expected = attribute(1, b"taprio\0");
    expected.extend(attribute(2 | NESTED, &options.concat()));
    assert_eq!(options::taprio(&schedule).bytes(), expected);
    assert_eq!(
        options::parse_taprio(AttributeReader(&expected)),
        Some(schedule)
    );
}

#[test]
fn a_share_of_the_link_is_requested_in_the_kernels_bytes() {
    // tc qdisc replace dev X parent 1501:2 cbs idleslope 98688 sendslope -901312 hicredit 153 locredit -1389 offload 1
    let shaper = CreditShaper {
        idle_slope_kbps: 98_688,
        send_slope_kbps: -901_312,
        high_credit_bytes: 153,
        low_credit_bytes: -1_389,
        offloaded: true,
    };
    let mut structure = vec![1, 0, 0, 0];
    for field in [153_i32, -1_389, 98_688, -901_312] {
        structure.extend(field.to_ne_bytes());
    }
    let mut expected = attribute(1, b"cbs\0");
    expected.extend(attribute(2 | NESTED, &attribute(1, &structure)));
    let bytes = options::credit_shaper(&shaper).bytes();
    assert_eq!(bytes, expected);
    let read = options::parse_of_queue("cbs", AttributeReader(&bytes));
    assert_eq!(read, QueueQdisc::CreditShaper(shaper));
}

#[test]
fn times_of_frames_are_requested_in_the_kernels_bytes() {
    // tc qdisc replace dev X parent 1501:2 etf clockid CLOCK_TAI delta 300000 offload
    let time = EarliestTime {
        delta_ns: 300_000,
        clock: 11,
        offloaded: true,
    };
    let mut structure = 300_000_i32.to_ne_bytes().to_vec();
    structure.extend(11_i32.to_ne_bytes());
    structure.extend(2_u32.to_ne_bytes());
    let mut expected = attribute(1, b"etf\0");
    expected.extend(attribute(2 | NESTED, &attribute(1, &structure)));
    let bytes = options::earliest_time(&time).bytes();
    assert_eq!(bytes, expected);
    let read = options::parse_of_queue("etf", AttributeReader(&bytes));
    assert_eq!(read, QueueQdisc::EarliestTime(time));
}

#[test]
fn a_root_is_read_as_it_was_written_and_what_is_cut_off_is_another_one() {
    let root = |handle, name: &str, attributes: &Attributes| {
        parse_root(handle, name.into(), AttributeReader(&attributes.bytes()))
    };
    let classes = two_classes(false);
    let read = root(OURS, "mqprio", &options::mqprio(&classes));
    assert_eq!(read, RootQdisc::Mqprio(classes));
    let pfifo = options::pfifo(Some(64));
    assert_eq!(root(1, "pfifo", &pfifo), RootQdisc::Pfifo { frames: 64 });
    let name = String::from("pfifo");
    assert_eq!(root(0, "pfifo", &pfifo), RootQdisc::Default { name });
    for name in ["pfifo", "mqprio", "taprio", "fq"] {
        let other = RootQdisc::Other { name: name.into() };
        assert_eq!(root(1, name, &Attributes::new()), other);
    }
}

/// Decodes the options of a `taprio` as the kernel sends them, with `more` appended.
fn parsed_gates(flags: u32, clock: Option<u32>, more: &[Vec<u8>]) -> Option<GateSchedule> {
    let inner = [
        attribute(1, &0_u32.to_ne_bytes()),
        attribute(2, &[0]),
        attribute(3, &3_u32.to_ne_bytes()),
        attribute(4, &1_000_u32.to_ne_bytes()),
    ];
    let entries = attribute(1 | NESTED, &inner.concat());
    let mut options = [
        attribute(1, &two_classes_bytes(0)),
        attribute(2 | NESTED, &entries),
        attribute(3, &5_i64.to_ne_bytes()),
        attribute(8, &1_000_i64.to_ne_bytes()),
        attribute(10, &flags.to_ne_bytes()),
    ]
    .concat();
    options.extend(clock.map_or(Vec::new(), |clock| attribute(5, &clock.to_ne_bytes())));
    options.extend(more.concat());
    let nested = attribute(2 | NESTED, &options);
    options::parse_taprio(AttributeReader(&nested))
}

/// Attributes of a class: its index, and more.
fn class_entry(kind: u16, more: &[(u16, u32)]) -> Vec<u8> {
    let mut inner = attribute(1, &0_u32.to_ne_bytes());
    for (kind, value) in more {
        inner.extend(attribute(*kind, &value.to_ne_bytes()));
    }
    attribute(kind | NESTED, &inner)
}

#[test]
fn gates_that_could_not_be_set_again_as_they_are_are_another_discipline() {
    let no_more = attribute(9, &0_i64.to_ne_bytes());
    let class = |longest, preemption| class_entry(12, &[(2, longest), (3, preemption)]);
    assert!(parsed_gates(0, Some(11), &[]).is_some());
    assert!(parsed_gates(2, None, &[]).is_some());
    assert!(parsed_gates(2, None, &[no_more, class(0, 1)]).is_some());
    assert_eq!(parsed_gates(1, Some(11), &[]), None, "times by the kernel");
    assert_eq!(parsed_gates(0, Some(1), &[]), None, "the monotonic clock");
    assert_eq!(parsed_gates(0, None, &[]), None, "no clock");
    assert_eq!(
        parsed_gates(2, None, &[class(1_500, 1)]),
        None,
        "a longest frame"
    );
    assert_eq!(
        parsed_gates(2, None, &[class(0, 2)]),
        None,
        "frames that are cut"
    );
    let extension = attribute(9, &7_i64.to_ne_bytes());
    assert_eq!(parsed_gates(2, None, &[extension]), None, "an extension");
    let delay = attribute(11, &7_u32.to_ne_bytes());
    assert_eq!(parsed_gates(2, None, &[delay]), None, "something else");
    let waiting = attribute(7 | NESTED, &attribute(3, &9_i64.to_ne_bytes()));
    assert_eq!(
        parsed_gates(2, None, &[waiting]),
        None,
        "a schedule that waits"
    );
}

#[test]
fn classes_that_could_not_be_set_again_as_they_are_are_another_discipline() {
    let parsed = |more: &[u8]| {
        let mut options = two_classes_bytes(1);
        options.resize(options.len().next_multiple_of(4), 0);
        options.extend(more);
        let nested = attribute(2, &options);
        options::parse_mqprio(AttributeReader(&nested))
    };
    assert_eq!(parsed(&[]), Some(two_classes(true)));
    assert_eq!(parsed(&class_entry(5, &[(2, 1)])), Some(two_classes(true)));
    assert_eq!(
        parsed(&class_entry(5, &[(2, 2)])),
        None,
        "frames that are cut"
    );
    assert_eq!(parsed(&attribute(1, &[1, 0])), None, "a mode");
    assert_eq!(parsed(&attribute(3 | NESTED, &[])), None, "rates");
}

#[test]
fn times_that_are_deadlines_are_another_discipline() {
    for (flags, is_known) in [(0_u32, true), (2, true), (1, false), (3, false), (4, false)] {
        let mut structure = 300_000_i32.to_ne_bytes().to_vec();
        structure.extend(11_i32.to_ne_bytes());
        structure.extend(flags.to_ne_bytes());
        let nested = attribute(2 | NESTED, &attribute(1, &structure));
        let read = options::parse_of_queue("etf", AttributeReader(&nested));
        let is_other = matches!(read, QueueQdisc::Other { .. });
        assert_eq!(is_other, !is_known, "{flags}");
    }
}

#[test]
fn each_transmit_queue_has_a_class_of_its_own() {
    let classes = TrafficClasses {
        queues: vec![(3, 0), (1, 3), (1, 3)],
        ..TrafficClasses::default()
    };
    assert_eq!(queues(&classes), [0, 1, 2, 3]);
    assert_eq!(class_of(OURS, 3), 0x1501_0004);
}

#[test]
fn frames_are_counted_by_the_queue_of_the_class_they_went_through() {
    assert_eq!(queue_of(OURS, class_of(OURS, 3)), Some(3));
    assert_eq!(
        queue_of(0, 0x0000_0001),
        Some(0),
        "what the kernel takes of itself has no handle"
    );
    assert_eq!(queue_of(0x8001_0000, 0x8002_0001), None, "of another root");
    assert_eq!(queue_of(OURS, ROOT), None, "the root itself");
    let mut basic = 640_u64.to_ne_bytes().to_vec();
    basic.extend(7_u32.to_ne_bytes());
    let statistics = attribute(STATISTICS, &attribute(BASIC, &basic));
    assert_eq!(frames_sent(AttributeReader(&statistics)), Some(7));
    let cut = attribute(STATISTICS, &attribute(BASIC, &basic[..11]));
    assert_eq!(frames_sent(AttributeReader(&cut)), None);
}
