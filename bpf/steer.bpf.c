//go:build ignore

// SPDX-License-Identifier: GPL-2.0

/*
 * The steering program: which packets of a NIC queue go to the XSK bound to that queue, and why the others do not.
 *
 * A packet is ours when protocol, destination address and destination port are all in the map `services`, and its UDP header
 * is right behind the fixed header of IPv4 or IPv6. Everything else is XDP_PASS, and so is ours when no XSK is
 * there, so that the host's own traffic and a dead owner's packets reach the kernel. No byte of a packet is ever changed. Integers are read byte by byte: packets have no alignment, and both
 * endians' objects come from this one text.
 */

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* Why a packet ended; the index of `verdicts`. reason.go names them; append only, since old readers index by number. */
enum reason {
	REASON_REDIRECTED, /* to the XSK, with an arrival stamp */
	REASON_REDIRECTED_UNSTAMPED, /* to the XSK; the driver has no room for metadata */
	REASON_NOT_IP, /* ARP, LLDP, ...: not an IP EtherType */
	REASON_IPV6, /* IPv6 to an IPv4-mapped address: no packet on a link may have one, and it would pass for IPv4 */
	REASON_VLAN, /* tagged once or more */
	REASON_SHORT, /* ends inside a header that it announces */
	REASON_BAD_VERSION, /* EtherType says IPv4 or IPv6, the header does not */
	REASON_IP_OPTIONS, /* ihl is not 5 */
	REASON_FRAGMENT, /* first, middle or last; of IPv6, with the fragment header right behind the fixed one */
	REASON_NOT_UDP,
	REASON_BAD_LENGTH, /* the lengths in the headers contradict each other or the packet */
	REASON_NO_SERVICE, /* UDP, for somebody else */
	REASON_TOO_LONG, /* ours, but longer than a frame holds: the kernel's socket may serve it */
	REASON_NO_SOCKET, /* ours, but no XSK is registered for this queue */
	REASON_EXTENSION, /* IPv6: an extension header is between the fixed one and what it carries */
	REASON_JUMBOGRAM, /* IPv6: its length is in a hop-by-hop option, not in the fixed header */
	REASON_OTHER_QUEUE, /* ours, but on a queue that is not among its service's: the kernel's socket may serve it */
	REASON_COUNT,
};

enum {
	ETHER_SIZE = 14,
	IPV4_SIZE = 20,
	IPV6_SIZE = 40, /* of the fixed header */
	UDP_SIZE = 8,
	PROTOCOL_UDP = 17,
};

/* What an IPv6 header says is next, when it is an extension header (RFC 8200, section 4; RFC 7045, section 4). */
enum {
	NEXT_HOP_BY_HOP = 0,
	NEXT_ROUTING = 43,
	NEXT_FRAGMENT = 44,
	NEXT_ESP = 50,
	NEXT_AUTHENTICATION = 51,
	NEXT_DESTINATION = 60,
	NEXT_MOBILITY = 135,
	NEXT_HIP = 139,
	NEXT_SHIM6 = 140,
};

/* Where the parts of a service's value stand. A queue's number has 12 bits: more than an XSKMAP of ours has entries. */
enum {
	SERVICE_FIRST_SHIFT = 8,
	SERVICE_COUNT_SHIFT = 20,
	SERVICE_QUEUE_MASK = 0xfff,
};

/* IPv4 addresses are written IPv4-mapped (::ffff:a.b.c.d). */
struct service_key {
	__u8 address[16];
	__u8 port[2]; /* big endian, as on the wire */
	__u8 protocol;
	__u8 reserved; /* zero */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, struct service_key);
	__type(value, __u32); /* flags that the program does not look at, first queue, number of queues; 0 queues = any */
} services SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 256);
	__type(key, __u32); /* receive queue of the NIC */
	__type(value, __u32); /* descriptor of the XSK */
} xsks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, REASON_COUNT);
	__type(key, enum reason);
	__type(value, __u64);
} verdicts SEC(".maps");

/* The longest packet, from the Ethernet header on, that a frame holds; set by the loader. */
volatile const __u32 packet_size_max = 1784;

static __always_inline __u16 read16(const __u8 *p)
{
	return (__u16)p[0] << 8 | p[1];
}

/* What a packet that is not IP is. `type` is its EtherType. */
static __always_inline enum reason not_ip(__u16 type)
{
	switch (type) {
	case 0x8100: /* 802.1Q */
	case 0x88a8: /* 802.1ad */
	case 0x9100: /* the older QinQ tag */
		return REASON_VLAN;
	}
	return REASON_NOT_IP;
}

/* Writes the arrival time before the packet. It must come last: bpf_xdp_adjust_meta invalidates every packet pointer. */
static __always_inline enum reason stamp(struct xdp_md *ctx)
{
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(__u64)))
		return REASON_REDIRECTED_UNSTAMPED;
	__u64 *meta = (void *)(long)ctx->data_meta;
	if ((void *)(meta + 1) > (void *)(long)ctx->data)
		return REASON_REDIRECTED_UNSTAMPED;
	*meta = bpf_ktime_get_ns();
	return REASON_REDIRECTED;
}

