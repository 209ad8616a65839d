//! What is shown: the rest is decoded and counted all the same.

use std::str::FromStr;

use isolane_wire::{
    guid::{EntityId, Guid, GuidPrefix},
    level::Level,
};

use super::knowledge::{Knowledge, Traffic};
use super::message::{Item, Kind};

/// What to show. An empty list shows everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) domain: Option<u32>,
    pub(crate) levels: Vec<Level>,
    pub(crate) topics: Vec<String>,
    pub(crate) entities: Vec<EntityPattern>,
    pub(crate) kinds: Vec<Kind>,
}

impl Filter {
    /// Whether a datagram is of the wanted domain and level.
    pub(crate) fn wants_datagram(&self, domain: Option<u32>, traffic: Option<Traffic>) -> bool {
        let level = match traffic {
            Some(Traffic::Level(level)) => Some(level),
            _ => None,
        };
        self.domain.is_none_or(|wanted| domain == Some(wanted))
            && (self.levels.is_empty() || level.is_some_and(|level| self.levels.contains(&level)))
    }

    /// Whether single submessages are left out.
    pub(crate) fn chooses_items(&self) -> bool {
        !(self.topics.is_empty() && self.entities.is_empty() && self.kinds.is_empty())
    }

    /// Whether a sample may be of a wanted topic: its writer was announced before the first frame.
    pub(crate) fn misses_topic(&self, item: &Item<'_>, knowledge: &Knowledge) -> bool {
        let is_users = |writer: Guid| !writer.entity.is_builtin();
        !self.topics.is_empty()
            && item.kind == Kind::Data
            && item.writer.is_some_and(is_users)
            && knowledge.topic_of(item).is_none()
    }

    /// Whether a submessage is of a wanted topic, entity and kind. With `shows_unknown` a sample of a writer that was
    /// never announced passes for any topic.
    pub(crate) fn wants(
        &self,
        item: &Item<'_>,
        knowledge: &Knowledge,
        shows_unknown: bool,
    ) -> bool {
        let topic = || knowledge.topic_of(item);
        let is_topic = |wanted: &String| topic() == Some(wanted.as_str());
        let is_entity = |wanted: &EntityPattern| {
            [item.writer, item.reader]
                .into_iter()
                .flatten()
                .any(|guid| wanted.matches(guid))
        };
        (self.kinds.is_empty() || self.kinds.contains(&item.kind))
            && (self.topics.is_empty()
                || self.topics.iter().any(is_topic)
                || (shows_unknown && self.misses_topic(item, knowledge)))
            && (self.entities.is_empty() || self.entities.iter().any(is_entity))
    }
}

/// A participant, an entity, or an entity of any participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntityPattern {
    prefix: Option<GuidPrefix>,
    entity: Option<EntityId>,
}

impl EntityPattern {
    fn matches(&self, guid: Guid) -> bool {
        self.prefix.is_none_or(|prefix| prefix == guid.prefix)
            && self.entity.is_none_or(|entity| entity == guid.entity)
    }
}

impl std::fmt::Display for EntityPattern {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.prefix, self.entity) {
            (Some(prefix), Some(entity)) => write!(formatter, "{prefix}:{entity}"),
            (Some(prefix), None) => write!(formatter, "{prefix}"),
            (None, Some(entity)) => write!(formatter, "{entity}"),
            (None, None) => Ok(()),
        }
    }
}

impl FromStr for EntityPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            String::from(
                "write hexadecimal digits as `spy` prints them: a participant (24), an entity (8), \
                 or both with a colon between them",
            )
        };
        let digits: String = text.chars().filter(|c| !matches!(c, ':' | '.')).collect();
        let bytes = hexadecimal(&digits).ok_or_else(wrong)?;
        let (prefix, entity) = match bytes.len() {
            4 => (&[][..], &bytes[..]),
            12 => (&bytes[..], &[][..]),
            16 => bytes.split_at(12),
            _ => return Err(wrong()),
        };
        Ok(Self {
            prefix: prefix.try_into().ok().map(GuidPrefix),
            entity: entity.try_into().ok().map(EntityId),
        })
    }
}

fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = digits
        .chars()
        .map(|digit| Some(digit.to_digit(16)? as u8))
        .collect::<Option<_>>()?;
    let pairs = digits.chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(high << 4 | low),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_written_as_they_are_printed() {
        let guid = Guid {
            prefix: GuidPrefix([0xab; 12]),
            entity: EntityId([0, 0, 1, 2]),
        };
        for text in [
            guid.to_string(),
            guid.prefix.to_string(),
            guid.entity.to_string(),
        ] {
            let pattern: EntityPattern = text.parse().expect(&text);
            assert!(pattern.matches(guid), "{text}");
            assert_eq!(pattern.to_string(), text);
            assert!(!pattern.matches(Guid::UNKNOWN), "{text}");
        }
        for text in ["", "12", "0000010", "000001zz", "ä"] {
            assert!(text.parse::<EntityPattern>().is_err(), "{text}");
        }
    }
}
