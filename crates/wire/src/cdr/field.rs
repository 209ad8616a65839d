//! Members by name: what filters and queries compare (DDS 1.4 Annex B, FIELDNAME).
//!
//! A name is a path from the topic's type inwards: members behind dots, elements of arrays and sequences in
//! brackets, counted from 0: `position.x`, `wheels[2].pressure`. It leads to something that can be compared, or
//! nowhere: structures and whole collections have no order.

/// What can be compared with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// Any integer, signed or not; bytes too.
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

/// A member's value.
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

/// What of a member's name is still to be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldPath<'p>(&'p str);

impl<'p> FieldPath<'p> {
    /// A whole name, as it stands in an expression.
    pub const fn new(name: &'p str) -> Self {
        Self(name)
    }

    /// Whether the name ends here: what it has led to is meant.
    pub const fn is_at_end(self) -> bool {
        self.0.is_empty()
    }

    /// The next member's name, and what follows it. `None`: the name ends, or goes on with an element.
    pub fn member(self) -> Option<(&'p str, Self)> {
        let end = self.0.find(['.', '[']).unwrap_or(self.0.len());
        let (name, rest) = self.0.split_at(end);
        (!name.is_empty()).then(|| (name, Self(rest).behind_dot()))
    }

    /// The next element's index, and what follows it. `None`: the name ends, or goes on with a member.
    pub fn element(self) -> Option<(usize, Self)> {
        let (index, rest) = self.0.strip_prefix('[')?.split_once(']')?;
        // Without this `+1` would be an index.
        let is_number = index.bytes().all(|digit| digit.is_ascii_digit());
        let index = index.parse().ok().filter(|_| is_number)?;
        Some((index, Self(rest).behind_dot()))
    }

    /// Past the dot, if a member follows it.
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
