/*
 * The classifier: what runs at the driver for each frame that arrives, before the kernel has made a
 * packet of it, and decides which way it takes.
 *
 * A frame's way through it, from top to bottom of this file:
 *
 *   1. parse: Ethernet, up to two VLAN tags, IPv4 (no fragment), UDP, an RTPS message. What is anything
 *      else is not ours and goes the kernel's way, untouched, as without a program; likewise what is
 *      for a port or address that is not registered. (Where [protect.others] asks for it, all that is
 *      not ours together has a budget.)
 *   2. find its flow: an array from the port to the first flow's slot, and from there a short chain
 *      of flows that share the port: groups, or sources.
 *   3. charge the flow's budget. Beyond it a frame is dropped here, where it costs least, or demoted:
 *      to the lowest lane of the queue, and no longer critical.
 *   4. recycle: all lanes of a queue take their buffers from one fill ring. When few are left, frames
 *      of lanes that are not critical are dropped before they cost one.
 *   5. charge the interface's budget, of which a share is reserved for critical flows.
 *   6. redirect it to the lane's AF_XDP socket. A lane without a socket on this queue leaves the frame
 *      to the kernel, whose sockets receive on the same ports.
 *
 * Budgets come before the interface's, so that a flood beyond a flow's own budget costs others
 * nothing. A frame that the interface then refuses has used up its place in the flow's budget.
 *
 * Each frame is counted once, under its flow and the reason for what became of it. One thing cannot be
 * known here: whether the socket's ring had room. The kernel decides that afterwards and counts it in
 * the socket's statistics.
 *
 * What it never does: read a clock on a frame's way (that would cost as much as all the rest; budgets
 * are filled up by timers or from user space, and stamps are made only if requested), search a hash
 * table, allocate, wait, or loop longer than the bounds in layout.h. It keeps no packet and changes
 * none. Several processors may run it at the same time: what is counted is counted atomically.
 *
 * src/classifier/reference_model.rs decides the same in Rust, and tests/reference_model compares them.
 */
#include "layout.h"

/* Set before the program is loaded; the verifier removes what they switch off. */
const volatile u32 STAMPS SECTION(".rodata");
const volatile u32 TRACES SECTION(".rodata");

struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(map_flags, BPF_F_MMAPABLE);
	MAP_NUMBER(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct shared);
} shared SECTION(".maps");

/* The lanes' sockets, by queue and lane: a frame given to a socket of another queue would be lost. */
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_XSKMAP);
	MAP_NUMBER(max_entries, MAX_QUEUES *MAX_LANES);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
} lanes SECTION(".maps");

/* A timer for each server. A map that is mapped into memory cannot hold them. */
struct server_timer {
	struct bpf_timer timer;
};
struct {
	MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
	MAP_NUMBER(max_entries, SERVERS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct server_timer);
} timers SECTION(".maps");

INLINE struct shared *look_up_shared(void)
{
	u32 only = 0;
	return bpf_map_lookup_elem(&shared, &only);
}

/* Counts from several processors: none is lost. */
INLINE void increment(u64 *counter)
{
	__sync_fetch_and_add(counter, 1);
}

#define READ(field) (*(const volatile typeof(field) *)&(field))
#define WRITE(field, value) (*(volatile typeof(field) *)&(field) = (value))

/* ---- 1. parse ---- */

#define ETHER_TYPE_ARP 0x0806
#define ETHER_TYPE_IPV4 0x0800
#define ETHER_TYPE_IPV6 0x86dd
#define CUSTOMER_TAG 0x8100
#define SERVICE_TAG 0x88a8
#define MAX_VLAN_TAGS 2
#define PROTOCOL_UDP 17
#define MORE_FRAGMENTS_AND_OFFSET 0x3fff

struct ethernet {
	u8 addresses[12];
};
/* The ethertype, or a tag's kind and control. */
struct tag {
	u16 kind;
	u16 control;
};
struct ipv4 {
	u8 version_and_length;
	u8 service;
	u16 total_length;
	u16 identification;
	u16 fragment;
	u8 time_to_live;
	u8 protocol;
	u16 checksum;
	u32 source;
	u32 destination;
};
struct udp {
	u16 source_port;
	u16 destination_port;
	u16 length;
	u16 checksum;
};

/* BPF runs in the host's byte order, and hosts we know are little-endian. */
#define HOST(number) __builtin_bswap16(number)
/*
 * The same for numbers that become a place in memory. Verifiers before Linux 6.18 (6.12 is Debian 13's) hold
 * what comes out of the swap for any number at all, and believe it to have 16 bits only where a mask says
 * so. The compiler, which knows, must not see that the mask changes nothing.
 */
