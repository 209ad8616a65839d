//! Runs the participant on its own thread, and writes and takes on others.

use std::{error::Error, thread, time::Duration};

use isolane::{Participant, Qos, TopicType};

#[derive(TopicType)]
struct Speed {
    metres_per_second: f32,
}

fn main() -> Result<(), Box<dyn Error>> {
    // `.core(1).realtime(40)` in the builder would place the loop's thread.
    let participant = Participant::spawn(|| Participant::builder(0).build())?;
    let qos = Qos::reliable().keep_all().transient_local();
    let mut writer = participant.create_writer::<Speed>("Speed", &qos)?;
    let mut reader = participant.create_reader::<Speed>("Speed", &qos)?;

    let sensor = thread::spawn(move || {
        (1..=5u8).try_for_each(|step| {
            thread::sleep(Duration::from_millis(10));
            let metres_per_second = f32::from(step) / 2.0;
            writer.write(&Speed { metres_per_second })
        })
    });
    for _ in 0..5 {
        match reader.take_timeout(Duration::from_secs(10))? {
            Some(sample) => println!("{:?} m/s", sample.value.map(|it| it.metres_per_second)),
            None => return Err("no speed in 10 s".into()),
        }
    }
    sensor.join().expect("it does not panic")?;
    Ok(())
}
