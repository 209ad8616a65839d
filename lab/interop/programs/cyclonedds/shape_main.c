/* The shapes test program of Cyclone DDS (C API of 0.10), from the contract in ../shape_main.h.
 *
 * What it lacks and says so: expressions of content filters (a filter is a function here; that of -c is one),
 * coherent sets, ordered access.
 *
 * ShapeType.h and ShapeType.c are made from ../ShapeType.idl by `idlc` when the program is built.
 */
#include "../shape_main.h"
#include "ShapeType.h"

#include <dds/dds.h>

enum { TAKE_BURST = KEEP_ALL_SAMPLES };

/* Cyclone DDS 0.10 knows appendable types in XCDR2 only; for XCDR1 the type is made final, which is the same on
 * the wire (see ../ShapeType.idl). So this program is built twice. */
#ifdef PLAIN
enum { REPRESENTATION = 1 };
#else
enum { REPRESENTATION = 2 };
#endif

/* How long the last acknowledgments are waited for. */
enum { ACKNOWLEDGMENTS_MS = 10000 };

/* Every failing call ends the program: a test program has nothing to fall back to. */
static dds_entity_t must(dds_entity_t result, const char *what)
{
  if (result < 0) {
    fprintf(stderr, "shape_main: %s: %s\n", what, dds_strretcode(-result));
    exit(EXIT_FAILED);
  }
  return result;
}

static dds_qos_t *make_qos(const struct options *o)
{
  const dds_data_representation_id_t representation =
    o->representation == 1 ? DDS_DATA_REPRESENTATION_XCDR1 : DDS_DATA_REPRESENTATION_XCDR2;
  const dds_history_kind_t history = o->history == 0 ? DDS_HISTORY_KEEP_ALL : DDS_HISTORY_KEEP_LAST;
  const int32_t depth = o->history > 0 ? o->history : 1;
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, o->best_effort ? DDS_RELIABILITY_BEST_EFFORT : DDS_RELIABILITY_RELIABLE, DDS_SECS(1));
  dds_qset_history(qos, history, depth);
  dds_qset_data_representation(qos, 1, &representation);
  const dds_durability_kind_t durability = o->durability == 'v'   ? DDS_DURABILITY_VOLATILE
                                           : o->durability == 'l' ? DDS_DURABILITY_TRANSIENT_LOCAL
                                           : o->durability == 't' ? DDS_DURABILITY_TRANSIENT
                                                                  : DDS_DURABILITY_PERSISTENT;
  dds_qset_durability(qos, durability);
  /* What a late joiner gets is bounded by the durability service, not by the history. */
  dds_qset_durability_service(qos, 0, history, depth, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED,
                              DDS_LENGTH_UNLIMITED);
  if (o->deadline_ms > 0)
    dds_qset_deadline(qos, DDS_MSECS(o->deadline_ms));
  if (o->liveliness != 'a' || o->lease_ms > 0)
    dds_qset_liveliness(qos,
                        o->liveliness == 'a'   ? DDS_LIVELINESS_AUTOMATIC
                        : o->liveliness == 'p' ? DDS_LIVELINESS_MANUAL_BY_PARTICIPANT
                                               : DDS_LIVELINESS_MANUAL_BY_TOPIC,
                        o->lease_ms > 0 ? DDS_MSECS(o->lease_ms) : DDS_INFINITY);
  dds_qset_latency_budget(qos, DDS_MSECS(o->latency_budget_ms));
  dds_qset_userdata(qos, o->user_data, strlen(o->user_data));
  if (o->strength >= 0) {
    dds_qset_ownership(qos, DDS_OWNERSHIP_EXCLUSIVE);
    if (o->publish)
      dds_qset_ownership_strength(qos, o->strength);
  }
  if (o->publish && o->lifespan_ms > 0)
    dds_qset_lifespan(qos, DDS_MSECS(o->lifespan_ms));
  if (o->subscribe && o->time_filter_ms > 0)
    dds_qset_time_based_filter(qos, DDS_MSECS(o->time_filter_ms));
  /* Deleting a writer must unregister its instances, not dispose them. */
  dds_qset_writer_data_lifecycle(qos, o->final_state == FINAL_DISPOSED);
  return qos;
}

