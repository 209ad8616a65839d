//! Every bound of the command line that the description does not set, with its reason.

use isolane_model::HistoryDepth;

/// Samples of an instance `sub` holds until they are printed, when nobody says how many: what a fast
/// writer sends while a terminal scrolls.
pub(crate) const READER_HISTORY: HistoryDepth = HistoryDepth::new(64).expect("it is in bounds");

/// Smallest payload of a measurement: id, nonce and the length of the padding, four bytes each.
pub(crate) const MIN_PAYLOAD_BYTES: u32 = 12;

/// Bytes of a shape's color: ShapeType declares `string<128>`.
pub(crate) const MAX_COLOR_BYTES: usize = 128;

/// Seconds of a run: a day is longer than anybody watches one.
pub(crate) const MAX_SECONDS: i64 = 86_400;

/// Pings a second: beyond it the sender measures itself.
pub(crate) const MAX_RATE_HZ: i64 = 100_000;

/// Colours `sub` remembers, so that it can name an instance that ends: more than anybody tells
/// apart.
pub(crate) const MAX_COLORS: usize = 256;
