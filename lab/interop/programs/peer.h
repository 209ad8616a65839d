/* What the programs of all peers share: command line, clock, signals, and the lines they print.
 *
 * A peer is another DDS implementation. Each has one program, `shape`, that publishes or subscribes
 * to ShapeType.idl; `cargo xtask interop` runs it against `isolane pub` and `isolane sub`. Plain C
 * that is also C++, so that the peers differ only in what is the implementation's own.
 *
 * Every program runs until SIGINT or SIGTERM stops it, and flushes each line that it prints.
 *
 * A subscriber prints each sample and each end of an instance, a line each, on standard output.
 *
 * A volatile publisher waits for a reader, then writes; the reader may not know the publisher yet:
 * what comes before it does is lost to a best-effort reader, and repaired for a reliable one. A
 * transient-local publisher writes at once, for all readers that come. At the first signal, it stops writing, waits
 * for acknowledgments, ends the instance, waits for them again, and stays until a second signal.
 * It says on standard error what it does: `waiting for a subscriber`, `publishing`, `N written` (the
 * end of an instance counts too), `leaving` just before its writer is deleted.
 *
 *   shape pub|sub --topic NAME [options]
 *
 *   --domain N            DDS domain (0)
 *   --color NAME          publisher: the instance (BLUE)
 *   --reliable            or --best-effort, the default
 *   --transient-local     else volatile
 *   --keep-all            else KEEP_LAST 1
 *   --first N             publisher: running number of the first sample (0)
 *   --period-ms N         publisher: time between two samples (10)
 *   --seconds N           what each wait, and the run as a whole, may take at most (10)
 *   --payload-bytes N     publisher: length of additional_payload_size (0)
 *   --end HOW             publisher: `delete` the writer (the default), `unregister` or `dispose`
 *                         the instance before
 *   --times               subscriber: print behind each sample when it was taken: nanoseconds of the monotonic
 *                         clock
 *   --lease-ms N          lease to announce, renewed eight times as often (the implementation's own)
 *
 * Exit status: 0 done (reliable publisher: and all samples were acknowledged); 1 not done;
 * 2 wrong usage or a failing call.
 */
#ifndef ISOLANE_INTEROP_PEER_H
#define ISOLANE_INTEROP_PEER_H

#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EXIT_DONE = 0, EXIT_INCOMPLETE = 1, EXIT_USAGE = 2 };

/* How long a publisher waits for acknowledgments, each time, and how long it stays without a second signal. */
enum { ACKNOWLEDGMENT_MS = 3000, STAY_MS = 5000 };

/* Samples an instance's history keeps at most, and instances, where the implementation wants numbers. */
enum { MAX_HISTORY_SAMPLES = 5000, MAX_HISTORY_INSTANCES = 10 };

/* Renewals of a lease within its duration, and so announcements in a row that may get lost. */
enum { RENEWALS_A_LEASE = 8 };

/* How often the programs look for a match or for samples. */
enum { POLL_PERIOD_MS = 1 };

/* The key is a string<128>; larger payloads than this have no cell. */
enum { MAX_COLOR_CHARACTERS = 128, MAX_PAYLOAD_BYTES = 1 << 20 };

/* Every sample's shapesize, as shapes programs have it by default. */
enum { SHAPE_SIZE = 20 };

enum instance_end { END_DELETE, END_UNREGISTER, END_DISPOSE };

struct arguments {
  bool publish;
  const char *topic;
  const char *color;
  uint32_t domain;
  bool reliable;
  bool transient_local;
  bool keep_all;
  bool times;
  uint32_t first;
  uint32_t period_ms;
  uint32_t seconds;
  uint32_t payload_bytes;
  uint32_t lease_ms;
  enum instance_end end;
};

/* Signals received: the first ends the work, the second ends the program. */
static volatile sig_atomic_t stop_signals = 0;

static inline void on_signal(int number)
{
  (void)number;
  stop_signals = stop_signals + 1;
}

static inline uint64_t now_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t now_ms(void)
{
  return now_ns() / 1000000u;
}

/* Ends early when a signal arrives: nanosleep is not restarted. */
static inline void sleep_ms(uint32_t milliseconds)
{
  struct timespec pause;
  pause.tv_sec = milliseconds / 1000u;
  pause.tv_nsec = (long)(milliseconds % 1000u) * 1000000;
  nanosleep(&pause, NULL);
}

/* Says on standard error what a publisher does. */
static inline void say(const char *what)
{
  fprintf(stderr, "%s\n", what);
  fflush(stderr);
}

