/* What the compared programs share: command line, clocks, signals, and what they print.
 *
 * Each DDS implementation has one program, `end`, that is one end of a measurement; isolane's is
 * crates/dds/examples/measured_end. `cargo xtask peers` runs two of a kind against each other, in
 * two network namespaces, pinned to cores. Plain C that is also C++, so that the systems differ only in
 * what is the implementation's own. Everywhere samples are handled in the callback of the reader, on
 * the thread on which the implementation makes it, and threads sleep while nothing happens.
 *
 *   end ping|pong|writer|reader [options]
 *
 *   ping    writes RTTPing, waits for RTTPong with the same id and nonce, writes the next at once;
 *           after 300 ms of that, records each round trip for the given seconds. What has not come back after
 *           100 ms is lost, and the next ping leaves.
 *   pong    answers until the ping has gone.
 *   writer  writes Throughput as fast as `write` lets it, or at a rate. What a period finds still
 *           running is not made up for.
 *   reader  counts until the writer has gone.
 *
 *   --domain N           DDS domain (0)
 *   --payload-bytes N    serialised size of the message, without encapsulation header (32)
 *   --reliable           RELIABLE, KEEP_ALL, write may block for 1 s; or
 *   --best-effort        BEST_EFFORT, KEEP_LAST 1, the default
 *   --max-samples N      RESOURCE_LIMITS of the reliable ones (256)
 *   --seconds N          how long is measured (2)
 *   --rate-hz N          writer: samples a second; 0 as fast as it goes, the default
 *   --best               streams: the settings that the implementation documents for throughput, instead of
 *                        its defaults; each program says which
 *   --samples-file FILE  ping: writes all round trips there, in nanoseconds, as 32-bit numbers
 *
 * Printed are lines of a name and a number, once measuring is over:
 *
 *   samples              round trips; written and accepted; received
 *   lost                 ping: without an answer; writer: refused
 *   out_of_order         reader: not after the one before
 *   elapsed_ns           of the measurement; reader: from the first sample to the last
 *   cpu_ns, cpu_samples  writer, reader: user and system time of the process, and of how many samples
 *   resident_bytes, threads  writer, reader: of the process, as /proc/self/status has them
 *
 * Exit status: 0 done; 1 the other end was not found or did not leave, or samples were not
 * acknowledged; 2 wrong usage or a failing call.
 */
#ifndef ISOLANE_PEERS_END_H
#define ISOLANE_PEERS_END_H

#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { EXIT_DONE = 0, EXIT_ALONE = 1, EXIT_USAGE = 2 };

/* The same as in crates/dds/examples/measured_end. */
#define NANOS_PER_MS UINT64_C(1000000)
#define NANOS_PER_S UINT64_C(1000000000)
#define LOOK_NS (10 * NANOS_PER_MS)
#define PATIENCE_NS (10 * NANOS_PER_S)
#define SETTLE_NS (200 * NANOS_PER_MS)
#define GRACE_NS (15 * NANOS_PER_S)
#define WARM_UP_NS (300 * NANOS_PER_MS)
#define LOST_AFTER_NS (100 * NANOS_PER_MS)
#define ACKNOWLEDGE_S 5
#define DRAIN_NS (300 * NANOS_PER_MS)
#define MAX_BLOCKING_S 1
enum { MOST_A_SECOND = 300000, CPU_STRIDE = 1024 };
/* id, nonce, the padding's length. */
enum { MIN_BYTES = 12, MAX_BYTES = 1048576 };

#define PING_TOPIC "RTTPing"
#define PONG_TOPIC "RTTPong"
#define STREAM_TOPIC "Throughput"

enum role { ROLE_PING, ROLE_PONG, ROLE_WRITER, ROLE_READER };

struct arguments {
  enum role role;
  uint32_t domain;
  uint32_t payload_bytes;
  bool reliable;
  bool best;
  uint32_t max_samples;
  uint32_t seconds;
  uint32_t rate_hz;
  const char *samples_file;
};

