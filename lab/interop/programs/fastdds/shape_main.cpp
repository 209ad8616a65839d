// The shapes test program of Fast DDS (C++ API of 2.9), from the contract in ../shape_main.h.
//
// What it lacks and says so: content filters (they need a generated type here), XCDR2, coherent sets, ordered
// access, time-based filters.
//
// Only UDP over IPv4: /dev/shm is shared by all network namespaces of a machine, so shared memory would go
// around the network under test.
#include "../shape_main.h"
#include "shape_type.hpp"

#include <map>

#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/qos/PublisherQos.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/qos/SubscriberQos.hpp>

// How long the last acknowledgments are waited for.
constexpr uint32_t ACKNOWLEDGMENTS_MS = 10000;

static std::vector<uint8_t> octets(const char* text)
{
  return std::vector<uint8_t>(text, text + strlen(text));
}

static std::string text(const std::vector<uint8_t>& octets)
{
  return std::string(octets.begin(), octets.end());
}

static fast::DomainParticipantQos participant_qos(const options& o)
{
  fast::DomainParticipantQos qos;
  if (o.announcement_ms > 0)
    qos.wire_protocol().builtin.discovery_config.leaseDuration_announcementperiod = milliseconds(o.announcement_ms);
  auto transport = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
  if (o.fragment_bytes > 0)
    transport->maxMessageSize = o.fragment_bytes;
  qos.transport().use_builtin_transports = false;
  qos.transport().user_transports.push_back(transport);
  return qos;
}

// What a writer's and a reader's QoS have in common.
template<typename Qos> static Qos make_qos(const options& o)
{
  Qos qos;
  qos.reliability().kind = o.best_effort ? fast::BEST_EFFORT_RELIABILITY_QOS : fast::RELIABLE_RELIABILITY_QOS;
  qos.durability().kind = o.durability == 'v'   ? fast::VOLATILE_DURABILITY_QOS
                          : o.durability == 'l' ? fast::TRANSIENT_LOCAL_DURABILITY_QOS
                          : o.durability == 't' ? fast::TRANSIENT_DURABILITY_QOS
                                                : fast::PERSISTENT_DURABILITY_QOS;
  qos.history().kind = o.history == 0 ? fast::KEEP_ALL_HISTORY_QOS : fast::KEEP_LAST_HISTORY_QOS;
  qos.history().depth = o.history > 0 ? o.history : 1;
  qos.resource_limits().max_instances = static_cast<int32_t>(o.instances) + 10;
  qos.resource_limits().max_samples_per_instance = KEEP_ALL_SAMPLES;
  qos.resource_limits().max_samples = qos.resource_limits().max_instances * KEEP_ALL_SAMPLES;
  if (o.deadline_ms > 0)
    qos.deadline().period = milliseconds(o.deadline_ms);
  qos.liveliness().kind = o.liveliness == 'a'   ? fast::AUTOMATIC_LIVELINESS_QOS
                          : o.liveliness == 'p' ? fast::MANUAL_BY_PARTICIPANT_LIVELINESS_QOS
                                                : fast::MANUAL_BY_TOPIC_LIVELINESS_QOS;
  if (o.lease_ms > 0) {
    qos.liveliness().lease_duration = milliseconds(o.lease_ms);
    qos.liveliness().announcement_period = milliseconds(o.lease_ms * 2 / 3);
  }
  qos.latency_budget().duration = milliseconds(o.latency_budget_ms);
  qos.user_data().setValue(octets(o.user_data));
  if (o.strength >= 0)
    qos.ownership().kind = fast::EXCLUSIVE_OWNERSHIP_QOS;
  qos.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  qos.data_sharing().off(); // shared memory again
  return qos;
}

// What a publisher's and a subscriber's QoS have in common.
template<typename Qos> static Qos make_group_qos(const options& o)
{
  Qos qos;
  qos.presentation().access_scope = o.scope == 'i'   ? fast::INSTANCE_PRESENTATION_QOS
                                    : o.scope == 't' ? fast::TOPIC_PRESENTATION_QOS
                                                     : fast::GROUP_PRESENTATION_QOS;
  if (o.partition != nullptr)
    qos.partition().push_back(o.partition);
  qos.group_data().setValue(octets(o.group_data));
  return qos;
}

struct WriterListener : fast::DataWriterListener {
  std::string topic;

  void on_publication_matched(fast::DataWriter*, const fast::PublicationMatchedStatus& status) override
  {
    print_matched(true, topic.c_str(), status.current_count, status.current_count_change);
  }

  void on_offered_incompatible_qos(fast::DataWriter*, const fast::OfferedIncompatibleQosStatus& status) override
  {
    print_incompatible(true, topic.c_str(), status.last_policy_id);
  }

