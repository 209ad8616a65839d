//! The participant inside an event loop of the program, here mio's: prints greetings of `hello_publisher`.

use std::error::Error;

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
        // mio reports a descriptor once (edge-triggered), so poll until nothing is left to do.
        while participant.poll() > 0 {}
        while let Some(sample) = reader.take()? {
            if let Some(Greeting { number, text }) = sample.value {
                println!("{number}: {text}");
            }
        }
        poll.poll(&mut events, participant.timeout())?;
    }
}
