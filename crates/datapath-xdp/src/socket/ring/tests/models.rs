//! Rings beside plain queues: the same steps, and the same outcome of each, where the kernel is honest
//! and where it is not.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// Where indexes begin: also so that they come round soon.
fn begin() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), (u32::MAX - 20)..=u32::MAX, any::<u32>()]
}

/// How far the kernel says that it is: believable or not.
fn ahead() -> impl Strategy<Value = u32> {
    prop_oneof![0..12_u32, any::<u32>()]
}

/// What happens to a ring that we fill.
#[derive(Clone, Debug)]
enum Filling {
    Stage,
    Show,
    AskRoom,
    AskUsed,
    /// The kernel takes so many of what it was shown, if there are as many.
    Take(u32),
    /// The kernel's index says that it is so far ahead.
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

/// The same as plain queues.
#[derive(Default)]
struct Filled {
    /// Put in, and not shown.
    staged: VecDeque<u64>,
    /// Shown, and not believed to have been taken.
    shown: VecDeque<u64>,
    /// The kernel's index as it was believed last, and as it is.
    believed: u32,
    said: u32,
    nonsense: u64,
}

impl Filled {
    fn len(&self) -> usize {
        self.staged.len() + self.shown.len()
    }

    /// Whoever takes what is not there is not believed.
    fn ask(&mut self) {
        let taken = self.said.wrapping_sub(self.believed) as usize;
        if taken <= self.shown.len() {
            self.shown.drain(..taken);
            self.believed = self.said;
        } else {
            self.nonsense += 1;
        }
    }

    /// Asks only where there seems to be no room.
    fn has_room(&mut self, count: usize) -> bool {
        if self.len() == count {
            self.ask();
        }
        self.len() < count
    }
}

/// What happens to a ring that the kernel fills.
#[derive(Clone, Debug)]
enum Emptying {
    Ready(usize),
    Take,
    GiveBack,
    AskWaiting,
    /// The kernel puts so many in, if there is room.
    Fill(u32),
    /// The kernel's index says that it is so far ahead.
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

/// The same as a plain queue.
struct Emptied {
    /// Known to have been put in, and not taken out.
    known: VecDeque<u64>,
    /// What lies in the places.
    places: Vec<u64>,
    /// Our index, and as the kernel was given it.
    own: u32,
    given: u32,
    /// The kernel's index.
    said: u32,
    nonsense: u64,
}

impl Emptied {
    /// Behind what is known.
    fn top(&self) -> u32 {
        self.own.wrapping_add(self.known.len() as u32)
    }

    fn place(&self, index: u32) -> usize {
        index as usize % self.places.len()
    }

    /// Whoever puts in more than there is room for is not believed.
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
    /// Entries are shown together, stay as they were put in until they are taken, and nothing that the
    /// other side says makes room that there is not.
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

    /// Entries come out once and in order, their places are given back together, and nothing that the
    /// other side says shows more than there are places.
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