INLINE u32 host_bounded(u16 number)
{
	u64 swapped = HOST(number);

	asm volatile("%0 &= 0xffff" : "+r"(swapped));
	return swapped;
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "RTPS_MAGIC and HOST assume it");
#define RTPS_MAGIC 0x53505452 /* "RTPS" */

/* Key of a frame; valid if it was found to be an RTPS message. */
struct address {
	u32 source;
	u32 destination;
	u16 port;
};

/* No reason against it: the frame is an RTPS message. */
#define IS_RTPS OTHERS_REASONS

/* Skips the Ethernet header and tags: where what follows begins, and of what type it is. */
INLINE void *parse_ethernet(void *data, void *end, u16 *ether_type)
{
	struct tag *tag = data + sizeof(struct ethernet);

#pragma unroll
	for (int tags = 0; tags <= MAX_VLAN_TAGS; tags++) {
		if ((void *)tag + sizeof(tag->kind) > end)
			return NULL;
		*ether_type = HOST(tag->kind);
		if (*ether_type != CUSTOMER_TAG && *ether_type != SERVICE_TAG)
			break;
		if (tags < MAX_VLAN_TAGS)
			tag++;
	}
	return &tag->control;
}

INLINE enum others_reason parse_udp(struct udp *udp, u32 available, void *end,
				    struct address *address)
{
	if (available < sizeof(*udp) || (void *)(udp + 1) > end)
		return MALFORMED_UDP;
	u32 length = HOST(udp->length);
	if (length < sizeof(*udp) || length > available)
		return MALFORMED_UDP;

	u32 *magic = (void *)(udp + 1);
	if (length < sizeof(*udp) + sizeof(*magic) || (void *)(magic + 1) > end)
		return NOT_RTPS;
	if (*magic != RTPS_MAGIC)
		return NOT_RTPS;
	address->port = host_bounded(udp->destination_port);
	return IS_RTPS;
}

INLINE enum others_reason parse_ipv4(struct ipv4 *ip, void *end, struct address *address)
{
	if ((void *)(ip + 1) > end || ip->version_and_length >> 4 != 4)
		return MALFORMED_IPV4;
	/* Options are skipped. */
	u32 header_length = (ip->version_and_length & 0x0f) * 4;
	u32 total_length = host_bounded(ip->total_length);
	if (header_length < sizeof(*ip) || total_length < header_length)
		return MALFORMED_IPV4;
	if ((void *)ip + total_length > end)
		return MALFORMED_IPV4;

	if (HOST(ip->fragment) & MORE_FRAGMENTS_AND_OFFSET)
		return FRAGMENT;
	if (ip->protocol != PROTOCOL_UDP)
		return OTHER_PROTOCOL;
	address->source = ip->source;
	address->destination = ip->destination;
	return parse_udp((void *)ip + header_length, total_length - header_length, end, address);
}

/* Checksums are the receiver's to check: they cost a pass over the payload, and flows a look at it. */
INLINE enum others_reason parse(void *data, void *end, struct address *address)
{
	u16 ether_type;
	void *inside = parse_ethernet(data, end, &ether_type);

	if (!inside)
		return RUNT;
	switch (ether_type) {
	case ETHER_TYPE_IPV4:
		return parse_ipv4(inside, end, address);
	case ETHER_TYPE_IPV6:
		return IPV6;
	case ETHER_TYPE_ARP:
		return ARP;
	default:
		return OTHER_ETHER_TYPE;
	}
}

/* ---- 2. find the flow ---- */

/*
 * The slot of the frame's flow, MAX_FLOWS if there is none. User space keeps flows with a source in
 * front of those without. It may change the chain at the same time: a frame that misses its flow then
 * goes the kernel's way, to the socket that has the same port, and the bound holds in any case.
 *
 * A slot that is given back and taken again while a frame is between two of these reads may be taken
 * for the flow that it was: by an interruption anywhere, and where loads change places (not on x86)
 * also without one. The port is read first and written last, so that takes two changes within the
 * time of one frame. Then that frame is counted, charged and handed on under the slot's new flow:
 * a datagram too many for a lane, whose reader tells it by its content. Nothing else comes of it,
 * as all values read are bounded here, and no frame pays for a barrier.
 */