static inline uint64_t clock_ns(clockid_t clock)
{
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * NANOS_PER_S + (uint64_t)now.tv_nsec;
}

static inline uint64_t now_ns(void)
{
  return clock_ns(CLOCK_MONOTONIC);
}

static inline void sleep_until_ns(uint64_t time_ns)
{
  struct timespec end;
  end.tv_sec = (time_t)(time_ns / NANOS_PER_S);
  end.tv_nsec = (long)(time_ns % NANOS_PER_S);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) != 0)
    ;
}

static inline void sleep_ns(uint64_t length_ns)
{
  sleep_until_ns(now_ns() + length_ns);
}

static inline uint32_t padding_bytes(const struct arguments *arguments)
{
  return arguments->payload_bytes - MIN_BYTES;
}

/* ---- CPU time over a number of samples. Reading it is a system call: now and again will do. */

struct cpu_meter {
  bool begun;
  uint64_t first_samples, first_ns, last_samples, last_ns;
};

static inline void note_cpu(struct cpu_meter *meter, uint64_t samples)
{
  if (meter->begun && samples % CPU_STRIDE != 0)
    return;
  meter->last_samples = samples;
  meter->last_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  if (!meter->begun) {
    meter->begun = true;
    meter->first_samples = samples;
    meter->first_ns = meter->last_ns;
  }
}

static inline void print_cpu(const struct cpu_meter *meter)
{
  printf("cpu_samples %" PRIu64 "\n", meter->last_samples - meter->first_samples);
  printf("cpu_ns %" PRIu64 "\n", meter->last_ns - meter->first_ns);
}

/* Resident memory and threads of this process. */
static inline void print_process(void)
{
  FILE *status = fopen("/proc/self/status", "r");
  char line[256];
  while (status != NULL && fgets(line, sizeof line, status) != NULL) {
    uint64_t number;
    if (sscanf(line, "VmRSS: %" SCNu64, &number) == 1)
      printf("resident_bytes %" PRIu64 "\n", number * 1024);
    if (sscanf(line, "Threads: %" SCNu64, &number) == 1)
      printf("threads %" PRIu64 "\n", number);
  }
  if (status != NULL)
    fclose(status);
}

/* ---- What the pinging end knows. Two threads use it: the one that has the callback, and, when a
 * ping was lost and nothing happens any more, the one that waits. */

struct pings {
  uint32_t id;
  uint64_t sent_ns;
  uint32_t *round_trips_ns;
  uint64_t count, capacity, lost;
  bool recording, over;
};

static inline struct pings make_pings(const struct arguments *arguments)
{
  struct pings pings;
  memset(&pings, 0, sizeof pings);
  pings.capacity = (uint64_t)arguments->seconds * MOST_A_SECOND;
  pings.round_trips_ns = (uint32_t *)malloc((size_t)pings.capacity * sizeof(uint32_t));
  if (pings.round_trips_ns == NULL)
    exit(EXIT_USAGE);
  return pings;
}

/* The id of the next ping; its nonce is the complement. */
static inline uint32_t next_ping(struct pings *pings)
{
  const uint32_t id = __atomic_add_fetch(&pings->id, 1, __ATOMIC_SEQ_CST);
  __atomic_store_n(&pings->sent_ns, now_ns(), __ATOMIC_SEQ_CST);
  return id;
}

/* Takes a pong; false: no ping is to follow, because the time is over, or because this is not the last
 * ping's, but late, and counted as lost already. */
static inline bool take_pong(struct pings *pings, uint32_t id, uint32_t nonce)
{
  if (id != __atomic_load_n(&pings->id, __ATOMIC_SEQ_CST) || nonce != ~id)
    return false;
  if (__atomic_load_n(&pings->over, __ATOMIC_SEQ_CST))
    return false;
  const uint64_t round_trip_ns = now_ns() - __atomic_load_n(&pings->sent_ns, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&pings->recording, __ATOMIC_SEQ_CST) && pings->count < pings->capacity)
    pings->round_trips_ns[pings->count++] =
      round_trip_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)round_trip_ns;
  return true;
}

