//! CDR sequences: `CdrType` for [`BoundedSequence`] and, with feature `alloc`, `Vec`; and their lazily decoded view.
//!
//! A `Vec` member has the bound of its attribute `#[topic(bound = N)]`; without the attribute it is
//! [`UNBOUNDED`](super::limits::UNBOUNDED). Decoding allocates only for elements whose bytes are present. Decoding
//! into a value with enough capacity does not allocate.

use core::fmt::{self, Debug};
use core::marker::PhantomData;

use super::{
    BoundedSequence, ByteOrder, CdrError, CdrType, Decoder, ElementKind, Encoder, FieldKind,
    FieldPath, FieldValue, KeySource, MaxSize, MemberLength, Representation,
};

/// Borrowed view of a sequence in a sample. The elements are checked when the view is created, and decoded at
/// each access.
pub struct SequenceView<'a, T> {
    /// Decoder positioned before the first element.
    first: Decoder<'a>,
    length: usize,
    element: PhantomData<fn() -> T>,
}

impl<'a, T: CdrType> SequenceView<'a, T> {
    pub(super) const EMPTY: Self = Self {
        first: Decoder::new(&[], Representation::Xcdr2, ByteOrder::NATIVE),
        length: 0,
        element: PhantomData,
    };

    /// Checks `length` elements, skips them, and returns their view.
    #[inline]
    pub(super) fn check(decoder: &mut Decoder<'a>, length: usize) -> Result<Self, CdrError> {
        let first = *decoder;
        T::skip_elements(length, decoder)?;
        Ok(Self {
            first,
            length,
            element: PhantomData,
        })
    }

    /// Number of elements.
    #[inline]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Returns true if the sequence has no elements.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the element at `index`, or `None` past the end. Constant time for primitives; linear for other
    /// types, so use [`iter`](Self::iter) to visit all.
    #[inline]
    pub fn get(&self, index: usize) -> Option<T::View<'a>> {
        if index >= self.length {
            return None;
        }
        let mut decoder = self.first;
        if let ElementKind::Primitive { bytes } = T::KIND {
            decoder.take_primitives(bytes, index).ok()?;
        } else {
            T::skip_elements(index, &mut decoder).ok()?;
        }
        T::view(&mut decoder).ok()
    }

    /// Iterates over the elements.
    #[inline]
    pub const fn iter(&self) -> Elements<'a, T> {
        Elements {
            next: self.first,
            left: self.length,
            element: PhantomData,
        }
    }
}

impl<'a> SequenceView<'a, u8> {
    /// Returns the elements as bytes.
    #[inline]
    pub fn as_bytes(&self) -> &'a [u8] {
        let mut decoder = self.first;
        decoder.primitives::<u8>(self.length).unwrap_or_default()
    }
}

impl<T> Clone for SequenceView<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SequenceView<'_, T> {}

impl<T: CdrType> Debug for SequenceView<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: CdrType> IntoIterator for SequenceView<'a, T> {
    type Item = T::View<'a>;
    type IntoIter = Elements<'a, T>;

    #[inline]
    fn into_iter(self) -> Elements<'a, T> {
        self.iter()
    }
}

impl<'a, T: CdrType> IntoIterator for &SequenceView<'a, T> {
    type Item = T::View<'a>;
    type IntoIter = Elements<'a, T>;

    #[inline]
    fn into_iter(self) -> Elements<'a, T> {
        self.iter()
    }
}

/// Iterator over the elements of a [`SequenceView`].
pub struct Elements<'a, T> {
    next: Decoder<'a>,
    left: usize,
    element: PhantomData<fn() -> T>,
}

impl<T> Clone for Elements<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<T> Debug for Elements<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Elements")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl<'a, T: CdrType> Iterator for Elements<'a, T> {
    type Item = T::View<'a>;

    #[inline]
    fn next(&mut self) -> Option<T::View<'a>> {
        self.left = self.left.checked_sub(1)?;
        // The elements were checked when the view was created, so no error is lost here.
        T::view(&mut self.next).ok()
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T: CdrType> ExactSizeIterator for Elements<'_, T> {}

