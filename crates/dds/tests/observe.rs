//! Snapshots of an observable participant as another process reads them. No observer blocks the participant, however
//! badly it behaves.
//!
//! The observers here are threads of the same process, which makes no difference to a socket.

use std::{
    cell::Cell,
    collections::BTreeMap,
    io::{self, BufRead, BufReader, ErrorKind, Read},
    net::Shutdown,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixStream},
    },
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use isolane::{
    Announces, EndpointKind, Level, Limits, Network, Participant, Qos, StateMask,
    StaticDescription, TopicType,
    observe::{DiscoveredList, EndpointSample, LatencySample, SCHEMA, Snapshot, parse_socket_name},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[derive(TopicType, Debug, Clone, PartialEq, Default)]
struct Tick {
    number: u32,
}

/// Time limit for snapshots, which come once a second, on a machine that stalls.
const PATIENCE: Duration = Duration::from_secs(30);

fn observable(domain: u32) -> Participant {
    let network = Network::new(1);
    let builder = Participant::builder(domain).memory(&network, [10, 0, 0, 1]);
    builder.name("seen").observable(true).build().unwrap()
}

fn name(participant: &Participant) -> String {
    participant.observable_at().expect("it may be looked at")
}

fn connect(name: &str) -> io::Result<UnixStream> {
    let address = SocketAddr::from_abstract_name(name)?;
    UnixStream::connect_addr(&address)
}

/// Reads this number of snapshots on a separate thread, while the participant runs on this one.
fn look(participant: &Participant, snapshots: usize) -> Vec<Snapshot> {
    let name = name(participant);
    let looker = thread::spawn(move || {
        let stream = connect(&name).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let lines = BufReader::new(stream).lines().take(snapshots);
        lines
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .collect()
    });
    let is_done = participant.run_until(2 * PATIENCE, || looker.is_finished());
    assert!(is_done, "no observer was served");
    looker.join().unwrap()
}

#[test]
fn who_looks_sees_a_snapshot_a_second_with_all_that_is_going_on() {
    let participant = observable(3);
    let qos = Qos::reliable().level(Level::new(6).unwrap());
    let writer = participant.create_writer::<Tick>("Ticks", &qos).unwrap();
    let reader = participant.create_reader::<Tick>("Ticks", &qos).unwrap();
    assert!(participant.run_until(PATIENCE, || reader.matched_writers() == 1));
    writer.write(&Tick { number: 1 }).unwrap();
    assert!(participant.run_until(PATIENCE, || reader.available() == 1));
    assert!(reader.take().unwrap().is_some());

    let snapshots = look(&participant, 2);
    let [first, second] = snapshots.as_slice() else {
        panic!("{} came", snapshots.len())
    };
    assert_eq!(first.schema, SCHEMA);
    let of = &first.participant;
    assert_eq!((of.name.as_str(), of.domain), ("seen", 3));
    assert_eq!(
        (of.pid, of.datapath.as_str()),
        (std::process::id(), "memory")
    );
    assert_eq!(of.guid_prefix, participant.guid().prefix.to_string());
    assert_eq!(of.imbalance, None);
    let apart_us = second.participant.at_us - of.at_us;
    assert!(apart_us > 500_000.0, "{apart_us}");

    let [writer] = first.writers.as_slice() else {
        panic!("{:?}", first.writers)
    };
    assert_eq!((writer.topic.as_str(), writer.level), ("Ticks", 6));
    assert_eq!((writer.matched, writer.ledger["written"]), (1, 1));
    assert_eq!(first.readers[0].ledger["delivered"], 1);
    assert!(
        first
            .lanes
            .iter()
            .any(|lane| lane.level == Some(6) && lane.received > 0)
    );
    assert_eq!(first.jobs.len(), participant.report().jobs.len());
    let observe = second.jobs.iter().find(|job| job.name == "observe");
    let observe = observe.expect("it is a job like others");
    assert_eq!(observe.priority, 0);
    assert!(
        observe.activations > 10,
        "it works in small steps: {observe:?}"
    );
}

#[test]
fn a_participant_that_may_not_be_looked_at_has_no_socket_and_no_job() {
    let network = Network::new(1);
    let builder = Participant::builder(0).memory(&network, [10, 0, 0, 1]);
    let participant = builder.build().unwrap();
    assert_eq!(participant.observable_at(), None);
    let report = participant.report();
    assert!(report.jobs.iter().all(|job| job.name != "observe"));
}

#[test]
fn a_participant_without_a_name_is_called_as_its_program() {
    let network = Network::new(1);
    let builder = Participant::builder(0).memory(&network, [10, 0, 0, 1]);
    let participant = builder.observable(true).build().unwrap();
    let snapshots = look(&participant, 1);
    let program = std::env::current_exe().unwrap();
    let program = program.file_name().unwrap().to_str().unwrap();
    assert_eq!(snapshots[0].participant.name, program);
}

#[test]
fn participants_of_a_process_have_names_of_their_own_that_end_with_them() {
    let [one, two] = [observable(0), observable(0)];
    let names = [name(&one), name(&two)];
    assert_ne!(names[0], names[1]);
    for name in &names {
        let (pid, _) = parse_socket_name(name).expect("as they are looked for");
        assert_eq!(pid, std::process::id());
    }
    let mut stream = connect(&names[0]).unwrap();
    drop(one);
    let read = stream.read(&mut [0; 16]);
    let is_end = |error: &io::Error| error.kind() == ErrorKind::ConnectionReset;
    assert!(
        matches!(read, Ok(0)) || read.as_ref().is_err_and(is_end),
        "{read:?}"
    );
    let gone = connect(&names[0]).expect_err("nothing is left behind");
    assert_eq!(gone.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn who_does_not_read_is_dropped_and_holds_nothing_up() {
    let participant = observable(0);
    // Many jobs make long snapshots, which fill the socket sooner.
    let hour = Duration::from_secs(3_600);
    for number in 0..200 {
        let name = format!("a timer with a rather long name, as jobs of users have them, {number}");
        let timer = participant.create_timer(&name, Level::MIN, hour, hour / 2, |_| {});
        timer.unwrap();
    }
    let idle = connect(&name(&participant)).unwrap();
    let begin = Instant::now();
    let dropped = || look(&participant, 1)[0].participant.observers_dropped;
    while dropped() == 0 {
        assert!(begin.elapsed() < 2 * PATIENCE, "it is still served");
    }
    drop(idle);
    let observe = participant.report().jobs.into_iter();
    let observe = observe
        .into_iter()
        .find(|job| job.name == "observe")
        .unwrap();
    assert!(observe.statistics.activations > 50, "{observe:?}");
}

#[test]
fn a_hundred_who_connect_are_served_up_to_four_and_the_others_turned_away() {
    let participant = observable(0);
    let name = name(&participant);
    let stop = Arc::new(AtomicBool::new(false));
    let served = Arc::new(AtomicUsize::new(0));
    // Each observer connects at once; a full queue makes the later ones wait.
    let lookers: Vec<_> = (0..100)
        .map(|_| {
            let (name, stop, served) = (name.clone(), Arc::clone(&stop), Arc::clone(&served));
            thread::spawn(move || {
                let Ok(mut stream) = connect(&name) else {
                    return;
                };
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let is_served = matches!(stream.read(&mut [0; 1]), Ok(1));
                served.fetch_add(usize::from(is_served), Ordering::Relaxed);
                while is_served && !stop.load(Ordering::Relaxed) {
                    // It reads, so its connection is kept.
                    let _ = stream.set_read_timeout(Some(Duration::from_millis(100)));
                    let _ = stream.read(&mut [0; 1 << 12]);
                }
            })
        })
        .collect();
    let finished = || lookers.iter().filter(|looker| looker.is_finished()).count();
    let served = || served.load(Ordering::Relaxed);
    assert!(
        participant.run_until(4 * PATIENCE, || (finished(), served()) == (96, 4)),
        "{} were turned away, {} served",
        finished(),
        served()
    );
    stop.store(true, Ordering::Relaxed);
    lookers
        .into_iter()
        .for_each(|looker| looker.join().unwrap());
    assert_eq!(served(), 4);

    // When the others have left, there is room again.
    let snapshot = (0..20).find_map(|_| look(&participant, 1).pop());
    let snapshot = snapshot.expect("who comes later is served");
    assert!(snapshot.participant.observers_refused >= 96);
}

/// Other users may connect to an abstract socket: only the accepting side can see the user.
#[test]
fn connections_of_another_user_do_not_keep_others_from_looking() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: another user's name takes root");
        return;
    }
    let participant = observable(0);
    let at = name(&participant);
    let other = thread::spawn(move || {
        // Changes the user id of this thread only.
        let other_user = rustix::thread::Uid::from_raw(65_534);
        rustix::thread::set_thread_uid(other_user).unwrap();
        (0..400).map(|_| connect(&at)).collect::<Vec<_>>()
    });
    let held = loop {
        if other.is_finished() {
            break other.join().unwrap();
        }
        participant.run_for(Duration::from_millis(10));
    };
    assert!(held.iter().all(Result::is_ok), "all of them wait");
    let begun = Instant::now();
    let snapshots = look(&participant, 2);
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(snapshots[1].participant.observers_refused, 400);
}

/// Reads the list of discovered entities on a separate thread, while the participants run on this one. The thread waits
/// before it reads.
fn list(participants: &[&Participant], wait: Duration) -> (DiscoveredList, Duration) {
    let name = format!("{}/discovered", name(participants[0]));
    let reader = thread::spawn(move || {
        let begin = Instant::now();
        let stream = connect(&name).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        thread::sleep(wait);
        let list = DiscoveredList::read(BufReader::new(stream), |_| true).unwrap();
        (list.expect("it is wanted"), begin.elapsed())
    });
    let begin = Instant::now();
    while !reader.is_finished() {
        assert!(begin.elapsed() < 2 * PATIENCE, "nothing was answered");
        participants.iter().for_each(|participant| {
            participant.run_for(Duration::from_millis(1));
        });
    }
    reader.join().unwrap()
}

#[test]
fn a_participant_lists_itself_and_all_that_it_has_discovered() {
    let (here, there) = {
        let network = Network::new(2);
        let builder = |host| Participant::builder(3).memory(&network, [10, 0, 0, host]);
        let here = builder(1).name("seen").observable(true).build().unwrap();
        (here, builder(2).name("other").build().unwrap())
    };
    let qos = Qos::reliable().level(Level::new(6).unwrap());
    let writer = here.create_writer::<Tick>("Ticks", &qos).unwrap();
    let reader = there.create_reader::<Tick>("Ticks", &qos).unwrap();
    let begin = Instant::now();
    while writer.matched_readers() == 0 {
        assert!(begin.elapsed() < PATIENCE, "they do not match");
        here.run_for(Duration::from_millis(1));
        there.run_for(Duration::from_millis(1));
    }
    let (list, _) = list(&[&here, &there], Duration::ZERO);
    assert_eq!((list.source.name.as_str(), list.source.domain), ("seen", 3));
    assert_eq!(list.source.guid_prefix, here.guid().prefix.to_string());
    assert!(list.source.discovers_all);
    let names = list
        .participants
        .iter()
        .map(|data| data.entity_name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["seen", "other"]);
    let endpoints = list.endpoints.iter();
    let endpoints: Vec<_> = endpoints
        .map(|endpoint| (endpoint.data.guid.prefix, endpoint.kind))
        .collect();
    let expected = [
        (here.guid().prefix, EndpointKind::Writer),
        (there.guid().prefix, EndpointKind::Reader),
    ];
    assert_eq!(endpoints, expected);
    assert_eq!(list.endpoints[1].data.qos, here.subscriptions()[0].data.qos);
    drop(reader);
}

#[test]
fn a_disabled_participant_gives_a_source_without_an_age_and_no_entity() {
    let network = Network::new(1);
    let builder = Participant::builder(0).memory(&network, [10, 0, 0, 1]);
    let builder = builder.name("seen").observable(true).enabled(false);
    let participant = builder.build().unwrap();
    let writer = participant.create_writer::<Tick>("Ticks", &Qos::reliable());
    // Housekeeping, which notes the age, has run.
    participant.run_for(Duration::from_millis(1_500));
    let (disabled, _) = list(&[&participant], Duration::ZERO);
    assert_eq!(
        (disabled.source.name.as_str(), disabled.source.age_us),
        ("seen", 0.0)
    );
    assert!(disabled.participants.is_empty() && disabled.endpoints.is_empty());
    assert_eq!(disabled.omitted, 0);

    participant.enable().unwrap();
    participant.run_for(Duration::from_millis(1_500));
    let (enabled, _) = list(&[&participant], Duration::ZERO);
    assert!(enabled.source.age_us > 0.0);
    assert_eq!(
        (enabled.participants.len(), enabled.endpoints.len()),
        (1, 1)
    );
    drop(writer);
}

#[test]
fn only_a_participant_that_announces_all_discovers_all() {
    for (announces, discovers_all) in [
        (Announces::All, true),
        (Announces::Itself, false),
        (Announces::Nothing, false),
    ] {
        let network = Network::new(1);
        let builder = Participant::builder(0).memory(&network, [10, 0, 0, 1]);
        let described = StaticDescription::new("pedal", "10.0.0.1:32768".parse().unwrap());
        let builder = builder.described_as(described.announces(announces));
        let participant = builder.observable(true).build().unwrap();
        let (list, _) = list(&[&participant], Duration::ZERO);
        assert_eq!(list.source.discovers_all, discovers_all, "{announces:?}");
    }
}

/// Stream that returns at most 4 KiB every 2 ms.
struct Slow(UnixStream);

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        thread::sleep(Duration::from_millis(2));
        let some = buffer.len().min(4 << 10);
        self.0.read(&mut buffer[..some])
    }
}

