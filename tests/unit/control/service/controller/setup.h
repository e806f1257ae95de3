/* Two switches without packets (fake.h) and their images, for the tests of pushes and sessions. */
#ifndef BY_TEST_CONTROLLER_SETUP_H
#define BY_TEST_CONTROLLER_SETUP_H

#include "control/service/controller/push.h"
#include "tests/unit/control/service/controller/fake.h"
#include "tests/unit/control/tables/bench.h"

#define IMAGE_MAX 65536u
#define TIMEOUT   2000u /* of calls (ms) */

/* Two switches with two hosts each, and their images. */
struct setup {
    struct by_topology *topology;
    struct by_lowering *lowering;
    struct bench_images images;
    struct controller_fake *fake[2];
    struct by_push_target targets[2];
};

/* Starts the switches with this number of slots. */
void setup_open(struct setup *setup, uint32_t slots);
void setup_close(struct setup *setup);
/* Moves the same tables to the next generation. */
void raise_generation(struct setup *setup);

#endif
