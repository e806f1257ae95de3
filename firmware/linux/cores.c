/* Reads --cores and --workers; see cores.h. Start-up only; main thread. */
#include "firmware/linux/cores.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/say.h"
#include "offload/base/errors.h"

/* Room for a list of cores in a message (bytes). */
#define LIST_BYTES 256u

/* Writes the cores of a set as "0-3,8". */
static void list_text(const cpu_set_t *set, char text[LIST_BYTES])
{
    size_t used = 0;

    text[0] = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE && used + 16 < LIST_BYTES; cpu++) {
        int last = cpu;

        if (!CPU_ISSET((size_t)cpu, set))
            continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET((size_t)last + 1, set))
            last++;
        used += (size_t)snprintf(text + used, LIST_BYTES - used, last > cpu ? "%s%d-%d" : "%s%d",
                                 used > 0 ? "," : "", cpu, last);
        cpu = last;
    }
}

/* Reads a number of at most four digits; returns the rest of the text, or NULL. */
static const char *read_number(const char *text, int *number)
{
    int digits = 0;

    for (*number = 0; isdigit((unsigned char)*text); text++) {
        *number = 10 * *number + (*text - '0');
        if (++digits > 4)
            return NULL;
    }
    return digits > 0 ? text : NULL;
}

static int refuse_text(const char *text)
{
    by_say("--cores '%s': it must be a number of cores, or a list of them such as 2-5,8", text);
    return BY_EINVAL;
}

static int add_core(struct by_switchd_cores *cores, const char *text, int cpu, const cpu_set_t *may)
{
    char list[LIST_BYTES];

    if (cpu >= CPU_SETSIZE || !CPU_ISSET((size_t)cpu, may)) {
        list_text(may, list);
        by_say("--cores %s: core %d is not available to this process, which may use %s", text, cpu, list);
        return BY_ELIMIT;
    }
    for (unsigned i = 0; i < cores->workers; i++)
        if (cores->cpu[i] == cpu) {
            by_say("--cores %s: core %d is given twice; --workers runs several workers on one core", text,
                   cpu);
            return BY_EINVAL;
        }
    if (cores->workers == BY_WORKERS_MAX) {
        by_say("--cores %s: a switch uses at most %u cores", text, BY_WORKERS_MAX);
        return BY_ELIMIT;
    }
    cores->cpu[cores->workers++] = cpu;
    return 0;
}

static int read_list(struct by_switchd_cores *cores, const char *text, const cpu_set_t *may)
{
    const char *at = text;

    for (cores->workers = 0, cores->pinned = true;; at++) {
        int first, last, result;

        if (!(at = read_number(at, &first)))
            return refuse_text(text);
        last = first;
        if (*at == '-' && !(at = read_number(at + 1, &last)))
            return refuse_text(text);
        if (last < first || (*at != ',' && *at != 0))
            return refuse_text(text);
        for (int cpu = first; cpu <= last; cpu++)
            if ((result = add_core(cores, text, cpu, may)) != 0)
                return result;
        if (*at == 0)
            return 0;
        if (at[1] == 0) /* "3,": the list of core 3 */
            return 0;
    }
}

static int read_count(struct by_switchd_cores *cores, int count, uint32_t workers, const cpu_set_t *may)
{
    int most = CPU_COUNT(may);

    if (count == 0 || count > (int)BY_WORKERS_MAX) {
        by_say("--cores %d: a switch uses 1 to %u cores", count, BY_WORKERS_MAX);
        return BY_ELIMIT;
    }
    if (count > most && workers == 0) {
        by_say(
            "--cores %d: this process may use %d; --cores %d uses them, --workers %d lets workers share them",
            count, most, most, count);
        return BY_ELIMIT;
    }
    cores->workers = (unsigned)count;
    return 0;
}

int by_switchd_cores_choose(struct by_switchd_cores *cores, const char *text, uint32_t workers,
                            const cpu_set_t *may)
{
    int spare = CPU_COUNT(may) - 1, count, result = 0;
    const char *end;

    *cores = (struct by_switchd_cores){.workers = spare < 1                     ? 1
                                                  : spare > (int)BY_WORKERS_MAX ? BY_WORKERS_MAX
                                                                                : (unsigned)spare};
    if (text) {
        end = read_number(text, &count);
        result = end && *end == 0 ? read_count(cores, count, workers, may) : read_list(cores, text, may);
    }
    if (result != 0 || workers == 0)
        return result;
    for (unsigned i = cores->workers; i < workers && cores->pinned; i++)
        cores->cpu[i] = cores->cpu[i % cores->workers];
    cores->workers = workers;
    return 0;
}
