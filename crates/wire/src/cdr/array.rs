//! CDR arrays: a fixed number of elements, without a length field.

use core::fmt::{self, Debug};

use super::{
    CdrError, CdrType, Decoder, ElementKind, Elements, Encoder, FieldKind, FieldPath, FieldValue,
    KeySource, MaxSize, MemberLength, SequenceView,
};

/// Borrowed view of an array in a sample. The elements are checked when the view is created, and decoded at
/// each access.
pub struct ArrayView<'a, T, const N: usize> {
    /// All `N` elements, or no elements if the writer's older type does not have this member.
    elements: SequenceView<'a, T>,
}

impl<'a, T: CdrType, const N: usize> ArrayView<'a, T, N> {
    /// Number of elements: `N`.
    #[inline]
    #[allow(
        clippy::len_without_is_empty,
        reason = "an array of DDS has at least one element"
    )]
    pub const fn len(&self) -> usize {
        N
    }

    /// Returns the element at `index`, or `None` past the end. Constant time for primitives, see
    /// [`SequenceView::get`].
    #[inline]
    pub fn get(&self, index: usize) -> Option<T::View<'a>> {
        (index < N).then(|| self.elements.get(index).unwrap_or_else(T::initial_view))
    }

    /// Iterates over the elements.
    #[inline]
    pub const fn iter(&self) -> ArrayElements<'a, T> {
        ArrayElements {
            elements: self.elements.iter(),
            left: N,
        }
    }

    /// Decodes all elements into an array.
    #[inline]
    pub fn to_array(&self) -> [T::View<'a>; N] {
        let mut elements = self.elements.iter();
        core::array::from_fn(|_| elements.next().unwrap_or_else(T::initial_view))
    }
}

impl<'a, const N: usize> ArrayView<'a, u8, N> {
    const ZEROS: &'static [u8; N] = &[0; N];

    /// Returns the elements as bytes.
    #[inline]
    pub fn as_bytes(&self) -> &'a [u8; N] {
        self.elements
            .as_bytes()
            .first_chunk()
            .unwrap_or(Self::ZEROS)
    }
}

impl<T, const N: usize> Clone for ArrayView<'_, T, N> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const N: usize> Copy for ArrayView<'_, T, N> {}

impl<T: CdrType, const N: usize> Debug for ArrayView<'_, T, N> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: CdrType, const N: usize> IntoIterator for ArrayView<'a, T, N> {
    type Item = T::View<'a>;
    type IntoIter = ArrayElements<'a, T>;

    #[inline]
    fn into_iter(self) -> ArrayElements<'a, T> {
        self.iter()
    }
}

impl<'a, T: CdrType, const N: usize> IntoIterator for &ArrayView<'a, T, N> {
    type Item = T::View<'a>;
    type IntoIter = ArrayElements<'a, T>;

    #[inline]
    fn into_iter(self) -> ArrayElements<'a, T> {
        self.iter()
    }
}

/// Iterator over the elements of an [`ArrayView`].
#[derive(Clone, Debug)]
pub struct ArrayElements<'a, T> {
    elements: Elements<'a, T>,
    left: usize,
}

impl<'a, T: CdrType> Iterator for ArrayElements<'a, T> {
    type Item = T::View<'a>;

    #[inline]
    fn next(&mut self) -> Option<T::View<'a>> {
        self.left = self.left.checked_sub(1)?;
        Some(self.elements.next().unwrap_or_else(T::initial_view))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T: CdrType> ExactSizeIterator for ArrayElements<'_, T> {}

impl<T: CdrType, const N: usize> CdrType for [T; N] {
    const KIND: ElementKind = {
        assert!(N > 0, "an array of DDS has at least one element");
        match T::KIND {
            ElementKind::Primitive { .. } | ElementKind::PrimitiveArray => {
                ElementKind::PrimitiveArray
            }
            ElementKind::Other => ElementKind::Array,
            // IDL's a[2][3] has a single DHEADER, before the outer dimension. This code would write a DHEADER for each
            // dimension, which peers cannot read, so such types are refused.
            ElementKind::Array => panic!("arrays of several dimensions can only hold primitives"),
        }
    };

    type View<'a> = ArrayView<'a, T, N>;

    #[inline]
    fn initial() -> Self {
        core::array::from_fn(|_| T::initial())
    }

    #[inline]
    fn initial_view<'a>() -> ArrayView<'a, T, N> {
        ArrayView {
            elements: SequenceView::EMPTY,
        }
    }

    #[inline]
    fn reset(&mut self) {
        self.iter_mut().for_each(T::reset);
    }

    #[inline]
    fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
        encoder.collection(Self::KIND.delimits_array(), |encoder| {
            T::encode_elements(self, encoder)
        })
    }

    #[inline]
    fn view<'a>(decoder: &mut Decoder<'a>) -> Result<ArrayView<'a, T, N>, CdrError> {
        decoder.collection(Self::KIND.delimits_array(), |decoder| {
            SequenceView::check(decoder, N).map(|elements| ArrayView { elements })
        })
    }

    #[inline]
    fn decode(decoder: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let mut values = Self::initial();
        values.decode_into(decoder)?;
        Ok(values)
    }

    #[inline]
    fn decode_into(&mut self, decoder: &mut Decoder<'_>) -> Result<(), CdrError> {
        decoder.collection(Self::KIND.delimits_array(), |decoder| {
            T::decode_elements(self, decoder)
        })
    }

    #[inline]
    fn encode_as_key(&self, encoder: &mut Encoder<'_>) -> Result<(), CdrError> {
        encoder.collection(Self::KIND.delimits_array(), |encoder| {
            self.iter()
                .try_for_each(|value| value.encode_as_key(encoder))
        })
    }

    #[inline]
    fn transcribe_key(
        source: KeySource,
        decoder: &mut Decoder<'_>,
        encoder: &mut Encoder<'_>,
    ) -> Result<(), CdrError> {
        let delimits = Self::KIND.delimits_array();
        decoder.collection(delimits, |decoder| {
            encoder.collection(delimits, |encoder| {
                (0..N).try_for_each(|_| T::transcribe_key(source, decoder, encoder))
            })
        })
    }

    fn decode_key(source: KeySource, decoder: &mut Decoder<'_>) -> Result<Self, CdrError> {
        let mut values = Self::initial();
        decoder.collection(Self::KIND.delimits_array(), |decoder| {
            values.iter_mut().try_for_each(|value| {
                *value = T::decode_key(source, decoder)?;
                Ok(())
            })
        })?;
        Ok(values)
    }

    #[inline]
    fn measure_key(size: &mut MaxSize) {
        size.collection(Self::KIND.delimits_array());
        size.elements::<T>(N);
    }

    fn length(&self) -> Option<usize> {
        self.iter().filter_map(T::length).max()
    }

    fn lengths(&self, visit: &mut dyn FnMut(MemberLength)) {
        self.iter().for_each(|value| value.lengths(visit));
    }

    fn field_kind(path: FieldPath<'_>) -> Option<FieldKind> {
        let (index, rest) = path.element()?;
        (index < N).then(|| T::field_kind(rest)).flatten()
    }

    fn field<'a>(view: Self::View<'a>, path: FieldPath<'_>) -> Option<FieldValue<'a>> {
        let (index, rest) = path.element()?;
        T::field(view.get(index)?, rest)
    }
}
