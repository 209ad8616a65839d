/* The command-line contract of shapes test programs, as far as it is the same for all implementations:
 * options, how shapes move, and the lines that are printed, word for word.
 *
 * A program of each peer, `shape_main`, is made of this and of what is the implementation's own; our own is
 * the crate `isolane-shape-main`. `cargo xtask shapes` runs all pairs. Plain C that is also C++.
 *
 * Each program runs until SIGINT, or for --num-iterations. Exit status: 0 done; 1 a call failed; 2 wrong usage,
 * or a requested feature is not implemented (then it prints `not supported`).
 */
#ifndef ISOLANE_INTEROP_SHAPE_MAIN_H
#define ISOLANE_INTEROP_SHAPE_MAIN_H

#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* The plane, and how far a shape goes between two samples. */
enum { PLANE_X = 240, PLANE_Y = 270, STEP_X = 5, STEP_Y = 3 };

/* Bounds of what a test asks for. */
enum { MAX_NAME = 256, MAX_COLOR_CHARACTERS = 128, MAX_TOPICS = 32, MAX_INSTANCES = 1000, MAX_PAYLOAD = 1 << 20 };

/* Samples that KEEP_ALL holds where the implementation wants a number. */
enum { KEEP_ALL_SAMPLES = 5000 };

enum final_state { FINAL_NONE, FINAL_UNREGISTERED, FINAL_DISPOSED };

struct options {
  bool publish, subscribe;
  const char *topic, *color, *partition, *filter;
  uint32_t domain;
  bool best_effort, print_written, read, take_read, coherent, ordered, debug;
  int32_t history; /* -1: KEEP_LAST 1; 0: KEEP_ALL; else KEEP_LAST with this depth */
  uint32_t deadline_ms, lifespan_ms, time_filter_ms, write_period_ms, read_period_ms, announcement_ms;
  int32_t strength; /* -1: shared */
  char durability;  /* v, l, t, p */
  char scope;       /* i, t, g */
  int representation;
  uint32_t size, size_modulo;
  uint64_t iterations; /* 0: without end */
  uint32_t instances, topics, coherent_samples, payload_bytes, fragment_bytes;
  enum final_state final_state;
  /* Beyond the contract, for policies it has no option for. */
  char liveliness; /* a, p, t */
  uint32_t lease_ms, latency_budget_ms; /* 0: for ever; none */
  const char *user_data, *topic_data, *group_data;
  bool print_data;
};

static volatile sig_atomic_t is_stopped = 0;

static inline void on_signal(int number)
{
  (void)number;
  is_stopped = 1;
}

static inline void pause_ms(uint32_t milliseconds)
{
  struct timespec pause;
  pause.tv_sec = milliseconds / 1000u;
  pause.tv_nsec = (long)(milliseconds % 1000u) * 1000000;
  nanosleep(&pause, NULL); /* a signal ends it early */
}

static inline void fail_usage(const char *what, const char *value)
{
  fprintf(stderr, "shape_main: %s%s%s; see shape_main.h for the options\n", what, value ? ": " : "",
          value ? value : "");
  exit(EXIT_USAGE);
}

static inline void fail_lacking(const char *what)
{
  fprintf(stderr, "shape_main: %s: not supported\n", what);
  exit(EXIT_USAGE);
}

static inline int64_t number(const char *name, const char *text, int64_t least, int64_t most)
{
  char *rest = NULL;
  const long long value = strtoll(text, &rest, 10);
  if (*text == '\0' || *rest != '\0' || value < least || value > most)
    fail_usage(name, text);
  return value;
}

static inline char letter(const char *name, const char *text, const char *letters)
{
  if (strlen(text) != 1 || strchr(letters, *text) == NULL)
    fail_usage(name, text);
  return *text;
}

