/*
 * Starts the switch from the board's settings: memory, engine, ports, agent, control channel. All
 * memory is allocated here, once. If that fails, the reason is logged and the image halts.
 */
#include "firmware/baremetal/cache.h"
#include "firmware/baremetal/clock.h"
#include "firmware/baremetal/fault.h"
#include "firmware/baremetal/hal.h"
#include "firmware/baremetal/interrupt.h"
#include "firmware/baremetal/log.h"
#include "firmware/baremetal/memory.h"
#include "firmware/baremetal/random.h"
#include "firmware/baremetal/reset.h"
#include "firmware/baremetal/settings.h"
#include "firmware/baremetal/switch.h"
#include "firmware/baremetal/watchdog.h"
#include "offload/base/bytes.h"
#include "offload/reduce/reduce.h"
#include "proto/control.pb.h"

/* Minimum time between two repairs of one bank (ns): about one round trip, as in banyan-switchd. */
#define REPAIR_NS 500000u
/* Maximum jobs with a share of their links (count). */
#define SHARES 8u
/* Headers of a frame in addition to a payload, and the minimum size of a buffer (bytes). */
#define FRAME_OVERHEAD (BY_FRAME_HEADER_BYTES + BY_WIRE_HEADER_BYTES)
#define FRAME_LEAST    1600u
/* Buffers besides those in the receive rings (count): a batch, and relays being sent. */
#define BUFFERS_BASE     256u
#define BUFFERS_PER_PORT (BY_RING_MAX + 64u)

/* How long the loop may hang unless the setting watchdog overrides it, and the maximum of that
 * setting (ms). */
#define WATCHDOG_MS     5000u
#define WATCHDOG_MS_MAX 3600000u

_Noreturn void by_main(uint64_t is_at_el2);

static struct by_metal_switch self;
static char switch_name[BY_NAME_MAX + 1] = "switch";

static uint32_t read_payload(void)
{
    uint32_t payload = (uint32_t)by_setting_number(
        "payload-max",
        BY_PAYLOAD_DEFAULT < by_hal.limits.payload_max ? BY_PAYLOAD_DEFAULT : by_hal.limits.payload_max,
        by_hal.limits.payload_max);

    if (payload == 0 || payload % 8 != 0)
        by_fault_say("setting opt/banyan/payload-max: it must be a multiple of 8 above 0");
    return payload;
}

static void open_engine(const struct by_engine_config *config)
{
    size_t bytes = by_engine_size(config);

    if (bytes == 0)
        by_fault_say("the engine does not support these limits: see board.json");
    if (by_engine_init(&self.engine, by_memory_take("the engine", bytes), bytes, config) != 0)
        by_fault_say("the engine does not start");
}

static void open_ports(uint32_t payload)
{
    struct by_virtio device;
    uint32_t frame = FRAME_OVERHEAD + payload;

    while (by_virtio_find(BY_VIRTIO_NET, self.port_count, &device))
        self.port_count++;
    if (self.port_count == 0)
        by_fault_say("no network port: give the machine virtio-net devices");
    if (self.port_count > by_hal.limits.ports)
        by_fault_say("more network ports than the board's limit");
    by_pool_open(&self.pool, (uint16_t)(BUFFERS_BASE + self.port_count * BUFFERS_PER_PORT),
                 frame > FRAME_LEAST ? frame : FRAME_LEAST);
    self.net = by_memory_take("the ports", self.port_count * sizeof(*self.net));
    for (uint32_t i = 0; i < self.port_count; i++) {
        by_virtio_find(BY_VIRTIO_NET, i, &device);
        self.net[i] = by_memory_take("a port", sizeof(**self.net));
        by_net_open(self.net[i], i, &device, &self.pool, self.engine);
    }
}

/*
 * Draws a nonce that differs in each boot: from the setting nonce, the entropy device, and the
 * counter, which continues over a reset that may restore everything else. `*is_sure`: one of the
 * first two is available.
 */
