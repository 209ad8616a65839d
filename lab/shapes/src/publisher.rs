//! Publisher: writes one sample of each instance in each period.

use std::time::Duration;

use isolane::types::BoundedString;
use isolane::{CoherentError, DataWriter, Participant, Publisher, WriteError};

use crate::Failure;
use crate::options::{FinalState, Options};
use crate::shape::{Motion, ShapeType};
use crate::{output, printed, qos};

const DEFAULT_COLOR: &str = "BLUE";

/// Time limit for the last acknowledgements, far shorter than the time limit of the tests.
const LAST_ACKNOWLEDGMENTS: Duration = Duration::from_secs(10);
/// Time for which a best-effort writer exists after its last sample.
const BEST_EFFORT_STAY: Duration = Duration::from_millis(100);

struct Writer {
    topic: String,
    writer: DataWriter<ShapeType>,
}

/// Instance that all writers write.
struct Instance {
    shape: ShapeType,
    motion: Motion,
}

pub(crate) fn run(participant: &Participant, options: &Options) -> Result<(), Failure> {
    let color = options.color.clone().unwrap_or_else(|| {
        warn!("warning: no color was given (-c), it is {DEFAULT_COLOR}");
        DEFAULT_COLOR.to_owned()
    });
    let publisher = participant.create_publisher(&qos::of_group(options))?;
    let writers = create(&publisher, options, &color)?;
    let mut instances = instances(options, &color)?;
    let mut iterations = 0;
    while !output::is_stopped() && options.num_iterations.is_none_or(|most| iterations < most) {
        let size = size(options, iterations);
        if is_between_sets(options.coherent_sample_count, iterations) {
            publisher.begin_coherent_changes()?;
            say!("Started Coherent Set");
        }
        for instance in &mut instances {
            instance.advance(size);
            write_to_all(&writers, &instance.shape, options)?;
        }
        iterations += 1;
        if is_between_sets(options.coherent_sample_count, iterations) {
            end_set(&publisher)?;
            say!("Finished Coherent Set");
        }
        output::run_for(participant, options.write_period);
    }
    if let Some(state) = options.final_instance_state {
        end_all(&writers, &instances, state)?;
        stay(participant, &writers, options);
    }
    Ok(())
}

/// Returns whether one coherent set of `count` iterations ends after this many iterations, and the next one begins;
/// false without coherent sets.
fn is_between_sets(count: Option<u32>, iterations: u64) -> bool {
    count.is_some_and(|count| iterations.is_multiple_of(count.into()))
}

/// Ends a coherent set as soon as the histories have room.
fn end_set(publisher: &Publisher) -> Result<(), Failure> {
    loop {
        match publisher.end_coherent_changes() {
            Err(CoherentError::HistoryFull) if !output::is_stopped() => {}
            ended => return Ok(ended?),
        }
    }
}

fn create(publisher: &Publisher, options: &Options, color: &str) -> Result<Vec<Writer>, Failure> {
    let topics: Vec<String> = options.topics().collect();
    for topic in &topics {
        say!("Create topic: {topic}");
    }
    let mut writers = Vec::new();
    for topic in topics {
        say!("Create writer for topic: {topic} color: {color}");
        let writer = publisher.create_writer(&topic, &qos::of_writer(options))?;
        printed::listen_to_writer(&writer, &topic)?;
        writers.push(Writer { topic, writer });
    }
    Ok(writers)
}

fn instances(options: &Options, color: &str) -> Result<Vec<Instance>, Failure> {
    let payload = vec![255; options.additional_payload_size];
    let mut instances = Vec::new();
    for (nth, color) in (0..).zip(options.colors(color)) {
        let color = BoundedString::try_from(color.as_str())
            .map_err(|_| format!("the color {color} is longer than 128 bytes"))?;
        let shape = ShapeType {
            color,
            additional_payload_size: payload.clone(),
            ..ShapeType::default()
        };
        let motion = Motion::of(nth);
        instances.push(Instance { shape, motion });
    }
    Ok(instances)
}

/// Returns the size of the shape in an iteration, counted from 0.
fn size(options: &Options, iteration: u64) -> i32 {
    if options.size != 0 {
        return options.size;
    }
    let within = options.size_modulo.map_or(iteration, |modulo| {
        iteration % u64::from(modulo.unsigned_abs())
    });
    i32::try_from(within + 1).unwrap_or(i32::MAX)
}

impl Instance {
    fn advance(&mut self, size: i32) {
        self.motion.advance();
        [self.shape.x, self.shape.y] = self.motion.place();
        self.shape.shapesize = size;
    }
}

fn write_to_all(writers: &[Writer], shape: &ShapeType, options: &Options) -> Result<(), Failure> {
    for Writer { topic, writer } in writers {
        match writer.write(shape) {
            Ok(()) if options.print_written => say!("{}", printed::sample(topic, shape)),
            Ok(()) => {}
            // The next sample is written a period later.
            Err(error @ (WriteError::Protocol(_) | WriteError::NoFrame)) => {
                warn!("warning: {topic}: {error}");
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn end_all(writers: &[Writer], instances: &[Instance], state: FinalState) -> Result<(), Failure> {
    for Writer { writer, .. } in writers {
        for Instance { shape, .. } in instances {
            match state {
                FinalState::Unregistered => writer.unregister(shape)?,
                FinalState::Disposed => writer.dispose(shape)?,
            }
        }
    }
    Ok(())
}

/// Waits until readers have received the ends of the instances. A writer that is deleted sends no repairs.
fn stay(participant: &Participant, writers: &[Writer], options: &Options) {
    if options.best_effort {
        participant.run_for(BEST_EFFORT_STAY);
    }
    for Writer { writer, .. } in writers.iter().filter(|_| !options.best_effort) {
        writer.wait_for_acknowledgments(LAST_ACKNOWLEDGMENTS);
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn sizes(arguments: &str) -> Vec<i32> {
        let words = ["isolane-shape-main", "-P", "-t", "T"].into_iter();
        let options = Options::parse_from(words.chain(arguments.split_whitespace()));
        (0..5).map(|iteration| size(&options, iteration)).collect()
    }

    #[test]
    fn sets_begin_and_end_around_the_given_number_of_iterations() {
        let begun_and_ended = |count| {
            let at = |iterations| is_between_sets(count, iterations);
            [0, 1, 2, 3].map(|iteration| (at(iteration), at(iteration + 1)))
        };
        let (begun, ended, neither) = ((true, false), (false, true), (false, false));
        for (count, expected) in [
            (None, [neither; 4]),
            (Some(1), [(true, true); 4]),
            (Some(2), [begun, ended, begun, ended]),
            (Some(3), [begun, neither, ended, begun]),
        ] {
            assert_eq!(begun_and_ended(count), expected, "{count:?}");
        }
    }

    #[test]
    fn sizes_stay_grow_or_begin_again_as_requested() {
        assert_eq!(sizes(""), [20; 5]);
        assert_eq!(sizes("-z 7 --size-modulo 2"), [7; 5]);
        assert_eq!(sizes("-z 0"), [1, 2, 3, 4, 5]);
        assert_eq!(sizes("-z 0 --size-modulo 3"), [1, 2, 3, 1, 2]);
    }
}
