/* Implements setup.h. */
#include "tests/unit/control/service/controller/setup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "offload/wire/types.h"

void setup_open(struct setup *setup, uint32_t slots)
{
    static const char *const trees[] = {"1 x0: x0>h0 x0>h1 x0>x1 x1>h2 x1>h3", NULL};
    struct by_plan *plan;
    struct by_lower_job job = {.job = 1, .plan_count = 1};
    struct by_problem problem = {0};
    const struct by_plan *plans[1];

    setup->topology = bench_topology("h0 h1 h2 h3 x0* x1*", "h0-x0 h1-x0 h2-x1 h3-x1 x0-x1");
    plan = bench_plan(setup->topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
    plans[0] = plan;
    job.plans = plans;
    assert_int_equal(
        by_lower(setup->topology, &job, 1, &(struct by_lower_options){0}, &setup->lowering, &problem), 0);
    bench_plan_free(plan);
    setup->images = bench_images(setup->lowering);
    for (uint32_t i = 0; i < 2; i++) {
        setup->fake[i] = fake_start(i ? "x1" : "x0", slots, IMAGE_MAX);
        setup->targets[i] = (struct by_push_target){.name = i ? "x1" : "x0",
                                                    .address = setup->fake[i]->address,
                                                    .image = setup->images.bytes[4 + i],
                                                    .bytes = setup->images.size[4 + i]};
    }
}

void setup_close(struct setup *setup)
{
    fake_stop(setup->fake[0]);
    fake_stop(setup->fake[1]);
    bench_images_free(&setup->images);
    by_lowering_free(setup->lowering);
    by_topology_free(setup->topology);
}

void raise_generation(struct setup *setup)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct by_image_job job;

        by_image_job(setup->images.bytes[4 + i], 0, &job);
        job.gen++;
        by_image_put_job(setup->images.bytes[4 + i], 0, &job);
        by_image_seal(setup->images.bytes[4 + i]);
    }
}