static uint64_t draw_nonce(bool *is_sure)
{
    uint8_t random[BY_RANDOM_BYTES], told[24] = {0}, what[16];
    bool is_told = by_setting_text("nonce", (char *)told, sizeof told);
    struct by_siphash_key key;
    uint64_t nonce;

    *is_sure = by_random_draw(random) || is_told;
    by_siphash_key_read(&key, random);
    by_put64(what, by_clock_ns());
    by_put64(what + 8, by_siphash(&key, told, sizeof told));
    nonce = by_siphash(&key, what, sizeof what);
    return nonce ? nonce : 1;
}

/* Reads the key of the control lines; returns false if there is none and requests are plain. */
static bool read_key(struct by_guard *guard, uint64_t nonce, bool is_sure)
{
    char text[BY_PSK_DIGITS + 8];
    struct by_siphash_key key;

    if (!by_setting_text("psk", text, sizeof text))
        return false;
    if (by_psk_key_read(&key, text) != 0)
        by_fault_say(
            "setting opt/banyan/psk: a key has 32 hexadecimal digits; `banyan keys --psk` makes one");
    if (!is_sure)
        by_fault_say("a pre-shared key requires another nonce at each start: give the machine a virtio-rng "
                     "device, or the setting opt/banyan/nonce");
    by_zero(text, sizeof text);
    by_guard_open(guard, &key, nonce, 0);
    by_log_say("control lines require the pre-shared key", NULL);
    return true;
}

/* Adds the cause of the previous boot's end to the journal. */
static void note_end(const struct by_note *last)
{
    char line[BY_LOG_BYTES];
    struct by_text text;

    by_text_start(&text, line, sizeof line);
    if (last->end == BY_NOTE_HANG) {
        by_text_add(&text, "watchdog: in the previous boot the loop made no progress for ");
        by_text_number(&text, last->value);
        by_text_add(&text, " ms at ");
    } else {
        by_text_add(&text, "fault: the previous boot ended at ");
    }
    by_text_hash(&text, last->at);
    if (last->end == BY_NOTE_EXCEPTION) {
        by_text_add(&text, ", address ");
        by_text_hash(&text, last->other);
        by_text_add(&text, ", syndrome ");
        by_text_hash(&text, last->value);
    }
    by_agent_note(self.agent, line);
    by_log_say(line, NULL);
    if (last->ends < 2)
        return;
    by_text_start(&text, line, sizeof line);
    by_text_number(&text, last->ends);
    by_text_add(&text, " consecutive boots have failed: each waits longer before its reset");
    by_agent_note(self.agent, line);
}

static void open_agent(const struct by_engine_config *engine)
{
    struct by_guard guard;
    bool is_sure;
    uint64_t nonce = draw_nonce(&is_sure);
    struct by_agent_config config = {
        .name = switch_name,
        .software = "banyan " BY_VERSION,
        .boot_nonce = nonce,
        .port_count = self.port_count,
        .slot_count = engine->slot_count_max,
        .payload_max = engine->payload_max,
        .entry_max = engine->entry_count_max,
        .relay_max = engine->relay_count_max,
        .share_max = by_engine_shares(engine->meter_count_max, self.port_count),
        .able = by_Able_ABLE_REPLICATE | by_Able_ABLE_SUM | by_Able_ABLE_DET | by_Able_ABLE_EXACT |
                by_Able_ABLE_STANDBY,
        .board = by_hal.board,
        .image_bytes_max = engine->image_bytes_max,
        .ops = &by_switch_ops,
        .node = &self,
    };
    size_t bytes = by_agent_size(&config);

    self.has_store = by_metal_store_open(&self.store, engine->image_bytes_max);
    if (self.has_store)
        config.saved = by_metal_store_saved(&self.store, &config.saved_bytes);
    if (by_agent_init(&self.agent, by_memory_take("the agent", bytes), bytes, &config) != 0)
        by_fault_say("the agent does not start");
    self.console = by_memory_take("the control channel", sizeof(*self.console));
    if (!by_console_open(self.console, self.agent, read_key(&guard, nonce, is_sure) ? &guard : NULL))
        by_fault_say("no control channel: give the machine a virtio-serial device with a port");
}