impl<T: CdrType> core::iter::FusedIterator for Elements<'_, T> {}

/// Writes the number of elements, then the elements.
#[inline]
fn encode<T: CdrType>(values: &[T], encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
    encoder.collection(T::KIND.delimits_sequence(), |encoder| {
        encoder.length(values.len())?;
        T::encode_elements(values, encoder)
    })
}

#[inline]
fn encode_as_key<T: CdrType>(values: &[T], encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
    encoder.collection(T::KIND.delimits_sequence(), |encoder| {
        encoder.length(values.len())?;
        values
            .iter()
            .try_for_each(|value| value.encode_as_key(encoder))
    })
}

/// Checks a sequence of at most `bound` elements and borrows it.
#[inline]
fn view<'a, T: CdrType>(
    decoder: &mut Decoder<'a>,
    bound: usize,
) -> Result<SequenceView<'a, T>, CdrError> {
    decoder.collection(T::KIND.delimits_sequence(), |decoder| {
        let length = decoder.length::<T>(bound)?;
        SequenceView::check(decoder, length)
    })
}

/// Copies a sequence of at most `bound` elements as part of a key.
#[inline]
fn transcribe_key<T: CdrType>(
    source: KeySource,
    decoder: &mut Decoder<'_>,
    encoder: &mut Encoder<'_>,
    bound: usize,
) -> Result<(), CdrError> {
    let delimits = T::KIND.delimits_sequence();
    decoder.collection(delimits, |decoder| {
        encoder.collection(delimits, |encoder| {
            let length = decoder.length::<T>(bound)?;
            encoder.length(length)?;
            (0..length).try_for_each(|_| T::transcribe_key(source, decoder, encoder))
        })
    })
}

/// Reads a sequence of at most `bound` elements as part of a key, passing each to `push`.
fn decode_key<T: CdrType>(
    source: KeySource,
    decoder: &mut Decoder<'_>,
    bound: usize,
    mut push: impl FnMut(T) -> Result<(), CdrError>,
) -> Result<(), CdrError> {
    decoder.collection(T::KIND.delimits_sequence(), |decoder| {
        let length = decoder.length::<T>(bound)?;
        (0..length).try_for_each(|_| push(T::decode_key(source, decoder)?))
    })
}

#[inline]
fn measure_key<T: CdrType>(size: &mut MaxSize, bound: usize) {
    size.collection(T::KIND.delimits_sequence());
    size.primitives(size_of::<u32>(), 1);
    size.elements::<T>(bound);
}

/// Items of [`CdrType`] that both kinds of sequences of `T` have.
macro_rules! sequence_items {
    () => {
        const KIND: ElementKind = ElementKind::Other;
        type View<'a> = SequenceView<'a, T>;

        #[inline]
        fn initial() -> Self {
            Self::new()
        }

        #[inline]
        fn initial_view<'a>() -> SequenceView<'a, T> {
            SequenceView::EMPTY
        }

        #[inline]
        fn reset(&mut self) {
            self.clear();
        }

        #[inline]
        fn decode(decoder: &mut Decoder<'_>) -> Result<Self, CdrError> {
            let mut values = Self::new();
            values.decode_into(decoder)?;
            Ok(values)
        }

        /// Number of elements, or the length of the longest element if that is larger.
        fn length(&self) -> Option<usize> {
            let inner = self.iter().filter_map(T::length).max();
            inner.max(Some(self.len()))
        }

        fn lengths(&self, visit: &mut dyn FnMut(MemberLength)) {
            self.iter().for_each(|value| value.lengths(visit));
        }

        fn field_kind(path: FieldPath<'_>) -> Option<FieldKind> {
            let (_, rest) = path.element()?;
            T::field_kind(rest)
        }

        fn field<'a>(view: Self::View<'a>, path: FieldPath<'_>) -> Option<FieldValue<'a>> {
            let (index, rest) = path.element()?;
            T::field(view.get(index)?, rest)
        }
    };
}

