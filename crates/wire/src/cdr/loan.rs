//! CDR sequence of octets that the program produces while the sample is serialised.

use alloc::{boxed::Box, vec, vec::Vec};
use core::fmt;

use super::{
    AcceptsBound, CdrError, CdrType, Decoder, ElementKind, Encoder, FieldKind, FieldPath,
    FieldValue, KeySource, MaxSize, SequenceView,
};

/// Function that fills octets.
type Fill = dyn Fn(&mut [u8]) + Send;

/// `sequence<octet>` that the program fills in place, in the frame or the history slot.
///
/// `write` copies a `Vec<u8>` into that memory. With a `Loan`, `write` lends the memory to a function, which may read a
/// camera or a file into it. On the wire, both are the same type, so a reader may use a `Vec<u8>` or a view.
///
/// The function runs within `write`, usually once for a sample. If the sample does not fit the memory found first, the
/// function runs again and must give the same octets. Do not mark a `Loan` as key. The octets lent hold earlier samples,
/// also of other topics: fill them all. Using the participant in the function panics. A panic in the function ends
/// `write`, and nothing is written.
///
/// ```
/// use isolane_wire::cdr::{Loan, Representation, write_payload};
///
/// let octets = Loan::new(3, |octets| octets.copy_from_slice(&[1, 2, 3]));
/// assert_eq!((octets.len(), octets.to_vec()), (3, vec![1, 2, 3]));
/// ```
pub struct Loan {
    length: usize,
    fill: Box<Fill>,
}

impl Loan {
    /// Sequence of `length` octets that `fill` writes.
    pub fn new(length: usize, fill: impl Fn(&mut [u8]) + Send + 'static) -> Self {
        let fill = Box::new(fill);
        Self { length, fill }
    }

    /// Number of octets.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Returns true if there are no octets.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Calls the function and returns its octets.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut octets = vec![0; self.length];
        (self.fill)(&mut octets);
        octets
    }
}

impl From<Vec<u8>> for Loan {
    fn from(octets: Vec<u8>) -> Self {
        Self::new(octets.len(), move |room| room.copy_from_slice(&octets))
    }
}

impl fmt::Debug for Loan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = formatter.debug_struct("Loan");
        text.field("length", &self.length).finish_non_exhaustive()
    }
}

impl AcceptsBound for Loan {}

/// Same as `Vec<u8>`, except `encode`.
impl CdrType for Loan {
    const KIND: ElementKind = ElementKind::Other;
    type View<'a> = SequenceView<'a, u8>;

    fn initial() -> Self {
        Self::new(0, |_| {})
    }

    fn initial_view<'a>() -> Self::View<'a> {
        Vec::<u8>::initial_view()
    }

    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
        if self.length > encoder.bound() {
            return Err(CdrError::BoundExceeded);
        }
        encoder.length(self.length)?;
        (self.fill)(encoder.claim(self.length)?);
        Ok(())
    }

    fn view<'a>(decoder: &mut Decoder<'a>) -> Result<Self::View<'a>, CdrError> {
        Vec::<u8>::view(decoder)
    }

    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Vec::decode(decoder).map(Self::from)
    }

    fn transcribe_key(
        source: KeySource,
        decoder: &mut Decoder<'_>,
        encoder: &mut Encoder<'_>,
    ) -> Result<(), CdrError> {
        Vec::<u8>::transcribe_key(source, decoder, encoder)
    }

    fn measure_key(size: &mut MaxSize) {
        Vec::<u8>::measure_key(size);
    }

    fn length(&self) -> Option<usize> {
        Some(self.length)
    }

    fn field_kind(path: FieldPath<'_>) -> Option<FieldKind> {
        Vec::<u8>::field_kind(path)
    }

    fn field<'a>(view: Self::View<'a>, path: FieldPath<'_>) -> Option<FieldValue<'a>> {
        Vec::<u8>::field(view, path)
    }
}
