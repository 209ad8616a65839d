// Fast DDS (C++ API of 2.9) as one end of a measurement. Usage: ../end.h.
//
// Only UDP over IPv4: /dev/shm is shared by all network namespaces of a machine, so shared memory
// would go around the network. Listeners run on the thread that received the sample; `write` sends before
// it returns (synchronous mode, the default). `--best` has what the documentation of Fast DDS names for
// reliable streams (DataWriter's and DataReader's `times`) and for large data (the transport's socket buffers).
#include "../end.h"
#include "message_type.hpp"

#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastrtps/config.h>

// Socket buffers of `--best`, in bytes: what the documentation of Fast DDS recommends. The kernel grants as much as
// `net.core.rmem_max` and `wmem_max` allow; the results name that.
static constexpr uint32_t BEST_BUFFER_BYTES = 12582912;

static fast::DomainParticipantQos udp_only(const arguments& arguments)
{
  fast::DomainParticipantQos qos;
  qos.transport().use_builtin_transports = false;
  auto transport = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
  if (arguments.best) {
    transport->sendBufferSize = BEST_BUFFER_BYTES;
    transport->receiveBufferSize = BEST_BUFFER_BYTES;
  }
  qos.transport().user_transports.push_back(transport);
  return qos;
}

// What a writer's and a reader's QoS have in common.
template<typename Qos> static Qos make_qos(const arguments& arguments)
{
  Qos qos;
  qos.durability().kind = fast::VOLATILE_DURABILITY_QOS;
  if (arguments.reliable) {
    const auto max_samples = static_cast<int32_t>(arguments.max_samples);
    qos.reliability().kind = fast::RELIABLE_RELIABILITY_QOS;
    qos.reliability().max_blocking_time = eprosima::fastrtps::Duration_t(MAX_BLOCKING_S, 0);
    qos.history().kind = fast::KEEP_ALL_HISTORY_QOS;
    qos.resource_limits().max_samples = max_samples;
    qos.resource_limits().max_instances = 1;
    qos.resource_limits().max_samples_per_instance = max_samples;
    qos.resource_limits().allocated_samples = max_samples;
  } else {
    qos.reliability().kind = fast::BEST_EFFORT_RELIABILITY_QOS;
    qos.history().kind = fast::KEEP_LAST_HISTORY_QOS;
    qos.history().depth = 1;
  }
  qos.data_sharing().off(); // shared memory again
  return qos;
}

// One end: its options, its entities, its counts.
class End : public fast::DataReaderListener {
public:
  explicit End(const struct arguments& arguments) : arguments_(arguments)
  {
    message_.padding.resize(padding_bytes(&arguments));
    taken_.padding.reserve(padding_bytes(&arguments));
    auto* factory = fast::DomainParticipantFactory::get_instance();
    participant_ = must(factory->create_participant(arguments.domain, udp_only(arguments)), "create participant");
    fast::TypeSupport type(message_support(arguments.payload_bytes));
    type.register_type(participant_);
  }

  ~End() override
  {
    participant_->delete_contained_entities();
    fast::DomainParticipantFactory::get_instance()->delete_participant(participant_);
    free(rounds_.stamps_ns);
  }

  int run()
  {
    switch (arguments_.role) {
    case ROLE_PING: return ping();
    case ROLE_PONG: return pong();
    case ROLE_WRITER: return writer();
    case ROLE_READER: return reader();
    }
    return EXIT_USAGE;
  }

  void on_data_available(fast::DataReader* reader) override
  {
    while (reader->take_next_sample(&taken_, &info_) == ReturnCode_t::RETCODE_OK) {
      if (!info_.valid_data)
        continue;
      switch (arguments_.role) {
      case ROLE_PING:
        stamp_received(&rounds_, taken_.id, taken_.nonce);
        break;
      case ROLE_PONG:
        if (!stamp_received(&rounds_, taken_.id, taken_.nonce))
          break;
        message_.id = taken_.id;
        message_.nonce = taken_.nonce;
        stamp_replied(&rounds_, taken_.id);
        writer_->write(&message_);
        break;
      default:
        count_sample(&tally_, taken_.id);
      }
    }
  }

private:
  int ping()
  {
    rounds_ = make_rounds(&arguments_);
    make_writer(PING_TOPIC);
    make_reader(PONG_TOPIC);
    if (!wait_for_peer(has_both, this))
      return EXIT_ALONE;
    run_pings(&rounds_, &arguments_, send_ping, this);
    return EXIT_DONE;
  }