#[test]
fn a_list_read_while_endpoints_come_and_go_is_whole_and_names_each_remaining_one_once() {
    const WRITERS: usize = 400;
    let limits = Limits {
        local_endpoints: 2 * WRITERS as u16,
        ..Limits::default()
    };
    let network = Network::new(2);
    let builder = |host| {
        let builder = Participant::builder(0).memory(&network, [10, 0, 0, host]);
        builder.limits(limits)
    };
    let here = builder(1).observable(true).build().unwrap();
    let there = builder(2).build().unwrap();
    let qos = Qos::best_effort().user_data(&[7; 256]);
    let create = |number: usize| {
        let topic = format!("{number:0>200}");
        there.create_writer::<Tick>(&topic, &qos).unwrap()
    };
    // The writers with even numbers are deleted during the reading.
    let (mut deleted, remaining): (Vec<_>, Vec<_>) = (0..WRITERS)
        .map(|number| (number, create(number)))
        .partition(|(number, _)| number % 2 == 0);
    let run = || {
        here.run_for(Duration::from_millis(1));
        there.run_for(Duration::from_millis(1));
    };
    let begin = Instant::now();
    while here.publications().len() < WRITERS {
        assert!(
            begin.elapsed() < PATIENCE,
            "{} are known",
            here.publications().len()
        );
        run();
    }
    let before = here.publications();
    let name = format!("{}/discovered", name(&here));
    let reader = thread::spawn(move || {
        let stream = connect(&name).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        DiscoveredList::read(BufReader::new(Slow(stream)), |_| true).unwrap()
    });
    let (mut created, mut number) = (Vec::new(), WRITERS);
    while !reader.is_finished() {
        assert!(begin.elapsed() < 2 * PATIENCE, "nothing was answered");
        // More are deleted than created, so that the table has free places between the others.
        let gone = (!deleted.is_empty()).then(|| deleted.swap_remove(deleted.len() / 2));
        if gone.is_some() && deleted.len() % 4 == 0 {
            created.push(create(number));
            number += 1;
        }
        drop(gone);
        run();
    }
    let list = reader.join().unwrap().expect("it is wanted");
    assert!(created.len() > 5, "only {} were created", created.len());
    let mut listed: BTreeMap<String, usize> = BTreeMap::new();
    for endpoint in &list.endpoints {
        *listed
            .entry(endpoint.data.topic_name.as_str().into())
            .or_default() += 1;
    }
    assert!(listed.values().all(|count| *count == 1), "{listed:?}");
    for (number, _) in &remaining {
        assert!(
            listed.contains_key(&format!("{number:0>200}")),
            "{number} is missing"
        );
    }
    // The table has changed before its last part was sent.
    let is_former = |topic: &String| before.iter().any(|it| it.data.topic_name.as_str() == topic);
    let former = listed.keys().filter(|topic| is_former(topic)).count();
    assert!(former < WRITERS, "nothing has changed meanwhile");
    assert_eq!(list.omitted, 0);
}

