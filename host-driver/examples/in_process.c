/*
 * All ranks of a fabric in one process, without privileges. The argument is the folder that `banyan
 * tables` wrote. Every rank posts before any rank waits, because waiting for one advances all of
 * them.
 */
#include <banyan/banyan.h>
#include <stdio.h>

#define RANKS_MAX 64

static int failed(void)
{
    fprintf(stderr, "in_process: %s\n", banyan_last_error());
    return 1;
}

int main(int argc, char **argv)
{
    struct banyan_context *context[RANKS_MAX];
    struct banyan_comm *comm[RANKS_MAX];
    struct banyan_request *request[RANKS_MAX];
    int64_t value[RANKS_MAX];
    struct banyan_fabric *fabric;
    struct banyan_config config;
    struct banyan_link link;
    uint32_t count = 0;

    if (argc != 2 || banyan_fabric_open(argv[1], &fabric) != BANYAN_OK)
        return failed();
    banyan_config_init(&config);
    config.fabric = fabric;
    for (; count < RANKS_MAX && (config.host = banyan_fabric_host(fabric, count)) != NULL; count++) {
        if (banyan_init(&config, &context[count]) != BANYAN_OK ||
            banyan_comm_create(context[count], 0, &comm[count]) != BANYAN_OK)
            return failed();
        value[count] = count;
        if (banyan_allreduce_init(comm[count], &value[count], &value[count], 1, BANYAN_I64, BANYAN_SUM,
                                  &request[count]) != BANYAN_OK ||
            banyan_post(request[count]) != BANYAN_OK)
            return failed();
    }
    for (uint32_t i = 0; i < count; i++) {
        if (banyan_wait(request[i]) != BANYAN_OK)
            return failed();
        if (value[i] != (int64_t)count * (count - 1) / 2)
            return 1;
    }
    for (uint32_t i = 0; banyan_fabric_link(fabric, i, &link) == BANYAN_OK; i++)
        printf("%s %s -> %s %s: %llu packets, %llu bytes\n", link.from, link.from_port, link.to, link.to_port,
               (unsigned long long)link.packets, (unsigned long long)link.bytes);
    for (uint32_t i = 0; i < count; i++)
        if (banyan_comm_destroy(comm[i]) != BANYAN_OK || banyan_finalize(context[i]) != BANYAN_OK)
            return failed();
    return banyan_fabric_close(fabric) == BANYAN_OK ? 0 : failed();
}
