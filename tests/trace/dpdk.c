/* The shell of banyan-switchd on DPDK's ring ports, without a clock, with its own buffers, chains
 * and batches. */
#include <stdlib.h>
#include <string.h>

#include "tests/trace/trace.h"
#include "tests/unit/dataplane/memory.h"

static struct by_shell *shell;

void trace_dpdk_open(const uint8_t *image, size_t bytes)
{
    memory_start(NULL);
    shell = memory_shell(TRACE_PORTS);
    if (by_engine_stage(by_shell_engine(shell), image, bytes, NULL) != 0 || by_shell_commit(shell) != 0)
        abort();
}

void trace_dpdk_step(const struct trace_frame *frame, struct trace_out *out)
{
    struct rte_mbuf *sent;

    out->count = 0;
    memory_inject(shell, frame->port, frame->data, frame->bytes);
    by_shell_round(shell);
    for (unsigned port = 0; port < TRACE_PORTS; port++) {
        while ((sent = memory_sent(shell, port)) != NULL) {
            struct trace_frame *to = &out->frame[out->count++];
            const void *data = rte_pktmbuf_read(sent, 0, sent->pkt_len, to->data);

            if (out->count > TRACE_OUT_MAX || !data)
                abort();
            if (data != to->data)
                memcpy(to->data, data, sent->pkt_len);
            to->port = port;
            to->bytes = sent->pkt_len;
            rte_pktmbuf_free(sent);
        }
    }
}

void trace_dpdk_close(void)
{
    by_shell_close(shell);
    memory_stop(NULL);
}
