/* Plain UDP sockets as one end of a measurement: the floor below every system over sockets. Usage: ../end.h.
 *
 * A datagram is the message of ../Message.idl in XCDR1, without encapsulation header. Ends find each other by a call
 * to a multicast group, which is answered; everything else is unicast. A thread receives; it stamps, answers or counts.
 * Nothing is repeated, so only best effort can be measured.
 */
#include "../end.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <pthread.h>
#include <sys/socket.h>

enum { FIRST_PORT = 7650, HELLO_BYTES = 1 };
#define GROUP "239.255.0.77"
static const char CALL[HELLO_BYTES] = { '?' }, ANSWER[HELLO_BYTES] = { '!' };

static int must(int result, const char *what)
{
  if (result < 0) {
    perror(what);
    exit(EXIT_USAGE);
  }
  return result;
}

struct end {
  const struct arguments *arguments;
  int socket;
  struct sockaddr_in peer;
  bool has_peer;
  uint32_t *message;
  struct rounds rounds;
  struct tally tally;
};

/* Address of the first interface that is up and no loopback. */
static struct in_addr interface_address(void)
{
  struct ifaddrs *all = NULL;
  must(getifaddrs(&all), "getifaddrs");
  struct in_addr found = { htonl(INADDR_ANY) };
  for (struct ifaddrs *one = all; one != NULL; one = one->ifa_next)
    if (one->ifa_addr != NULL && one->ifa_addr->sa_family == AF_INET && (one->ifa_flags & IFF_UP) &&
        !(one->ifa_flags & IFF_LOOPBACK)) {
      found = ((struct sockaddr_in *)(void *)one->ifa_addr)->sin_addr;
      break;
    }
  freeifaddrs(all);
  return found;
}

static struct sockaddr_in address_of(const struct end *end, struct in_addr host)
{
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr = host;
  address.sin_port = htons((uint16_t)(FIRST_PORT + end->arguments->domain));
  return address;
}

static void open_socket(struct end *end)
{
  const struct ip_mreq group = { { inet_addr(GROUP) }, interface_address() };
  const struct sockaddr_in any = address_of(end, (struct in_addr){ htonl(INADDR_ANY) });
  const unsigned char no_loop = 0;
  end->socket = must(socket(AF_INET, SOCK_DGRAM, 0), "socket");
  must(bind(end->socket, (const struct sockaddr *)&any, sizeof any), "bind");
  must(setsockopt(end->socket, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group), "join the group");
  must(setsockopt(end->socket, IPPROTO_IP, IP_MULTICAST_IF, &group.imr_interface, sizeof group.imr_interface), "group");
  must(setsockopt(end->socket, IPPROTO_IP, IP_MULTICAST_LOOP, &no_loop, sizeof no_loop), "group");
}

static bool send_message(struct end *end, uint32_t id, uint32_t nonce)
{
  end->message[0] = id;
  end->message[1] = nonce;
  const size_t bytes = end->arguments->payload_bytes;
  return sendto(end->socket, end->message, bytes, 0, (const struct sockaddr *)&end->peer, sizeof end->peer) >= 0;
}

static void use(struct end *end, uint32_t id, uint32_t nonce)
{
  switch (end->arguments->role) {
  case ROLE_PING: stamp_received(&end->rounds, id, nonce); break;
  case ROLE_PONG:
    if (stamp_received(&end->rounds, id, nonce)) {
      stamp_replied(&end->rounds, id);
      send_message(end, id, nonce);
    }
    break;
  default: count_sample(&end->tally, id);
  }
}

static void *receive(void *context)
{
  struct end *end = context;
  static uint32_t buffer[16384];
  for (;;) {
    struct sockaddr_in from;
    socklen_t length = sizeof from;
    const ssize_t bytes = recvfrom(end->socket, buffer, sizeof buffer, 0, (struct sockaddr *)&from, &length);
    if (bytes < 0)
      continue;
    if (bytes != HELLO_BYTES) {
      if (bytes == (ssize_t)end->arguments->payload_bytes)
        use(end, buffer[0], buffer[1]);
      continue;
    }
    /* The other end may have joined the group after this end's last call. */
    if (memcmp(buffer, CALL, HELLO_BYTES) == 0)
      sendto(end->socket, ANSWER, HELLO_BYTES, 0, (const struct sockaddr *)&from, length);
    if (!__atomic_load_n(&end->has_peer, __ATOMIC_ACQUIRE)) {
      end->peer = from;
      __atomic_store_n(&end->has_peer, true, __ATOMIC_RELEASE);
    }
  }
  return NULL;
}

static bool has_peer(void *context)
{
  struct end *end = context;
  const struct sockaddr_in group = address_of(end, (struct in_addr){ inet_addr(GROUP) });
  must((int)sendto(end->socket, CALL, HELLO_BYTES, 0, (const struct sockaddr *)&group, sizeof group), "hello");
  return __atomic_load_n(&end->has_peer, __ATOMIC_ACQUIRE);
}

static void send_ping(void *context, uint32_t id, uint32_t nonce)
{
  send_message(context, id, nonce);
}

static bool write_sample(void *context, uint32_t id)
{
  return send_message(context, id, 0);
}

int main(int argc, char **argv)
{
  const struct arguments arguments = parse_arguments(argc, argv, "plain UDP");
  if (arguments.reliable || arguments.payload_bytes > 65000)
    fail_usage("plain UDP is best effort, with up to 65,000 bytes", NULL);
  if (arguments.readers > 1)
    fail_usage("plain UDP has one reader", NULL);
  struct end end;
  memset(&end, 0, sizeof end);
  end.arguments = &arguments;
  end.message = (uint32_t *)calloc(arguments.payload_bytes, 1);
  end.message[2] = padding_bytes(&arguments);
  end.rounds = make_rounds(&arguments);
  open_socket(&end);
  pthread_t thread;
  must(-pthread_create(&thread, NULL, receive, &end), "thread");
  if (!wait_for_peer(has_peer, &end))
    return EXIT_ALONE;
  switch (arguments.role) {
  case ROLE_PING: run_pings(&end.rounds, &arguments, send_ping, &end); break;
  case ROLE_PONG: run_pongs(&end.rounds, &arguments); break;
  case ROLE_WRITER:
    run_writer(&arguments, write_sample, &end);
    sleep_ns(DRAIN_NS);
    break;
  case ROLE_READER: run_reader(&end.tally); break;
  }
  return EXIT_DONE;
}
