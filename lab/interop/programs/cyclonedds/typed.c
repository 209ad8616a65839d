/* The peer Cyclone DDS (C API of 0.10) for the matrix of types. Usage: ../typed.h.
 *
 * Reading.h and Reading.c are made from ../Reading.idl by `idlc` when the program is built: a program for each
 * extensibility.
 */
#include "../typed.h"
#include "Reading.h"

#include <dds/dds.h>

static dds_entity_t must(dds_entity_t result, const char *what)
{
  if (result < 0) {
    fprintf(stderr, "typed: %s: %s\n", what, dds_strretcode(-result));
    exit(EXIT_USAGE);
  }
  return result;
}

static dds_qos_t *make_qos(const struct endpoint *endpoint)
{
  dds_data_representation_id_t representations[2];
  uint32_t length = 0;
  if (endpoint->takes_xcdr1)
    representations[length++] = DDS_DATA_REPRESENTATION_XCDR1;
  if (endpoint->takes_xcdr2)
    representations[length++] = DDS_DATA_REPRESENTATION_XCDR2;
  dds_qos_t *qos = dds_create_qos();
  dds_qset_data_representation(qos, length, representations);
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(1));
  dds_qset_durability(qos, DDS_DURABILITY_TRANSIENT_LOCAL);
  dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
  dds_qset_durability_service(qos, 0, DDS_HISTORY_KEEP_ALL, 0, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED,
                              DDS_LENGTH_UNLIMITED);
  return qos;
}

/* The endpoint, or the reason why this implementation does not have it. */
static dds_entity_t create(dds_entity_t participant, const struct endpoint *endpoint)
{
  dds_qos_t *qos = make_qos(endpoint);
  /* The topic's policies are the endpoint's defaults, so that what the type does not allow is refused here. */
  dds_entity_t entity = dds_create_topic(participant, &matrix_Reading_desc, endpoint->topic, qos, NULL);
  if (entity > 0)
    entity = endpoint->is_writer ? dds_create_writer(participant, entity, qos, NULL)
                                 : dds_create_reader(participant, entity, qos, NULL);
  dds_delete_qos(qos);
  if (entity < 0)
    say(endpoint, "impossible", dds_strretcode(-entity));
  return entity;
}

static void fill_part(matrix_Part *part, uint8_t number, uint64_t serial, const char *label, const double *values,
                      uint32_t length)
{
  part->number = number;
  part->serial = serial;
  part->label = (char *)label;
  part->values._buffer = (double *)values;
  part->values._length = part->values._maximum = length;
}

static void write_all(dds_entity_t writer)
{
  matrix_Part parts[2];
  matrix_Reading reading;
  memset(parts, 0, sizeof parts);
  memset(&reading, 0, sizeof reading);
  reading.name = "left";
  fill_part(&reading.part, KEY_PART.number, KEY_PART.serial, KEY_PART.label, KEY_PART.values, KEY_PART.length);
  for (int i = 0; i < 2; i++)
    fill_part(&parts[i], PARTS[i].number, PARTS[i].serial, PARTS[i].label, PARTS[i].values, PARTS[i].length);
  reading.parts._buffer = parts;
  reading.parts._length = reading.parts._maximum = 2;
  reading.notes._buffer = (char **)NOTES;
  reading.notes._length = reading.notes._maximum = 2;
  reading.counts._buffer = (uint64_t *)COUNTS;
  reading.counts._length = reading.counts._maximum = 2;
  for (int i = 0; i < SAMPLES; i++) {
    reading.flag = (uint8_t)i;
    reading.value = FIRST_VALUE + i;
    reading.stamp = FIRST_STAMP + (uint64_t)i;
    must(dds_write(writer, &reading), "write");
  }
  must(dds_dispose(writer, &reading), "dispose");
}

static void print_part(const matrix_Part *part)
{
  printf("%u,%llu,%s,", part->number, (unsigned long long)part->serial, part->label);
  for (uint32_t i = 0; i < part->values._length; i++)
    printf("%s%g", i ? "+" : "", part->values._buffer[i]);
}

