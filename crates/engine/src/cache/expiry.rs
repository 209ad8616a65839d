//! Samples that outlive their LIFESPAN while they wait to be taken (DDS 1.4 §2.2.3.16).
//!
//! Each sample carries the instant at which it is of no use any more. None is handed out after it: whoever
//! looks into the cache lets go first of what has expired, which costs a comparison as long as nothing
//! has. The endpoint's clock does the same when nobody looks, so that the room is free again.

use isolane_wire::time::Instant;

use super::{Cache, NEVER};

impl Cache {
    /// Whether some available sample may expire at all.
    pub(crate) fn may_expire(&self) -> bool {
        self.earliest_expiry != NEVER
    }

    /// No available sample expires before; `None`: none does.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.may_expire().then_some(self.earliest_expiry)
    }

    /// Lets go of the available samples that have expired; returns how many.
    pub(crate) fn expire(&mut self, now: Instant) -> u64 {
        if now < self.earliest_expiry {
            return 0;
        }
        self.earliest_expiry = NEVER;
        let mut expired = 0;
        let mut place = 0;
        while let Some(&index) = self.available.get(place) {
            match self.slot(index).info.expires {
                Some(expires) if expires <= now => {
                    self.available.remove(place);
                    self.release(index);
                    expired += 1;
                }
                expires => {
                    let expires = expires.unwrap_or(NEVER);
                    self.earliest_expiry = self.earliest_expiry.min(expires);
                    place += 1;
                }
            }
        }
        self.expired += expired;
        expired
    }
}

#[cfg(test)]
mod tests {
    use isolane_wire::sequence::SequenceNumber;

    use crate::{
        cache::{Cache, Room, SampleInfo},
        history::Keep,
    };

    use super::*;

    fn sample(sequence: i64, key: u8, expires: Option<u64>) -> SampleInfo {
        SampleInfo {
            sequence: SequenceNumber(sequence),
            expires: expires.map(Instant::new),
            key_hash: Some([key; 16]),
            ..SampleInfo::UNSEEN
        }
    }

    #[test]
    fn what_expires_goes_wherever_it_stands_and_its_room_is_free() {
        let room = Room {
            samples: 4,
            waiting: 1,
            held: 0,
            slot_bytes: 8,
        };
        let mut cache = Cache::new(Keep::All, true, room, 1);
        let expiries = [(1, None), (1, Some(20)), (2, Some(10)), (1, Some(30))];
        for (sequence, (key, expires)) in (1..).zip(expiries) {
            cache.push(0, sample(sequence, key, expires), &[]).unwrap();
        }
        assert_eq!(cache.expire(Instant::new(9)), 0);
        assert_eq!(cache.next_expiry(), Some(Instant::new(10)));
        assert_eq!(cache.expire(Instant::new(20)), 2);
        let left = |cache: &Cache| {
            let numbers = (0..).map_while(|nth| Some(cache.get(nth)?.0.sequence.get()));
            numbers.collect::<alloc::vec::Vec<_>>()
        };
        assert_eq!(left(&cache), [1, 4]);
        cache.push(0, sample(5, 1, None), &[]).unwrap();
        assert_eq!(cache.expire(Instant::new(30)), 1);
        assert_eq!(left(&cache), [1, 5]);
        assert_eq!(cache.next_expiry(), None);
        assert_eq!(cache.expired, 3);
    }
}
