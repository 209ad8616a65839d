/*
 * What the classifier and user space share: one value of one map, which user space has mapped into
 * its memory. No process makes a system call to read a counter, to change a budget, or to say how many
 * buffers are free. The same layout, field by field, is src/classifier/shared_memory.rs; both sides assert
 * the sizes.
 *
 * Who writes what: configuration (settings, flows, ports, queues but for `taken`) is user space's;
 * counters and `taken` are the program's; a server's `left` is counted down by the program and filled
 * up by the replenisher. All numbers are read and written whole.
 */
#pragma once

#include "kernel.h"

#define MAX_FLOWS 64
#define MAX_FLOWS_PER_PORT 16
#define MAX_QUEUES 8
#define MAX_LANES 8
#define PORTS 65536
#define CACHE_LINE 64

/* A lane that is none: the kernel's way. */
#define KERNEL MAX_LANES

/* What became of a frame of no flow, and why. All but the last go the kernel's way, untouched. */
enum others_reason {
	RUNT,             /* shorter than its Ethernet header and tags */
	OTHER_ETHER_TYPE, /* neither IP nor ARP; a third VLAN tag is one, too */
	ARP,              /* never charged: without it our own lanes reach no host */
	IPV6,             /* flows are IPv4 only */
	MALFORMED_IPV4,   /* lengths that contradict each other, or no version 4 */
	FRAGMENT,         /* also the first: only the kernel puts them together */
	OTHER_PROTOCOL,   /* not UDP */
	MALFORMED_UDP,    /* lengths that contradict each other */
	NOT_RTPS,         /* another protocol's datagram */
	UNKNOWN_PORT,     /* not registered */
	UNKNOWN_ADDRESS,  /* the port is registered, for other addresses or sources */
	OVER_OTHERS,      /* dropped: beyond the budget of everything that is not ours */
	OTHERS_REASONS
};

/* What became of a frame of a flow, and why. */
enum flow_reason {
	IN_LANE,           /* handed to its lane's socket */
	DEMOTED,           /* over budget: handed to the lowest lane's socket */
	NO_LANE,           /* passed: no socket is bound for its lane on this queue */
	DEMOTED_TO_KERNEL, /* passed: over budget, and no lane below its own is bound */
	TO_KERNEL,         /* passed: that is where the flow goes */
	OVER_BUDGET,       /* dropped: the flow's budget is used up */
	OVER_INTERFACE,    /* dropped: the interface's is, or what is left of it is reserved */
	RECYCLED,          /* dropped: so few buffers are free that they are kept for other lanes */
	FLOW_REASONS
};

/* What becomes of frames beyond a flow's budget. */
enum over { UNLIMITED, DROP, DEMOTE };

/*
 * One flow; its slot is its place in the table. The port is cleared before anything else changes and
 * written last, so that a frame on its way along the chain passes by an entry that is half written, or
 * another port's by now. See find_flow for what it may still see.
 */
struct flow {
	u32 destination; /* as in the header */
	u32 source;      /* likewise; of consequence only if has_source */
	u16 port;        /* host byte order; 0: no flow */
	u8 has_source;
	u8 lane; /* 0 to 7, or KERNEL */
	u8 is_critical;
	u8 over;
	u8 next; /* the next flow of the same port: slot + 1, 0 is the end */
	u8 unused;
};

/*
 * A deferrable server: of `capacity` frames in each period, `left` may still pass. It has a separate
 * cache line, as flows of different queues are counted on different processors.
 */
struct server {
	s64 left;
	s64 capacity;
	u64 period_ns; /* 0: never replenished */
	u64 next_ns;   /* when, on CLOCK_MONOTONIC; kept by the replenisher */
} __attribute__((aligned(CACHE_LINE)));

/* Servers: one a flow, then these. */
enum {
	INTERFACE_SHARED = MAX_FLOWS, /* what all flows may have */
	INTERFACE_RESERVE,            /* what only critical flows have in addition */
	OTHERS,                       /* what is not ours */
	SERVERS
};

/* A receive queue with lanes. */
struct queue {
	u64 filled;               /* `taken` plus the entries of the fill ring, when user space last looked */
	s64 low_water[MAX_LANES]; /* a lane's frames are dropped at so few free entries; negative: never */
	u8 bound;                 /* a bit for each lane that has a socket here */
	u8 unused[7];
	u64 taken __attribute__((aligned(CACHE_LINE))); /* frames handed to sockets */
} __attribute__((aligned(CACHE_LINE)));

/*
 * Counters, a row for each queue (modulo MAX_QUEUES), so that queues served by different processors
 * do not fight for a cache line. Each frame is counted once in `others` or `flows`.
 */
struct row {
	u64 others[16];
	u64 flows[MAX_FLOWS][FLOW_REASONS];
	u64 touched_fill;    /* frames that went on with so few free entries: recycling not enforced */
	u64 touched_reserve; /* frames not critical that took from the reserve: reserve not enforced */
	u64 unstamped;       /* frames whose stamp the driver had no room for */
} __attribute__((aligned(CACHE_LINE)));

/* Switches; 0 is off. */
struct settings {
	u8 limits_interface;
	u8 limits_others;
	u8 enforces_recycling;
	u8 enforces_reserve;
	u8 unused[4];
	/* The last verdict, if TRACES: action, reason, slot + 1, lane; a byte each. */
	u8 last[8];
} __attribute__((aligned(CACHE_LINE)));

struct shared {
	struct settings settings;
	struct queue queues[MAX_QUEUES];
	struct flow flows[MAX_FLOWS];
	struct server servers[SERVERS];
	struct row rows[MAX_QUEUES];
	u8 first[PORTS]; /* the first flow of a port (host byte order): slot + 1, 0 is none */
};

_Static_assert(FLOW_REASONS == 8 && OTHERS_REASONS <= 16, "rows have room for all reasons");
_Static_assert(sizeof(struct settings) == 64, "settings, as in layout.rs");
_Static_assert(sizeof(struct queue) == 192, "queue, as in layout.rs");
_Static_assert(sizeof(struct flow) == 16, "flow, as in layout.rs");
_Static_assert(sizeof(struct server) == 64, "server, as in layout.rs");
_Static_assert(sizeof(struct row) == 4288, "row, as in layout.rs");
_Static_assert(sizeof(struct shared) == 64 + 8 * 192 + 64 * 16 + 67 * 64 + 8 * 4288 + 65536,
	       "shared, as in layout.rs");
