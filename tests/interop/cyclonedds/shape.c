/* The peer Cyclone DDS (C API of 0.10): publishes or subscribes to ShapeType. Usage: ../peer.h.
 *
 * ShapeType.h and ShapeType.c are made from ../ShapeType.idl by `idlc -D PLAIN` when the program is built.
 */
#include "../peer.h"
#include "ShapeType.h"

#include <dds/dds.h>

/* How many samples one call takes; the rest come with the next one. */
enum { TAKE_BURST = 32 };

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

static bool wait_for_match(dds_entity_t writer, uint32_t seconds)
{
  const uint64_t deadline_ms = now_ms() + (uint64_t)seconds * 1000u;
  while (!interrupted && now_ms() < deadline_ms) {
    dds_publication_matched_status_t status;
    must(dds_get_publication_matched_status(writer, &status), "publication matched status");
    if (status.current_count > 0)
      return true;
    sleep_ms(POLL_PERIOD_MS);
  }
  return false;
}

static int publish(dds_entity_t participant, dds_entity_t topic, const dds_qos_t *qos,
                   const struct arguments *arguments)
{
  const dds_entity_t writer = must(dds_create_writer(participant, topic, qos, NULL), "create writer");
  if (!wait_for_match(writer, arguments->seconds)) {
    fprintf(stderr, "shape: no reader matched within %u s\n", arguments->seconds);
    return EXIT_INCOMPLETE;
  }

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

  for (uint32_t number = 0; number < arguments->count && !interrupted; number++) {
    shape.x = (int32_t)number;
    shape.y = (int32_t)number;
    must(dds_write(writer, &shape), "write");
    sleep_ms(arguments->period_ms);
  }
  if (arguments->end == END_DISPOSE)
    must(dds_dispose(writer, &shape), "dispose");
  if (arguments->end == END_UNREGISTER)
    must(dds_unregister_instance(writer, &shape), "unregister");

  const bool acknowledged =
    !arguments->reliable || dds_wait_for_acks(writer, DDS_SECS(arguments->seconds)) == DDS_RETCODE_OK;
  if (!acknowledged)
    fprintf(stderr, "shape: not all samples were acknowledged within %u s\n", arguments->seconds);
  sleep_ms(PUBLISHER_LINGER_MS);
  dds_free(shape.additional_payload_size._buffer);
  return acknowledged && !interrupted ? EXIT_DONE : EXIT_INCOMPLETE;
}

/* Prints what has arrived and returns how many samples were among it. */
static uint32_t take_and_print(dds_entity_t reader, const char *topic)
{
  void *samples[TAKE_BURST] = { NULL }; /* NULL: Cyclone lends its own */
  dds_sample_info_t infos[TAKE_BURST];
  const int taken = must(dds_take(reader, samples, infos, TAKE_BURST, TAKE_BURST), "take");
  uint32_t arrived = 0;
  for (int i = 0; i < taken; i++) {
    const ShapeType *shape = samples[i];
    if (infos[i].valid_data) {
      print_sample(topic, shape->color, shape->x, shape->y, shape->shapesize);
      arrived++;
    } else if (infos[i].instance_state != DDS_IST_ALIVE) {
      print_instance_end(topic, shape->color, infos[i].instance_state == DDS_IST_NOT_ALIVE_DISPOSED);
    }
  }
  if (taken > 0)
    must(dds_return_loan(reader, samples, taken), "return loan");
  return arrived;
}

static int subscribe(dds_entity_t participant, dds_entity_t topic, const dds_qos_t *qos,
                     const struct arguments *arguments)
{
  const dds_entity_t reader = must(dds_create_reader(participant, topic, qos, NULL), "create reader");
  uint64_t deadline_ms = now_ms() + (uint64_t)arguments->seconds * 1000u;
  uint32_t arrived = 0;
  bool complete = false;
  while (!interrupted && now_ms() < deadline_ms) {
    arrived += take_and_print(reader, arguments->topic);
    if (!complete && arrived >= arguments->count) {
      complete = true;
      deadline_ms = now_ms() + SUBSCRIBER_LINGER_MS;
    }
    sleep_ms(POLL_PERIOD_MS);
  }
  return complete ? EXIT_DONE : EXIT_INCOMPLETE;
}

int main(int argc, char **argv)
{
  const struct arguments arguments = parse_arguments(argc, argv);
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
