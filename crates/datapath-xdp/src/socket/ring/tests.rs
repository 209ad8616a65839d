//! Rings over plain memory. The test plays the kernel: a correct one, and one that writes arbitrary indexes.

mod models;

use proptest::prelude::*;

use super::*;

/// Layout as the kernel's: each part on a separate cache line.
const LAYOUT: Layout = Layout {
    producer: 0,
    consumer: 64,
    flags: 128,
    entries: 192,
};

fn memory(entries: u32) -> Memory {
    Memory::Plain(vec![0; 24 + entries as usize].into())
}

fn producer(entries: u32) -> Producer<u64> {
    Producer::new(memory(entries), LAYOUT, entries).unwrap()
}

fn consumer(entries: u32) -> Consumer<u64> {
    Consumer::new(memory(entries), LAYOUT, entries).unwrap()
}

/// Kernel side of a ring filled by the program.
impl Producer<u64> {
    fn shown(&self) -> u32 {
        self.parts.producer().load(Ordering::Acquire)
    }

    fn entry_at(&self, index: u32) -> u64 {
        // SAFETY: the entry is in the memory, and the test is both sides.
        unsafe { self.parts.entry(index).read() }
    }

    fn say_taken(&self, index: u32) {
        self.parts.consumer().store(index, Ordering::Release);
    }
}

/// Kernel side of a ring filled by the kernel.
impl Consumer<u64> {
    fn fill_in(&self, index: u32, entry: u64) {
        // SAFETY: the entry is in the memory, and the test is both sides.
        unsafe { self.parts.entry(index).write(entry) };
    }

    fn say_filled(&self, index: u32) {
        self.parts.producer().store(index, Ordering::Release);
    }

    fn given_back(&self) -> u32 {
        self.parts.consumer().load(Ordering::Acquire)
    }
}

#[test]
fn a_full_ring_takes_what_fits_and_no_more() {
    let mut ring = producer(4);
    assert_eq!(ring.push(&[10, 11, 12]), 3);
    assert_eq!(ring.push(&[13, 14, 15]), 1);
    assert_eq!(ring.push(&[14]), 0);
    assert_eq!(ring.used(), 4);
    assert_eq!(ring.shown(), 4);
    ring.say_taken(2);
    assert_eq!(ring.push(&[14, 15, 16]), 2);
    let entries: Vec<u64> = (2..6).map(|index| ring.entry_at(index)).collect();
    assert_eq!(entries, [12, 13, 14, 15]);
    assert_eq!(ring.nonsense(), 0);
}

#[test]
fn entries_come_out_once_in_the_order_they_were_put_in() {
    let mut ring = consumer(4);
    let mut out = [0; 3];
    assert_eq!(ring.pop(&mut out), 0);
    for index in 0..4 {
        ring.fill_in(index, u64::from(index) + 10);
    }
    ring.say_filled(4);
    assert_eq!(ring.waiting(), 4);
    assert_eq!(ring.pop(&mut out), 3);
    assert_eq!(out, [10, 11, 12]);
    assert_eq!(ring.given_back(), 3);
    assert_eq!(ring.pop(&mut out), 1);
    assert_eq!(out[0], 13);
    assert_eq!(ring.pop(&mut out), 0);
    assert_eq!(ring.given_back(), 4);
    assert_eq!(ring.nonsense(), 0);
}

#[test]
fn indexes_come_round_at_the_end_of_their_numbers() {
    let near_end = u32::MAX - 1;
    let mut ring = producer(4);
    (ring.own, ring.other) = (near_end, near_end);
    ring.say_taken(near_end);
    assert_eq!(ring.push(&[1, 2, 3, 4, 5]), 4);
    assert_eq!(ring.shown(), 2);
    ring.say_taken(1);
    assert_eq!(ring.used(), 1);

    let mut ring = consumer(4);
    (ring.own, ring.other) = (near_end, near_end);
    ring.say_filled(2);
    assert_eq!(ring.pop(&mut [0; 8]), 4);
    assert_eq!(ring.given_back(), 2);
    assert_eq!(ring.nonsense(), 0);
}

