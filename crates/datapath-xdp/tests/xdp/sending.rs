//! What leaves by a lane, and what by the kernel.

use isolane_datapath::conformance::Options;
use isolane_datapath::{Counted, Datapath, Lane, ReceiveBurst, TransmitBurst};

use crate::fixture::{config, xdp_on};
use crate::network::Segment;

const LANE: Lane = Lane::ALL[8];

#[test]
fn probe() {
    let mut segment = Segment::new();
    let [one, other] = [(); 2].map(|()| segment.add_host());
    let [mut one, mut other] =
        [one, other].map(|host| xdp_on(host, config(&Options::default())).unwrap());
    one.open_lane(LANE).unwrap();
    other.open_lane(LANE).unwrap();
    let to = other.unicast(LANE)[0];
    let mut received = ReceiveBurst::new();
    for round in 0..600 {
        let _ = round;
        let mut burst = TransmitBurst::new();
        let mut frame = one.pool().take(LANE).unwrap();
        frame.append(b"no RTPS").unwrap();
        burst.push(frame).unwrap();
        burst.address(to).unwrap();
        one.send_burst(LANE, &mut burst);
        other.receive_burst(LANE, 4, &mut received);
        received.clear();
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    let mut late = 0;
    while other.receive_burst(LANE, 16, &mut received) > 0 {
        late += received.len();
        received.clear();
    }
    println!("late {late}");
    println!("{}", one.ledger());
    println!("{}", other.ledger());
    println!("{:?}", other.observe());
    println!("{:?}", one.observe().rings);
    println!("{}", one.host.enter(|| crate::hosts::ip("-s link show")));
    println!(
        "{}",
        other.host.enter(|| String::from_utf8_lossy(
            &std::fs::read("/proc/thread-self/net/snmp").unwrap()
        )
        .into_owned())
    );
    println!("{}", other.host.enter(|| crate::hosts::ip("-s link show")));
    println!(
        "{}",
        segment.at_the_hub(|| crate::hosts::ip("-s link show"))
    );
    assert!(one.ledger().lane(LANE).counts.get(Counted::SentByLane) > 0);
}