/* What the publisher's and the subscriber's QoS have. */
static dds_qos_t *make_group_qos(const struct options *o)
{
  const dds_presentation_access_scope_kind_t scope = o->scope == 'i'   ? DDS_PRESENTATION_INSTANCE
                                                     : o->scope == 't' ? DDS_PRESENTATION_TOPIC
                                                                       : DDS_PRESENTATION_GROUP;
  dds_qos_t *qos = dds_create_qos();
  dds_qset_presentation(qos, scope, false, false);
  if (o->partition != NULL)
    dds_qset_partition1(qos, o->partition);
  dds_qset_groupdata(qos, o->group_data, strlen(o->group_data));
  return qos;
}

static void configure(const struct options *o)
{
  enum { HEADS = 160 };
  char announcement[128] = "", fragment[256] = "", configuration[1024];
  if (o->announcement_ms > 0)
    snprintf(announcement, sizeof announcement, "<Discovery><SPDPInterval>%u ms</SPDPInterval></Discovery>",
             o->announcement_ms);
  if (o->fragment_bytes > 0)
    /* By default several fragments share a datagram that IP cuts; here each has a separate one. */
    snprintf(fragment, sizeof fragment,
             "<General><FragmentSize>%u B</FragmentSize><MaxMessageSize>%u B</MaxMessageSize></General>",
             o->fragment_bytes, o->fragment_bytes + HEADS);
  snprintf(configuration, sizeof configuration, "<CycloneDDS><Domain>%s%s</Domain></CycloneDDS>", fragment,
           announcement);
  must(dds_create_domain(o->domain, configuration), "create domain");
}

/* Listeners get the topic's name as their argument. */

static void on_publication_matched(dds_entity_t writer, const dds_publication_matched_status_t status, void *topic)
{
  (void)writer;
  print_matched(true, (const char *)topic, (int32_t)status.current_count, status.current_count_change);
}

/* Cyclone DDS numbers policies beyond those of DDS differently. */
static uint32_t policy_number(uint32_t policy)
{
  enum { DATA_REPRESENTATION = 23 };
  return policy == DDS_DATA_REPRESENTATION_QOS_POLICY_ID ? DATA_REPRESENTATION : policy;
}

static void on_offered_incompatible(dds_entity_t writer, const dds_offered_incompatible_qos_status_t status,
                                    void *topic)
{
  (void)writer;
  print_incompatible(true, (const char *)topic, policy_number(status.last_policy_id));
}

static void on_offered_deadline(dds_entity_t writer, const dds_offered_deadline_missed_status_t status, void *topic)
{
  (void)writer;
  print_count("on_offered_deadline_missed", (const char *)topic, (int32_t)status.total_count,
              status.total_count_change);
}

static void on_liveliness_lost(dds_entity_t writer, const dds_liveliness_lost_status_t status, void *topic)
{
  (void)writer;
  print_count("on_liveliness_lost", (const char *)topic, (int32_t)status.total_count, status.total_count_change);
}

static void on_subscription_matched(dds_entity_t reader, const dds_subscription_matched_status_t status, void *topic)
{
  (void)reader;
  print_matched(false, (const char *)topic, (int32_t)status.current_count, status.current_count_change);
}

static void on_requested_incompatible(dds_entity_t reader, const dds_requested_incompatible_qos_status_t status,
                                      void *topic)
{
  (void)reader;
  print_incompatible(false, (const char *)topic, policy_number(status.last_policy_id));
}

static void on_requested_deadline(dds_entity_t reader, const dds_requested_deadline_missed_status_t status, void *topic)
{
  (void)reader;
  print_count("on_requested_deadline_missed", (const char *)topic, (int32_t)status.total_count,
              status.total_count_change);
}

static void on_liveliness_changed(dds_entity_t reader, const dds_liveliness_changed_status_t status, void *topic)
{
  (void)reader;
  print_liveliness((const char *)topic, (int32_t)status.alive_count, (int32_t)status.not_alive_count);
}

static bool has_color(const void *sample, void *color)
{
  return strcmp(((const ShapeType *)sample)->color, (const char *)color) == 0;
}

struct topic {
  char name[MAX_NAME];
  dds_entity_t topic, endpoint;
};

static void create_topics(dds_entity_t participant, struct topic *topics, const struct options *o)
{
  dds_qos_t *qos = dds_create_qos();
  dds_qset_topicdata(qos, o->topic_data, strlen(o->topic_data));
  for (uint32_t nth = 0; nth < o->topics; nth++) {
    numbered(topics[nth].name, sizeof topics[nth].name, o->topic, nth);
    printf("Create topic: %s\n", topics[nth].name);
    topics[nth].topic =
      must(dds_create_topic(participant, &ShapeType_desc, topics[nth].name, qos, NULL), "create topic");
    if (o->subscribe && o->color != NULL)
      must(dds_set_topic_filter_and_arg(topics[nth].topic, has_color, (void *)o->color), "set topic filter");
  }
  dds_delete_qos(qos);
}

