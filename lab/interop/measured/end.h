/* Common part of the programs of systems under test: command line, clocks, and output.
 *
 * Each system has one program, `end`, which is one end of a measurement; isolane's is
 * crates/dds/examples/measured_end. `isolane bench run` starts two of a kind, in two network namespaces and
 * pinned to cores. docs/reference/systems-under-test.md has the contract. Plain C that is also C++, so that the
 * programs differ only in what is the system's own. Samples are handled in the reader's callback, on the thread
 * on which the system calls it. Threads sleep while nothing happens.
 *
 *   end ping|pong|writer|reader [options]
 *
 *   ping    writes RTTPing at a fixed rate, whether or not earlier pings have returned
 *   pong    answers each RTTPing with RTTPong of the same id and nonce
 *   writer  writes Throughput as fast as `write` allows, or at a rate
 *   reader  counts
 *
 *   --version            print name and version, and end
 *   --domain N           DDS domain (0)
 *   --payload-bytes N    serialised size of the message, without encapsulation header (32)
 *   --reliable           RELIABLE, KEEP_ALL, write may block for 1 s; or
 *   --best-effort        BEST_EFFORT, KEEP_LAST 1, the default
 *   --max-samples N      RESOURCE_LIMITS of reliable endpoints (256)
 *   --seconds N          duration (2)
 *   --readers N          writer: readers to wait for (1)
 *   --rate-hz N          pings or samples per second; 0, the default, is full speed, for writers only
 *   --seed N             ping, pong: seed of the nonces
 *   --rounds-file FILE   ping, pong: file for the timestamps
 *   --best               settings that the system's documentation recommends for throughput
 *
 * An end that has found the other one prints `ready`. `ping` and `writer` begin when they read a line. `pong` and
 * `reader` end when their standard input ends. Then an end prints lines of a name and a number:
 *
 *   samples              written and accepted; received
 *   refused              writer: samples that write refused
 *   out_of_order         reader: with an id below that of an earlier sample
 *   elapsed_ns           writer: of writing; reader: from the first sample to the last
 *   cpu_ns, cpu_samples  user and system time of the process, and for how many samples
 *   resident_bytes, threads  of the process
 *
 * The file of `ping` has three 64-bit numbers for each ping: the times when it was due, when `write` was called,
 * and when its pong was received. That of `pong` has two: when the ping was received, and when `write` was called.
 * Times are of CLOCK_MONOTONIC in nanoseconds, little-endian; 0 means never.
 *
 * Exit status: 0 done; 1 the other end was not found, or samples were not acknowledged; 2 wrong usage or a
 * failing call.
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
#include <unistd.h>

enum { EXIT_DONE = 0, EXIT_ALONE = 1, EXIT_USAGE = 2 };

/* The same as in crates/dds/examples/measured_end. */
#define NANOS_PER_MS UINT64_C(1000000)
#define NANOS_PER_S UINT64_C(1000000000)
#define LOOK_NS (10 * NANOS_PER_MS)
#define PATIENCE_NS (10 * NANOS_PER_S)
#define SETTLE_NS (200 * NANOS_PER_MS)
#define LEAD_NS (100 * NANOS_PER_MS)
#define LOST_AFTER_NS (500 * NANOS_PER_MS)
#define ACKNOWLEDGE_S 5
#define DRAIN_NS (300 * NANOS_PER_MS)
#define MAX_BLOCKING_S 1
enum { CPU_STRIDE = 1024 };
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
  uint32_t readers;
  uint32_t rate_hz;
  uint64_t seed;
  const char *rounds_file;
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

/* ---- Conversation with the program that measures. */

static inline void print_ready(void)
{
  printf("ready\n");
  fflush(stdout);
}

/* Waits for a line on standard input; false: the input has ended. */
static inline bool wait_for_line(void)
{
  char byte;
  while (read(STDIN_FILENO, &byte, 1) == 1)
    if (byte == '\n')
      return true;
  return false;
}

