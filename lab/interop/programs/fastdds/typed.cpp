// The peer Fast DDS (C++ API of 2.9) for the matrix of types. Usage: ../typed.h.
//
// This version has XCDR1 only (Fast CDR 1.0), where final and appendable types look alike: one program stands for both.
// It does not announce DATA_REPRESENTATION and matches any. The type is written by hand after ../Reading.idl; no type
// information is announced.
#include "../typed.h"
#include "common.hpp"

#include <fastcdr/exceptions/BadParamException.h>

struct Part {
  uint8_t number = 0;
  uint64_t serial = 0;
  std::string label;
  std::vector<double> values;

  void serialize(Cdr& cdr) const { cdr << number << serial << label << values; }
  void deserialize(Cdr& cdr) { cdr >> number >> serial >> label >> values; }
};

// More than any sample of the matrix takes.
enum { PAYLOAD_BYTES = 1024 };

struct Reading {
  enum { KEY_BYTES = PAYLOAD_BYTES };

  std::string name;
  Part part;
  uint8_t flag = 0;
  double value = 0;
  uint64_t stamp = 0;
  std::vector<Part> parts;
  std::vector<std::string> notes;
  std::vector<uint64_t> counts;

  void serialize(Cdr& cdr) const
  {
    cdr << name;
    part.serialize(cdr);
    cdr << flag << value << stamp << static_cast<uint32_t>(parts.size());
    for (const Part& each : parts)
      each.serialize(cdr);
    cdr << notes << counts;
  }

  void deserialize(Cdr& cdr)
  {
    cdr >> name;
    part.deserialize(cdr);
    uint32_t length = 0;
    cdr >> flag >> value >> stamp >> length;
    if (length > PAYLOAD_BYTES)
      throw eprosima::fastcdr::exception::BadParamException("more parts than a sample can have");
    parts.assign(length, Part());
    for (Part& each : parts)
      each.deserialize(cdr);
    cdr >> notes >> counts;
  }

  void serialize_key(Cdr& cdr) const { cdr << name << part.number; }
  uint32_t serialized_bytes() const { return PAYLOAD_BYTES; }
};

template<typename Qos> static Qos make_qos()
{
  Qos qos;
  qos.reliability().kind = fast::RELIABLE_RELIABILITY_QOS;
  qos.durability().kind = fast::TRANSIENT_LOCAL_DURABILITY_QOS;
  qos.history().kind = fast::KEEP_ALL_HISTORY_QOS;
  qos.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  qos.data_sharing().off(); // /dev/shm is shared by all network namespaces
  return qos;
}

template<typename P> static Part make_part(const P& part)
{
  Part made;
  made.number = part.number;
  made.serial = part.serial;
  made.label = part.label;
  made.values.assign(part.values, part.values + part.length);
  return made;
}

static void write_all(fast::DataWriter& writer)
{
  Reading reading;
  reading.name = "left";
  reading.part = make_part(KEY_PART);
  for (const auto& part : PARTS)
    reading.parts.push_back(make_part(part));
  for (const char* note : NOTES)
    reading.notes.push_back(note);
  reading.counts.assign(COUNTS, COUNTS + 2);
  for (int i = 0; i < SAMPLES; i++) {
    reading.flag = static_cast<uint8_t>(i);
    reading.value = FIRST_VALUE + i;
    reading.stamp = FIRST_STAMP + static_cast<uint64_t>(i);
    if (!writer.write(&reading)) {
      fprintf(stderr, "typed: write failed\n");
      exit(EXIT_USAGE);
    }
  }
  writer.dispose(&reading, fast::HANDLE_NIL);
}

static std::string text(const Part& part)
{
  std::string all = std::to_string(part.number) + "," + std::to_string(part.serial) + "," + part.label + ",";
  for (size_t i = 0; i < part.values.size(); i++) {
    char value[32];
    snprintf(value, sizeof value, "%s%g", i ? "+" : "", part.values[i]);
    all += value;
  }
  return all;
}

static void print_sample(const endpoint& endpoint, const Reading& reading)
{
  printf("%s sample %s/%s/%u/%g/%llu/", endpoint.topic, reading.name.c_str(), text(reading.part).c_str(), reading.flag,
         reading.value, static_cast<unsigned long long>(reading.stamp));
  for (size_t i = 0; i < reading.parts.size(); i++)
    printf("%s%s", i ? ";" : "", text(reading.parts[i]).c_str());
  printf("/");
  for (size_t i = 0; i < reading.notes.size(); i++)
    printf("%s%s", i ? "," : "", reading.notes[i].c_str());
  printf("/");
  for (size_t i = 0; i < reading.counts.size(); i++)
    printf("%s%llu", i ? "+" : "", static_cast<unsigned long long>(reading.counts[i]));
  printf("\n");
  fflush(stdout);
}

