//! `CdrType` for bounded sequences, and the functions common to all sequences.

use heapless::Vec;

use super::{
    CdrError, CdrType, Decoder, Encoder, FieldKind, FieldPath, FieldValue, KeySource, Kind,
    MaxSize, MemberLength, SequenceView,
};

/// Writes the number of elements, then the elements.
#[inline]
pub(super) fn encode<T: CdrType>(values: &[T], encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
    encoder.collection(T::KIND.delimits_sequence(), |encoder| {
        encoder.length(values.len())?;
        T::encode_elements(values, encoder)
    })
}

#[inline]
pub(super) fn encode_as_key<T: CdrType>(
    values: &[T],
    encoder: &mut Encoder<'_>,
) -> Result<(), CdrError> {
    encoder.collection(T::KIND.delimits_sequence(), |encoder| {
        encoder.length(values.len())?;
        values
            .iter()
            .try_for_each(|value| value.encode_as_key(encoder))
    })
}

/// Checks a sequence of at most `bound` elements and borrows it.
#[inline]
pub(super) fn view<'a, T: CdrType>(
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
pub(super) fn transcribe_key<T: CdrType>(
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
pub(super) fn decode_key<T: CdrType>(
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
pub(super) fn measure_key<T: CdrType>(size: &mut MaxSize, bound: usize) {
    size.collection(T::KIND.delimits_sequence());
    size.primitives(size_of::<u32>(), 1);
    size.elements::<T>(bound);
}

/// Returns the number of elements or the length of the longest element, whichever is larger.
pub(super) fn length<T: CdrType>(values: &[T]) -> Option<usize> {
    let inner = values.iter().filter_map(T::length).max();
    inner.max(Some(values.len()))
}

/// Field type of an element.
pub(super) fn field_kind<T: CdrType>(path: FieldPath<'_>) -> Option<FieldKind> {
    let (_, rest) = path.element()?;
    T::field_kind(rest)
}

/// Field value of an element; `None` if the sequence is shorter.
pub(super) fn field<'a, T: CdrType>(
    view: SequenceView<'a, T>,
    path: FieldPath<'_>,
) -> Option<FieldValue<'a>> {
    let (index, rest) = path.element()?;
    T::field(view.get(index)?, rest)
}

impl<T: CdrType, const N: usize> CdrType for Vec<T, N> {
    const KIND: Kind = Kind::Other;
    const BOUND: Option<usize> = Some(N);
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
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
        encode(self, encoder)
    }

    #[inline]
    fn view<'a>(decoder: &mut Decoder<'a>) -> Result<SequenceView<'a, T>, CdrError> {
        view(decoder, N)
    }

    #[inline]
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let mut values = Self::new();
        values.decode_into(decoder)?;
        Ok(values)
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

    fn length(&self) -> Option<usize> {
        length(self)
    }

    fn lengths(&self, visit: &mut dyn FnMut(MemberLength)) {
        self.iter().for_each(|value| value.lengths(visit));
    }

    fn field_kind(path: FieldPath<'_>) -> Option<FieldKind> {
        field_kind::<T>(path)
    }

    fn field<'a>(view: Self::View<'a>, path: FieldPath<'_>) -> Option<FieldValue<'a>> {
        field(view, path)
    }
}