INLINE u32 find_flow(struct shared *shared, const struct address *address, enum others_reason *reason)
{
	u8 place = READ(shared->first[address->port]);

	*reason = place ? UNKNOWN_ADDRESS : UNKNOWN_PORT;
	for (int i = 0; i < MAX_FLOWS_PER_PORT && place; i++) {
		u32 slot = (place - 1) % MAX_FLOWS;
		struct flow *flow = &shared->flows[slot];
		if (READ(flow->port) == address->port && flow->destination == address->destination &&
		    (!flow->has_source || flow->source == address->source))
			return slot;
		place = READ(flow->next);
	}
	return MAX_FLOWS;
}

/* ---- 3. to 5. charge and recycle ---- */

/*
 * Takes a place in a budget; false if none is left. Looking first keeps a flood from writing to the
 * cache line, and keeps `left` from falling further than one below zero a processor.
 */
INLINE int take(struct server *server)
{
	if (READ(server->left) <= 0)
		return 0;
	return __sync_fetch_and_add(&server->left, -1) > 0;
}

/* Whether the interface's budget has a place for the frame. */
INLINE int take_of_interface(struct shared *shared, struct row *row, int is_critical)
{
	struct server *reserve = &shared->servers[INTERFACE_RESERVE];

	if (!shared->settings.limits_interface)
		return 1;
	if (is_critical && take(reserve))
		return 1;
	if (take(&shared->servers[INTERFACE_SHARED]))
		return 1;
	if (is_critical || shared->settings.enforces_reserve || !take(reserve))
		return 0;
	increment(&row->touched_reserve);
	return 1;
}

/*
 * The lowest lane that has a socket on the queue, unless it is above the flow's own: that would be no
 * demotion. What goes to the kernel stays there.
 */
INLINE u32 lowest_lane(u8 bound, u32 own)
{
#pragma unroll
	for (u32 lane = 0; lane < MAX_LANES; lane++)
		if (bound & 1 << lane)
			return own < MAX_LANES && lane <= own ? lane : KERNEL;
	return KERNEL;
}

/* Whether the queue has so few buffers left that the lane's frames are dropped. */
INLINE int is_recycled(struct shared *shared, struct row *row, struct queue *queue, u32 lane)
{
	s64 low_water = READ(queue->low_water[lane % MAX_LANES]);
	s64 free = READ(queue->filled) - READ(queue->taken);

	if (low_water < 0 || free > low_water)
		return 0;
	if (shared->settings.enforces_recycling)
		return 1;
	increment(&row->touched_fill);
	return 0;
}

/* ---- 6. redirect ---- */

/* Writes the time in front of the frame, if frames are to be stamped. */
INLINE void stamp(struct xdp_md *frame, struct row *row)
{
	if (!STAMPS)
		return;
	if (bpf_xdp_adjust_meta(frame, -(int)sizeof(u64))) {
		increment(&row->unstamped);
		return;
	}
	u64 *time = (void *)(u64)frame->data_meta;
	if ((void *)(time + 1) <= (void *)(u64)frame->data)
		*time = bpf_ktime_get_ns();
}

/* Leaves the verdict where a test finds it. */
INLINE void trace(struct shared *shared, u32 action, u32 reason, u32 place, u32 lane)
{
	if (!TRACES)
		return;
	shared->settings.last[0] = action;
	shared->settings.last[1] = reason;
	shared->settings.last[2] = place;
	shared->settings.last[3] = lane;
}

/* A frame of no flow: passed, and charged if there is a budget for such. */
INLINE int decide_others(struct shared *shared, struct row *row, enum others_reason reason)
{
	enum xdp_action action = XDP_PASS;

	if (shared->settings.limits_others && reason != ARP && !take(&shared->servers[OTHERS])) {
		reason = OVER_OTHERS;
		action = XDP_DROP;
	}
	increment(&row->others[reason]);
	trace(shared, action, reason, 0, KERNEL);
	return action;
}

/* A frame of a flow: its reason, and the lane it takes. */
INLINE enum flow_reason decide(struct shared *shared, struct row *row, struct queue *queue, u32 slot,
			       u32 *lane)
{
	struct flow *flow = &shared->flows[slot];
	u8 bound = queue ? READ(queue->bound) : 0;
	int is_critical = flow->is_critical;
	enum flow_reason reason = IN_LANE;
	enum flow_reason passed = NO_LANE;

	*lane = flow->lane;
	if (flow->over != UNLIMITED && !take(&shared->servers[slot])) {
		if (flow->over == DROP)
			return OVER_BUDGET;
		*lane = lowest_lane(bound, *lane);
		is_critical = 0;
		reason = DEMOTED;
		passed = DEMOTED_TO_KERNEL;
	} else if (*lane == KERNEL) {
		passed = TO_KERNEL;
	}
	if (!(bound & 1 << *lane))
		*lane = KERNEL;
	else if (queue && is_recycled(shared, row, queue, *lane))
		return RECYCLED;
	if (!take_of_interface(shared, row, is_critical))
		return OVER_INTERFACE;
	return *lane == KERNEL ? passed : reason;
}

