/* The peer Cyclone DDS (C API of 0.10): publishes or subscribes to ShapeType. Usage: ../peer.h.
 *
 * ShapeType.h and ShapeType.c are made from ../ShapeType.idl by `idlc -D PLAIN` when the program is built.
 */
#include "../peer.h"
#include "ShapeType.h"

#include <dds/dds.h>

/* How many samples one call takes: all of a history, so that the end of an instance is behind them. */
enum { TAKE_BURST = MAX_HISTORY_SAMPLES };

/* Every failing call ends the program: a test program has nothing to fall back to. */
static dds_entity_t must(dds_entity_t result, const char *what)
{
  if (result < 0) {
    fprintf(stderr, "shape: %s: %s\n", what, dds_strretcode(-result));
    exit(EXIT_USAGE);
  }
  return result;
}

static dds_qos_t *make_qos(const struct arguments *arguments)
{
  const dds_data_representation_id_t representation = DDS_DATA_REPRESENTATION_XCDR1;
  const dds_history_kind_t history = arguments->keep_all ? DDS_HISTORY_KEEP_ALL : DDS_HISTORY_KEEP_LAST;
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, arguments->reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT,
                       DDS_SECS(1));
  dds_qset_history(qos, history, 1);
  dds_qset_data_representation(qos, 1, &representation);
  if (arguments->transient_local) {
    dds_qset_durability(qos, DDS_DURABILITY_TRANSIENT_LOCAL);
    /* What a late joiner gets is bounded by the durability service, not by the history. */
    dds_qset_durability_service(qos, 0, history, 1, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED,
                                DDS_LENGTH_UNLIMITED);
  }
  /* Deleting a writer must unregister its instances, not dispose them. */
  dds_qset_writer_data_lifecycle(qos, false);
  return qos;
}

/* How many samples a late joiner may hold that came ahead of a missing one: all there can be.
 *
 * Cyclone DDS sorts what a writer sends in a buffer for all its readers that are up to date, and in one
 * more for each reader that still catches up with the history. Each holds 128 samples by default, and the
 * highest numbers are dropped. The reader should request again what the buffer of a late reader dropped. But 0.10.2
 * may find the reader up to date in the very step in which the common buffer, having waited for the same
 * sample, releases a longer chain to no reader: the rest of that chain is lost, and acknowledged (q_receive.c:
 * handle_regular, maybe_set_reader_in_sync). So where frames are lost, a history of about a hundred samples
 * needs larger buffers. */
enum { REORDERED_SAMPLES = MAX_HISTORY_SAMPLES };

/* The configuration is the domain's: it must be known before the first participant is made. It is all there
 * is then, so what CYCLONEDDS_URI says (tracing, for example) goes in front of it. */
static void configure(const struct arguments *arguments)
{
  const char *environment = getenv("CYCLONEDDS_URI");
  char lease[128] = "", buffers[256] = "", configuration[4096];
  if (arguments->lease_ms > 0)
    snprintf(lease, sizeof lease,
             "<Discovery><LeaseDuration>%u ms</LeaseDuration><SPDPInterval>%u ms</SPDPInterval></Discovery>",
             arguments->lease_ms, arguments->lease_ms / RENEWALS_A_LEASE);
  if (!arguments->publish && arguments->reliable && arguments->transient_local)
    snprintf(buffers, sizeof buffers,
             "<Internal><PrimaryReorderMaxSamples>%u</PrimaryReorderMaxSamples>"
             "<SecondaryReorderMaxSamples>%u</SecondaryReorderMaxSamples></Internal>",
             (unsigned)REORDERED_SAMPLES, (unsigned)REORDERED_SAMPLES);
  const int length = snprintf(configuration, sizeof configuration,
                              "%s%s<CycloneDDS><Domain>%s%s</Domain></CycloneDDS>", environment ? environment : "",
                              environment && *environment ? "," : "", lease, buffers);
  if (length < 0 || (size_t)length >= sizeof configuration)
    fail_usage("CYCLONEDDS_URI is too long", environment);
  must(dds_create_domain(arguments->domain, configuration), "create domain");
}

static bool wait_for_match(dds_entity_t writer, uint32_t seconds)
{
  const uint64_t deadline_ms = now_ms() + (uint64_t)seconds * 1000u;
  say("waiting for a subscriber");
  while (!stop_signals && now_ms() < deadline_ms) {
    dds_publication_matched_status_t status;
    must(dds_get_publication_matched_status(writer, &status), "publication matched status");
    if (status.current_count > 0)
      return true;
    sleep_ms(POLL_PERIOD_MS);
  }
  fprintf(stderr, "shape: no reader matched within %u s\n", seconds);
  return false;
}

static bool wait_for_acknowledgments(dds_entity_t writer, const struct arguments *arguments)
{
  if (!arguments->reliable || dds_wait_for_acks(writer, DDS_MSECS(ACKNOWLEDGMENT_MS)) == DDS_RETCODE_OK)
    return true;
  fprintf(stderr, "shape: not all samples were acknowledged within %u ms\n", (unsigned)ACKNOWLEDGMENT_MS);
  return false;
}

