//! Publishers and subscribers of a world.

use isolane_rtps::{CoherentError, ContentFilter, PublisherId, SubscriberId};
use isolane_wire::qos::Presentation;

use crate::{
    endpoints::{ReaderHandle, WriterHandle},
    node::NodeId,
    topic::Topic,
    world::World,
};

/// Publisher of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublisherHandle(NodeId, PublisherId);

/// Subscriber of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubscriberHandle(NodeId, SubscriberId);

impl World {
    /// Creates a publisher on a node.
    pub fn create_publisher(
        &mut self,
        node: NodeId,
        presentation: Presentation,
    ) -> PublisherHandle {
        let created = self.protocol_mut(node).create_publisher(presentation);
        PublisherHandle(node, created.expect("the publisher can be created"))
    }

    /// Creates a subscriber on a node.
    pub fn create_subscriber(
        &mut self,
        node: NodeId,
        presentation: Presentation,
    ) -> SubscriberHandle {
        let created = self.protocol_mut(node).create_subscriber(presentation);
        SubscriberHandle(node, created.expect("the subscriber can be created"))
    }

    /// Creates a writer of a publisher.
    pub fn create_writer_in(&mut self, group: PublisherHandle, topic: &Topic) -> WriterHandle {
        let (now, PublisherHandle(node, publisher)) = (self.now, group);
        let config = topic.endpoint(node, false);
        let created = self
            .protocol_mut(node)
            .create_writer_in(now, publisher, &config);
        self.enter_writer(node, topic, created.expect("the writer can be created"))
    }

    /// Creates a reader of a subscriber, whose user takes samples at once.
    pub fn create_reader_in(&mut self, group: SubscriberHandle, topic: &Topic) -> ReaderHandle {
        self.create_reader_in_with(group, topic, None)
    }

    /// Creates a reader of a subscriber with a content filter on the payload.
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
        let protocol = self.protocol_mut(node);
        let created = protocol.create_reader_in(now, subscriber, &config, filter);
        self.enter_reader(node, topic, created.expect("the reader can be created"))
    }

    /// Begins a coherent set.
    pub fn begin_set(&mut self, PublisherHandle(node, publisher): PublisherHandle) {
        let begun = self.protocol_mut(node).begin_coherent_changes(publisher);
        begun.expect("the publisher exists");
    }

    /// Ends a coherent set.
    ///
    /// # Errors
    /// Those of the local participant.
    pub fn end_set(
        &mut self,
        PublisherHandle(node, publisher): PublisherHandle,
    ) -> Result<(), CoherentError> {
        let now = self.now;
        let protocol = self.protocol_mut(node);
        let timestamp = protocol.timestamp(now);
        let ended = protocol.end_coherent_changes(publisher, timestamp);
        self.settle(node);
        ended
    }

    /// Begins access to a subscriber's samples.
    pub fn begin_access(&mut self, SubscriberHandle(node, subscriber): SubscriberHandle) -> bool {
        self.protocol_mut(node).begin_access(subscriber)
    }

    /// Ends access to a subscriber's samples.
    pub fn end_access(&mut self, SubscriberHandle(node, subscriber): SubscriberHandle) -> bool {
        let ended = self.protocol_mut(node).end_access(subscriber);
        self.settle(node);
        ended
    }

    /// Takes the first available sample of a subscriber and returns its reader; `None` if there is none.
    pub fn take_in_order(
        &mut self,
        SubscriberHandle(node, subscriber): SubscriberHandle,
    ) -> Option<ReaderHandle> {
        let next = self.protocol(node).next_in_order(subscriber)?;
        let reader = self.reader_of(node, next);
        (self.take(ReaderHandle(reader), 1) > 0).then_some(ReaderHandle(reader))
    }
}