/* The one lookup: a packet whose headers are all there and in order. */
static __always_inline enum reason match(struct xdp_md *ctx, const struct service_key *key, __u32 size)
{
	const __u32 *service = bpf_map_lookup_elem(&services, key);

	if (!service)
		return REASON_NO_SERVICE;
	/* Several processes may share the program, each with queues of its own: the socket of another one would drop it. */
	__u32 count = *service >> SERVICE_COUNT_SHIFT;
	if (count && ctx->rx_queue_index - (*service >> SERVICE_FIRST_SHIFT & SERVICE_QUEUE_MASK) >= count)
		return REASON_OTHER_QUEUE;
	if (size > packet_size_max)
		return REASON_TOO_LONG;
	/* The return value tells an empty slot from a socket; the redirect itself happens after the program's return,
	 * so the stamp may still follow. */
	if (bpf_redirect_map(&xsks, ctx->rx_queue_index, XDP_PASS) != XDP_REDIRECT)
		return REASON_NO_SOCKET;
	return stamp(ctx);
}

static __always_inline enum reason steer_ipv4(struct xdp_md *ctx, const __u8 *data, const __u8 *end)
{
	const __u8 *ip = data + ETHER_SIZE, *udp = ip + IPV4_SIZE;
	struct service_key key = { .protocol = PROTOCOL_UDP };

	if (udp > end)
		return REASON_SHORT;
	if (ip[0] >> 4 != 4)
		return REASON_BAD_VERSION;
	if ((ip[0] & 0x0f) != IPV4_SIZE / 4)
		return REASON_IP_OPTIONS;
	if (read16(ip + 6) & 0x3fff) /* offset or more-fragments; don't-fragment is fine */
		return REASON_FRAGMENT;
	if (ip[9] != PROTOCOL_UDP)
		return REASON_NOT_UDP;
	if (udp + UDP_SIZE > end)
		return REASON_SHORT;
	__u32 size = end - data;
	__u32 ip_size = read16(ip + 2);
	__u32 udp_size = read16(udp + 4);
	/* A packet may be longer than its headers say (Ethernet pads to 60 bytes), never shorter. */
	if (udp_size < UDP_SIZE || udp_size + IPV4_SIZE > ip_size || ip_size + ETHER_SIZE > size)
		return REASON_BAD_LENGTH;
	key.address[10] = 0xff;
	key.address[11] = 0xff;
	__builtin_memcpy(&key.address[12], ip + 16, 4);
	__builtin_memcpy(key.port, udp + 2, 2);
	return match(ctx, &key, size);
}

/* What an IPv6 packet is that has no UDP right behind its fixed header. `payload` is the length in that. */
static __always_inline enum reason not_udp(__u8 next, __u32 payload)
{
	switch (next) {
	case NEXT_HOP_BY_HOP:
		return payload ? REASON_EXTENSION : REASON_JUMBOGRAM; /* RFC 2675, section 3 */
	case NEXT_FRAGMENT:
		return REASON_FRAGMENT;
	case NEXT_ROUTING:
	case NEXT_ESP:
	case NEXT_AUTHENTICATION:
	case NEXT_DESTINATION:
	case NEXT_MOBILITY:
	case NEXT_HIP:
	case NEXT_SHIM6:
		return REASON_EXTENSION;
	}
	return REASON_NOT_UDP;
}

/* Whether the first twelve bytes of an address are those of ::ffff:0:0/96. */
static __always_inline int mapped(const __u8 *address)
{
	__u8 bits = address[10] ^ 0xff;

	bits |= address[11] ^ 0xff;
	for (int i = 0; i < 10; i++)
		bits |= address[i];
	return !bits;
}

static __always_inline enum reason steer_ipv6(struct xdp_md *ctx, const __u8 *data, const __u8 *end)
{
	const __u8 *ip = data + ETHER_SIZE, *udp = ip + IPV6_SIZE;
	struct service_key key = { .protocol = PROTOCOL_UDP };

	if (udp > end)
		return REASON_SHORT;
	if (ip[0] >> 4 != 6)
		return REASON_BAD_VERSION;
	__u32 payload = read16(ip + 4);
	if (ip[6] != PROTOCOL_UDP)
		return not_udp(ip[6], payload);
	if (udp + UDP_SIZE > end)
		return REASON_SHORT;
	__u32 size = end - data;
	__u32 udp_size = read16(udp + 4);
	if (udp_size < UDP_SIZE || udp_size > payload || payload + IPV6_SIZE + ETHER_SIZE > size)
		return REASON_BAD_LENGTH;
	if (mapped(ip + 24))
		return REASON_IPV6;
	__builtin_memcpy(key.address, ip + 24, 16);
	__builtin_memcpy(key.port, udp + 2, 2);
	return match(ctx, &key, size);
}

static __always_inline enum reason steer(struct xdp_md *ctx)
{
	const __u8 *data = (void *)(long)ctx->data;
	const __u8 *end = (void *)(long)ctx->data_end;

	if (data + ETHER_SIZE > end)
		return REASON_SHORT;
	__u16 type = read16(data + 12);
	switch (type) {
	case 0x0800:
		return steer_ipv4(ctx, data, end);
	case 0x86dd:
		return steer_ipv6(ctx, data, end);
	}
	return not_ip(type);
}

/* The one wrapper: every verdict is counted here, by its reason, and nowhere else. */
SEC("xdp")
int stillwater_xdp(struct xdp_md *ctx)
{
	enum reason reason = steer(ctx);
	__u64 *count = bpf_map_lookup_elem(&verdicts, &reason);

	if (count)
		(*count)++; /* per CPU, and XDP of one CPU does not nest: no atomic needed */
	return reason <= REASON_REDIRECTED_UNSTAMPED ? XDP_REDIRECT : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