static void look_at_writer(fast::DataWriter& writer, endpoint& endpoint)
{
  fast::OfferedIncompatibleQosStatus incompatible;
  writer.get_offered_incompatible_qos_status(incompatible);
  say_incompatible(&endpoint, incompatible.total_count,
                   incompatible.last_policy_id == fast::DATAREPRESENTATION_QOS_POLICY_ID);
  fast::PublicationMatchedStatus matched;
  writer.get_publication_matched_status(matched);
  if (matched.current_count == 0 || endpoint.matched)
    return;
  say_once(&endpoint, &endpoint.matched, true, "matched");
  write_all(writer);
  say(&endpoint, "written", "");
}

static void look_at_reader(fast::DataReader& reader, endpoint& endpoint)
{
  fast::RequestedIncompatibleQosStatus incompatible;
  reader.get_requested_incompatible_qos_status(incompatible);
  say_incompatible(&endpoint, incompatible.total_count,
                   incompatible.last_policy_id == fast::DATAREPRESENTATION_QOS_POLICY_ID);
  fast::SubscriptionMatchedStatus matched;
  reader.get_subscription_matched_status(matched);
  say_once(&endpoint, &endpoint.matched, matched.total_count > 0, "matched");
  fast::SampleLostStatus lost;
  reader.get_sample_lost_status(lost);
  say_once(&endpoint, &endpoint.lost, lost.total_count > 0, "lost");
  fast::SampleRejectedStatus rejected;
  reader.get_sample_rejected_status(rejected);
  say_once(&endpoint, &endpoint.rejected, rejected.total_count > 0, "rejected");

  Reading reading;
  fast::SampleInfo info;
  while (reader.take_next_sample(&reading, &info) == ReturnCode_t::RETCODE_OK) {
    if (info.valid_data)
      print_sample(endpoint, reading);
    else if (info.instance_state == fast::NOT_ALIVE_DISPOSED_INSTANCE_STATE)
      say(&endpoint, "disposed", "");
  }
}

int main(int argc, char** argv)
{
  struct Created {
    struct endpoint endpoint;
    fast::DataWriter* writer = nullptr;
    fast::DataReader* reader = nullptr;
  };
  take_over_signals();
  fast::DomainParticipantQos participant_qos;
  participant_qos.transport().use_builtin_transports = false;
  participant_qos.transport().user_transports.push_back(
    std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>());
  auto* factory = fast::DomainParticipantFactory::get_instance();
  auto* participant = must(factory->create_participant(0, participant_qos), "create participant");
  fast::TypeSupport type(new Support<Reading>("matrix::Reading", PAYLOAD_BYTES));
  type.register_type(participant);
  auto* publisher = must(participant->create_publisher(fast::PUBLISHER_QOS_DEFAULT), "create publisher");
  auto* subscriber = must(participant->create_subscriber(fast::SUBSCRIBER_QOS_DEFAULT), "create subscriber");
  std::vector<Created> all;
  for (int i = 1; i < argc; i++) {
    Created created;
    created.endpoint = parse_endpoint(argv[i]);
    if (created.endpoint.takes_xcdr2) {
      say(&created.endpoint, "impossible", "this version has no XCDR2");
      continue;
    }
    auto* topic = must(
      participant->create_topic(created.endpoint.topic, type.get_type_name(), fast::TOPIC_QOS_DEFAULT), "create topic");
    if (created.endpoint.is_writer) {
      auto qos = make_qos<fast::DataWriterQos>();
      qos.publish_mode().kind = fast::SYNCHRONOUS_PUBLISH_MODE;
      qos.reliable_writer_qos().times.heartbeatPeriod = eprosima::fastrtps::Duration_t(0.1L);
      created.writer = must(publisher->create_datawriter(topic, qos), "create writer");
    } else {
      auto qos = make_qos<fast::DataReaderQos>();
      created.reader = must(subscriber->create_datareader(topic, qos), "create reader");
    }
    all.push_back(created);
  }
  for (int looks = 0; !is_stopped && looks < RUN_MS / LOOK_MS; looks++) {
    for (Created& created : all) {
      if (created.writer)
        look_at_writer(*created.writer, created.endpoint);
      if (created.reader)
        look_at_reader(*created.reader, created.endpoint);
    }
    sleep_ms(LOOK_MS);
  }
  participant->delete_contained_entities();
  factory->delete_participant(participant);
  return 0;
}
