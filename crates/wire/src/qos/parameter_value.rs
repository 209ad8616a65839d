//! Parameter encoding of QoS policies (RTPS 2.5 §9.6.3).

use super::{
    DataRepresentationId, DataRepresentations, DurabilityService, History, Liveliness, Octets,
    Partition, Presentation, QosPolicies, Reliability, ResourceLimits,
};
use crate::{
    Error,
    bytes::{Reader, Writer, string_bytes},
    limits::MAX_OCTETS,
    parameter::{ParameterWriter, pid},
    time::Duration,
};

/// Encoding of a parameter value.
pub(crate) trait ParameterValue: Sized {
    /// Reads a value; `None` if the input is too short or invalid.
    fn read(reader: &mut Reader<'_>) -> Option<Self>;
    /// Writes exactly [`bytes`](Self::bytes) bytes.
    fn write(&self, writer: &mut Writer<'_>);
    /// Size of the value on the wire in bytes.
    fn bytes(&self) -> usize;
}

/// Generates the reading and writing of policies from a table of parameters and members of [`QosPolicies`].
macro_rules! parameters {
    ($($id:ident: $policy:ident,)+) => {
        impl QosPolicies {
            /// Stores the value of a policy parameter. Returns false if the parameter is not a policy.
            pub(crate) fn take(&mut self, id: u16, reader: &mut Reader<'_>) -> Result<bool, Error> {
                if id == pid::PARTITION {
                    // `ParameterValue::read` could not distinguish a value beyond its bounds from an invalid one.
                    self.partition = read_partition(reader)?;
                    return Ok(true);
                }
                match id {
                    pid::RELIABILITY => self.reliability = valid(id, ParameterValue::read(reader))?,
                    $(pid::$id => self.$policy = valid(id, ParameterValue::read(reader))?,)+
                    _ => return Ok(false),
                }
                Ok(true)
            }

            /// Adds every policy that differs from its default. RELIABILITY is always added, because its default
            /// differs between writers and readers.
            pub(crate) fn put(&self, list: &mut ParameterWriter<'_>) {
                let default = Self::default();
                put(list, pid::RELIABILITY, &self.reliability);
                $(if self.$policy != default.$policy {
                    put(list, pid::$id, &self.$policy);
                })+
            }
        }
    };
}

parameters! {
    DURABILITY: durability,
    DURABILITY_SERVICE: durability_service,
    HISTORY: history,
    RESOURCE_LIMITS: resource_limits,
    DEADLINE: deadline,
    LATENCY_BUDGET: latency_budget,
    LIVELINESS: liveliness,
    OWNERSHIP: ownership,
    OWNERSHIP_STRENGTH: ownership_strength,
    DESTINATION_ORDER: destination_order,
    PRESENTATION: presentation,
    PARTITION: partition,
    LIFESPAN: lifespan,
    TIME_BASED_FILTER: time_based_filter,
    DATA_REPRESENTATION: data_representation,
    TRANSPORT_PRIORITY: transport_priority,
    USER_DATA: user_data,
    TOPIC_DATA: topic_data,
    GROUP_DATA: group_data,
}

fn valid<T>(id: u16, value: Option<T>) -> Result<T, Error> {
    value.ok_or(Error::InvalidParameter(id))
}

fn put<T: ParameterValue>(list: &mut ParameterWriter<'_>, id: u16, value: &T) {
    list.put_with(id, value.bytes(), |writer| value.write(writer));
}

impl ParameterValue for i32 {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        reader.i32().ok()
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.i32(*self);
    }

    fn bytes(&self) -> usize {
        4
    }
}

/// Boolean of one byte. The two booleans of PRESENTATION share a word of four bytes.
impl ParameterValue for bool {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let [byte] = *reader.array().ok()?;
        Some(byte != 0)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.put(&[u8::from(*self)]);
    }

    fn bytes(&self) -> usize {
        1
    }
}

impl ParameterValue for Duration {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Self::read(reader).ok().filter(|read| read.seconds >= 0)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        Self::write(*self, writer);
    }

    fn bytes(&self) -> usize {
        8
    }
}

/// Implements the encoding of structures: the encodings of their members in order.
macro_rules! structures {
    ($($name:ident { $($member:ident),+ })+) => {
        $(impl ParameterValue for $name {
            fn read(reader: &mut Reader<'_>) -> Option<Self> {
                Some(Self { $($member: ParameterValue::read(reader)?,)+ })
            }

            fn write(&self, writer: &mut Writer<'_>) {
                $(ParameterValue::write(&self.$member, writer);)+
            }

            fn bytes(&self) -> usize {
                0 $(+ self.$member.bytes())+
            }
        })+
    };
}

structures! {
    Reliability { kind, max_blocking_time }
    History { kind, depth }
    ResourceLimits { max_samples, max_instances, max_samples_per_instance }
    DurabilityService { cleanup_delay, history, resource_limits }
    Liveliness { kind, lease }
    Presentation { access_scope, coherent, ordered }
}

/// Reads a sequence of strings, each aligned to four bytes.
fn read_partition(reader: &mut Reader<'_>) -> Result<Partition, Error> {
    let invalid = Error::InvalidParameter(pid::PARTITION);
    let exceeded = Error::BoundExceeded(pid::PARTITION);
    let mut partition = Partition::new();
    let count = reader.u32().map_err(|_| invalid)?;
    for _ in 0..count {
        let name = reader.string().ok_or(invalid)?;
        let name = heapless::String::try_from(name).map_err(|_| exceeded)?;
        partition.push(name).map_err(|_| exceeded)?;
        // The last string may lack padding.
        let _ = reader.take(reader.rest().len() % 4);
    }
    Ok(partition)
}

impl ParameterValue for Partition {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        read_partition(reader).ok()
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.u32(self.len() as u32);
        for name in self {
            writer.string(name);
        }
    }

    fn bytes(&self) -> usize {
        4 + self.iter().map(|name| string_bytes(name)).sum::<usize>()
    }
}

/// Sequence of shorts. Entries beyond the bound are less preferred than every standard one, and skipped.
impl ParameterValue for DataRepresentations {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let mut representations = Self::new();
        let count = reader.u32().ok()?;
        for _ in 0..count {
            let id = DataRepresentationId(reader.u16().ok()?.cast_signed());
            if representations.push(id).is_err() {
                break;
            }
        }
        Some(representations)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.u32(self.len() as u32);
        for id in self {
            writer.u16(id.0.cast_unsigned());
        }
    }

    fn bytes(&self) -> usize {
        4 + 2 * self.len()
    }
}

/// Sequence of octets.
impl ParameterValue for Octets {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let count = reader.u32().ok()? as usize;
        let octets = reader.take(count).ok()?;
        let kept = Self::of(&octets[..count.min(MAX_OCTETS)])?;
        Some(if count > MAX_OCTETS {
            kept.truncated()
        } else {
            kept
        })
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.u32(self.as_slice().len() as u32);
        writer.put(self.as_slice());
    }

    fn bytes(&self) -> usize {
        4 + self.as_slice().len()
    }
}