  void on_offered_deadline_missed(fast::DataWriter*, const fast::OfferedDeadlineMissedStatus& status) override
  {
    print_count("on_offered_deadline_missed", topic.c_str(), static_cast<int32_t>(status.total_count),
                static_cast<int32_t>(status.total_count_change));
  }

  void on_liveliness_lost(fast::DataWriter*, const fast::LivelinessLostStatus& status) override
  {
    print_count("on_liveliness_lost", topic.c_str(), status.total_count, status.total_count_change);
  }
};

struct ReaderListener : fast::DataReaderListener {
  std::string topic;

  void on_subscription_matched(fast::DataReader*, const fast::SubscriptionMatchedStatus& status) override
  {
    print_matched(false, topic.c_str(), status.current_count, status.current_count_change);
  }

  void on_requested_incompatible_qos(fast::DataReader*, const fast::RequestedIncompatibleQosStatus& status) override
  {
    print_incompatible(false, topic.c_str(), status.last_policy_id);
  }

  void on_requested_deadline_missed(fast::DataReader*, const fast::RequestedDeadlineMissedStatus& status) override
  {
    print_count("on_requested_deadline_missed", topic.c_str(), static_cast<int32_t>(status.total_count),
                static_cast<int32_t>(status.total_count_change));
  }

  void on_liveliness_changed(fast::DataReader*, const fast::LivelinessChangedStatus& status) override
  {
    print_liveliness(topic.c_str(), status.alive_count, status.not_alive_count);
  }
};

// USER_DATA, TOPIC_DATA and GROUP_DATA of the writers that are discovered.
struct DataListener : fast::DomainParticipantListener {
  void on_publisher_discovery(fast::DomainParticipant*, eprosima::fastrtps::rtps::WriterDiscoveryInfo&& writer) override
  {
    if (writer.status != eprosima::fastrtps::rtps::WriterDiscoveryInfo::DISCOVERED_WRITER)
      return;
    const auto& qos = writer.info.m_qos;
    print_data_of(writer.info.topicName().c_str(), text(qos.m_userData.getValue()).c_str(),
                  text(qos.m_topicData.getValue()).c_str(), text(qos.m_groupData.getValue()).c_str());
  }
};

static std::string name_of(const char* name, uint32_t nth)
{
  char numbered_name[MAX_NAME];
  numbered(numbered_name, sizeof numbered_name, name, nth);
  return numbered_name;
}

static std::vector<fast::Topic*> create_topics(fast::DomainParticipant& participant, const char* type, const options& o)
{
  std::vector<fast::Topic*> topics;
  fast::TopicQos qos;
  qos.topic_data().setValue(octets(o.topic_data));
  for (uint32_t nth = 0; nth < o.topics; nth++) {
    const std::string name = name_of(o.topic, nth);
    printf("Create topic: %s\n", name.c_str());
    topics.push_back(must(participant.create_topic(name, type, qos), "create topic"));
  }
  return topics;
}

static void write_all(const std::vector<fast::DataWriter*>& writers, ShapeType& shape, const options& o)
{
  std::vector<motion> motions;
  for (uint32_t instance = 0; instance < o.instances; instance++)
    motions.push_back(motion_of(instance));
  for (uint64_t iteration = 0; !is_stopped && (o.iterations == 0 || iteration < o.iterations); iteration++) {
    for (uint32_t instance = 0; instance < o.instances; instance++) {
      move_on(&motions[instance]);
      shape.color = name_of(o.color, instance);
      shape.x = motions[instance].x;
      shape.y = motions[instance].y;
      shape.shapesize = size_in(&o, iteration);
      for (auto* writer : writers) {
        writer->write(&shape); // a full history is tried again a period later
        if (o.print_written)
          print_shape(writer->get_topic()->get_name().c_str(), shape.color.c_str(), shape.x, shape.y, shape.shapesize,
                      shape.additional_payload_size.data(), o.payload_bytes);
      }
    }
    pause_ms(o.write_period_ms);
  }
}

static void end_instances(const std::vector<fast::DataWriter*>& writers, ShapeType& shape, const options& o)
{
  for (auto* writer : writers)
    for (uint32_t instance = 0; instance < o.instances; instance++) {
      shape.color = name_of(o.color, instance);
      if (o.final_state == FINAL_DISPOSED)
        writer->dispose(&shape, fast::HANDLE_NIL);
      else
        writer->unregister_instance(&shape, fast::HANDLE_NIL);
    }
  for (auto* writer : writers)
    if (!o.best_effort)
      writer->wait_for_acknowledgments(milliseconds(ACKNOWLEDGMENTS_MS));
}

