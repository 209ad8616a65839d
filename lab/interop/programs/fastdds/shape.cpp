// The peer Fast DDS (C++ API of 2.9): publishes or subscribes to ShapeType. Usage: ../peer.h.
//
// Only UDP over IPv4: /dev/shm is shared by all network namespaces of a machine, so shared memory
// would go around the network under test.
#include "../peer.h"
#include "shape_type.hpp"

#include <map>

static fast::DomainParticipantQos participant_qos(const arguments& arguments)
{
  fast::DomainParticipantQos qos;
  if (arguments.lease_ms > 0) {
    auto& discovery = qos.wire_protocol().builtin.discovery_config;
    discovery.leaseDuration = milliseconds(arguments.lease_ms);
    discovery.leaseDuration_announcementperiod = milliseconds(arguments.lease_ms / RENEWALS_A_LEASE);
  }
  qos.transport().use_builtin_transports = false;
  qos.transport().user_transports.push_back(
    std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>());
  return qos;
}

// What a writer's and a reader's QoS have in common.
template<typename Qos> static Qos make_qos(const arguments& arguments)
{
  Qos qos;
  qos.reliability().kind =
    arguments.reliable ? fast::RELIABLE_RELIABILITY_QOS : fast::BEST_EFFORT_RELIABILITY_QOS;
  qos.durability().kind =
    arguments.transient_local ? fast::TRANSIENT_LOCAL_DURABILITY_QOS : fast::VOLATILE_DURABILITY_QOS;
  qos.history().kind = arguments.keep_all ? fast::KEEP_ALL_HISTORY_QOS : fast::KEEP_LAST_HISTORY_QOS;
  // The default is 400 samples of an instance; the product must hold.
  qos.resource_limits().max_samples = MAX_HISTORY_INSTANCES * MAX_HISTORY_SAMPLES;
  qos.resource_limits().max_instances = MAX_HISTORY_INSTANCES;
  qos.resource_limits().max_samples_per_instance = MAX_HISTORY_SAMPLES;
  qos.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  qos.data_sharing().off(); // shared memory again
  return qos;
}

static bool wait_for_match(const fast::DataWriter& writer, uint32_t seconds)
{
  const uint64_t deadline_ms = now_ms() + uint64_t{seconds} * 1000;
  say("waiting for a subscriber");
  while (!stop_signals && now_ms() < deadline_ms) {
    fast::PublicationMatchedStatus status;
    writer.get_publication_matched_status(status);
    if (status.current_count > 0)
      return true;
    sleep_ms(POLL_PERIOD_MS);
  }
  fprintf(stderr, "shape: no reader matched within %u s\n", seconds);
  return false;
}

// True once every matched reader acknowledged everything. A reader that left counts as done: Fast DDS
// does not wake the wait when that happens, so it is made of short ones.
static bool wait_for_acknowledgments(fast::DataWriter& writer, const arguments& arguments)
{
  const uint64_t deadline_ms = now_ms() + ACKNOWLEDGMENT_MS;
  while (arguments.reliable && now_ms() < deadline_ms) {
    if (writer.wait_for_acknowledgments(milliseconds(100)) == ReturnCode_t::RETCODE_OK)
      return true;
  }
  if (arguments.reliable)
    fprintf(stderr, "shape: not all samples were acknowledged within %d ms\n", int{ACKNOWLEDGMENT_MS});
  return !arguments.reliable;
}

// Writes until a signal; returns the number of changes, with the end of the instance.
static uint32_t write_all(fast::DataWriter& writer, ShapeType& shape, const arguments& arguments)
{
  const uint64_t deadline_ms = now_ms() + uint64_t{arguments.seconds} * 1000;
  uint32_t written = 0;
  say("publishing");
  while (!stop_signals && now_ms() < deadline_ms) {
    shape.x = static_cast<int32_t>(arguments.first + written);
    shape.y = shape.x;
    if (!writer.write(&shape)) {
      fprintf(stderr, "shape: write of sample %d failed\n", shape.x);
      exit(EXIT_USAGE);
    }
    written++;
    sleep_ms(arguments.period_ms);
  }
  wait_for_acknowledgments(writer, arguments);
  if (arguments.end == END_DISPOSE)
    writer.dispose(&shape, fast::HANDLE_NIL);
  if (arguments.end == END_UNREGISTER)
    writer.unregister_instance(&shape, fast::HANDLE_NIL);
  return arguments.end == END_DELETE ? written : written + 1;
}

