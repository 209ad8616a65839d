//! The kinds of datagrams that the hostile sender has, and what a report calls them.

/// What a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Garbage,
    ChangedCapture,
    NewParticipant,
    Regular,
    NewWriter,
    NewReader,
    End,
    Data,
    Heartbeat,
    AckNack,
    Gap,
    Fragment,
}

impl Kind {
    pub(super) const ALL: [Self; 12] = [
        Self::Garbage,
        Self::ChangedCapture,
        Self::NewParticipant,
        Self::Regular,
        Self::NewWriter,
        Self::NewReader,
        Self::End,
        Self::Data,
        Self::Heartbeat,
        Self::AckNack,
        Self::Gap,
        Self::Fragment,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Garbage => "garbage",
            Self::ChangedCapture => "changed captures",
            Self::NewParticipant => "new participants",
            Self::Regular => "announcements of the same participants",
            Self::NewWriter => "new writers",
            Self::NewReader => "new readers",
            Self::End => "ends of endpoints",
            Self::Data => "samples with absurd numbers",
            Self::Heartbeat => "heartbeats",
            Self::AckNack => "acknacks",
            Self::Gap => "gaps",
            Self::Fragment => "fragments",
        }
    }
}