static void publish(fast::DomainParticipant& participant, const std::vector<fast::Topic*>& topics, const options& o)
{
  auto qos = make_qos<fast::DataWriterQos>(o);
  qos.publish_mode().kind =
    o.payload_bytes > 0 ? fast::ASYNCHRONOUS_PUBLISH_MODE : fast::SYNCHRONOUS_PUBLISH_MODE;
  // The default is 3 s.
  qos.reliable_writer_qos().times.heartbeatPeriod = milliseconds(100);
  // Deleting a writer must unregister its instances, not dispose them.
  qos.writer_data_lifecycle().autodispose_unregistered_instances = o.final_state == FINAL_DISPOSED;
  if (o.strength >= 0)
    qos.ownership_strength().value = static_cast<uint32_t>(o.strength);
  if (o.lifespan_ms > 0)
    qos.lifespan().duration = milliseconds(o.lifespan_ms);
  auto* publisher = must(participant.create_publisher(make_group_qos<fast::PublisherQos>(o)), "create publisher");
  std::vector<fast::DataWriter*> writers;
  for (auto* topic : topics) {
    printf("Create writer for topic: %s color: %s\n", topic->get_name().c_str(), o.color);
    auto* listener = new WriterListener; // lives as long as the program
    listener->topic = topic->get_name();
    writers.push_back(must(publisher->create_datawriter(topic, qos, listener), "create writer"));
  }
  ShapeType shape;
  shape.additional_payload_size.assign(o.payload_bytes, 255);
  write_all(writers, shape, o);
  if (o.final_state != FINAL_NONE)
    end_instances(writers, shape, o);
}

// Prints what there is. An instance that ended comes without its key, so `colors` remembers which has which.
static void print_all(fast::DataReader& reader, const options& o, std::map<fast::InstanceHandle_t, std::string>& colors)
{
  const std::string& topic = reader.get_topicdescription()->get_name();
  ShapeType shape;
  fast::SampleInfo info;
  const auto next = [&] {
    return o.read ? reader.read_next_sample(&shape, &info) : reader.take_next_sample(&shape, &info);
  };
  while (next() == ReturnCode_t::RETCODE_OK) {
    if (info.valid_data) {
      colors[info.instance_handle] = shape.color;
      print_shape(topic.c_str(), shape.color.c_str(), shape.x, shape.y, shape.shapesize,
                  shape.additional_payload_size.data(), static_cast<uint32_t>(shape.additional_payload_size.size()));
    } else if (info.instance_state != fast::ALIVE_INSTANCE_STATE) {
      print_end(topic.c_str(), colors[info.instance_handle].c_str(),
                info.instance_state == fast::NOT_ALIVE_DISPOSED_INSTANCE_STATE);
    }
  }
}

static void subscribe(fast::DomainParticipant& participant, const std::vector<fast::Topic*>& topics, const options& o)
{
  const auto qos = make_qos<fast::DataReaderQos>(o);
  auto* subscriber = must(participant.create_subscriber(make_group_qos<fast::SubscriberQos>(o)), "create subscriber");
  std::vector<fast::DataReader*> readers;
  std::vector<std::map<fast::InstanceHandle_t, std::string>> colors(topics.size());
  for (auto* topic : topics) {
    printf("Create reader for topic: %s\n", topic->get_name().c_str());
    auto* listener = new ReaderListener;
    listener->topic = topic->get_name();
    readers.push_back(must(subscriber->create_datareader(topic, qos, listener), "create reader"));
  }
  for (uint64_t iteration = 0; !is_stopped && (o.iterations == 0 || iteration < o.iterations); iteration++) {
    for (size_t nth = 0; nth < readers.size(); nth++)
      print_all(*readers[nth], o, colors[nth]);
    pause_ms(o.read_period_ms);
  }
}

static void check(const options& o)
{
  if (o.coherent || o.coherent_samples > 0)
    fail_lacking("coherent sets");
  if (o.ordered)
    fail_lacking("ordered access");
  if (o.filter != nullptr || (o.subscribe && o.color != nullptr))
    fail_lacking("content filters without a generated type");
  if (o.representation != 1)
    fail_lacking("XCDR2");
  if (o.read)
    fail_lacking("-R in this program: reading again what was read");
  if (o.durability == 't' || o.durability == 'p')
    fail_lacking("-D t and -D p: they need a service of their own here");
  if (o.time_filter_ms > 0)
    fail_lacking("time-based filters");
}

int main(int argc, char** argv)
{
  const options o = parse_options(argc, argv);
  check(o);
  auto* factory = fast::DomainParticipantFactory::get_instance();
  DataListener data_listener;
  auto* participant =
    must(factory->create_participant(o.domain, participant_qos(o), o.print_data ? &data_listener : nullptr,
                                     fast::StatusMask::none()),
         "create participant");
  fast::TypeSupport type(shape_support());
  type.register_type(participant);
  const auto topics = create_topics(*participant, type.get_type_name().c_str(), o);
  if (o.publish)
    publish(*participant, topics, o);
  else
    subscribe(*participant, topics, o);
  participant->delete_contained_entities();
  factory->delete_participant(participant);
  printf("Done.\n");
  return EXIT_DONE;
}
