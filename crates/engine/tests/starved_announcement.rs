//! More urgent work must not keep a participant from saying that it is there.

use isolane_engine::{Engine, EngineConfig, Priority, WorkKind};
use isolane_wire::{guid::GuidPrefix, time::Instant};

fn is_ready(engine: &Engine, priority: Priority) -> bool {
    engine.ready() & (1 << priority.get()) != 0
}

fn engine() -> Engine {
    let config = EngineConfig::new(0, GuidPrefix([1; 12]), 1);
    Engine::new(config, Instant::new(1))
}

fn let_the_next_timer_run_out(engine: &mut Engine) {
    let due = engine.next_time().expect("the next announcement");
    engine.advance(due);
}

#[test]
fn an_announcement_that_has_waited_for_a_period_becomes_the_most_urgent_work() {
    let mut engine = engine();
    assert!(is_ready(&engine, Priority::DISCOVERY));
    assert!(!is_ready(&engine, Priority::HIGHEST));

    let_the_next_timer_run_out(&mut engine);
    assert!(!is_ready(&engine, Priority::DISCOVERY));
    let mut buffer = [0; 2048];
    let work = engine.next_work(Instant::new(1), Priority::HIGHEST, &mut buffer);
    let work = work.expect("the announcement");
    assert_eq!(work.kind, WorkKind::Announce);
    assert!(work.bytes > 0);
    assert!(!is_ready(&engine, Priority::HIGHEST), "once a period");
}

#[test]
fn an_announcement_that_goes_out_in_time_stays_with_discovery() {
    let mut engine = engine();
    let mut buffer = [0; 2048];
    for _ in 0..10 {
        while engine
            .next_work(Instant::new(1), Priority::DISCOVERY, &mut buffer)
            .is_some()
        {}
        let_the_next_timer_run_out(&mut engine);
        assert!(!is_ready(&engine, Priority::HIGHEST));
    }
}