/* Waits while pings and pongs go on; sends again, by `send`, when one was lost. */
static inline void exchange(struct pings *pings, uint64_t length_ns, void (*send)(void *), void *context)
{
  const uint64_t end_ns = now_ns() + length_ns;
  while (now_ns() < end_ns) {
    const uint64_t left_ns = end_ns - now_ns();
    sleep_ns(left_ns < LOST_AFTER_NS ? left_ns : LOST_AFTER_NS);
    const uint64_t sent_ns = __atomic_load_n(&pings->sent_ns, __ATOMIC_SEQ_CST);
    const uint64_t now = now_ns();
    if (now > sent_ns && now - sent_ns >= LOST_AFTER_NS) {
      pings->lost += pings->recording;
      send(context);
    }
  }
}

/* All of the pinging end, once the other one is there. */
static inline void run_pings(struct pings *pings, const struct arguments *arguments, void (*send)(void *),
                             void *context)
{
  send(context);
  exchange(pings, WARM_UP_NS, send, context);
  __atomic_store_n(&pings->recording, true, __ATOMIC_SEQ_CST);
  const uint64_t begin_ns = now_ns();
  exchange(pings, arguments->seconds * NANOS_PER_S, send, context);
  __atomic_store_n(&pings->recording, false, __ATOMIC_SEQ_CST);
  const uint64_t elapsed_ns = now_ns() - begin_ns;
  /* No callback writes any more when the writer is deleted. */
  __atomic_store_n(&pings->over, true, __ATOMIC_SEQ_CST);
  sleep_ns(SETTLE_NS);
  printf("samples %" PRIu64 "\n", pings->count);
  printf("lost %" PRIu64 "\n", pings->lost);
  printf("elapsed_ns %" PRIu64 "\n", elapsed_ns);
  if (arguments->samples_file == NULL)
    return;
  FILE *file = fopen(arguments->samples_file, "wb");
  if (file == NULL || fwrite(pings->round_trips_ns, sizeof(uint32_t), pings->count, file) != pings->count ||
      fclose(file) != 0) {
    perror(arguments->samples_file);
    exit(EXIT_USAGE);
  }
}

/* ---- What the writing end does: calls `write`, which says whether the sample was accepted. */

static inline void run_writer(const struct arguments *arguments, bool (*write)(void *, uint32_t), void *context)
{
  struct cpu_meter cpu;
  memset(&cpu, 0, sizeof cpu);
  uint64_t samples = 0, refused = 0;
  const uint64_t begin_ns = now_ns();
  const uint64_t end_ns = begin_ns + arguments->seconds * NANOS_PER_S;
  const uint64_t period_ns = arguments->rate_hz == 0 ? 0 : NANOS_PER_S / arguments->rate_hz;
  uint64_t now;
  while ((now = now_ns()) < end_ns) {
    if (period_ns != 0)
      sleep_until_ns((now / period_ns + 1) * period_ns);
    note_cpu(&cpu, samples);
    if (write(context, (uint32_t)samples))
      samples++;
    else
      refused++;
  }
  printf("samples %" PRIu64 "\n", samples);
  printf("lost %" PRIu64 "\n", refused);
  printf("elapsed_ns %" PRIu64 "\n", now_ns() - begin_ns);
  print_cpu(&cpu);
  print_process();
}

/* ---- What the reading end counts, in its callback. */

struct tally {
  uint64_t samples, out_of_order, first_ns, last_ns;
  uint32_t next_id;
  struct cpu_meter cpu;
};

static inline void count_sample(struct tally *tally, uint32_t id)
{
  tally->last_ns = now_ns();
  if (tally->samples == 0)
    tally->first_ns = tally->last_ns;
  note_cpu(&tally->cpu, tally->samples);
  tally->samples++;
  tally->out_of_order += id < tally->next_id;
  tally->next_id = id + 1;
}