/* Reads the whole command line, or ends the program, and takes over SIGINT and SIGTERM. */
static inline struct options parse_options(int argc, char **argv)
{
  enum {
    WRITE_PERIOD = 256, READ_PERIOD, TIME_FILTER, LIFESPAN, ITERATIONS, INSTANCES, TOPICS, FINAL_STATE, SCOPE,
    COHERENT, ORDERED, COHERENT_SAMPLES, PAYLOAD, TAKE_READ, ANNOUNCEMENT, FRAGMENT, FILTER, MODULO,
    LIVELINESS, LEASE, LATENCY_BUDGET, USER_DATA, TOPIC_DATA, GROUP_DATA, PRINT_DATA
  };
  static const struct option longs[] = {
    { "help", no_argument, NULL, 'h' },
    { "write-period", required_argument, NULL, WRITE_PERIOD },
    { "read-period", required_argument, NULL, READ_PERIOD },
    { "time-filter", required_argument, NULL, TIME_FILTER },
    { "lifespan", required_argument, NULL, LIFESPAN },
    { "num-iterations", required_argument, NULL, ITERATIONS },
    { "num-instances", required_argument, NULL, INSTANCES },
    { "num-topics", required_argument, NULL, TOPICS },
    { "final-instance-state", required_argument, NULL, FINAL_STATE },
    { "access-scope", required_argument, NULL, SCOPE },
    { "coherent", no_argument, NULL, COHERENT },
    { "ordered", no_argument, NULL, ORDERED },
    { "coherent-sample-count", required_argument, NULL, COHERENT_SAMPLES },
    { "additional-payload-size", required_argument, NULL, PAYLOAD },
    { "take-read", no_argument, NULL, TAKE_READ },
    { "periodic-announcement", required_argument, NULL, ANNOUNCEMENT },
    { "datafrag-size", required_argument, NULL, FRAGMENT },
    { "cft", required_argument, NULL, FILTER },
    { "size-modulo", required_argument, NULL, MODULO },
    { "liveliness", required_argument, NULL, LIVELINESS },
    { "lease", required_argument, NULL, LEASE },
    { "latency-budget", required_argument, NULL, LATENCY_BUDGET },
    { "user-data", required_argument, NULL, USER_DATA },
    { "topic-data", required_argument, NULL, TOPIC_DATA },
    { "group-data", required_argument, NULL, GROUP_DATA },
    { "print-data", no_argument, NULL, PRINT_DATA },
    { NULL, 0, NULL, 0 },
  };
  struct options o;
  memset(&o, 0, sizeof o);
  o.history = -1;
  o.strength = -1;
  o.durability = 'v';
  o.scope = 'i';
  o.liveliness = 'a';
  o.user_data = o.topic_data = o.group_data = "";
  o.representation = 1;
  o.size = 20;
  o.write_period_ms = 33;
  o.read_period_ms = 100;
  o.instances = 1;
  o.topics = 1;
  const int64_t most = INT32_MAX;

  int option;
  while ((option = getopt_long(argc, argv, "hv:PSt:d:brk:f:s:c:p:D:x:wz:R", longs, NULL)) != -1) {
    switch (option) {
    case 'h': printf("see shape_main.h\n"); exit(EXIT_DONE);
    case 'v': o.debug = letter("-v", optarg, "ed") == 'd'; break;
    case 'P': o.publish = true; break;
    case 'S': o.subscribe = true; break;
    case 't': o.topic = optarg; break;
    case 'd': o.domain = (uint32_t)number("-d", optarg, 0, 232); break;
    case 'b': o.best_effort = true; break;
    case 'r': o.best_effort = false; break;
    case 'k': o.history = (int32_t)number("-k", optarg, 0, KEEP_ALL_SAMPLES); break;
    case 'f': o.deadline_ms = (uint32_t)number("-f", optarg, 0, most); break;
    case 's': o.strength = (int32_t)number("-s", optarg, -1, most); break;
    case 'c': o.color = optarg; break;
    case 'p': o.partition = optarg; break;
    case 'D': o.durability = letter("-D", optarg, "vltp"); break;
    case 'x': o.representation = (int)number("-x", optarg, 1, 2); break;
    case 'w': o.print_written = true; break;
    case 'z': o.size = (uint32_t)number("-z", optarg, 0, most); break;
    case 'R': o.read = true; break;
    case WRITE_PERIOD: o.write_period_ms = (uint32_t)number("--write-period", optarg, 0, most); break;
    case READ_PERIOD: o.read_period_ms = (uint32_t)number("--read-period", optarg, 0, most); break;
    case TIME_FILTER: o.time_filter_ms = (uint32_t)number("--time-filter", optarg, 0, most); break;
    case LIFESPAN: o.lifespan_ms = (uint32_t)number("--lifespan", optarg, 0, most); break;
    case ITERATIONS: o.iterations = (uint64_t)number("--num-iterations", optarg, 1, most); break;
    case INSTANCES: o.instances = (uint32_t)number("--num-instances", optarg, 1, MAX_INSTANCES); break;
    case TOPICS: o.topics = (uint32_t)number("--num-topics", optarg, 1, MAX_TOPICS); break;
    case FINAL_STATE:
      o.final_state = letter("--final-instance-state", optarg, "ud") == 'u' ? FINAL_UNREGISTERED : FINAL_DISPOSED;
      break;
    case SCOPE: o.scope = letter("--access-scope", optarg, "itg"); break;
    case COHERENT: o.coherent = true; break;
    case ORDERED: o.ordered = true; break;
    case COHERENT_SAMPLES: o.coherent_samples = (uint32_t)number("--coherent-sample-count", optarg, 1, most); break;
    case PAYLOAD: o.payload_bytes = (uint32_t)number("--additional-payload-size", optarg, 0, MAX_PAYLOAD); break;
    case TAKE_READ: o.take_read = true; break;
    case ANNOUNCEMENT: o.announcement_ms = (uint32_t)number("--periodic-announcement", optarg, 1, most); break;
    case FRAGMENT: o.fragment_bytes = (uint32_t)number("--datafrag-size", optarg, 1, 65535); break;
    case FILTER: o.filter = optarg; break;
    case MODULO: o.size_modulo = (uint32_t)number("--size-modulo", optarg, 1, most); break;
    case LIVELINESS: o.liveliness = letter("--liveliness", optarg, "apt"); break;
    case LEASE: o.lease_ms = (uint32_t)number("--lease", optarg, 1, most); break;
    case LATENCY_BUDGET: o.latency_budget_ms = (uint32_t)number("--latency-budget", optarg, 0, most); break;
    case USER_DATA: o.user_data = optarg; break;
    case TOPIC_DATA: o.topic_data = optarg; break;
    case GROUP_DATA: o.group_data = optarg; break;
    case PRINT_DATA: o.print_data = true; break;
    default: fail_usage("unknown option or missing value", NULL);
    }
  }
  if (optind != argc)
    fail_usage("what is no option", argv[optind]);
  if (o.publish == o.subscribe)
    fail_usage("say -P or -S, one of them", NULL);
  if (o.topic == NULL)
    fail_usage("-t is missing", NULL);
  if (o.subscribe && o.color != NULL && o.filter != NULL)
    fail_usage("a subscriber takes -c or --cft, not both", NULL);
  if (o.publish && o.color == NULL) {
    fprintf(stderr, "warning: no color was given (-c), it is BLUE\n");
    o.color = "BLUE";
  }
  if (strlen(o.topic) > MAX_NAME - 16 || (o.color != NULL && strlen(o.color) > MAX_COLOR_CHARACTERS - 16))
    fail_usage("a topic or color is too long", NULL);

  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  /* Every line is there at once, also in a pipe. */
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  return o;
}

