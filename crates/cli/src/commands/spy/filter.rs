//! Filter of datagrams and submessages. The summary counts those that it omits.

use std::fmt;
use std::str::FromStr;

use isolane_wire::guid::Guid;
use isolane_wire::level::Level;

use super::discovery::Traffic;
use super::message::{Item, Kind, Message};

/// Conditions of the command line. An empty list is no condition.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    pub(super) domain: Option<u32>,
    pub(super) levels: Vec<Level>,
    pub(super) topics: Vec<String>,
    pub(super) entities: Vec<EntityPattern>,
    pub(super) kinds: Vec<Kind>,
}

impl Filter {
    /// Returns true when the message has a chosen domain and level.
    pub(super) fn matches(&self, message: &Message) -> bool {
        let is_of_level = |level: &Level| message.traffic == Some(Traffic::Level(*level));
        self.domain
            .is_none_or(|domain| message.domain == Some(domain))
            && (self.levels.is_empty() || self.levels.iter().any(is_of_level))
    }

    /// Returns true when there are conditions on single submessages.
    pub(super) fn chooses_items(&self) -> bool {
        !(self.topics.is_empty() && self.entities.is_empty() && self.kinds.is_empty())
    }

    /// Returns true when a sample may be of a chosen topic: discovery has not announced its writer.
    pub(super) fn is_unannounced(&self, item: &Item) -> bool {
        !self.topics.is_empty()
            && item.kind == Kind::Data
            && item
                .writer
                .is_some_and(|writer| !writer.entity.is_builtin())
            && item.topic.is_none()
    }

    /// Returns true for a submessage of a chosen topic, entity and kind. With `shows_unannounced`, a sample of an
    /// unannounced writer counts as any topic.
    pub(super) fn matches_item(&self, item: &Item, shows_unannounced: bool) -> bool {
        let is_topic = |topic: &String| item.topic.as_ref() == Some(topic);
        let is_entity = |pattern: &EntityPattern| {
            let mut endpoints = [item.writer, item.reader].into_iter().flatten();
            endpoints.any(|guid| pattern.matches(guid))
        };
        (self.kinds.is_empty() || self.kinds.contains(&item.kind))
            && (self.topics.is_empty()
                || self.topics.iter().any(is_topic)
                || (shows_unannounced && self.is_unannounced(item)))
            && (self.entities.is_empty() || self.entities.iter().any(is_entity))
    }
}

/// GUID, prefix of a participant, or entity id of any participant, as [`Guid`] prints them.
#[derive(Clone, Debug)]
pub(super) struct EntityPattern(String);

impl EntityPattern {
    fn matches(&self, guid: Guid) -> bool {
        let guid = guid.to_string();
        guid == self.0 || guid.split(':').any(|part| part == self.0)
    }
}

impl fmt::Display for EntityPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for EntityPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_hexadecimal = |part: &str| part.chars().all(|c| c.is_ascii_hexdigit());
        let lengths: Vec<usize> = text.split(':').map(str::len).collect();
        match &lengths[..] {
            [24] | [8] | [24, 8] if text.split(':').all(is_hexadecimal) => {
                Ok(Self(text.to_ascii_lowercase()))
            }
            _ => Err(String::from(
                "write hexadecimal digits as `spy` prints them: a participant (24), an entity (8), or both with a colon \
                 between them",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use isolane_wire::guid::{EntityId, GuidPrefix};

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