static inline void print_tally(const struct tally *tally)
{
  printf("samples %" PRIu64 "\n", tally->samples);
  printf("out_of_order %" PRIu64 "\n", tally->out_of_order);
  printf("elapsed_ns %" PRIu64 "\n", tally->last_ns - tally->first_ns);
  print_cpu(&tally->cpu);
  print_process();
}

/* ---- Waiting for the other end to come and to go: `matched` says whether it is there. */

static inline bool wait_for_peer(bool (*matched)(void *), void *context)
{
  const uint64_t end_ns = now_ns() + PATIENCE_NS;
  while (!matched(context)) {
    if (now_ns() >= end_ns) {
      fprintf(stderr, "end: the other end was not found\n");
      return false;
    }
    sleep_ns(LOOK_NS);
  }
  sleep_ns(SETTLE_NS);
  return true;
}

static inline bool wait_for_departure(const struct arguments *arguments, bool (*matched)(void *), void *context)
{
  const uint64_t end_ns = now_ns() + arguments->seconds * NANOS_PER_S + GRACE_NS;
  while (matched(context)) {
    if (now_ns() >= end_ns) {
      fprintf(stderr, "end: the other end has not left\n");
      return false;
    }
    sleep_ns(LOOK_NS);
  }
  return true;
}

/* ---- Command line. */

static inline void fail_usage(const char *what, const char *value)
{
  fprintf(stderr, "end: %s%s%s; see end.h for the options\n", what, value ? ": " : "", value ? value : "");
  exit(EXIT_USAGE);
}

static inline uint32_t parse_number(const char *name, const char *text, uint32_t minimum, uint32_t maximum)
{
  char *rest = NULL;
  const unsigned long value = strtoul(text, &rest, 10);
  if (*text < '0' || *text > '9' || *rest != '\0' || value < minimum || value > maximum)
    fail_usage(name, text);
  return (uint32_t)value;
}

static inline enum role parse_role(const char *text)
{
  static const char *const names[] = { "ping", "pong", "writer", "reader" };
  for (int role = 0; role < 4; role++)
    if (strcmp(text, names[role]) == 0)
      return (enum role)role;
  fail_usage("no role", text);
  return ROLE_PING;
}

/* Reads the whole command line, or ends the program. */
static inline struct arguments parse_arguments(int argc, char **argv)
{
  static const struct option options[] = {
    { "domain", required_argument, NULL, 'd' },
    { "payload-bytes", required_argument, NULL, 'p' },
    { "reliable", no_argument, NULL, 'r' },
    { "best-effort", no_argument, NULL, 'b' },
    { "best", no_argument, NULL, 'B' },
    { "max-samples", required_argument, NULL, 'm' },
    { "seconds", required_argument, NULL, 's' },
    { "rate-hz", required_argument, NULL, 'h' },
    { "samples-file", required_argument, NULL, 'f' },
    { NULL, 0, NULL, 0 },
  };
  struct arguments arguments;
  memset(&arguments, 0, sizeof arguments);
  arguments.payload_bytes = 32;
  arguments.max_samples = 256;
  arguments.seconds = 2;

  int option;
  while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
    switch (option) {
    case 'd': arguments.domain = parse_number("--domain", optarg, 0, 232); break;
    case 'p': arguments.payload_bytes = parse_number("--payload-bytes", optarg, MIN_BYTES, MAX_BYTES); break;
    case 'r': arguments.reliable = true; break;
    case 'b': arguments.reliable = false; break;
    case 'B': arguments.best = true; break;
    case 'm': arguments.max_samples = parse_number("--max-samples", optarg, 1, 65535); break;
    case 's': arguments.seconds = parse_number("--seconds", optarg, 1, 3600); break;
    case 'h': arguments.rate_hz = parse_number("--rate-hz", optarg, 0, 1000000); break;
    case 'f': arguments.samples_file = optarg; break;
    default: fail_usage("unknown option or missing value", NULL);
    }
  }
  if (optind + 1 != argc)
    fail_usage("say `ping`, `pong`, `writer` or `reader`, once", NULL);
  arguments.role = parse_role(argv[optind]);
  return arguments;
}

#endif