/* Stays until a second signal, at most STAY_MS, then prints that the publisher leaves. */
static inline void stay_then_leave(void)
{
  const uint64_t end_ms = now_ms() + STAY_MS;
  while (stop_signals < 2 && now_ms() < end_ms)
    sleep_ms(POLL_PERIOD_MS);
  say("leaving");
}

static inline void print_sample(const struct arguments *arguments, const char *color, int32_t x, int32_t y,
                                int32_t size)
{
  printf("%-10s %-10s %03d %03d [%d]", arguments->topic, color, (int)x, (int)y, (int)size);
  if (arguments->times)
    printf(" %llu", (unsigned long long)now_ns());
  printf("\n");
  fflush(stdout);
}

static inline void print_instance_end(const char *topic, const char *color, bool disposed)
{
  printf("%-10s %-10s %s\n", topic, color,
         disposed ? "NOT_ALIVE_DISPOSED_INSTANCE_STATE" : "NOT_ALIVE_NO_WRITERS_INSTANCE_STATE");
  fflush(stdout);
}

static inline void fail_usage(const char *what, const char *value)
{
  fprintf(stderr, "shape: %s%s%s; see peer.h for the options\n", what, value ? ": " : "", value ? value : "");
  exit(EXIT_USAGE);
}

static inline uint32_t parse_number(const char *name, const char *text, uint32_t maximum)
{
  char *rest = NULL;
  const unsigned long value = strtoul(text, &rest, 10);
  if (*text < '0' || *text > '9' || *rest != '\0' || value > maximum)
    fail_usage(name, text);
  return (uint32_t)value;
}

static inline enum instance_end parse_end(const char *text)
{
  if (strcmp(text, "delete") == 0)
    return END_DELETE;
  if (strcmp(text, "unregister") == 0)
    return END_UNREGISTER;
  if (strcmp(text, "dispose") == 0)
    return END_DISPOSE;
  fail_usage("--end takes delete, unregister or dispose", text);
  return END_DELETE;
}

/* Reads the whole command line, or ends the program, and takes over SIGINT and SIGTERM. */
static inline struct arguments parse_arguments(int argc, char **argv)
{
  static const struct option options[] = {
    { "topic", required_argument, NULL, 't' },
    { "color", required_argument, NULL, 'c' },
    { "domain", required_argument, NULL, 'd' },
    { "reliable", no_argument, NULL, 'r' },
    { "best-effort", no_argument, NULL, 'b' },
    { "transient-local", no_argument, NULL, 'l' },
    { "keep-all", no_argument, NULL, 'k' },
    { "first", required_argument, NULL, 'f' },
    { "period-ms", required_argument, NULL, 'p' },
    { "seconds", required_argument, NULL, 's' },
    { "payload-bytes", required_argument, NULL, 'z' },
    { "end", required_argument, NULL, 'e' },
    { "lease-ms", required_argument, NULL, 'm' },
    { "times", no_argument, NULL, 'T' },
    { NULL, 0, NULL, 0 },
  };
  struct arguments arguments;
  memset(&arguments, 0, sizeof arguments);
  arguments.color = "BLUE";
  arguments.period_ms = 10;
  arguments.seconds = 10;

  int option;
  while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
    switch (option) {
    case 't': arguments.topic = optarg; break;
    case 'c': arguments.color = optarg; break;
    case 'd': arguments.domain = parse_number("--domain", optarg, 232); break;
    case 'r': arguments.reliable = true; break;
    case 'b': arguments.reliable = false; break;
    case 'l': arguments.transient_local = true; break;
    case 'k': arguments.keep_all = true; break;
    case 'T': arguments.times = true; break;
    case 'f': arguments.first = parse_number("--first", optarg, 1000000); break;
    case 'p': arguments.period_ms = parse_number("--period-ms", optarg, 60000); break;
    case 's': arguments.seconds = parse_number("--seconds", optarg, 3600); break;
    case 'z': arguments.payload_bytes = parse_number("--payload-bytes", optarg, MAX_PAYLOAD_BYTES); break;
    case 'e': arguments.end = parse_end(optarg); break;
    case 'm': arguments.lease_ms = parse_number("--lease-ms", optarg, 3600000); break;
    default: fail_usage("unknown option or missing value", NULL);
    }
  }
  if (optind + 1 != argc)
    fail_usage("say `pub` or `sub`, once", NULL);
  arguments.publish = strcmp(argv[optind], "pub") == 0;
  if (!arguments.publish && strcmp(argv[optind], "sub") != 0)
    fail_usage("neither `pub` nor `sub`", argv[optind]);
  if (arguments.topic == NULL)
    fail_usage("--topic is missing", NULL);
  if (strlen(arguments.color) > MAX_COLOR_CHARACTERS)
    fail_usage("--color is longer than 128 characters", arguments.color);

  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  return arguments;
}

#endif
