//! View of a CDR sequence, decoded lazily.

use core::fmt::{self, Debug};
use core::marker::PhantomData;

use super::{ByteOrder, CdrError, CdrType, Decoder, Kind, Representation};

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
        if let Kind::Primitive { bytes } = T::KIND {
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