SECTION("xdp")
int isolane(struct xdp_md *frame)
{
	struct shared *shared = look_up_shared();
	if (!shared)
		return XDP_PASS;
	u32 number = frame->rx_queue_index;
	struct row *row = &shared->rows[number % MAX_QUEUES];
	struct queue *queue = number < MAX_QUEUES ? &shared->queues[number] : NULL;

	struct address address;
	enum others_reason other =
		parse((void *)(u64)frame->data, (void *)(u64)frame->data_end, &address);
	if (other != IS_RTPS)
		return decide_others(shared, row, other);
	u32 slot = find_flow(shared, &address, &other);
	if (slot >= MAX_FLOWS)
		return decide_others(shared, row, other);

	u32 lane;
	enum xdp_action action;
	enum flow_reason reason = decide(shared, row, queue, slot, &lane);
	switch (reason) {
	case IN_LANE:
	case DEMOTED:
		stamp(frame, row);
		action = bpf_redirect_map(&lanes, number * MAX_LANES + lane, XDP_PASS);
		/* The socket is gone, and its bit was not cleared yet: the owner died, or is about to tell. */
		if (action != XDP_REDIRECT)
			reason = reason == DEMOTED ? DEMOTED_TO_KERNEL : NO_LANE;
		else if (queue)
			increment(&queue->taken);
		break;
	case OVER_BUDGET:
	case OVER_INTERFACE:
	case RECYCLED:
		action = XDP_DROP;
		break;
	default:
		action = XDP_PASS;
	}
	increment(&row->flows[slot][reason]);
	trace(shared, action, reason, slot + 1, lane);
	return action;
}

/* ---- budgets are filled up, off the frames' way ---- */

/*
 * A server's timer: fills it up and falls due again a period after it was due, not after it ran. One
 * that comes more than a period late starts afresh: what was missed is not caught up on.
 */
static int replenish(void *map, u32 *number, struct server_timer *own)
{
	struct shared *shared = look_up_shared();
	if (!shared || *number >= SERVERS)
		return 0;
	struct server *server = &shared->servers[*number];
	u64 period_ns = READ(server->period_ns);
	if (!period_ns)
		return 0;

	WRITE(server->left, READ(server->capacity));
	u64 now_ns = bpf_ktime_get_ns();
	u64 next_ns = READ(server->next_ns) + period_ns;
	if (next_ns <= now_ns)
		next_ns = now_ns + period_ns;
	WRITE(server->next_ns, next_ns);
	bpf_timer_start(&own->timer, next_ns - now_ns, 0);
	return 0;
}

/*
 * Starts a server's timer, or starts it anew. User space runs this once, by BPF_PROG_TEST_RUN, with a
 * frame whose first four bytes are the server's number; it is attached to nothing.
 */
SECTION("xdp")
int isolane_start(struct xdp_md *frame)
{
	u32 *number = (void *)(u64)frame->data;
	if ((void *)(number + 1) > (void *)(u64)frame->data_end)
		return XDP_ABORTED;
	u32 key = *number;
	struct shared *shared = look_up_shared();
	struct server_timer *own = bpf_map_lookup_elem(&timers, &key);
	if (!shared || !own || key >= SERVERS)
		return XDP_ABORTED;

	struct server *server = &shared->servers[key];
	u64 period_ns = READ(server->period_ns);
	WRITE(server->next_ns, bpf_ktime_get_ns() + period_ns);
	/* Fails for a timer that was there already, which is as well. */
	bpf_timer_init(&own->timer, &timers, CLOCK_MONOTONIC);
	if (bpf_timer_set_callback(&own->timer, replenish) ||
	    bpf_timer_start(&own->timer, period_ns, 0))
		return XDP_ABORTED;
	return XDP_PASS;
}

/* Timers are for programs under the GPL only; the kernel knows this licence as compatible. */
const char LICENSE[] SECTION("license") = "Dual MIT/GPL";