  int pong()
  {
    rounds_ = make_rounds(&arguments_);
    make_writer(PONG_TOPIC);
    make_reader(PING_TOPIC);
    if (!wait_for_peer(has_both, this))
      return EXIT_ALONE;
    run_pongs(&rounds_, &arguments_);
    return EXIT_DONE;
  }

  int writer()
  {
    make_writer(STREAM_TOPIC);
    if (!wait_for_peer(has_reader, this))
      return EXIT_ALONE;
    run_writer(&arguments_, write_sample, this);
    const eprosima::fastrtps::Duration_t longest(ACKNOWLEDGE_S, 0);
    if (arguments_.reliable && writer_->wait_for_acknowledgments(longest) != ReturnCode_t::RETCODE_OK) {
      fprintf(stderr, "end: not all samples were acknowledged\n");
      return EXIT_ALONE;
    }
    sleep_ns(DRAIN_NS);
    return EXIT_DONE;
  }

  int reader()
  {
    make_reader(STREAM_TOPIC);
    if (!wait_for_peer(has_writer, this))
      return EXIT_ALONE;
    run_reader(&tally_);
    return EXIT_DONE;
  }

  fast::Topic* make_topic(const char* name)
  {
    return must(participant_->create_topic(name, "Message", fast::TOPIC_QOS_DEFAULT), "create topic");
  }

  void make_writer(const char* topic)
  {
    auto* publisher = must(participant_->create_publisher(fast::PUBLISHER_QOS_DEFAULT), "create publisher");
    auto qos = make_qos<fast::DataWriterQos>(arguments_);
    // The default is 3 s, which a full history can wait for.
    if (arguments_.best)
      qos.reliable_writer_qos().times.heartbeatPeriod = eprosima::fastrtps::Duration_t(0.02L);
    writer_ = must(publisher->create_datawriter(make_topic(topic), qos), "create writer");
  }

  void make_reader(const char* topic)
  {
    auto* subscriber = must(participant_->create_subscriber(fast::SUBSCRIBER_QOS_DEFAULT), "create subscriber");
    auto qos = make_qos<fast::DataReaderQos>(arguments_);
    // The default is 5 ms between a HEARTBEAT and its ACKNACK.
    if (arguments_.best)
      qos.reliable_reader_qos().times.heartbeatResponseDelay = eprosima::fastrtps::Duration_t(0.0L);
    reader_ = must(subscriber->create_datareader(make_topic(topic), qos, this), "create reader");
  }

  static bool has_reader(void* end)
  {
    fast::PublicationMatchedStatus status;
    const auto* self = static_cast<End*>(end);
    self->writer_->get_publication_matched_status(status);
    return status.current_count >= static_cast<int32_t>(self->arguments_.readers);
  }

  static bool has_writer(void* end)
  {
    fast::SubscriptionMatchedStatus status;
    static_cast<End*>(end)->reader_->get_subscription_matched_status(status);
    return status.current_count > 0;
  }

  static bool has_both(void* end)
  {
    return has_reader(end) && has_writer(end);
  }

  static void send_ping(void* context, uint32_t id, uint32_t nonce)
  {
    auto& end = *static_cast<End*>(context);
    end.message_.id = id;
    end.message_.nonce = nonce;
    end.writer_->write(&end.message_);
  }

  static bool write_sample(void* context, uint32_t id)
  {
    auto& end = *static_cast<End*>(context);
    end.message_.id = id;
    return end.writer_->write(&end.message_);
  }

  const struct arguments& arguments_;
  fast::DomainParticipant* participant_ = nullptr;
  fast::DataWriter* writer_ = nullptr;
  fast::DataReader* reader_ = nullptr;
  Message message_;
  Message taken_;
  fast::SampleInfo info_;
  struct rounds rounds_ = {};
  struct tally tally_ = {};
};

int main(int argc, char** argv)
{
  const struct arguments arguments = parse_arguments(argc, argv, "fastdds " FASTRTPS_VERSION_STR);
  End end(arguments);
  return end.run();
}
