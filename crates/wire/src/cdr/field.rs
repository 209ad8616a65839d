//! Member paths of content filters and queries (DDS 1.4 Annex B, FIELDNAME).
//!
//! A path leads from the topic's type to a nested member, for example `position.x` or `wheels[2].pressure`. Elements
//! of arrays and sequences are in brackets and count from 0. The path must name a value that can be compared;
//! structures and whole collections cannot be compared.

/// Type of a field in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// Any integer, signed or not, including bytes.
    Integer,
    /// A floating-point number.
    Float,
    /// A boolean.
    Boolean,
    /// An 8-bit character.
    Character,
    /// A string.
    Text,
    /// An enumeration, with the name and value of each enumerator.
    Enumeration(&'static [(&'static str, i32)]),
}

/// Value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldValue<'a> {
    /// An integer or an enumerator's value.
    Integer(i128),
    /// A floating-point number.
    Float(f64),
    /// A boolean.
    Boolean(bool),
    /// A character of ISO 8859-1.
    Character(char),
    /// A string.
    Text(&'a str),
}

/// Part of a member path that is not resolved yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldPath<'p>(&'p str);

impl<'p> FieldPath<'p> {
    /// Creates a path from a whole field name of an expression.
    pub const fn new(name: &'p str) -> Self {
        Self(name)
    }

    /// Returns true if the path ends here.
    pub const fn is_at_end(self) -> bool {
        self.0.is_empty()
    }

    /// Splits off the next member's name. `None` if the path ends or continues with an index.
    pub fn member(self) -> Option<(&'p str, Self)> {
        let end = self.0.find(['.', '[']).unwrap_or(self.0.len());
        let (name, rest) = self.0.split_at(end);
        (!name.is_empty()).then(|| (name, Self(rest).behind_dot()))
    }

    /// Splits off the next element's index. `None` if the path ends or continues with a member.
    pub fn element(self) -> Option<(usize, Self)> {
        let (index, rest) = self.0.strip_prefix('[')?.split_once(']')?;
        // `parse` alone would accept `+1`.
        let is_number = index.bytes().all(|digit| digit.is_ascii_digit());
        let index = index.parse().ok().filter(|_| is_number)?;
        Some((index, Self(rest).behind_dot()))
    }

    /// Skips the dot before a member.
    fn behind_dot(self) -> Self {
        match self.0.strip_prefix('.') {
            Some(rest) if !rest.is_empty() && !rest.starts_with(['.', '[']) => Self(rest),
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FieldPath;

    #[test]
    fn a_name_is_followed_step_by_step_to_its_end() {
        let path = FieldPath::new("wheels[2].pressure.bar");
        let (name, rest) = path.member().unwrap();
        assert_eq!(name, "wheels");
        assert_eq!(rest.member(), None);
        let (index, rest) = rest.element().unwrap();
        assert_eq!(index, 2);
        let (name, rest) = rest.member().unwrap();
        assert_eq!(name, "pressure");
        assert_eq!(rest.element(), None);
        let (name, rest) = rest.member().unwrap();
        assert_eq!(name, "bar");
        assert!(rest.is_at_end());
        assert_eq!((rest.member(), rest.element()), (None, None));
    }

    #[test]
    fn a_name_with_a_step_that_is_none_leads_nowhere() {
        for name in [
            "a.",
            "a..b",
            "a.[1]",
            "a[",
            "a[]",
            "a[+1]",
            "a[-1]",
            "a[1",
            "a[99999999999999999999]",
        ] {
            let (_, rest) = FieldPath::new(name).member().unwrap();
            assert!(!rest.is_at_end(), "{name}");
            assert_eq!((rest.member(), rest.element()), (None, None), "{name}");
        }
        for name in ["", ".a", "[1]"] {
            assert_eq!(FieldPath::new(name).member(), None, "{name}");
        }
    }
}
