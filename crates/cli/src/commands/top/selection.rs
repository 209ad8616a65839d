//! Selection of what the text of `isolane top` shows: topics by name, and their order.

use std::cmp::{Ordering, Reverse};

use isolane::observe::EndpointSample;
use isolane_model::Word;

use super::sample::Seen;

/// Topics to show, and their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selection {
    /// Part of the names of the topics to show; empty: all topics.
    pub(super) topic: String,
    pub(super) order: Order,
}

/// Order of the topics of a participant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// Most critical first.
    #[default]
    Level,
    /// Alphabetical.
    Topic,
    /// Highest rate first.
    Rate,
}

impl Word for Order {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("level", Self::Level),
        ("topic", Self::Topic),
        ("rate", Self::Rate),
    ];
}

impl Order {
    /// Order after this one, for a key that changes the order.
    pub(super) fn next(self) -> Self {
        match self {
            Self::Level => Self::Topic,
            Self::Topic => Self::Rate,
            Self::Rate => Self::Level,
        }
    }
}

impl Selection {
    /// Returns whether all topics are shown.
    pub(super) fn is_everything(&self) -> bool {
        self.topic.is_empty()
    }

    pub(super) fn has_topic(&self, topic: &str) -> bool {
        topic.contains(&self.topic)
    }

    /// Returns whether a participant is shown: if topics are selected, it must have one of them.
    pub(super) fn has(&self, seen: &Seen) -> bool {
        let snapshot = seen.snapshot.iter();
        let mut endpoints = snapshot.flat_map(|it| it.writers.iter().chain(&it.readers));
        self.is_everything() || endpoints.any(|endpoint| self.has_topic(&endpoint.topic))
    }

    /// Compares two endpoints with their rates. Endpoints that are equal in the chosen order are compared by level and
    /// topic.
    pub(super) fn compare(
        &self,
        (one, one_rate): (&EndpointSample, Option<f64>),
        (other, other_rate): (&EndpointSample, Option<f64>),
    ) -> Ordering {
        let by_level = (Reverse(one.level), &one.topic).cmp(&(Reverse(other.level), &other.topic));
        match self.order {
            Order::Level => by_level,
            Order::Topic => one.topic.cmp(&other.topic).then(by_level),
            Order::Rate => {
                let rate = |rate: Option<f64>| rate.unwrap_or(-1.0);
                rate(other_rate).total_cmp(&rate(one_rate)).then(by_level)
            }
        }
    }
}
