//! Round trips allocate nothing after their start.

#[path = "../../../tests/support/counting_allocator.rs"]
mod counting_allocator;

use isolane_bench::experiment::{Cell, Datapath};
use isolane_bench::scenario::rtt::MemoryRun;

#[test]
fn round_trips_allocate_nothing_after_their_start() {
    let cell = Cell {
        datapath: Datapath::Memory,
        payload_bytes: 1_024,
        seconds: 1,
        ..Cell::default()
    };
    let run = MemoryRun::new(&cell.round_trips()).expect("both ends");
    let calls = counting_allocator::allocator_calls_of(|| {
        run.measure();
    });
    assert_eq!(calls, 0);
    let outcome = run.finish().expect("a result");
    assert_eq!((outcome.run.samples, outcome.run.invalid), (2_000, None));
    // Some rounds may be lost if the machine stalls, but without any the measurement would be void.
    let came_back = outcome.rounds.rtt_ns().len();
    assert!(came_back > 1_000, "{came_back} came back");
}