static void read_faults(struct by_fault *fault)
{
    fault->loss = (uint32_t)by_setting_number("loss", 0, UINT32_MAX);
    fault->duplicate = (uint32_t)by_setting_number("dup", 0, UINT32_MAX);
    fault->reorder = (uint32_t)by_setting_number("reorder", 0, UINT32_MAX);
    fault->prng.state = by_setting_number("seed", 1, UINT64_MAX);
}

static void open_batch(void)
{
    by_batch_open(&self.batch, &by_switch_batch, &self, self.engine, self.port_count);
    for (uint32_t i = 0; i < self.port_count; i++)
        by_copy(self.batch.port[i].hardware_mac, self.net[i]->mac, BY_MAC_BYTES);
    by_park_open(&self.batch.park, self.parked, BY_PARK_MAX);
    self.batch.timeless = by_setting_number("timeless", 0, 1) != 0;
    read_faults(&self.batch.hold.fault);
}

/* Reads the setting for deliberate faults: at once, or when the processor's counter reaches a
 * time. */
static void read_provoked(void)
{
    self.provoke_ns = by_setting_number("fault-at", 0, UINT32_MAX) * 1000000;
    if (!by_setting_text("fault", self.provoked, sizeof self.provoked))
        self.provoke_ns = 0;
    else if (self.provoke_ns == 0)
        by_fault_provoke(self.provoked);
    if (self.provoke_ns < by_clock_ns())
        self.provoke_ns = 0; /* it was in an earlier boot */
}

static void say_ready(const struct by_engine_config *engine)
{
    struct by_log log;
    struct by_text *text = by_log_start(&log);

    by_text_add(text, "ready, ");
    by_text_number(text, self.port_count);
    by_text_add(text, " ports, ");
    by_text_number(text, engine->slot_count_max);
    by_text_add(text, " slots of ");
    by_text_number(text, engine->payload_max);
    by_text_add(text, " bytes, ");
    by_text_add(text, by_isa_name(engine->isa));
    by_text_add(text, ", board ");
    by_text_add(text, by_hal.board);
    by_log_end(&log);
}

void by_main(uint64_t is_at_el2)
{
    struct by_engine_config engine = {
        .image_bytes_max = by_hal.limits.image_bytes,
        .entry_count_max = by_hal.limits.entries,
        .relay_count_max = by_hal.limits.relays,
        .repair_interval_ns = REPAIR_NS,
        .isa = by_isa_best(),
        .meter_count_max = by_engine_meters(by_hal.limits.ports, SHARES),
        .tx_max = BY_TX_MAX,
    };
    struct by_note last;
    bool has_last;

    by_log_open();
    has_last = by_reset_open(is_at_el2 != 0, &last);
    by_setting_text("name", switch_name, sizeof switch_name);
    by_log_name(switch_name);
    by_log_say("banyan " BY_VERSION " on ", by_hal.board);
    if (by_setting_number("halt", 0, 1))
        by_reset_halt_instead();
    read_provoked();
    if (!by_cache_fits())
        by_fault_say("the processor's cache lines are longer than 64 bytes: raise BY_CACHE_LINE");
    by_memory_open();
    by_interrupt_open();
    by_interrupt_enable(by_hal.timer_interrupt);
    engine.payload_max = (uint16_t)read_payload();
    engine.slot_count_max = (uint32_t)by_setting_number("slots", by_hal.limits.slots, by_hal.limits.slots);
    open_engine(&engine);
    open_ports(engine.payload_max);
    open_batch();
    open_agent(&engine);
    if (has_last)
        note_end(&last);
    by_memory_seal();
    say_ready(&engine);
    by_fault_running();
    by_watchdog_open(by_setting_number("watchdog", WATCHDOG_MS, WATCHDOG_MS_MAX));
    by_switch_run(&self);
}