static int publish(fast::DomainParticipant& participant, fast::Topic& topic, const arguments& arguments)
{
  auto qos = make_qos<fast::DataWriterQos>(arguments);
  qos.publish_mode().kind = fast::SYNCHRONOUS_PUBLISH_MODE;
  // The default, 3 s, leaves little of a cell's ten seconds for repair.
  qos.reliable_writer_qos().times.heartbeatPeriod = milliseconds(100);
  // Deleting a writer must unregister its instances, not dispose them.
  qos.writer_data_lifecycle().autodispose_unregistered_instances = false;
  auto* publisher = must(participant.create_publisher(fast::PUBLISHER_QOS_DEFAULT), "create publisher");
  auto* writer = must(publisher->create_datawriter(&topic, qos), "create writer");
  if (!arguments.transient_local && !wait_for_match(*writer, arguments.seconds))
    return EXIT_INCOMPLETE;

  ShapeType shape;
  shape.color = arguments.color;
  shape.shapesize = SHAPE_SIZE;
  shape.additional_payload_size.assign(arguments.payload_bytes, 255);
  fprintf(stderr, "%u written\n", write_all(*writer, shape, arguments));
  const bool acknowledged = wait_for_acknowledgments(*writer, arguments);
  stay_then_leave();
  return acknowledged ? EXIT_DONE : EXIT_INCOMPLETE;
}

// Prints what has arrived. An instance that ended comes without its key, so `colors` remembers which
// instance has which.
static void take_and_print(
  fast::DataReader& reader, const arguments& arguments, std::map<fast::InstanceHandle_t, std::string>& colors)
{
  ShapeType shape;
  fast::SampleInfo info;
  while (!stop_signals && reader.take_next_sample(&shape, &info) == ReturnCode_t::RETCODE_OK) {
    if (info.valid_data) {
      colors[info.instance_handle] = shape.color;
      print_sample(&arguments, shape.color.c_str(), shape.x, shape.y, shape.shapesize);
    } else if (info.instance_state != fast::ALIVE_INSTANCE_STATE) {
      print_instance_end(arguments.topic, colors[info.instance_handle].c_str(),
                         info.instance_state == fast::NOT_ALIVE_DISPOSED_INSTANCE_STATE);
    }
  }
}

static int subscribe(fast::DomainParticipant& participant, fast::Topic& topic, const arguments& arguments)
{
  const auto qos = make_qos<fast::DataReaderQos>(arguments);
  auto* subscriber = must(participant.create_subscriber(fast::SUBSCRIBER_QOS_DEFAULT), "create subscriber");
  auto* reader = must(subscriber->create_datareader(&topic, qos), "create reader");
  std::map<fast::InstanceHandle_t, std::string> colors;
  const uint64_t deadline_ms = now_ms() + uint64_t{arguments.seconds} * 1000;
  while (!stop_signals && now_ms() < deadline_ms) {
    take_and_print(*reader, arguments, colors);
    sleep_ms(POLL_PERIOD_MS);
  }
  return stop_signals ? EXIT_DONE : EXIT_INCOMPLETE;
}

int main(int argc, char** argv)
{
  const arguments arguments = parse_arguments(argc, argv);
  auto* factory = fast::DomainParticipantFactory::get_instance();
  auto* participant =
    must(factory->create_participant(arguments.domain, participant_qos(arguments)), "create participant");
  fast::TypeSupport type(shape_support());
  type.register_type(participant);
  auto* topic =
    must(participant->create_topic(arguments.topic, type.get_type_name(), fast::TOPIC_QOS_DEFAULT), "create topic");
  const int status = arguments.publish ? publish(*participant, *topic, arguments)
                                       : subscribe(*participant, *topic, arguments);
  participant->delete_contained_entities();
  factory->delete_participant(participant);
  return status;
}