impl<T: CdrType, const N: usize> CdrType for BoundedSequence<T, N> {
    const BOUND: Option<usize> = Some(N);

    sequence_items!();

    #[inline]
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
        encode(self, encoder)
    }

    #[inline]
    fn view<'a>(decoder: &mut Decoder<'a>) -> Result<SequenceView<'a, T>, CdrError> {
        view(decoder, N)
    }

    fn decode_into(&mut self, decoder: &mut Decoder<'_>) -> Result<(), CdrError> {
        decoder.collection(T::KIND.delimits_sequence(), |decoder| {
            let length = decoder.length::<T>(N)?;
            self.truncate(length);
            if T::KIND.is_primitive() {
                while self.len() < length && self.push(T::initial()).is_ok() {}
                return T::decode_elements(self, decoder);
            }
            T::decode_elements(self, decoder)?;
            while self.len() < length {
                self.push(T::decode(decoder)?)
                    .map_err(|_| CdrError::BoundExceeded)?;
            }
            Ok(())
        })
    }

    #[inline]
    fn encode_as_key(&self, encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
        encode_as_key(self, encoder)
    }

    #[inline]
    fn transcribe_key(
        source: KeySource,
        decoder: &mut Decoder<'_>,
        encoder: &mut Encoder<'_>,
    ) -> Result<(), CdrError> {
        transcribe_key::<T>(source, decoder, encoder, N)
    }

    fn decode_key(source: KeySource, decoder: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let mut values = Self::new();
        decode_key(source, decoder, N, |value| {
            values.push(value).map_err(|_| CdrError::BoundExceeded)
        })?;
        Ok(values)
    }

    #[inline]
    fn measure_key(size: &mut MaxSize) {
        measure_key::<T>(size, N);
    }
}

#[cfg(feature = "alloc")]
impl<T: CdrType> super::AcceptsBound for alloc::vec::Vec<T> {}

#[cfg(feature = "alloc")]
impl<T: CdrType> CdrType for alloc::vec::Vec<T> {
    sequence_items!();

    #[inline]
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
        if self.len() > encoder.bound() {
            return Err(CdrError::BoundExceeded);
        }
        encode(self, encoder)
    }

    #[inline]
    fn view<'a>(decoder: &mut Decoder<'a>) -> Result<SequenceView<'a, T>, CdrError> {
        view(decoder, decoder.bound())
    }

    fn decode_into(&mut self, decoder: &mut Decoder<'_>) -> Result<(), CdrError> {
        decoder.collection(T::KIND.delimits_sequence(), |decoder| {
            let length = decoder.length::<T>(decoder.bound())?;
            if T::KIND.is_primitive() {
                // `length` has checked that the bytes of all elements are present.
                self.resize_with(length, T::initial);
                return T::decode_elements(self, decoder);
            }
            self.truncate(length);
            T::decode_elements(self, decoder)?;
            while self.len() < length {
                self.push(T::decode(decoder)?);
            }
            Ok(())
        })
    }

    #[inline]
    fn encode_as_key(&self, encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
        if self.len() > encoder.bound() {
            return Err(CdrError::BoundExceeded);
        }
        encode_as_key(self, encoder)
    }

    #[inline]
    fn transcribe_key(
        source: KeySource,
        decoder: &mut Decoder<'_>,
        encoder: &mut Encoder<'_>,
    ) -> Result<(), CdrError> {
        transcribe_key::<T>(source, decoder, encoder, decoder.bound())
    }

    fn decode_key(source: KeySource, decoder: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let mut values = Self::new();
        decode_key(source, decoder, decoder.bound(), |value| {
            values.push(value);
            Ok(())
        })?;
        Ok(values)
    }

    #[inline]
    fn measure_key(size: &mut MaxSize) {
        match size.bound() {
            Some(bound) => measure_key::<T>(size, bound),
            None => size.unbounded(),
        }
    }
}
