//! Parameter encoding of QoS policies (RTPS 2.5 §9.6.3).

use super::{
    DataRepresentationId, DataRepresentations, DurabilityService, History, Liveliness, Partition,
    Presentation, QosPolicies, Reliability, ResourceLimits,
};
use crate::{
    Error,
    bytes::{Reader, Writer},
    parameter::{ParameterWriter, pid},
    time::Duration,
};

/// Encoding of a parameter value.
pub(crate) trait WireForm: Sized {
    /// Reads a value; `None` if the input is too short or invalid.
    fn read(reader: &mut Reader<'_>) -> Option<Self>;
    /// Writes exactly [`bytes`](Self::bytes) bytes.
    fn write(&self, writer: &mut Writer<'_>);
    /// Size of the value on the wire in bytes.
    fn bytes(&self) -> usize;
}

impl QosPolicies {
    /// Stores the value of a policy parameter. Returns false if the parameter is not a policy.
    pub(crate) fn take(&mut self, id: u16, reader: &mut Reader<'_>) -> Result<bool, Error> {
        let read = match id {
            pid::RELIABILITY => replace(&mut self.reliability, reader),
            pid::DURABILITY => replace(&mut self.durability, reader),
            pid::DURABILITY_SERVICE => replace(&mut self.durability_service, reader),
            pid::HISTORY => replace(&mut self.history, reader),
            pid::RESOURCE_LIMITS => replace(&mut self.resource_limits, reader),
            pid::DEADLINE => replace(&mut self.deadline, reader),
            pid::LATENCY_BUDGET => replace(&mut self.latency_budget, reader),
            pid::LIVELINESS => replace(&mut self.liveliness, reader),
            pid::OWNERSHIP => replace(&mut self.ownership, reader),
            pid::OWNERSHIP_STRENGTH => replace(&mut self.ownership_strength, reader),
            pid::DESTINATION_ORDER => replace(&mut self.destination_order, reader),
            pid::PRESENTATION => replace(&mut self.presentation, reader),
            pid::PARTITION => {
                self.partition = read_partition(reader)?;
                return Ok(true);
            }
            pid::LIFESPAN => replace(&mut self.lifespan, reader),
            pid::TIME_BASED_FILTER => replace(&mut self.time_based_filter, reader),
            pid::DATA_REPRESENTATION => replace(&mut self.data_representation, reader),
            pid::TRANSPORT_PRIORITY => replace(&mut self.transport_priority, reader),
            pid::USER_DATA => replace(&mut self.user_data, reader),
            pid::TOPIC_DATA => replace(&mut self.topic_data, reader),
            pid::GROUP_DATA => replace(&mut self.group_data, reader),
            _ => return Ok(false),
        };
        read.map(|()| true).ok_or(Error::InvalidParameter(id))
    }

    /// Adds every policy that differs from its default. RELIABILITY is always added: its default differs between
    /// writers and readers.
    pub(crate) fn put(&self, list: &mut ParameterWriter<'_>) {
        let default = Self::default();
        put(list, pid::RELIABILITY, &self.reliability);
        let mut list = Changes(list);
        list.put(pid::DURABILITY, &self.durability, &default.durability);
        list.put(
            pid::DURABILITY_SERVICE,
            &self.durability_service,
            &default.durability_service,
        );
        list.put(pid::HISTORY, &self.history, &default.history);
        list.put(
            pid::RESOURCE_LIMITS,
            &self.resource_limits,
            &default.resource_limits,
        );
        list.put(pid::DEADLINE, &self.deadline, &default.deadline);
        list.put(
            pid::LATENCY_BUDGET,
            &self.latency_budget,
            &default.latency_budget,
        );
        list.put(pid::LIVELINESS, &self.liveliness, &default.liveliness);
        list.put(pid::OWNERSHIP, &self.ownership, &default.ownership);
        list.put(
            pid::OWNERSHIP_STRENGTH,
            &self.ownership_strength,
            &default.ownership_strength,
        );
        list.put(
            pid::DESTINATION_ORDER,
            &self.destination_order,
            &default.destination_order,
        );
        list.put(pid::PRESENTATION, &self.presentation, &default.presentation);
        list.put(pid::PARTITION, &self.partition, &default.partition);
        list.put(pid::LIFESPAN, &self.lifespan, &default.lifespan);
        list.put(
            pid::TIME_BASED_FILTER,
            &self.time_based_filter,
            &default.time_based_filter,
        );
        list.put(
            pid::DATA_REPRESENTATION,
            &self.data_representation,
            &default.data_representation,
        );
        list.put(
            pid::TRANSPORT_PRIORITY,
            &self.transport_priority,
            &default.transport_priority,
        );
        list.put(pid::USER_DATA, &self.user_data, &default.user_data);
        list.put(pid::TOPIC_DATA, &self.topic_data, &default.topic_data);
        list.put(pid::GROUP_DATA, &self.group_data, &default.group_data);
    }
}

fn replace<T: WireForm>(policy: &mut T, reader: &mut Reader<'_>) -> Option<()> {
    *policy = T::read(reader)?;
    Some(())
}

fn put<T: WireForm>(list: &mut ParameterWriter<'_>, id: u16, value: &T) {
    list.put_with(id, value.bytes(), |writer| value.write(writer));
}

/// Parameter writer that omits values equal to their default.
struct Changes<'a, 'b>(&'a mut ParameterWriter<'b>);

impl Changes<'_, '_> {
    fn put<T: WireForm + PartialEq>(&mut self, id: u16, value: &T, default: &T) {
        if value != default {
            put(self.0, id, value);
        }
    }
}

impl WireForm for i32 {
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

/// Boolean of one byte: the two of PRESENTATION share a word.
impl WireForm for bool {
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

impl WireForm for Duration {
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

/// Implements the encoding of structures: their members in order.
macro_rules! structures {
    ($($name:ident { $($member:ident),+ })+) => {
        $(impl WireForm for $name {
            fn read(reader: &mut Reader<'_>) -> Option<Self> {
                Some(Self { $($member: WireForm::read(reader)?,)+ })
            }

            fn write(&self, writer: &mut Writer<'_>) {
                $(WireForm::write(&self.$member, writer);)+
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

impl WireForm for Partition {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        read_partition(reader).ok()
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.u32(self.len() as u32);
        for name in self {
            let length = name.len() + 1;
            writer.u32(length as u32);
            writer.put(name.as_bytes());
            writer.put(&[0; 4][..length.next_multiple_of(4) - name.len()]);
        }
    }

    fn bytes(&self) -> usize {
        let of_name = |name: &heapless::String<_>| 4 + (name.len() + 1).next_multiple_of(4);
        4 + self.iter().map(of_name).sum::<usize>()
    }
}

/// Sequence of shorts. Entries beyond the bound are less preferred than every standard one, and skipped.
impl WireForm for DataRepresentations {
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
