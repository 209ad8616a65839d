//! A critical topic on an AF_XDP lane, next to a bulk topic with a budget. As root: `critical_lane eth0`.
//!
//! Where lanes do not work, kernel sockets are used, and a warning says why. The rest of the program stays the same.

use std::{cell::Cell, env, error::Error, num::NonZeroU32, rc::Rc, time::Duration};

use isolane::{
    Budget, Interfaces, Level, OverBudget, Participant, Qos, TopicType, UdpOptions, XdpOptions,
};

#[derive(TopicType)]
struct BrakePressure {
    pascal: f32,
}

#[derive(TopicType)]
struct LogLine {
    text: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let interface = env::args().nth(1).ok_or("usage: critical_lane INTERFACE")?;
    let participant = Participant::builder(0)
        .interfaces(Interfaces::Named(vec![interface]))
        .datapaths(vec![
            Box::new(XdpOptions::default()),
            Box::new(UdpOptions::default()),
        ])
        .observable(true) // `isolane top` may look
        .build()?;

    let brakes = participant.create_view_reader::<BrakePressure>(
        "BrakePressure",
        &Qos::best_effort().level(Level::MAX),
    )?;
    // The callback sees the sample in the frame that was received. It does not print, because that may wait.
    let newest = Rc::new(Cell::new(0.0));
    let received = Rc::clone(&newest);
    brakes.on_view(move |sample| received.set(sample.value.map_or(0.0, |it| it.pascal)));

    let capacity = NonZeroU32::new(20).expect("20 is not 0");
    let budget = Budget {
        capacity,
        period: Duration::from_millis(10),
    };
    let bulk = Qos::best_effort().budget(budget, OverBudget::Drop); // 20 datagrams in 10 ms
    let logs = participant.create_reader::<LogLine>("Log", &bulk)?;

    println!("datapath: {}", participant.datapath());
    participant
        .warnings()
        .iter()
        .for_each(|it| eprintln!("{it}"));
    let writer = participant
        .create_writer::<BrakePressure>("BrakePressure", &Qos::best_effort().level(Level::MAX))?;
    let (period, offset) = (Duration::from_millis(100), Duration::ZERO);
    participant.create_timer("brake", Level::MAX, period, offset, move |_| {
        if let Err(error) = writer.write(&BrakePressure { pascal: 1.0e5 }) {
            eprintln!("not written: {error}");
        }
    })?;
    loop {
        println!("brake pressure: {} Pa", newest.get());
        match logs.take_timeout(Duration::from_secs(1)) {
            Ok(Some(line)) => println!("{:?}", line.value.map(|it| it.text)),
            Ok(None) => {}
            Err(error) => eprintln!("not a log line: {error}"),
        }
    }
}