/* ---- Timestamps of round trips. The callback's thread and the sending thread write different ones. */

struct rounds {
  uint64_t seed;
  uint64_t *stamps_ns;
  uint32_t samples;
  /* Stamps of a round: 3 for ping, 2 for pong. */
  uint32_t width;
};

static inline struct rounds make_rounds(const struct arguments *arguments)
{
  struct rounds rounds;
  rounds.seed = arguments->seed;
  rounds.samples = arguments->seconds * arguments->rate_hz;
  rounds.width = arguments->role == ROLE_PING ? 3 : 2;
  rounds.stamps_ns = (uint64_t *)calloc((size_t)rounds.samples * rounds.width + 1, sizeof(uint64_t));
  if (rounds.stamps_ns == NULL)
    exit(EXIT_USAGE);
  return rounds;
}

static inline uint64_t mix(uint64_t value)
{
  value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
  return value ^ (value >> 31);
}

/* Nonce of a message, by which it is told from those of other runs. */
static inline uint32_t nonce_of(const struct rounds *rounds, uint32_t id)
{
  return (uint32_t)(mix(rounds->seed ^ mix((uint64_t)id + 1)) >> 32);
}

/* Stamps a message that was received, unless it is of another run or came before. False: do not answer. */
static inline bool stamp_received(const struct rounds *rounds, uint32_t id, uint32_t nonce)
{
  const uint64_t received_ns = now_ns();
  if (id >= rounds->samples || nonce != nonce_of(rounds, id))
    return false;
  uint64_t *stamp = &rounds->stamps_ns[(size_t)id * rounds->width + (rounds->width == 3 ? 2 : 0)];
  if (*stamp != 0)
    return false;
  *stamp = received_ns;
  return true;
}

/* Stamps the answer that is now written. */
static inline void stamp_replied(const struct rounds *rounds, uint32_t id)
{
  rounds->stamps_ns[(size_t)id * rounds->width + 1] = now_ns();
}

static inline void write_rounds(const struct rounds *rounds, const struct arguments *arguments)
{
  const size_t count = (size_t)rounds->samples * rounds->width;
  FILE *file = arguments->rounds_file == NULL ? NULL : fopen(arguments->rounds_file, "wb");
  if (file == NULL || fwrite(rounds->stamps_ns, sizeof(uint64_t), count, file) != count || fclose(file) != 0) {
    perror(arguments->rounds_file == NULL ? "--rounds-file" : arguments->rounds_file);
    exit(EXIT_USAGE);
  }
}

/* All of the pinging end, once the other one is there. `send` writes a ping. */
static inline void run_pings(const struct rounds *rounds, const struct arguments *arguments,
                             void (*send)(void *, uint32_t id, uint32_t nonce), void *context)
{
  print_ready();
  if (!wait_for_line())
    exit(EXIT_ALONE);
  const uint64_t period_ns = NANOS_PER_S / arguments->rate_hz;
  const uint64_t begin_ns = now_ns() + LEAD_NS;
  for (uint32_t id = 0; id < rounds->samples; id++) {
    const uint64_t due_ns = begin_ns + id * period_ns;
    sleep_until_ns(due_ns);
    rounds->stamps_ns[(size_t)id * 3] = due_ns;
    rounds->stamps_ns[(size_t)id * 3 + 1] = now_ns();
    send(context, id, nonce_of(rounds, id));
  }
  sleep_ns(LOST_AFTER_NS);
  write_rounds(rounds, arguments);
}

/* All of the answering end, once the other one is there; its callback answers. */
static inline void run_pongs(const struct rounds *rounds, const struct arguments *arguments)
{
  print_ready();
  while (wait_for_line())
    ;
  write_rounds(rounds, arguments);
}

/* ---- What the writing end does: calls `write`, which says whether the sample was accepted. */