static void print_sample(const struct endpoint *endpoint, const matrix_Reading *reading)
{
  printf("%s sample %s/", endpoint->topic, reading->name);
  print_part(&reading->part);
  printf("/%u/%g/%llu/", reading->flag, reading->value, (unsigned long long)reading->stamp);
  for (uint32_t i = 0; i < reading->parts._length; i++) {
    printf("%s", i ? ";" : "");
    print_part(&reading->parts._buffer[i]);
  }
  printf("/");
  for (uint32_t i = 0; i < reading->notes._length; i++)
    printf("%s%s", i ? "," : "", reading->notes._buffer[i]);
  printf("/");
  for (uint32_t i = 0; i < reading->counts._length; i++)
    printf("%s%llu", i ? "+" : "", (unsigned long long)reading->counts._buffer[i]);
  printf("\n");
  fflush(stdout);
}

static void look_at_writer(dds_entity_t writer, struct endpoint *endpoint)
{
  dds_offered_incompatible_qos_status_t incompatible;
  must(dds_get_offered_incompatible_qos_status(writer, &incompatible), "status");
  say_incompatible(endpoint, incompatible.total_count, incompatible.last_policy_id == DDS_DATA_REPRESENTATION_QOS_POLICY_ID);
  dds_publication_matched_status_t matched;
  must(dds_get_publication_matched_status(writer, &matched), "status");
  if (matched.current_count == 0 || endpoint->matched)
    return;
  say_once(endpoint, &endpoint->matched, true, "matched");
  write_all(writer);
  say(endpoint, "written", "");
}

static void look_at_reader(dds_entity_t reader, struct endpoint *endpoint)
{
  dds_requested_incompatible_qos_status_t incompatible;
  must(dds_get_requested_incompatible_qos_status(reader, &incompatible), "status");
  say_incompatible(endpoint, incompatible.total_count, incompatible.last_policy_id == DDS_DATA_REPRESENTATION_QOS_POLICY_ID);
  dds_subscription_matched_status_t matched;
  must(dds_get_subscription_matched_status(reader, &matched), "status");
  say_once(endpoint, &endpoint->matched, matched.total_count > 0, "matched");
  dds_sample_lost_status_t lost;
  must(dds_get_sample_lost_status(reader, &lost), "status");
  say_once(endpoint, &endpoint->lost, lost.total_count > 0, "lost");
  dds_sample_rejected_status_t rejected;
  must(dds_get_sample_rejected_status(reader, &rejected), "status");
  say_once(endpoint, &endpoint->rejected, rejected.total_count > 0, "rejected");

  void *samples[HISTORY_SAMPLES] = { NULL };
  dds_sample_info_t infos[HISTORY_SAMPLES];
  const int taken = must(dds_take(reader, samples, infos, HISTORY_SAMPLES, HISTORY_SAMPLES), "take");
  for (int i = 0; i < taken; i++) {
    if (infos[i].valid_data)
      print_sample(endpoint, samples[i]);
    /* The state is the instance's at the time of the call: the last sample carries it. */
    if (i + 1 == taken && infos[i].instance_state == DDS_IST_NOT_ALIVE_DISPOSED)
      say(endpoint, "disposed", "");
  }
  if (taken > 0)
    must(dds_return_loan(reader, samples, taken), "return loan");
}

int main(int argc, char **argv)
{
  static struct endpoint endpoints[MAX_ENDPOINTS];
  static dds_entity_t entities[MAX_ENDPOINTS];
  if (argc > MAX_ENDPOINTS)
    return EXIT_USAGE;
  take_over_signals();
  const dds_entity_t participant = must(dds_create_participant(0, NULL, NULL), "create participant");
  for (int i = 1; i < argc; i++) {
    endpoints[i] = parse_endpoint(argv[i]);
    entities[i] = create(participant, &endpoints[i]);
  }
  for (int looks = 0; !is_stopped && looks < RUN_MS / LOOK_MS; looks++) {
    for (int i = 1; i < argc; i++) {
      if (entities[i] > 0 && endpoints[i].is_writer)
        look_at_writer(entities[i], &endpoints[i]);
      if (entities[i] > 0 && !endpoints[i].is_writer)
        look_at_reader(entities[i], &endpoints[i]);
    }
    sleep_ms(LOOK_MS);
  }
  must(dds_delete(participant), "delete participant");
  return 0;
}
