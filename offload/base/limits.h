/*
 * Every limit of the core on one screen: unit, value, reason. Shells size their memory from these
 * limits and from the board.
 */
#ifndef BY_BASE_LIMITS_H
#define BY_BASE_LIMITS_H

/* Children in one set of an entry (count): each has one bit in a 64-bit bitmap. */
#define BY_CHILDREN_MAX 64u
/* Children of one entry (count), in sets of 64: as many as a table may have ports. */
#define BY_FAMILY_MAX 1024u
/* Ports of one switch or host that runs banyan's code (count): a port index fits a byte with room
 * to spare, and a per-port array fits a few cache lines. */
#define BY_PORTS_MAX 64u
/* Ports of one node in a table (count): planned and simulated fabrics contain larger switches than
 * those that run banyan's code. */
#define BY_TABLE_PORTS_MAX 1024u
/* Jobs in the tables of one node at a time (count). Job ids are 16 bits on the wire and must be
 * below this limit, because they index an array directly. */
#define BY_JOBS_MAX 1024u
/* Jobs with a bandwidth share at one node (count): each has a meter for each port and direction. */
#define BY_SHARES_MAX 64u
/* The unit of shares: a share of 1 (parts). 1/4 is 250,000,000. */
#define BY_SHARE_ONE 1000000000u
/* Trees of one job (count): `tree` is 16 bits on the wire; the limit bounds an array that trees
 * index directly. */
#define BY_TREES_MAX 8192u
/* Standby generations of one job (count), beside the generation in use. */
#define BY_STANDBYS_MAX 4u
/* Entries of one node (count). */
#define BY_ENTRIES_MAX 65536u
/* Relays of one node (count): the outer switch of 1,024 GPUs needs 260,096. */
#define BY_RELAYS_MAX 524288u
/* Ranks of a job (count): `nleaf` is 16 bits on the wire. */
#define BY_RANKS_MAX 65535u
/* Spare payload buffers of one engine (count): more than all rings of a switch hold. */
#define BY_SPARES_MAX 65536u
/* Slots of one entry (count, a power of two): 4096 x 1408 B is 5.8 MB in flight on each tree. */
#define BY_WINDOW_MAX 4096u
/* Payload of one packet (bytes): a jumbo frame of 9000 minus the headers, rounded down to a power
 * of two. */
#define BY_PAYLOAD_MAX 8192u
/* Default payload (bytes): fits an MTU of 1500 with room for options, in whole cache lines. */
#define BY_PAYLOAD_DEFAULT 1408u
/* Length of the name of a node or port, without the terminating zero (bytes). */
#define BY_NAME_MAX 47u
/* A table image (bytes): limits how much an agent stages. */
#define BY_IMAGE_BYTES_MAX (64u << 20)
/* Calls that an endpoint holds at a time (count, a power of two). */
#define BY_CALLS_MAX 64u
/* UDP port of a node (host order); not assigned by IANA. The host of a job may listen on another
 * port, which its table gives. */
#define BY_UDP_PORT 46247u
/* Largest identifier of a VLAN (IEEE 802.1Q: 0 and 4095 are reserved). */
#define BY_VLAN_MAX 4094u
/* TCP port of a node's control channel (host order). */
#define BY_CONTROL_PORT 46248u

#endif