static inline void run_writer(const struct arguments *arguments, bool (*write)(void *, uint32_t), void *context)
{
  struct cpu_meter cpu;
  memset(&cpu, 0, sizeof cpu);
  uint64_t samples = 0, refused = 0;
  print_ready();
  if (!wait_for_line())
    exit(EXIT_ALONE);
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
  printf("refused %" PRIu64 "\n", refused);
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

/* Counts in the callback until standard input ends. */
static inline void run_reader(const struct tally *tally)
{
  print_ready();
  while (wait_for_line())
    ;
  print_tally(tally);
}

/* ---- Waiting for the other end: `matched` tells whether it is there. */

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

/* ---- Command line. */

static inline void fail_usage(const char *what, const char *value)
{
  fprintf(stderr, "end: %s%s%s; see end.h for the options\n", what, value ? ": " : "", value ? value : "");
  exit(EXIT_USAGE);
}

static inline uint64_t parse_number(const char *name, const char *text, uint64_t minimum, uint64_t maximum)
{
  char *rest = NULL;
  const unsigned long long value = strtoull(text, &rest, 10);
  if (*text < '0' || *text > '9' || *rest != '\0' || value < minimum || value > maximum)
    fail_usage(name, text);
  return value;
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
static inline struct arguments parse_arguments(int argc, char **argv, const char *version)
{
  static const struct option options[] = {
    { "domain", required_argument, NULL, 'd' },
    { "payload-bytes", required_argument, NULL, 'p' },
    { "reliable", no_argument, NULL, 'r' },
    { "best-effort", no_argument, NULL, 'b' },
    { "best", no_argument, NULL, 'B' },
    { "max-samples", required_argument, NULL, 'm' },
    { "seconds", required_argument, NULL, 's' },
    { "readers", required_argument, NULL, 'R' },
    { "rate-hz", required_argument, NULL, 'h' },
    { "seed", required_argument, NULL, 'S' },
    { "rounds-file", required_argument, NULL, 'f' },
    { "version", no_argument, NULL, 'v' },
    { NULL, 0, NULL, 0 },
  };
  struct arguments arguments;
  memset(&arguments, 0, sizeof arguments);
  arguments.payload_bytes = 32;
  arguments.max_samples = 256;
  arguments.seconds = 2;
  arguments.readers = 1;

  int option;
  while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
    switch (option) {
    case 'd': arguments.domain = (uint32_t)parse_number("--domain", optarg, 0, 232); break;
    case 'p': arguments.payload_bytes = (uint32_t)parse_number("--payload-bytes", optarg, MIN_BYTES, MAX_BYTES); break;
    case 'r': arguments.reliable = true; break;
    case 'b': arguments.reliable = false; break;
    case 'B': arguments.best = true; break;
    case 'm': arguments.max_samples = (uint32_t)parse_number("--max-samples", optarg, 1, 65535); break;
    case 's': arguments.seconds = (uint32_t)parse_number("--seconds", optarg, 1, 86400); break;
    case 'R': arguments.readers = (uint32_t)parse_number("--readers", optarg, 1, 16); break;
    case 'h': arguments.rate_hz = (uint32_t)parse_number("--rate-hz", optarg, 0, 1000000); break;
    case 'S': arguments.seed = parse_number("--seed", optarg, 0, UINT64_MAX); break;
    case 'f': arguments.rounds_file = optarg; break;
    case 'v': printf("%s\n", version); exit(EXIT_DONE);
    default: fail_usage("unknown option or missing value", NULL);
    }
  }
  if (optind + 1 != argc)
    fail_usage("say `ping`, `pong`, `writer` or `reader`, once", NULL);
  arguments.role = parse_role(argv[optind]);
  if (arguments.rate_hz == 0 && (arguments.role == ROLE_PING || arguments.role == ROLE_PONG))
    fail_usage("round trips need --rate-hz", NULL);
  return arguments;
}

#endif