/* Writes until a signal; returns the number of changes, with the end of the instance. */
static uint32_t write_all(dds_entity_t writer, ShapeType *shape, const struct arguments *arguments)
{
  const uint64_t deadline_ms = now_ms() + (uint64_t)arguments->seconds * 1000u;
  uint32_t written = 0;
  say("publishing");
  while (!stop_signals && now_ms() < deadline_ms) {
    shape->x = (int32_t)(arguments->first + written);
    shape->y = shape->x;
    must(dds_write(writer, shape), "write");
    written++;
    sleep_ms(arguments->period_ms);
  }
  wait_for_acknowledgments(writer, arguments);
  if (arguments->end == END_DISPOSE)
    must(dds_dispose(writer, shape), "dispose");
  if (arguments->end == END_UNREGISTER)
    must(dds_unregister_instance(writer, shape), "unregister");
  return arguments->end == END_DELETE ? written : written + 1;
}

static int publish(dds_entity_t participant, dds_entity_t topic, const dds_qos_t *qos,
                   const struct arguments *arguments)
{
  const dds_entity_t writer = must(dds_create_writer(participant, topic, qos, NULL), "create writer");
  if (!arguments->transient_local && !wait_for_match(writer, arguments->seconds))
    return EXIT_INCOMPLETE;

  ShapeType shape;
  memset(&shape, 0, sizeof shape);
  strcpy(shape.color, arguments->color); /* parse_arguments checked the length */
  shape.shapesize = SHAPE_SIZE;
  shape.additional_payload_size._length = arguments->payload_bytes;
  shape.additional_payload_size._maximum = arguments->payload_bytes;
  if (arguments->payload_bytes > 0) {
    shape.additional_payload_size._buffer = dds_sequence_uint8_allocbuf(arguments->payload_bytes);
    memset(shape.additional_payload_size._buffer, 255, arguments->payload_bytes);
  }
  fprintf(stderr, "%u written\n", write_all(writer, &shape, arguments));
  const bool acknowledged = wait_for_acknowledgments(writer, arguments);
  stay_then_leave();
  dds_free(shape.additional_payload_size._buffer);
  return acknowledged ? EXIT_DONE : EXIT_INCOMPLETE;
}

/* Whether one of the samples behind the `i`th is of the same instance. */
static bool is_followed(const dds_sample_info_t *infos, int taken, int i)
{
  for (int later = i + 1; later < taken; later++)
    if (infos[later].instance_handle == infos[i].instance_handle)
      return true;
  return false;
}

/* Prints what has arrived. The state of an instance is the one at the time of the call: an end that
 * came before its last sample was taken has no separate sample; the last sample carries it. */
static void take_and_print(dds_entity_t reader, const struct arguments *arguments)
{
  static void *samples[TAKE_BURST];
  static dds_sample_info_t infos[TAKE_BURST];
  samples[0] = NULL; /* Cyclone lends its own */
  const int taken = must(dds_take(reader, samples, infos, TAKE_BURST, TAKE_BURST), "take");
  for (int i = 0; i < taken; i++) {
    const ShapeType *shape = samples[i];
    if (infos[i].valid_data)
      print_sample(arguments, shape->color, shape->x, shape->y, shape->shapesize);
    if (infos[i].instance_state != DDS_IST_ALIVE && !is_followed(infos, taken, i))
      print_instance_end(arguments->topic, shape->color, infos[i].instance_state == DDS_IST_NOT_ALIVE_DISPOSED);
  }
  if (taken > 0)
    must(dds_return_loan(reader, samples, taken), "return loan");
}

static int subscribe(dds_entity_t participant, dds_entity_t topic, const dds_qos_t *qos,
                     const struct arguments *arguments)
{
  const dds_entity_t reader = must(dds_create_reader(participant, topic, qos, NULL), "create reader");
  const uint64_t deadline_ms = now_ms() + (uint64_t)arguments->seconds * 1000u;
  while (!stop_signals && now_ms() < deadline_ms) {
    take_and_print(reader, arguments);
    sleep_ms(POLL_PERIOD_MS);
  }
  return stop_signals ? EXIT_DONE : EXIT_INCOMPLETE;
}

int main(int argc, char **argv)
{
  const struct arguments arguments = parse_arguments(argc, argv);
  configure(&arguments);
  const dds_entity_t participant =
    must(dds_create_participant(arguments.domain, NULL, NULL), "create participant");
  const dds_entity_t topic =
    must(dds_create_topic(participant, &ShapeType_desc, arguments.topic, NULL, NULL), "create topic");
  dds_qos_t *qos = make_qos(&arguments);
  const int status = arguments.publish ? publish(participant, topic, qos, &arguments)
                                       : subscribe(participant, topic, qos, &arguments);
  dds_delete_qos(qos);
  must(dds_delete(participant), "delete participant");
  return status;
}