#[test]
fn a_long_list_reaches_a_slow_client_and_a_stopped_client_is_dropped() {
    const WRITERS: usize = 400;
    let limits = Limits {
        local_endpoints: WRITERS as u16 + 8,
        ..Limits::default()
    };
    let builder = Participant::builder(223).loopback().limits(limits);
    let participant = builder.observable(true).build().unwrap();
    let qos = Qos::best_effort().user_data(&[7; 256]);
    // With long names, the list is longer than what the kernel stores for a socket.
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| {
            let topic = format!("{number:0>200}");
            participant.create_writer::<Tick>(&topic, &qos).unwrap()
        })
        .collect();
    // The list may have endpoints of other participants of the domain.
    let own = |list: &DiscoveredList| {
        let prefixes = list.endpoints.iter().map(|it| it.data.guid.prefix);
        prefixes
            .filter(|it| *it == participant.guid().prefix)
            .count()
    };
    // The client wakes the loop: this is faster than housekeeping.
    let (fast, took) = list(&[&participant], Duration::ZERO);
    assert_eq!(own(&fast), WRITERS);
    assert!(took < Duration::from_millis(500), "{took:?}");

    let (slow, _) = list(&[&participant], Duration::from_millis(300));
    assert_eq!(own(&slow), WRITERS);

    let idle = connect(&format!("{}/discovered", name(&participant))).unwrap();
    let (next, took) = list(&[&participant], Duration::ZERO);
    assert_eq!(own(&next), WRITERS);
    assert!(took < Duration::from_secs(10), "{took:?}");
    drop((idle, writers));
}

