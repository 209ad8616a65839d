/*
 * The kernel's interface, as far as the classifier uses it. Written out here rather than included,
 * so that the object depends on the compiler and on nothing else, and is the same bytes wherever it
 * is built. All of it is stable user-space interface (linux/bpf.h).
 */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define NULL ((void *)0)

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

/* What a program says of a frame. */
enum xdp_action { XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, XDP_REDIRECT };

/* What it is given: the first five fields are positions and numbers, no pointers, to the compiler. */
struct xdp_md {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
	u32 egress_ifindex;
};

struct bpf_timer {
	u64 opaque[2];
} __attribute__((aligned(8)));

/* A map is described by the types of the members of a variable in section .maps. */
#define MAP_NUMBER(name, value) int(*name)[value]
#define MAP_TYPE(name, type) typeof(type) *name

enum { BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_XSKMAP = 17 };
enum { BPF_F_MMAPABLE = 1 << 10 };
enum { CLOCK_MONOTONIC = 1 };

/* Helpers, by number. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static long (*const bpf_redirect_map)(void *map, u64 key, u64 flags) = (void *)51;
static long (*const bpf_xdp_adjust_meta)(struct xdp_md *frame, int delta) = (void *)54;
static long (*const bpf_timer_init)(struct bpf_timer *timer, void *map, u64 flags) = (void *)169;
static long (*const bpf_timer_set_callback)(struct bpf_timer *timer, void *callback) = (void *)170;
static long (*const bpf_timer_start)(struct bpf_timer *timer, u64 after_ns, u64 flags) = (void *)171;