/* USER_DATA, TOPIC_DATA and GROUP_DATA of the writers of a topic, of each once. */
static void print_data(const struct topic *topic)
{
  enum { MAX_PRINTED = 64 };
  static dds_instance_handle_t printed[MAX_PRINTED], writers[MAX_PRINTED];
  static int printed_count = 0;
  const int count = must(dds_get_matched_publications(topic->endpoint, writers, MAX_PRINTED), "get matched publications");
  for (int i = 0; i < count && i < MAX_PRINTED; i++) {
    bool is_printed = false;
    for (int j = 0; j < printed_count; j++)
      is_printed = is_printed || printed[j] == writers[i];
    dds_builtintopic_endpoint_t *writer = NULL;
    if (is_printed || printed_count == MAX_PRINTED
        || (writer = dds_get_matched_publication_data(topic->endpoint, writers[i])) == NULL)
      continue;
    printed[printed_count++] = writers[i];
    void *user = NULL, *topic_data = NULL, *group = NULL;
    size_t bytes; /* a zero byte follows */
    dds_qget_userdata(writer->qos, &user, &bytes);
    dds_qget_topicdata(writer->qos, &topic_data, &bytes);
    dds_qget_groupdata(writer->qos, &group, &bytes);
    print_data_of(topic->name, user ? user : "", topic_data ? topic_data : "", group ? group : "");
    dds_free(user);
    dds_free(topic_data);
    dds_free(group);
    dds_builtintopic_free_endpoint(writer);
  }
}

static void create_endpoints(dds_entity_t participant, struct topic *topics, const struct options *o)
{
  dds_qos_t *group_qos = make_group_qos(o), *qos = make_qos(o);
  const dds_entity_t group = o->publish ? must(dds_create_publisher(participant, group_qos, NULL), "create publisher")
                                        : must(dds_create_subscriber(participant, group_qos, NULL), "create subscriber");
  for (uint32_t nth = 0; nth < o->topics; nth++) {
    struct topic *one = &topics[nth];
    dds_listener_t *listener = dds_create_listener(one->name);
    if (o->publish) {
      printf("Create writer for topic: %s color: %s\n", one->name, o->color);
      dds_lset_publication_matched(listener, on_publication_matched);
      dds_lset_offered_incompatible_qos(listener, on_offered_incompatible);
      dds_lset_offered_deadline_missed(listener, on_offered_deadline);
      dds_lset_liveliness_lost(listener, on_liveliness_lost);
      one->endpoint = must(dds_create_writer(group, one->topic, qos, listener), "create writer");
    } else {
      printf("Create reader for topic: %s\n", one->name);
      dds_lset_subscription_matched(listener, on_subscription_matched);
      dds_lset_requested_incompatible_qos(listener, on_requested_incompatible);
      dds_lset_requested_deadline_missed(listener, on_requested_deadline);
      dds_lset_liveliness_changed(listener, on_liveliness_changed);
      one->endpoint = must(dds_create_reader(group, one->topic, qos, listener), "create reader");
    }
    dds_delete_listener(listener);
  }
  dds_delete_qos(group_qos);
  dds_delete_qos(qos);
}

static void end_instances(const struct topic *topics, ShapeType *shape, const struct options *o)
{
  for (uint32_t nth = 0; nth < o->topics; nth++)
    for (uint32_t instance = 0; instance < o->instances; instance++) {
      numbered(shape->color, sizeof shape->color, o->color, instance);
      if (o->final_state == FINAL_DISPOSED)
        must(dds_dispose(topics[nth].endpoint, shape), "dispose");
      else
        must(dds_unregister_instance(topics[nth].endpoint, shape), "unregister");
    }
  for (uint32_t nth = 0; nth < o->topics && !o->best_effort; nth++) {
    /* With a latency budget the end of an instance may stay in a packet that is sent only when the writer is
     * deleted (seen in 0.10.2): what was not sent would be waited for in vain. */
    dds_write_flush(topics[nth].endpoint);
    (void)dds_wait_for_acks(topics[nth].endpoint, DDS_MSECS(ACKNOWLEDGMENTS_MS));
  }
}

