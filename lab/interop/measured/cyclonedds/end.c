/* Cyclone DDS (C API of 0.10) as one end of a measurement. Usage: ../end.h.
 *
 * Message.h and Message.c are made from ../Message.idl by `idlc` when the program is built.
 * Listeners run on the thread that received the sample. By default writes are not batched: each
 * leaves before `dds_write` returns. `--best` has the settings of the script that comes with Cyclone DDS
 * for this purpose (examples/perfscript/quick-microbenchmark): write batching, as its `ddsperf` has it, and
 * messages of 65,500 bytes.
 */
#include "../end.h"
#include "Message.h"

#include <dds/dds.h>
#include <dds/version.h>

/* The configuration of `--best`: the default largest message is 14,720 bytes, and 1,344 of a fragment. */
static const char best_configuration[] =
  "<General><MaxMessageSize>65500B</MaxMessageSize><FragmentSize>65000B</FragmentSize></General>"
  "<Internal><SocketReceiveBufferSize min=\"250kB\"/></Internal>";

/* How many samples one call takes; a listener is called again for the rest. */
enum { TAKE_BURST = 32 };

/* Every failing call ends the program: a measurement has nothing to fall back to. */
static dds_entity_t must(dds_entity_t result, const char *what)
{
  if (result < 0) {
    fprintf(stderr, "end: %s: %s\n", what, dds_strretcode(-result));
    exit(EXIT_USAGE);
  }
  return result;
}

struct end {
  const struct arguments *arguments;
  dds_entity_t participant;
  dds_qos_t *qos;
  dds_entity_t writer;
  dds_entity_t reader;
  Message message;
  struct rounds rounds;
  struct tally tally;
};

static dds_qos_t *make_qos(const struct arguments *arguments)
{
  dds_qos_t *qos = dds_create_qos();
  dds_qset_durability(qos, DDS_DURABILITY_VOLATILE);
  if (arguments->reliable) {
    dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(MAX_BLOCKING_S));
    dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
    dds_qset_resource_limits(qos, (int32_t)arguments->max_samples, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
  } else {
    dds_qset_reliability(qos, DDS_RELIABILITY_BEST_EFFORT, 0);
    dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, 1);
  }
  return qos;
}

static dds_entity_t make_topic(const struct end *end, const char *name)
{
  return must(dds_create_topic(end->participant, &Message_desc, name, NULL, NULL), "create topic");
}

static void make_writer(struct end *end, const char *topic)
{
  end->writer = must(dds_create_writer(end->participant, make_topic(end, topic), end->qos, NULL), "create writer");
}

static void make_reader(struct end *end, const char *topic, dds_on_data_available_fn callback)
{
  dds_listener_t *listener = dds_create_listener(end);
  dds_lset_data_available(listener, callback);
  end->reader = must(dds_create_reader(end->participant, make_topic(end, topic), end->qos, listener), "create reader");
  dds_delete_listener(listener);
}

static bool has_reader(void *context)
{
  const struct end *end = context;
  dds_publication_matched_status_t status;
  must(dds_get_publication_matched_status(end->writer, &status), "publication matched status");
  return status.current_count >= end->arguments->readers;
}

static bool has_writer(void *context)
{
  dds_subscription_matched_status_t status;
  must(dds_get_subscription_matched_status(((struct end *)context)->reader, &status), "subscription matched status");
  return status.current_count > 0;
}

static bool has_both(void *context)
{
  return has_reader(context) && has_writer(context);
}

/* Gives each sample that waits to `use`, lent by Cyclone. */
static void take_all(dds_entity_t reader, struct end *end, void (*use)(struct end *, const Message *))
{
  void *samples[TAKE_BURST] = { NULL };
  dds_sample_info_t infos[TAKE_BURST];
  dds_return_t taken;
  while ((taken = must(dds_take(reader, samples, infos, TAKE_BURST, TAKE_BURST), "take")) > 0) {
    for (dds_return_t i = 0; i < taken; i++)
      if (infos[i].valid_data)
        use(end, samples[i]);
    must(dds_return_loan(reader, samples, taken), "return loan");
    samples[0] = NULL;
  }
}

