//! Types of the samples.

use isolane::TopicType;

/// Sample of `4 + N` bytes, serialised.
#[derive(TopicType, Clone)]
pub(crate) struct Small {
    pub(crate) number: u32,
    rest: [u8; 60],
}

/// Sample of 1,024 bytes, serialised.
#[derive(TopicType, Clone)]
pub(crate) struct Large {
    pub(crate) number: u32,
    rest: [u8; 1020],
}

/// Operations that the paths require of both types.
pub(crate) trait Numbered: TopicType + Clone + 'static {
    fn zero() -> Self;
    fn set_number(&mut self, number: u32);
    fn number(&self) -> u32;
    fn number_in(view: &Self::View<'_>) -> u32;
}

impl Numbered for Small {
    fn zero() -> Self {
        Self {
            number: 0,
            rest: [0; 60],
        }
    }
    fn set_number(&mut self, number: u32) {
        self.number = number;
    }
    fn number(&self) -> u32 {
        self.number
    }
    fn number_in(view: &Self::View<'_>) -> u32 {
        view.number
    }
}

impl Numbered for Large {
    fn zero() -> Self {
        Self {
            number: 0,
            rest: [0; 1020],
        }
    }
    fn set_number(&mut self, number: u32) {
        self.number = number;
    }
    fn number(&self) -> u32 {
        self.number
    }
    fn number_in(view: &Self::View<'_>) -> u32 {
        view.number
    }
}
