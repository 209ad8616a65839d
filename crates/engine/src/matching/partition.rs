//! PARTITION (DDS 1.4 §2.2.3.13): where endpoints of a topic meet, and names with wildcards.
//!
//! A name with wildcards stands for every name it fits, as POSIX `fnmatch` reads it without flags:
//! `*` any characters, `?` one, `[abc]`, `[a-z]` and `[!a-z]` one of (or none of) a set, and a backslash
//! takes the character behind it for itself. Either side may use them, not both: two names with wildcards
//! never meet, not even equal ones. A name without wildcards is compared as it is, backslashes included.
//! Named classes of characters (`[:digit:]`) are not known.
//!
//! Names come from peers, so their cost is bounded: of several `*` only the last one seen is ever tried
//! again, and what is no set is found out once. So a comparison looks at no more than twice the product of the
//! two lengths, 8,192 characters, and two endpoints make no more than 64 of them.

use isolane_wire::qos::Partition;

/// Whether two endpoints share a partition. No partition is the one without a name. Not to meet is no
/// incompatibility, and nobody is told.
#[must_use]
pub fn partitions_meet(own: &Partition, other: &Partition) -> bool {
    // Most endpoints name none.
    if own.is_empty() && other.is_empty() {
        return true;
    }
    let has_name = |partition: &Partition, meets: &dyn Fn(&str) -> bool| {
        (partition.is_empty() && meets("")) || partition.iter().any(|name| meets(name))
    };
    has_name(own, &|one| has_name(other, &|it| name_meets(one, it)))
}

/// Whether two names stand for one partition.
fn name_meets(one: &str, other: &str) -> bool {
    match (has_wildcards(one), has_wildcards(other)) {
        (false, false) => one == other,
        (true, false) => fits(one, other),
        (false, true) => fits(other, one),
        (true, true) => false,
    }
}

/// Whether a name has a wildcard that no backslash takes for itself.
fn has_wildcards(name: &str) -> bool {
    let mut is_quoted = false;
    name.chars().any(|it| {
        let is_wildcard = !is_quoted && matches!(it, '*' | '?' | '[');
        is_quoted = !is_quoted && it == '\\';
        is_wildcard
    })
}

/// Whether a pattern fits all of a text.
fn fits(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    // Behind the last `*`, and the text from which on that was tried: if it fails, the `*` takes one
    // character more. An earlier `*` need not: whatever it could take, the later one can.
    let mut again: Option<(&str, &str)> = None;
    let mut sets = Sets::default();
    loop {
        if let Some(rest) = pattern.strip_prefix('*') {
            again = Some((rest, text));
            pattern = rest;
            continue;
        }
        let mut rest = text.chars();
        match rest.next() {
            None if pattern.is_empty() => return true,
            Some(character) => {
                if let Some(behind) = sets.step(pattern, character) {
                    (pattern, text) = (behind, rest.as_str());
                    continue;
                }
            }
            // The text has ended, and a `*` can only take more of it.
            None => return false,
        }
        let Some((behind, from)) = again else {
            return false;
        };
        let mut longer = from.chars();
        longer.next();
        (pattern, text) = (behind, longer.as_str());
        again = Some((behind, text));
    }
}

/// What is known of a pattern's sets.
#[derive(Default)]
struct Sets {
    /// In so many bytes at the pattern's end no set ends: they are not looked through again.
    unclosed_bytes: usize,
}

impl Sets {
    /// What is left of a pattern whose first element is one character; `None`: the character is another.
    fn step<'a>(&mut self, pattern: &'a str, character: char) -> Option<&'a str> {
        let mut rest = pattern.chars();
        let is_it = match rest.next()? {
            '?' => true,
            '[' if rest.as_str().len() > self.unclosed_bytes => {
                match in_set(rest.as_str(), character) {
                    Some((is_in, behind)) => return is_in.then_some(behind),
                    // A set that does not end is none, and neither is one that begins behind it.
                    None => {
                        self.unclosed_bytes = rest.as_str().len();
                        character == '['
                    }
                }
            }
            // One at the end quotes nothing, and fits nothing.
            '\\' => rest.next()? == character,
            itself => itself == character,
        };
        is_it.then_some(rest.as_str())
    }
}

/// Whether a character is in the set that begins behind a `[`, and what is behind its `]`; `None`: it has
/// none.
fn in_set(set: &str, character: char) -> Option<(bool, &str)> {
    let (is_negated, set) = match set.strip_prefix(['!', '^']) {
        Some(rest) => (true, rest),
        None => (false, set),
    };
    let mut rest = set.chars();
    let mut is_in = false;
    let mut is_first = true;
    loop {
        let low = match rest.next()? {
            ']' if !is_first => return Some((is_in != is_negated, rest.as_str())),
            '\\' => rest.next()?,
            itself => itself,
        };
        is_first = false;
        let mut ahead = rest.clone();
        let is_range =
            ahead.next() == Some('-') && ahead.clone().next().is_some_and(|it| it != ']');
        let high = if is_range {
            rest = ahead;
            match rest.next()? {
                '\\' => rest.next()?,
                itself => itself,
            }
        } else {
            low
        };
        is_in |= (low..=high).contains(&character);
    }
}
