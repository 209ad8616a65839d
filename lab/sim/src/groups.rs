//! Publishers and subscribers of a world.

use isolane_engine::{CoherentError, ContentFilter, PublisherId, SubscriberId};
use isolane_wire::qos::Presentation;

use crate::{
    endpoints::{ReaderHandle, WriterHandle},
    node::NodeId,
    topic::Topic,
    world::World,
};

/// Handle to a publisher of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublisherHandle(NodeId, PublisherId);

/// Handle to a subscriber of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubscriberHandle(NodeId, SubscriberId);

impl World {
    /// Creates a publisher on a node.
    pub fn create_publisher(
        &mut self,
        node: NodeId,
        presentation: Presentation,
    ) -> PublisherHandle {
        let created = self.engine_mut(node).create_publisher(presentation);
        PublisherHandle(node, created.expect("the publisher can be created"))
    }

    /// Creates a subscriber on a node.
    pub fn create_subscriber(
        &mut self,
        node: NodeId,
        presentation: Presentation,
    ) -> SubscriberHandle {
        let created = self.engine_mut(node).create_subscriber(presentation);
        SubscriberHandle(node, created.expect("the subscriber can be created"))
    }

    /// Creates a writer in a publisher.
    pub fn create_writer_in(&mut self, group: PublisherHandle, topic: &Topic) -> WriterHandle {
        let (now, PublisherHandle(node, publisher)) = (self.now, group);
        let config = topic.endpoint(node, false);
        let created = self
            .engine_mut(node)
            .create_writer_in(now, publisher, &config);
        self.enter_writer(node, topic, created.expect("the writer can be created"))
    }

    /// Creates a reader in a subscriber, whose user takes samples at once.
    pub fn create_reader_in(&mut self, group: SubscriberHandle, topic: &Topic) -> ReaderHandle {
        self.create_reader_in_with(group, topic, None)
    }

    /// Creates a reader in a subscriber, with a content filter on the payload.
    pub fn create_filtered_reader_in(
        &mut self,
        group: SubscriberHandle,
        topic: &Topic,
        wants: impl Fn(&[u8]) -> bool + 'static,
    ) -> ReaderHandle {
        self.create_reader_in_with(group, topic, Some(ContentFilter::new(wants)))
    }

    fn create_reader_in_with(
        &mut self,
        group: SubscriberHandle,
        topic: &Topic,
        filter: Option<ContentFilter>,
    ) -> ReaderHandle {
        let (now, SubscriberHandle(node, subscriber)) = (self.now, group);
        let config = topic.endpoint(node, true);
        let engine = self.engine_mut(node);
        let created = engine.create_reader_in(now, subscriber, &config, filter);
        self.enter_reader(node, topic, created.expect("the reader can be created"))
    }

    /// Begins a coherent set.
    pub fn begin_set(&mut self, PublisherHandle(node, publisher): PublisherHandle) {
        let begun = self.engine_mut(node).begin_coherent_changes(publisher);
        begun.expect("the publisher exists");
    }

    /// Ends a coherent set.
    ///
    /// # Errors
    /// That of the engine.
    pub fn end_set(
        &mut self,
        PublisherHandle(node, publisher): PublisherHandle,
    ) -> Result<(), CoherentError> {
        let now = self.now;
        let engine = self.engine_mut(node);
        let timestamp = engine.timestamp(now);
        let ended = engine.end_coherent_changes(publisher, timestamp);
        self.settle(node);
        ended
    }

    /// Begins access to the samples of a subscriber; returns false if it had begun.
    pub fn begin_access(&mut self, SubscriberHandle(node, subscriber): SubscriberHandle) -> bool {
        self.engine_mut(node).begin_access(subscriber)
    }

    /// Ends access to the samples of a subscriber; returns false if it had not begun.
    pub fn end_access(&mut self, SubscriberHandle(node, subscriber): SubscriberHandle) -> bool {
        let ended = self.engine_mut(node).end_access(subscriber);
        self.settle(node);
        ended
    }

    /// Takes the next sample in the order of a subscriber. Returns its reader, or `None` if no sample is available.
    pub fn take_in_order(
        &mut self,
        SubscriberHandle(node, subscriber): SubscriberHandle,
    ) -> Option<ReaderHandle> {
        let next = self.engine(node).next_in_order(subscriber)?;
        let reader = self.reader_of(node, next);
        (self.take(ReaderHandle(reader), 1) > 0).then_some(ReaderHandle(reader))
    }
}
