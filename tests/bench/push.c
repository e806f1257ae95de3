/*
 * The time to push tables to many switches: the image of every switch in a folder goes to as many
 * agents, each behind its own UNIX socket; then those of a second folder, as the difference from
 * the first, and whole; with all switches at a time and one after another, near and 10 ms away.
 *   bench-push FOLDER CHANGED
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "control/base/alloc.h"
#include "control/service/controller/push.h"
#include "control/tables/file.h"
#include "offload/table/image.h"
#include "tests/unit/control/service/controller/fake.h"

#define SWITCHES_MAX 1024u
/* A remote or slow switch, for the last rows (microseconds for each request). */
#define LATE_US 10000

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static uint8_t *read_image(const char *folder, const char *file, size_t *bytes)
{
    struct by_problem problem = {0};
    uint8_t *image;
    char path[4096];

    snprintf(path, sizeof path, "%.3000s/%.255s", folder, file);
    if (by_image_file_read(path, &image, bytes, &problem) != 0) {
        fprintf(stderr, "bench-push: %s: %s\n", path, problem.text);
        exit(3);
    }
    return image;
}

/* Reads the switches' images of a folder, in the order of their names; returns the count. */
static uint32_t read_folder(const char *folder, struct by_push_target *targets)
{
    struct dirent **entries;
    int files = scandir(folder, &entries, NULL, alphasort);
    uint32_t count = 0;

    for (int i = 0; i < files; i++) {
        const char *dot = strstr(entries[i]->d_name, ".table");
        struct by_image_header header;
        uint8_t *image;
        size_t bytes;

        if (dot && dot[6] == 0 && count < SWITCHES_MAX) {
            image = read_image(folder, entries[i]->d_name, &bytes);
            by_image_header(image, &header);
            if (header.kind == BY_NODE_SWITCH)
                targets[count++] = (struct by_push_target){
                    .name = by_copy_text(header.name), .image = image, .bytes = bytes};
            else
                free(image);
        }
        free(entries[i]);
    }
    free(files >= 0 ? entries : NULL);
    return count;
}

/* One row: `base` is what the switches have, or NULL to push whole tables. */
static bool push(const char *what, struct by_push_target *targets, const struct by_push_target *base,
                 uint32_t count, uint32_t at_once)
{
    const struct by_session_options options = {.timeout_ms = 60000, .at_once = at_once};
    struct by_problem problem = {0};
    uint64_t sent = 0, bytes = 0;
    double start;

    for (uint32_t i = 0; i < count; i++) {
        targets[i].base = base ? base[i].image : NULL;
        targets[i].base_bytes = base ? base[i].bytes : 0;
    }
    start = now();
    if (by_push(targets, count, &options, &problem) != 0) {
        fprintf(stderr, "bench-push: %s\n", problem.text);
        return false;
    }
    start = now() - start;
    for (uint32_t i = 0; i < count; i++) {
        sent += targets[i].sent;
        bytes += targets[i].bytes;
    }
    printf("%-44s %8u %14llu %14llu %8.4f %9.3f\n", what, count, (unsigned long long)bytes,
           (unsigned long long)sent, (double)sent / (double)bytes, start);
    return true;
}

int main(int argc, char **argv)
{
    struct by_push_target *first = by_alloc(SWITCHES_MAX, sizeof(*first)),
                          *second = by_alloc(SWITCHES_MAX, sizeof(*second));
    struct controller_fake *fakes[SWITCHES_MAX];
    uint32_t count, changed, differ = 0;
    bool done;

    if (argc != 3) {
        fprintf(stderr, "usage: bench-push FOLDER CHANGED\n");
        return 2;
    }
    count = read_folder(argv[1], first);
    changed = read_folder(argv[2], second);
    if (count == 0 || changed != count) {
        fprintf(stderr, "bench-push: %u and %u tables of switches in the two folders\n", count, changed);
        return 2;
    }
    for (uint32_t i = 0; i < count; i++) {
        fakes[i] = fake_start(first[i].name, 1u << 24, BY_IMAGE_BYTES_MAX / 16);
        first[i].address = second[i].address = fakes[i]->address;
        differ +=
            first[i].bytes != second[i].bytes || memcmp(first[i].image, second[i].image, first[i].bytes) != 0;
    }
    printf("%-44s %8s %14s %14s %8s %9s\n", "tables", "switches", "bytes", "sent", "ratio", "seconds");
    done = push("whole", first, NULL, count, 0) && push("what differs", second, first, count, 0) &&
           push("what differs, one switch after another", first, second, count, 1) &&
           push("whole again", second, NULL, count, 0) &&
           push("whole, one switch after another", first, NULL, count, 1);
    for (uint32_t i = 0; i < count; i++)
        fakes[i]->late_us = LATE_US;
    done = done && push("what differs, 10 ms away", second, first, count, 0) &&
           push("the same, one switch after another", first, second, count, 1);
    printf("%u of %u tables differ\n", differ, count);
    for (uint32_t i = 0; i < count; i++) {
        fake_stop(fakes[i]);
        free((char *)(uintptr_t)first[i].name);
        free((char *)(uintptr_t)second[i].name);
        free((uint8_t *)(uintptr_t)first[i].image);
        free((uint8_t *)(uintptr_t)second[i].image);
    }
    free(first);
    free(second);
    return done ? 0 : 1;
}