/// A connection that cannot be accepted stays in the backlog, and its socket stays readable.
#[test]
fn a_process_without_a_free_descriptor_does_not_spin_and_lists_later() {
    const CHILD: &str = "ISOLANE_TEST_WITHOUT_DESCRIPTORS";
    if std::env::var_os(CHILD).is_none() {
        // The limit is that of a process: the other tests have theirs.
        let test = "a_process_without_a_free_descriptor_does_not_spin_and_lists_later";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let child = child.args(["--exact", test, "--nocapture"]).env(CHILD, "1");
        assert!(child.status().unwrap().success());
        return;
    }
    let builder = Participant::builder(224).loopback();
    let participant = builder.observable(true).build().unwrap();
    participant.run_for(Duration::from_millis(100));
    let stream = connect(&format!("{}/discovered", name(&participant))).unwrap();
    let limit = getrlimit(Resource::Nofile);
    let few = Rlimit {
        current: Some(256),
        ..limit
    };
    setrlimit(Resource::Nofile, few).unwrap();
    let copies: Vec<_> = std::iter::from_fn(|| stream.try_clone().ok()).collect();
    let activations = || {
        let jobs = participant.report().jobs;
        let job = jobs.iter().find(|job| job.name == "list discovered");
        job.unwrap().statistics.activations
    };
    let before = activations();
    participant.run_for(Duration::from_millis(2_500));
    let retries = activations() - before;
    assert!((2..10).contains(&retries), "{retries}");

    drop(copies);
    setrlimit(Resource::Nofile, limit).unwrap();
    let reader =
        thread::spawn(move || DiscoveredList::read(BufReader::new(stream), |_| true).unwrap());
    assert!(participant.run_until(PATIENCE, || reader.is_finished()));
    assert!(reader.join().unwrap().is_some());
}

