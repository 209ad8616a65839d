//! The participant inside an event loop of the program, here mio's: prints greetings of `hello_publisher`.

use std::{error::Error, io::ErrorKind, time::Duration};

use isolane::{Participant, Qos, TopicType};
use mio::{Events, Interest, Poll, Token, unix::SourceFd};

#[derive(TopicType)]
struct Greeting {
    number: u32,
    text: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let participant = Participant::builder(0).build()?;
    let reader = participant.create_reader::<Greeting>("Greetings", &Qos::reliable())?;

    let mut poll = Poll::new()?;
    let descriptor = participant.descriptor();
    poll.registry()
        .register(&mut SourceFd(&descriptor), Token(0), Interest::READABLE)?;
    let mut events = Events::with_capacity(16);
    loop {
        let ran = participant.poll();
        while let Some(sample) = reader.take().transpose() {
            match sample.map(|sample| sample.value) {
                Ok(Some(Greeting { number, text })) => println!("{number}: {text}"),
                Ok(None) => {}
                Err(error) => eprintln!("not a greeting: {error}"),
            }
        }
        // mio reports a descriptor only when it becomes readable, so sleep only when nothing was left to do.
        let timeout = match ran {
            0 => participant.timeout(),
            _ => Some(Duration::ZERO),
        };
        match poll.poll(&mut events, timeout) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error.into()),
            _ => {}
        }
    }
}