static void send_ping(void *context, uint32_t id, uint32_t nonce)
{
  struct end *end = context;
  end->message.id = id;
  end->message.nonce = nonce;
  must(dds_write(end->writer, &end->message), "write");
}

static void use_pong(struct end *end, const Message *pong)
{
  stamp_received(&end->rounds, pong->id, pong->nonce);
}

static void on_pong(dds_entity_t reader, void *context)
{
  take_all(reader, context, use_pong);
}

static int ping(struct end *end)
{
  end->rounds = make_rounds(end->arguments);
  make_writer(end, PING_TOPIC);
  make_reader(end, PONG_TOPIC, on_pong);
  if (!wait_for_peer(has_both, end))
    return EXIT_ALONE;
  run_pings(&end->rounds, end->arguments, send_ping, end);
  return EXIT_DONE;
}

static void use_ping(struct end *end, const Message *ping)
{
  if (!stamp_received(&end->rounds, ping->id, ping->nonce))
    return;
  end->message.id = ping->id;
  end->message.nonce = ping->nonce;
  stamp_replied(&end->rounds, ping->id);
  must(dds_write(end->writer, &end->message), "write");
}

static void on_ping(dds_entity_t reader, void *context)
{
  take_all(reader, context, use_ping);
}

static int pong(struct end *end)
{
  end->rounds = make_rounds(end->arguments);
  make_writer(end, PONG_TOPIC);
  make_reader(end, PING_TOPIC, on_ping);
  if (!wait_for_peer(has_both, end))
    return EXIT_ALONE;
  run_pongs(&end->rounds, end->arguments);
  return EXIT_DONE;
}

static bool write_sample(void *context, uint32_t id)
{
  struct end *end = context;
  end->message.id = id;
  return dds_write(end->writer, &end->message) == DDS_RETCODE_OK;
}

static int writer(struct end *end)
{
  make_writer(end, STREAM_TOPIC);
  if (!wait_for_peer(has_reader, end))
    return EXIT_ALONE;
  run_writer(end->arguments, write_sample, end);
  if (end->arguments->best)
    dds_write_flush(end->writer);
  if (end->arguments->reliable && dds_wait_for_acks(end->writer, DDS_SECS(ACKNOWLEDGE_S)) != DDS_RETCODE_OK) {
    fprintf(stderr, "end: not all samples were acknowledged\n");
    return EXIT_ALONE;
  }
  sleep_ns(DRAIN_NS);
  return EXIT_DONE;
}

static void use_sample(struct end *end, const Message *sample)
{
  count_sample(&end->tally, sample->id);
}

static void on_sample(dds_entity_t reader, void *context)
{
  take_all(reader, context, use_sample);
}

static int reader(struct end *end)
{
  make_reader(end, STREAM_TOPIC, on_sample);
  if (!wait_for_peer(has_writer, end))
    return EXIT_ALONE;
  run_reader(&end->tally);
  return EXIT_DONE;
}

int main(int argc, char **argv)
{
  static int (*const roles[])(struct end *) = { ping, pong, writer, reader };
  const struct arguments arguments = parse_arguments(argc, argv, "cyclonedds " DDS_VERSION);
  struct end end;
  memset(&end, 0, sizeof end);
  end.arguments = &arguments;
  if (arguments.best) {
    must(dds_create_domain(arguments.domain, best_configuration), "create domain");
    /* Of the domains that there are, for their writers to come. */
    dds_write_set_batch(true);
  }
  end.participant = must(dds_create_participant(arguments.domain, NULL, NULL), "create participant");
  end.qos = make_qos(&arguments);
  end.message.padding._length = padding_bytes(&arguments);
  end.message.padding._maximum = padding_bytes(&arguments);
  end.message.padding._buffer = calloc(padding_bytes(&arguments) + 1, 1);

  const int status = roles[arguments.role](&end);
  must(dds_delete(end.participant), "delete participant");
  dds_delete_qos(end.qos);
  free(end.message.padding._buffer);
  free(end.rounds.stamps_ns);
  return status;
}