/// Latencies of the readers of a snapshot, by topic.
fn latencies(snapshot: &Snapshot) -> BTreeMap<String, Option<LatencySample>> {
    let readers = snapshot.readers.iter();
    let latency = |reader: &EndpointSample| (reader.topic.clone(), reader.latency.clone());
    readers.map(latency).collect()
}

/// Reads snapshots until the connection is closed, and sends them to the test.
fn observe(name: &str) -> (UnixStream, mpsc::Receiver<Snapshot>) {
    let stream = connect(name).unwrap();
    let (sender, snapshots) = mpsc::channel();
    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
    thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let snapshot = serde_json::from_str(&line).unwrap();
            if sender.send(snapshot).is_err() {
                break;
            }
        }
    });
    (stream, snapshots)
}

#[test]
fn latencies_are_counted_however_samples_are_handled_and_only_while_somebody_observes() {
    let participant = observable(0);
    let topics = ["view", "sample", "take", "take_into", "selection"];
    let qos = Qos::reliable().keep_last(16);
    let writers = topics.map(|topic| participant.create_writer::<Tick>(topic, &qos).unwrap());
    let readers = topics.map(|topic| {
        let reader = match topic {
            "view" => participant.create_view_reader::<Tick>(topic, &Qos::best_effort()),
            _ => participant.create_reader::<Tick>(topic, &qos),
        };
        reader.unwrap()
    });
    // The first reader is deleted: the others keep their latencies.
    let gone = participant.create_reader::<Tick>("gone", &qos).unwrap();
    let [view, sample, take, take_into, selection] = &readers;
    let handled = Rc::new(Cell::new(0));
    let count = || {
        let handled = Rc::clone(&handled);
        move || handled.set(handled.get() + 1)
    };
    let counted = count();
    view.on_view(move |_| counted());
    let counted = count();
    let on_sample = sample.on_sample(Tick::default(), move |_| counted());
    on_sample.unwrap();
    let matched = || {
        readers.iter().all(|reader| reader.matched_writers() == 1)
            && writers.iter().all(|writer| writer.matched_readers() == 1)
    };
    assert!(participant.run_until(PATIENCE, matched));
    let next = |snapshots: &mpsc::Receiver<Snapshot>| {
        let mut next = None;
        let has_come = || {
            next = next.take().or_else(|| snapshots.try_recv().ok());
            next.is_some()
        };
        assert!(participant.run_until(PATIENCE, has_come));
        next.unwrap()
    };
    // Each reader handles two samples.
    let handle_two = || {
        let before = handled.get();
        for number in 0..2 {
            let tick = Tick { number };
            writers
                .iter()
                .for_each(|writer| writer.write(&tick).unwrap());
        }
        let taken = [take, take_into, selection];
        let have_come =
            || handled.get() == before + 4 && taken.iter().all(|reader| reader.available() == 2);
        assert!(
            participant.run_until(PATIENCE, have_come),
            "{} {before} {:?}",
            handled.get(),
            taken.map(|reader| reader.available())
        );
        while take.take().unwrap().is_some() {}
        let mut value = Tick::default();
        while take_into.take_into(&mut value).unwrap().is_some() {}
        assert_eq!(
            selection
                .take_samples(usize::MAX, StateMask::empty())
                .unwrap()
                .len(),
            2
        );
    };

    handle_two();
    let (stream, snapshots) = observe(&name(&participant));
    let first = latencies(&next(&snapshots));
    assert_eq!(first.len(), 6);
    assert!(first.values().all(Option::is_none), "{first:?}");
    drop(gone);
    handle_two();
    // On a machine that stalls, the samples may be those of several snapshots.
    let mut counted = [0; 5];
    for _ in 0..5 {
        let snapshot = latencies(&next(&snapshots));
        assert_eq!(snapshot.len(), topics.len());
        for (counted, topic) in counted.iter_mut().zip(topics) {
            let latency = snapshot[topic].as_ref().expect("an interval has passed");
            *counted += latency.samples;
            assert_eq!(latency.max_us.is_some(), latency.samples > 0, "{latency:?}");
            assert!(latency.max_us != Some(0.0), "{topic} {latency:?}");
            assert!(latency.median_us <= latency.p99_us && latency.p99_us <= latency.max_us);
        }
        if counted == [2; 5] {
            break;
        }
    }
    assert_eq!(counted, [2; 5], "{topics:?}");
    // Each interval begins with no samples.
    let third = latencies(&next(&snapshots));
    assert!(
        third.values().all(|it| it.as_ref().unwrap().samples == 0),
        "{third:?}"
    );

    // After the last client, nothing is recorded; the next client begins anew.
    stream.shutdown(Shutdown::Both).unwrap();
    participant.run_for(Duration::from_millis(3_500));
    handle_two();
    let (_stream, snapshots) = observe(&name(&participant));
    let again = latencies(&next(&snapshots));
    assert!(again.values().all(Option::is_none), "{again:?}");
}

#[test]
fn latencies_of_a_reader_handle_are_counted() {
    let participant = Participant::spawn(|| {
        let network = Network::new(1);
        let builder = Participant::builder(0).memory(&network, [10, 0, 0, 1]);
        builder.observable(true).build()
    })
    .unwrap();
    let qos = Qos::reliable();
    let mut writer = participant.create_writer::<Tick>("Ticks", &qos).unwrap();
    let mut reader = participant.create_reader::<Tick>("Ticks", &qos).unwrap();
    let name = participant.with(name).unwrap();
    let (_stream, snapshots) = observe(&name);
    let first = snapshots.recv_timeout(PATIENCE).unwrap();
    assert_eq!(latencies(&first)["Ticks"], None);
    for number in 0..3 {
        writer.write(&Tick { number }).unwrap();
        assert!(reader.take_timeout(PATIENCE).unwrap().is_some());
    }
    let mut samples = 0;
    while samples < 3 {
        let snapshot = snapshots.recv_timeout(PATIENCE).unwrap();
        samples += latencies(&snapshot)["Ticks"].as_ref().unwrap().samples;
    }
    assert_eq!(samples, 3);
}
