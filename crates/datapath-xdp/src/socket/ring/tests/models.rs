//! Model-based tests: rings and plain queues make the same steps with the same results, for correct and incorrect
//! kernel indexes.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// Initial indexes, including those that soon wrap around.
fn begin() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), (u32::MAX - 20)..=u32::MAX, any::<u32>()]
}

/// Kernel's claimed progress, plausible or not.
fn ahead() -> impl Strategy<Value = u32> {
    prop_oneof![0..12_u32, any::<u32>()]
}

/// Step on a ring filled by the program.
#[derive(Clone, Debug)]
enum Filling {
    Stage,
    Show,
    AskRoom,
    AskUsed,
    /// The kernel takes this many published entries, if there are as many.
    Take(u32),
    /// The kernel's index claims to be this far ahead.
    Say(u32),
}

fn filling() -> impl Strategy<Value = Filling> {
    prop_oneof![
        6 => Just(Filling::Stage),
        2 => Just(Filling::Show),
        1 => Just(Filling::AskRoom),
        1 => Just(Filling::AskUsed),
        3 => (0..9_u32).prop_map(Filling::Take),
        1 => ahead().prop_map(Filling::Say),
    ]
}

/// Model of the ring as plain queues.
#[derive(Default)]
struct Filled {
    /// Staged, not published.
    staged: VecDeque<u64>,
    /// Published, not known to be taken.
    shown: VecDeque<u64>,
    /// Last accepted kernel index, and the current one.
    believed: u32,
    said: u32,
    nonsense: u64,
}

impl Filled {
    fn len(&self) -> usize {
        self.staged.len() + self.shown.len()
    }

    /// An index beyond the published entries is rejected.
    fn ask(&mut self) {
        let taken = self.said.wrapping_sub(self.believed) as usize;
        if taken <= self.shown.len() {
            self.shown.drain(..taken);
            self.believed = self.said;
        } else {
            self.nonsense += 1;
        }
    }

    /// Reads the kernel's index only where the ring seems full.
    fn has_room(&mut self, count: usize) -> bool {
        if self.len() == count {
            self.ask();
        }
        self.len() < count
    }
}

/// Step on a ring filled by the kernel.
#[derive(Clone, Debug)]
enum Emptying {
    Ready(usize),
    Take,
    GiveBack,
    AskWaiting,
    /// The kernel adds this many entries, if there is room.
    Fill(u32),
    /// The kernel's index claims to be this far ahead.
    Say(u32),
}

fn emptying() -> impl Strategy<Value = Emptying> {
    prop_oneof![
        2 => (0..9_usize).prop_map(Emptying::Ready),
        6 => Just(Emptying::Take),
        2 => Just(Emptying::GiveBack),
        1 => Just(Emptying::AskWaiting),
        3 => (0..9_u32).prop_map(Emptying::Fill),
        1 => ahead().prop_map(Emptying::Say),
    ]
}

/// Model of the ring as a plain queue.
struct Emptied {
    /// Known to be published, not taken.
    known: VecDeque<u64>,
    /// Contents of the slots.
    places: Vec<u64>,
    /// Own index, and as published to the kernel.
    own: u32,
    given: u32,
    /// Kernel's index.
    said: u32,
    nonsense: u64,
}

impl Emptied {
    /// Index after the known entries.
    fn top(&self) -> u32 {
        self.own.wrapping_add(self.known.len() as u32)
    }

    fn place(&self, index: u32) -> usize {
        index as usize % self.places.len()
    }

    /// An index beyond the free slots is rejected.
    fn ask(&mut self) {
        let top = self.top();
        let put = self.said.wrapping_sub(top);
        if put as usize <= self.places.len() - self.known.len() {
            for ahead in 0..put {
                let place = self.place(top.wrapping_add(ahead));
                self.known.push_back(self.places[place]);
            }
        } else {
            self.nonsense += 1;
        }
    }
}

