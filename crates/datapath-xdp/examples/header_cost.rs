//! Cost of a datagram's headers. Run it under callgrind with few and with many datagrams; the difference in
//! instructions divided by that in datagrams is the cost of one.
//!
//! ```text
//! valgrind --tool=callgrind header_cost 1000 64
//! ```

use std::hint::black_box;

use isolane_datapath_xdp::routing::{
    ChecksumState, Device, Flow, Partial, Template, UdpChecksum, verify,
};
use isolane_wire::ethernet::MacAddress;
use isolane_wire::level::Level;

/// Bytes before each payload.
const HEAD_ROOM: usize = 48;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |name: &str| -> usize {
        let text = arguments.next().unwrap_or_default();
        text.parse()
            .unwrap_or_else(|_| panic!("usage: header_cost DATAGRAMS BYTES [none]: {name}?"))
    };
    let (datagrams, payload_bytes) = (number("DATAGRAMS"), number("BYTES"));
    let what = arguments.next().unwrap_or_default();
    let checksum = match what.as_str() {
        "none" => UdpChecksum::None,
        _ => UdpChecksum::Made,
    };
    let device = Device {
        destination_mac: MacAddress([2, 0, 0, 0, 0, 2]),
        source_mac: MacAddress([2, 0, 0, 0, 0, 1]),
        source: [10, 0, 0, 1],
        destination: [10, 0, 0, 2],
        vlan: None,
        mtu_bytes: 9000,
    };
    let flow = Flow {
        destination: device.destination,
        destination_port: 7411,
        source_port: 40_000,
        level: Level::MAX,
    };
    let template = Template::new(&device, &flow);
    let mut frame = vec![0x5a; HEAD_ROOM + payload_bytes];
    let mut start = 0;
    for _ in 0..datagrams {
        let payload = black_box(HEAD_ROOM..HEAD_ROOM + payload_bytes);
        start = black_box(&template).emit(black_box(&mut frame), payload, checksum);
        if what == "verify" {
            let datagram = black_box(&frame[HEAD_ROOM - 8..]);
            let checksum_state = verify(
                device.source,
                device.destination,
                datagram,
                Partial::Unexpected,
            );
            assert_eq!(checksum_state, ChecksumState::Valid);
        }
    }
    println!("{datagrams} datagrams of {payload_bytes} B, headers from byte {start}");
}
