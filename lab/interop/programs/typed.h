/* What the programs `typed` of all peers share: command line, values, and the lines they print.
 *
 * `cargo xtask types` runs each against the example `typed` of the package isolane. A program has any number of
 * endpoints of the type in Reading.idl, each with its topic:
 *
 *   typed ENDPOINT...     ENDPOINT is w:TOPIC:R or r:TOPIC:R, a writer or a reader; R is 1 or 2, the
 *                         representation (XCDR1, XCDR2) that it offers or requests, or 12 for both
 *
 * A writer writes SAMPLES samples of one instance once it is matched, and disposes the instance. The program runs
 * until it gets SIGINT, or for RUN_MS. It prints, each line flushed:
 *
 *   TOPIC impossible WHY       the implementation refuses to create the endpoint
 *   TOPIC incompatible POLICY  an endpoint with an incompatible policy was met; POLICY is DATA_REPRESENTATION or other
 *   TOPIC matched
 *   TOPIC written              all was written
 *   TOPIC sample VALUE         see print_sample
 *   TOPIC disposed             the end of the instance
 *   TOPIC lost, TOPIC rejected the status of that name has changed
 */
#ifndef ISOLANE_INTEROP_TYPED_H
#define ISOLANE_INTEROP_TYPED_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLES = 3, RUN_MS = 60000, LOOK_MS = 5, MAX_ENDPOINTS = 64, EXIT_USAGE = 2 };
enum { HISTORY_SAMPLES = 16 };

struct endpoint {
  bool is_writer, takes_xcdr1, takes_xcdr2;
  char topic[64];
  /* What was printed already. */
  bool matched, incompatible, lost, rejected;
};

static volatile sig_atomic_t is_stopped = 0;

static inline void on_signal(int number)
{
  (void)number;
  is_stopped = 1;
}

static inline void take_over_signals(void)
{
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

static inline void sleep_ms(long milliseconds)
{
  struct timespec pause;
  pause.tv_sec = milliseconds / 1000;
  pause.tv_nsec = milliseconds % 1000 * 1000000;
  nanosleep(&pause, NULL);
}

static inline struct endpoint parse_endpoint(const char *text)
{
  struct endpoint endpoint;
  memset(&endpoint, 0, sizeof endpoint);
  char kind = 0, representation[3] = "";
  if (sscanf(text, "%c:%63[^:]:%2[12]", &kind, endpoint.topic, representation) != 3 || (kind != 'w' && kind != 'r')) {
    fprintf(stderr, "typed: not an endpoint: %s; see typed.h\n", text);
    exit(EXIT_USAGE);
  }
  endpoint.is_writer = kind == 'w';
  endpoint.takes_xcdr1 = strchr(representation, '1') != NULL;
  endpoint.takes_xcdr2 = strchr(representation, '2') != NULL;
  return endpoint;
}

static inline void say(const struct endpoint *endpoint, const char *what, const char *more)
{
  printf("%s %s%s%s\n", endpoint->topic, what, *more ? " " : "", more);
  fflush(stdout);
}

/* Says it once. */
static inline void say_once(const struct endpoint *endpoint, bool *said, bool now, const char *what)
{
  if (now && !*said)
    say(endpoint, what, "");
  *said |= now;
}

static inline void say_incompatible(struct endpoint *endpoint, uint32_t count, bool is_representation)
{
  if (count > 0 && !endpoint->incompatible)
    say(endpoint, "incompatible", is_representation ? "DATA_REPRESENTATION" : "other");
  endpoint->incompatible |= count > 0;
}

/* The values of the samples: `flag`, `value` and `stamp` follow the sample's number. */
static const uint64_t FIRST_STAMP = 0xffffffff00000000u;
static const double FIRST_VALUE = 0.125;
static const double VALUES[] = { 0.5, -2.25 }, OTHER_VALUES[] = { 1.5 };
static const uint64_t COUNTS[] = { 1, 0x8000000000000000u };
static const char *const NOTES[] = { "", "north" };
static const struct {
  uint8_t number;
  uint64_t serial;
  const char *label;
  const double *values;
  uint32_t length;
} KEY_PART = { 3, 0x0102030405060708u, "axle", VALUES, 2 },
  PARTS[] = { { 1, 11, "a", NULL, 0 }, { 2, 22, "bcd", OTHER_VALUES, 1 } };

#endif