proptest! {
    /// Entries are published together and unchanged until taken, and no kernel index makes room that does not exist.
    #[test]
    fn what_we_fill_is_a_queue_whatever_the_kernel_says(
        bits in 0..4_u32,
        begin in begin(),
        steps in prop::collection::vec(filling(), 1..200),
    ) {
        let count = 1 << bits;
        let mut ring = producer(count);
        (ring.own, ring.shown, ring.other) = (begin, begin, begin);
        ring.show();
        ring.say_taken(begin);
        let mut model = Filled { believed: begin, said: begin, ..Filled::default() };
        let count = count as usize;
        for (entry, step) in (0..).zip(steps) {
            match step {
                Filling::Stage => {
                    let is_put = model.has_room(count);
                    prop_assert_eq!(ring.stage(entry), is_put);
                    model.staged.extend(is_put.then_some(entry));
                }
                Filling::Show => {
                    model.shown.append(&mut model.staged);
                    ring.show();
                }
                Filling::AskRoom => prop_assert_eq!(ring.has_room(), model.has_room(count)),
                Filling::AskUsed => {
                    model.ask();
                    prop_assert_eq!(ring.used() as usize, model.len());
                }
                Filling::Take(most) => {
                    model.said = model.believed.wrapping_add(most.min(model.shown.len() as u32));
                    ring.say_taken(model.said);
                }
                Filling::Say(ahead) => {
                    model.said = model.believed.wrapping_add(ahead);
                    ring.say_taken(model.said);
                }
            }
            let shown = model.believed.wrapping_add(model.shown.len() as u32);
            prop_assert_eq!(ring.shown(), shown);
            prop_assert_eq!(ring.known_used() as usize, model.len());
            prop_assert_eq!(ring.nonsense(), model.nonsense);
            for (place, entry) in (0..).zip(&model.shown) {
                prop_assert_eq!(ring.entry_at(model.believed.wrapping_add(place)), *entry);
            }
        }
    }

    /// Entries come out once and in order, their slots are returned together, and no kernel index yields more entries
    /// than slots.
    #[test]
    fn what_the_kernel_fills_is_a_queue_whatever_it_says(
        bits in 0..4_u32,
        begin in begin(),
        steps in prop::collection::vec(emptying(), 1..200),
    ) {
        let count = 1 << bits;
        let mut ring = consumer(count);
        (ring.own, ring.other) = (begin, begin);
        ring.give_back();
        ring.say_filled(begin);
        let mut model = Emptied {
            known: VecDeque::new(),
            places: vec![0; count as usize],
            own: begin,
            given: begin,
            said: begin,
            nonsense: 0,
        };
        let mut next = 1;
        for step in steps {
            match step {
                Emptying::Ready(limit) => {
                    if model.known.len() < limit {
                        model.ask();
                    }
                    prop_assert_eq!(ring.ready(limit), limit.min(model.known.len()));
                }
                Emptying::Take => {
                    let entry = model.known.pop_front();
                    model.own = model.own.wrapping_add(u32::from(entry.is_some()));
                    prop_assert_eq!(ring.take(), entry);
                }
                Emptying::GiveBack => {
                    model.given = model.own;
                    ring.give_back();
                }
                Emptying::AskWaiting => {
                    model.ask();
                    prop_assert_eq!(ring.waiting() as usize, model.known.len());
                }
                Emptying::Fill(most) => {
                    let top = model.top();
                    let room = count.saturating_sub(top.wrapping_sub(model.given));
                    model.said = top.wrapping_add(most.min(room));
                    for ahead in 0..most.min(room) {
                        let index = top.wrapping_add(ahead);
                        let place = model.place(index);
                        model.places[place] = next;
                        ring.fill_in(index, next);
                        next += 1;
                    }
                    ring.say_filled(model.said);
                }
                Emptying::Say(ahead) => {
                    model.said = model.top().wrapping_add(ahead);
                    ring.say_filled(model.said);
                }
            }
            prop_assert_eq!(ring.given_back(), model.given);
            prop_assert_eq!(ring.nonsense(), model.nonsense);
        }
    }
}
