//! A keyed topic: each lamp is an instance, with its own history and end. A listener follows the lamps.

use std::{error::Error, time::Duration};

use isolane::{InstanceState, Participant, Qos, TopicType};

#[derive(TopicType, Default)]
struct Lamp {
    #[topic(key)]
    room: String,
    is_on: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let participant = Participant::builder(0).build()?;
    // The newest sample of each lamp, also for readers that start later.
    let qos = Qos::reliable().keep_last(1).transient_local();

    let reader = participant.create_reader::<Lamp>("Lamps", &qos)?;
    reader.on_subscription_matched(|status| println!("{} writers", status.current_count))?;
    reader.on_sample(Lamp::default(), |sample| match sample.value {
        Some(lamp) => println!("{}: {}", lamp.room, if lamp.is_on { "on" } else { "off" }),
        None if sample.info.instance_state == InstanceState::NotAliveDisposed => {
            println!("a lamp was removed");
        }
        None => println!("nobody controls a lamp any more"),
    })?;

    let writer = participant.create_writer::<Lamp>("Lamps", &qos)?;
    let lamp = |room: &str, is_on| Lamp {
        room: room.into(),
        is_on,
    };
    writer.write(&lamp("kitchen", true))?;
    writer.write(&lamp("hall", true))?;
    participant.run_for(Duration::from_millis(500));
    writer.write(&lamp("kitchen", false))?;
    writer.dispose(&lamp("hall", false))?;
    participant.run_for(Duration::from_millis(500));
    Ok(())
}