#[test]
fn a_consumer_that_takes_what_was_never_put_in_gives_no_room() {
    let mut ring = producer(4);
    assert_eq!(ring.push(&[1, 2, 3]), 3);
    for taken in [4, 5, 1_000, u32::MAX] {
        ring.say_taken(taken);
        assert_eq!(ring.used(), 3, "taken {taken}");
    }
    assert_eq!(ring.nonsense(), 4);
    ring.say_taken(2);
    assert_eq!(ring.used(), 1);
    ring.say_taken(1);
    assert_eq!(ring.used(), 1, "never backwards");
    assert_eq!(ring.nonsense(), 5);
}

#[test]
fn a_producer_that_fills_more_than_there_is_shows_nothing() {
    let mut ring = consumer(4);
    for filled in [5, 6, 1_000, u32::MAX] {
        ring.say_filled(filled);
        assert_eq!(ring.waiting(), 0, "filled {filled}");
        assert_eq!(ring.pop(&mut [0; 8]), 0);
    }
    assert_eq!(ring.nonsense(), 8);
    ring.say_filled(4);
    assert_eq!(ring.waiting(), 4);
    ring.say_filled(3);
    assert_eq!(ring.waiting(), 4, "what was shown stays");
    assert_eq!(ring.nonsense(), 9);
}

#[test]
fn the_wakeup_flag_is_the_kernels() {
    let ring = producer(4);
    assert!(!ring.needs_wakeup());
    // SAFETY: the flags are in the memory.
    unsafe { ring.parts.flags.as_ref() }.store(1, Ordering::Relaxed);
    assert!(ring.needs_wakeup());
}

#[test]
fn a_layout_that_leads_out_of_the_memory_makes_no_ring() {
    let layouts = [
        Layout {
            producer: 8 * (24 + 4) as u64,
            ..LAYOUT
        },
        Layout {
            consumer: u64::MAX,
            ..LAYOUT
        },
        Layout {
            flags: 130,
            ..LAYOUT
        },
        Layout {
            entries: 200,
            ..LAYOUT
        },
        Layout {
            entries: 196,
            ..LAYOUT
        },
    ];
    for layout in layouts {
        assert!(Producer::<u64>::new(memory(4), layout, 4).is_none());
        assert!(Consumer::<u64>::new(memory(4), layout, 4).is_none());
    }
    for count in [0, 3] {
        assert!(Producer::<u64>::new(memory(4), LAYOUT, count).is_none());
    }
}

proptest! {
    /// With arbitrary indexes, a ring yields no more entries than it has and keeps working.
    #[test]
    fn any_index_is_survived(steps in prop::collection::vec((any::<u32>(), 0..9_usize), 1..100)) {
        let (mut into, mut from) = (producer(4), consumer(4));
        let (mut entered, mut left) = (0_u64, 0_u64);
        for (index, count) in steps {
            into.say_taken(index);
            entered += into.push(&[7; 9][..count]) as u64;
            prop_assert!(into.used() <= 4);
            from.say_filled(index);
            left += from.pop(&mut [0; 9][..count]) as u64;
            prop_assert!(from.waiting() <= 4);
        }
        prop_assert_eq!(into.shown(), entered as u32);
        prop_assert_eq!(from.given_back(), left as u32);
    }

    /// With a correct kernel, all entries pass in order for any burst sizes.
    #[test]
    fn an_honest_kernel_passes_everything_on(bursts in prop::collection::vec((0..9_usize, 0..9_u32), 1..100)) {
        let mut ring = producer(4);
        let (mut next, mut taken) = (0_u64, 0_u32);
        for (count, take) in bursts {
            let items: Vec<u64> = (next..next + count as u64).collect();
            next += ring.push(&items) as u64;
            for _ in 0..take.min(ring.shown() - taken) {
                prop_assert_eq!(ring.entry_at(taken), u64::from(taken));
                taken += 1;
            }
            ring.say_taken(taken);
        }
        prop_assert_eq!(u64::from(ring.used()), next - u64::from(taken));
        prop_assert_eq!(ring.nonsense(), 0);
    }
}