/* A name, then the name with 1, 2, ... */
static inline void numbered(char *out, size_t room, const char *name, uint32_t nth)
{
  if (nth == 0)
    snprintf(out, room, "%s", name);
  else
    snprintf(out, room, "%s%u", name, nth);
}

/* Where a shape is, and where it goes. */
struct motion {
  int32_t x, y, step_x, step_y;
};

static inline struct motion motion_of(uint32_t nth)
{
  const struct motion motion = { (int32_t)(nth * 37 % PLANE_X), (int32_t)(nth * 53 % PLANE_Y), STEP_X, STEP_Y };
  return motion;
}

static inline void move_on(struct motion *motion)
{
  if (motion->x + motion->step_x < 0 || motion->x + motion->step_x > PLANE_X)
    motion->step_x = -motion->step_x;
  if (motion->y + motion->step_y < 0 || motion->y + motion->step_y > PLANE_Y)
    motion->step_y = -motion->step_y;
  motion->x += motion->step_x;
  motion->y += motion->step_y;
}

/* The size in an iteration, counted from 0. */
static inline int32_t size_in(const struct options *o, uint64_t iteration)
{
  if (o->size != 0)
    return (int32_t)o->size;
  return (int32_t)((o->size_modulo ? iteration % o->size_modulo : iteration) + 1);
}

