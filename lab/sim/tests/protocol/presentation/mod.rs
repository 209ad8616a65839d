//! PRESENTATION: samples that become visible together, and their order (DDS 1.4 §2.2.3.6).

mod coherent;
mod foreign;
mod group;
mod judged;
mod ordered;
mod parting;
mod room;
mod silent;
mod unseen;
mod waiting;

use isolane_rtps::ReaderLedger;
use isolane_sim::{
    NodeConfig, NodeId, PublisherHandle, ReaderHandle, Sample, SubscriberHandle, Topic, World,
    WriterHandle,
};
use isolane_wire::qos::{Presentation, PresentationAccessScope};

pub(crate) const COHERENT_TOPIC: Presentation = Presentation {
    access_scope: PresentationAccessScope::Topic,
    coherent: true,
    ordered: false,
};

pub(crate) const COHERENT_GROUP: Presentation = Presentation {
    access_scope: PresentationAccessScope::Group,
    coherent: true,
    ordered: false,
};

pub(crate) const ORDERED_GROUP: Presentation = Presentation {
    access_scope: PresentationAccessScope::Group,
    coherent: false,
    ordered: true,
};

pub(crate) const BOTH_OF_GROUP: Presentation = Presentation {
    access_scope: PresentationAccessScope::Group,
    coherent: true,
    ordered: true,
};

/// Writers of one publisher on one node, and readers of one subscriber on another; each topic has one pair.
pub(crate) struct Groups {
    pub(crate) world: World,
    pub(crate) nodes: (NodeId, NodeId),
    pub(crate) publisher: PublisherHandle,
    pub(crate) subscriber: SubscriberHandle,
    pub(crate) writers: Vec<WriterHandle>,
    pub(crate) readers: Vec<ReaderHandle>,
}

pub(crate) fn groups(
    mut world: World,
    presentation: Presentation,
    topics: &[(Topic, Topic)],
) -> Groups {
    let nodes = world.nodes(2, &NodeConfig::default());
    let publisher = world.create_publisher(nodes[0], presentation);
    let subscriber = world.create_subscriber(nodes[1], presentation);
    let (mut writers, mut readers) = (Vec::new(), Vec::new());
    for (offered, requested) in topics {
        writers.push(world.create_writer_in(publisher, offered));
        readers.push(world.create_reader_in(subscriber, requested));
    }
    for (&writer, &reader) in writers.iter().zip(&readers) {
        world.until_matched(&[writer], &[reader]);
    }
    Groups {
        world,
        nodes: (nodes[0], nodes[1]),
        publisher,
        subscriber,
        writers,
        readers,
    }
}

/// The same topic on both sides.
pub(crate) fn alike(topic: Topic) -> (Topic, Topic) {
    (topic.clone(), topic)
}

pub(crate) fn reliable(name: &str) -> Topic {
    Topic::new(name).reliable()
}

impl Groups {
    /// Writes a set of (writer number, sample).
    pub(crate) fn write_set(&mut self, samples: impl IntoIterator<Item = (usize, Sample)>) {
        self.begin_set();
        for (writer, sample) in samples {
            self.enqueue(writer, [sample]);
        }
        self.end_set();
    }

    pub(crate) fn begin_set(&mut self) {
        self.world.begin_set(self.publisher);
    }

    pub(crate) fn end_set(&mut self) {
        let ended = self.world.end_set(self.publisher);
        ended.expect("there is room for the end");
    }

    /// Passes samples to a writer.
    pub(crate) fn enqueue(&mut self, writer: usize, samples: impl IntoIterator<Item = Sample>) {
        self.world.enqueue(self.writers[writer], samples);
    }

    pub(crate) fn ledger(&self, reader: usize) -> ReaderLedger {
        self.world.reader_ledger(self.readers[reader])
    }

    /// Values that each reader has taken.
    pub(crate) fn values(&self) -> Vec<Vec<u64>> {
        let readers = self.readers.iter();
        readers.map(|&reader| self.world.values(reader)).collect()
    }

    /// Checks that each set was taken as a whole and at one time, or not at all; returns the number of taken sets.
    pub(crate) fn whole_sets(&self, sets: &[Vec<(usize, u64)>]) -> usize {
        let seed = self.world.seed();
        let is_whole = |set: &&Vec<(usize, u64)>| {
            let found = |&(reader, value): &(usize, u64)| {
                let mut received = self.world.received(self.readers[reader]).iter();
                let is_it = received.find(|it| it.sample().is_some_and(|it| it.value == value));
                is_it.map(|received| received.at)
            };
            let times: Vec<_> = set.iter().map(found).collect();
            let is_at_once = times.windows(2).all(|pair| pair[0] == pair[1]);
            assert!(is_at_once, "seed {seed}: {set:?} was taken at {times:?}");
            times.first().is_some_and(Option::is_some)
        };
        sets.iter().filter(is_whole).count()
    }
}
