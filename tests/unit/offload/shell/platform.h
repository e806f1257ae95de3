/* A platform of memory for the packet loop: frames that wait at ports, and what was sent. Each
 * frame must be freed exactly once. */
#ifndef BY_TESTS_UNIT_OFFLOAD_SHELL_PLATFORM_H
#define BY_TESTS_UNIT_OFFLOAD_SHELL_PLATFORM_H

#include <stddef.h>
#include <stdint.h>

#include "offload/shell/batch.h"
#include "tests/unit/firmware/star.h"

#define HOSTS      4u
#define COUNT      16u
#define FRAME_MAX  256u
#define FRAMES_MAX 8u
#define PARK       4u
#define QUARTER    0x40000000u

struct batch_frame {
    uint32_t bytes;
    uint32_t references;
    uint8_t data[FRAME_MAX];
};

/* The platform: frames that wait at the ports, and what was sent. */
struct batch_platform {
    struct by_engine *engine;
    void *memory;
    struct by_batch batch;
    struct by_parked parked[PARK];
    struct batch_frame *waiting[HOSTS][FRAMES_MAX];
    unsigned waiting_count[HOSTS];
    unsigned alive; /* references to all frames */
    unsigned sent[HOSTS], forwarded, replies, dones;
    struct batch_frame last; /* copy of the last frame forwarded or replied */
    bool is_full;            /* no buffer for a reply */
    unsigned notices;        /* about neighbours; the last one: */
    struct by_shell_neighbour notice;
};

extern const struct star platform_fabric;

/* The operations of the platform; a test may give its batch a changed copy. */
extern const struct by_batch_ops platform_ops;

/* A platform without a table. */
struct batch_platform *platform_open(void);
void platform_load(struct batch_platform *self, const uint8_t *image, size_t bytes);
/* With the table of a star. */
struct batch_platform *platform_star(void);
/* Closes the batch; every frame must then be free. */
void platform_close(struct batch_platform *self);
/* Lets a frame wait at a port. */
struct batch_frame *inject(struct batch_platform *self, unsigned port, size_t bytes);
struct batch_frame *contribute(struct batch_platform *self, unsigned host, uint32_t seq);
/* With the table of one relay; see star_relay_image. */
struct batch_platform *platform_relay(uint32_t share, uint32_t rate);
/* Injects a frame that is to be relayed. */
void relayed(struct batch_platform *self);

/* What the table of a star leaves open. */
enum star_change { LEARNED, BRIDGED };

/* A platform whose table leaves all MAC addresses to ARP; with BRIDGED, port 0 leads to a
 * bridge. */
struct batch_platform *platform_learned(enum star_change change);
/* Host `host` sends an ARP packet from `mac`: an answer to the switch. */
void announce(struct batch_platform *self, unsigned host, const uint8_t mac[BY_MAC_BYTES]);

#endif