static inline void print_shape(const char *topic, const char *color, int32_t x, int32_t y, int32_t size,
                               const uint8_t *payload, uint32_t payload_bytes)
{
  printf("%-10s %-10s %03d %03d [%d]", topic, color, (int)x, (int)y, (int)size);
  if (payload_bytes > 0)
    printf(" {%u}", payload[payload_bytes - 1]);
  printf("\n");
}

static inline void print_end(const char *topic, const char *color, bool is_disposed)
{
  printf("%-10s %-10s %s\n", topic, color,
         is_disposed ? "NOT_ALIVE_DISPOSED_INSTANCE_STATE" : "NOT_ALIVE_NO_WRITERS_INSTANCE_STATE");
}

static inline void print_matched(bool is_writer, const char *topic, int32_t current, int32_t change)
{
  printf("%s() topic: '%s'  type: 'ShapeType' : matched %s %d (change = %d)\n",
         is_writer ? "on_publication_matched" : "on_subscription_matched", topic, is_writer ? "readers" : "writers",
         (int)current, (int)change);
}

static inline const char *policy_name(uint32_t policy)
{
  static const char *const names[] = {
    "UNKNOWN", "USER_DATA", "DURABILITY", "PRESENTATION", "DEADLINE", "LATENCY_BUDGET", "OWNERSHIP",
    "OWNERSHIP_STRENGTH", "LIVELINESS", "TIME_BASED_FILTER", "PARTITION", "RELIABILITY", "DESTINATION_ORDER",
    "HISTORY", "RESOURCE_LIMITS", "ENTITY_FACTORY", "WRITER_DATA_LIFECYCLE", "READER_DATA_LIFECYCLE", "TOPIC_DATA",
    "GROUP_DATA", "TRANSPORT_PRIORITY", "LIFESPAN", "DURABILITY_SERVICE", "DATA_REPRESENTATION",
  };
  return policy < sizeof names / sizeof *names ? names[policy] : names[0];
}

static inline void print_incompatible(bool is_writer, const char *topic, uint32_t policy)
{
  printf("%s() topic: '%s'  type: 'ShapeType' : %u (%s)\n",
         is_writer ? "on_offered_incompatible_qos" : "on_requested_incompatible_qos", topic, policy,
         policy_name(policy));
}

/* Of a status that counts: a missed deadline, or lost liveliness. */
static inline void print_count(const char *listener, const char *topic, int32_t total, int32_t change)
{
  printf("%s() topic: '%s'  type: 'ShapeType' : (total = %d, change = %d)\n", listener, topic, (int)total,
         (int)change);
}

/* Beyond the contract. */
static inline void print_data_of(const char *topic, const char *user, const char *topic_data, const char *group)
{
  printf("data of a writer of %s: user '%s' topic '%s' group '%s'\n", topic, user, topic_data, group);
}

static inline void print_liveliness(const char *topic, int32_t alive, int32_t not_alive)
{
  printf("on_liveliness_changed() topic: '%s'  type: 'ShapeType' : (alive = %d, not_alive = %d)\n", topic, (int)alive,
         (int)not_alive);
}

#endif
