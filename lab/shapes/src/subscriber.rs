//! Subscriber: polls each reader once a period, and prints its samples.

use std::collections::{BTreeMap, BTreeSet};

use isolane::{
    Access, DataReader, Filter, Guid, InstanceHandle, Octets, Participant, PresentationAccessScope,
    ReadError, Sample, StateMask, Subscriber,
};

use crate::Failure;
use crate::options::Options;
use crate::shape::ShapeType;
use crate::{output, printed, qos};

/// Maximum number of instances whose colours are stored. A sample of an instance's end has only the key hash.
const MAX_COLORS: usize = 1_024;

/// Maximum number of writers whose data is printed.
const MAX_PRINTED: usize = 1_024;

struct Reader {
    topic: String,
    reader: DataReader<ShapeType>,
    colors: BTreeMap<InstanceHandle, String>,
}

pub(crate) fn run(participant: &Participant, options: &Options) -> Result<(), Failure> {
    let subscriber = participant.create_subscriber(&qos::of_group(options))?;
    let mut readers = create(&subscriber, options)?;
    let mut printed_writers = PrintedWriters::default();
    let mut iterations = 0;
    while !output::is_stopped() && options.num_iterations.is_none_or(|most| iterations < most) {
        if options.coherent {
            say!("Reading coherent sets, iteration {iterations}");
        }
        if options.ordered {
            say!("Reading with ordered access, iteration {iterations}");
        }
        let access = subscriber.begin_access();
        if options.ordered
            && options.access_scope == PresentationAccessScope::Group
            && !options.read
        {
            print_in_order(&mut readers, &access)?;
        }
        for reader in &mut readers {
            reader.print(options)?;
        }
        drop(access);
        if options.print_data {
            printed_writers.print_new(participant);
        }
        iterations += 1;
        output::run_for(participant, options.read_period);
    }
    Ok(())
}

/// Writers whose data was printed.
#[derive(Default)]
struct PrintedWriters(BTreeSet<Guid>);

impl PrintedWriters {
    fn print_new(&mut self, participant: &Participant) {
        for writer in participant.publications() {
            let (guid, topic, qos) = (writer.data.guid, &writer.data.topic_name, &writer.data.qos);
            if self.0.len() < MAX_PRINTED && self.0.insert(guid) {
                let data = [&qos.user_data, &qos.topic_data, &qos.group_data];
                say!("{}", printed::data(topic, data.map(Octets::as_slice)));
            }
        }
    }
}

/// Prints the available samples of all topics in the order in which they were written.
fn print_in_order(readers: &mut [Reader], access: &Access) -> Result<(), Failure> {
    while let Some(reader) = readers.iter_mut().find(|it| access.is_next(&it.reader)) {
        match reader.reader.take()? {
            Some(sample) => reader.print_sample(&sample),
            None => return Ok(()),
        }
    }
    Ok(())
}

fn create(subscriber: &Subscriber, options: &Options) -> Result<Vec<Reader>, Failure> {
    let topics: Vec<String> = options.topics().collect();
    for topic in &topics {
        say!("Create topic: {topic}");
    }
    let mut readers = Vec::new();
    for topic in topics {
        let qos = qos::of_reader(options);
        let reader = match expression(options) {
            None => subscriber.create_reader(&topic, &qos)?,
            Some((expression, parameters)) => {
                let parameters: Vec<&str> = parameters.iter().map(String::as_str).collect();
                let filter = Filter::new(&expression, &parameters)
                    .inspect_err(|_| say!("failed to create content filtered topic"))?;
                subscriber.create_filtered_reader(&topic, &qos, filter)?
            }
        };
        say!("Create reader for topic: {topic}");
        printed::listen_to_reader(&reader, &topic)?;
        readers.push(Reader {
            topic,
            reader,
            colors: BTreeMap::new(),
        });
    }
    Ok(readers)
}

/// Returns expression and parameters of the content filter, if any.
fn expression(options: &Options) -> Option<(String, Vec<String>)> {
    if let Some(expression) = &options.cft {
        return Some((expression.clone(), Vec::new()));
    }
    let color = options.color.as_ref()?;
    Some(("color = %0".to_owned(), vec![format!("'{color}'")]))
}

impl Reader {
    /// Prints all samples by instance, or with `--take-read` in order of arrival.
    fn print(&mut self, options: &Options) -> Result<(), Failure> {
        if options.take_read {
            let samples = self.all(options)?;
            self.print_samples(&samples);
            return Ok(());
        }
        let mut previous = None;
        loop {
            let samples = self.of_next_instance(previous, options)?;
            let Some(first) = samples.first() else {
                return Ok(());
            };
            previous = Some(first.info.instance_handle());
            self.print_samples(&samples);
        }
    }

    fn all(&self, options: &Options) -> Result<Vec<Sample<ShapeType>>, ReadError> {
        match options.read {
            true => self.reader.read_samples(usize::MAX, StateMask::empty()),
            false => self.reader.take_samples(usize::MAX, StateMask::empty()),
        }
    }

    fn of_next_instance(
        &self,
        previous: Option<InstanceHandle>,
        options: &Options,
    ) -> Result<Vec<Sample<ShapeType>>, ReadError> {
        let (reader, any) = (&self.reader, StateMask::empty());
        match options.read {
            true => reader.read_next_instance(previous, usize::MAX, any),
            false => reader.take_next_instance(previous, usize::MAX, any),
        }
    }

    fn print_samples(&mut self, samples: &[Sample<ShapeType>]) {
        samples.iter().for_each(|sample| self.print_sample(sample));
    }

    fn print_sample(&mut self, sample: &Sample<ShapeType>) {
        let key = sample.info.instance_handle();
        if let Some(shape) = &sample.value {
            if self.colors.len() < MAX_COLORS {
                self.colors.insert(key, shape.color.as_str().to_owned());
            }
            say!("{}", printed::sample(&self.topic, shape));
            return;
        }
        let color = self.colors.get(&key).map_or("?", String::as_str);
        let end = printed::instance_end(&self.topic, color, sample.info.instance_state);
        if let Some(line) = end {
            say!("{line}");
        }
    }
}