static void publish(const struct topic *topics, const struct options *o)
{
  ShapeType shape;
  memset(&shape, 0, sizeof shape);
  if (o->payload_bytes > 0) {
    shape.additional_payload_size._length = o->payload_bytes;
    shape.additional_payload_size._maximum = o->payload_bytes;
    shape.additional_payload_size._buffer = dds_sequence_uint8_allocbuf(o->payload_bytes);
    memset(shape.additional_payload_size._buffer, 255, o->payload_bytes);
  }
  static struct motion motions[MAX_INSTANCES];
  for (uint32_t instance = 0; instance < o->instances; instance++)
    motions[instance] = motion_of(instance);
  for (uint64_t iteration = 0; !is_stopped && (o->iterations == 0 || iteration < o->iterations); iteration++) {
    for (uint32_t instance = 0; instance < o->instances; instance++) {
      move_on(&motions[instance]);
      numbered(shape.color, sizeof shape.color, o->color, instance);
      shape.x = motions[instance].x;
      shape.y = motions[instance].y;
      shape.shapesize = size_in(o, iteration);
      for (uint32_t nth = 0; nth < o->topics; nth++) {
        const dds_return_t result = dds_write(topics[nth].endpoint, &shape);
        if (result != DDS_RETCODE_TIMEOUT)
          must(result, "write");
        if (o->print_written)
          print_shape(topics[nth].name, shape.color, shape.x, shape.y, shape.shapesize,
                      shape.additional_payload_size._buffer, o->payload_bytes);
      }
    }
    pause_ms(o->write_period_ms);
  }
  if (o->final_state != FINAL_NONE)
    end_instances(topics, &shape, o);
  dds_free(shape.additional_payload_size._buffer);
}

/* Prints what there is. The state of an instance is the one at the time of the call: an end that came before
 * its last sample was taken has no separate sample; the last sample carries it. */
static void print_all(const struct topic *topic, const struct options *o)
{
  static void *samples[TAKE_BURST];
  static dds_sample_info_t infos[TAKE_BURST];
  samples[0] = NULL; /* Cyclone lends its own */
  const int count = o->read ? must(dds_read(topic->endpoint, samples, infos, TAKE_BURST, TAKE_BURST), "read")
                            : must(dds_take(topic->endpoint, samples, infos, TAKE_BURST, TAKE_BURST), "take");
  for (int i = 0; i < count; i++) {
    const ShapeType *shape = samples[i];
    if (infos[i].valid_data)
      print_shape(topic->name, shape->color, shape->x, shape->y, shape->shapesize,
                  shape->additional_payload_size._buffer, shape->additional_payload_size._length);
    const bool is_last = i + 1 == count || infos[i + 1].instance_handle != infos[i].instance_handle;
    if (infos[i].instance_state != DDS_IST_ALIVE && is_last)
      print_end(topic->name, shape->color, infos[i].instance_state == DDS_IST_NOT_ALIVE_DISPOSED);
  }
  if (count > 0)
    must(dds_return_loan(topic->endpoint, samples, count), "return loan");
}

static void subscribe(const struct topic *topics, const struct options *o)
{
  for (uint64_t iteration = 0; !is_stopped && (o->iterations == 0 || iteration < o->iterations); iteration++) {
    for (uint32_t nth = 0; nth < o->topics; nth++)
      print_all(&topics[nth], o);
    for (uint32_t nth = 0; nth < o->topics && o->print_data; nth++)
      print_data(&topics[nth]);
    pause_ms(o->read_period_ms);
  }
}

int main(int argc, char **argv)
{
  const struct options options = parse_options(argc, argv);
  if (options.coherent || options.coherent_samples > 0)
    fail_lacking("coherent sets");
  if (options.ordered)
    fail_lacking("ordered access");
  if (options.filter != NULL)
    fail_lacking("--cft: filters in words");
  if (options.representation != REPRESENTATION)
    fail_lacking("-x: the other representation, which another build of this program has");
  configure(&options);
  static struct topic topics[MAX_TOPICS];
  const dds_entity_t participant = must(dds_create_participant(options.domain, NULL, NULL), "create participant");
  create_topics(participant, topics, &options);
  create_endpoints(participant, topics, &options);
  if (options.publish)
    publish(topics, &options);
  else
    subscribe(topics, &options);
  must(dds_delete(participant), "delete participant");
  printf("Done.\n");
  return EXIT_DONE;
}
