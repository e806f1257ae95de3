/*
 * switch-probe: what tests/lab/switchd.sh uses to talk to a running banyan-switchd. It writes the
 * table image of a star, pushes it in pieces of any size, prints counters, and acts as all hosts of
 * the star at once over raw sockets: contributions in, results checked element by element, and
 * malformed packets of every kind.
 *
 *   switch-probe image FILE HOSTS TREES WINDOW PAYLOAD MTU
 *   switch-probe push ADDRESS FILE [BYTES of a piece]
 *   switch-probe counters ADDRESS
 *   switch-probe crowd ADDRESS CLIENTS
 *   switch-probe haste ADDRESS
 *   switch-probe hold THREAD SECONDS
 *   switch-probe star HOSTS CHUNKS COUNT SEQ INTERFACE...
 *   switch-probe malformed ADDRESS HOSTS SEQ INTERFACE...
 *   switch-probe flood HOSTS SECONDS WINDOW COUNT SEQ INTERFACE...
 *   switch-probe replicate HOSTS SECONDS WINDOW COUNT INTERFACE...
 *   switch-probe blast SECONDS BYTES INTERFACE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lab/probe.h"

static int usage(void)
{
    fputs("usage: switch-probe image FILE HOSTS TREES WINDOW PAYLOAD MTU\n"
          "       switch-probe push ADDRESS FILE [PIECE]\n"
          "       switch-probe counters ADDRESS\n"
          "       switch-probe crowd ADDRESS CLIENTS\n"
          "       switch-probe haste ADDRESS\n"
          "       switch-probe hold THREAD SECONDS\n"
          "       switch-probe star HOSTS CHUNKS COUNT SEQ INTERFACE...\n"
          "       switch-probe malformed ADDRESS HOSTS SEQ INTERFACE...\n"
          "       switch-probe flood HOSTS SECONDS WINDOW COUNT SEQ INTERFACE...\n"
          "       switch-probe replicate HOSTS SECONDS WINDOW COUNT INTERFACE...\n"
          "       switch-probe blast SECONDS BYTES INTERFACE\n",
          stderr);
    return 2;
}

static int write_image(char **argument)
{
    struct star star = {.hosts = (uint16_t)atoi(argument[1]),
                        .trees = (uint16_t)atoi(argument[2]),
                        .window = (uint16_t)atoi(argument[3]),
                        .payload_max = (uint16_t)atoi(argument[4]),
                        .mtu = (uint16_t)atoi(argument[5]),
                        .cookie = 42};
    size_t bytes;
    uint8_t *image = star_image(&star, &bytes);
    FILE *file = fopen(argument[0], "wb");
    int result = file && fwrite(image, 1, bytes, file) == bytes ? 0 : 1;

    if (file)
        fclose(file);
    free(image);
    return result;
}

int main(int argc, char **argv)
{
    if (argc == 8 && strcmp(argv[1], "image") == 0)
        return write_image(argv + 2);
    if ((argc == 4 || argc == 5) && strcmp(argv[1], "push") == 0)
        return probe_push(argv[2], argv[3], argc == 5 ? (size_t)atoi(argv[4]) : 65536);
    if (argc == 3 && strcmp(argv[1], "counters") == 0)
        return probe_counters(argv[2]);
    if (argc == 4 && strcmp(argv[1], "crowd") == 0)
        return probe_crowd(argv[2], (unsigned)atoi(argv[3]));
    if (argc == 3 && strcmp(argv[1], "haste") == 0)
        return probe_haste(argv[2]);
    if (argc == 4 && strcmp(argv[1], "hold") == 0)
        return probe_hold(atoi(argv[2]), (unsigned)atoi(argv[3]));
    if (argc > 6 && strcmp(argv[1], "star") == 0 && argc == 6 + atoi(argv[2]))
        return probe_star(atoi(argv[2]), (uint32_t)atoi(argv[3]), (uint16_t)atoi(argv[4]),
                          (uint32_t)atoi(argv[5]), argv + 6);
    if (argc > 5 && strcmp(argv[1], "malformed") == 0 && argc == 5 + atoi(argv[3]))
        return probe_malformed(argv[2], atoi(argv[3]), (uint32_t)atoi(argv[4]), argv + 5);
    if (argc > 7 && strcmp(argv[1], "flood") == 0 && argc == 7 + atoi(argv[2]))
        return probe_flood(atoi(argv[2]), (unsigned)atoi(argv[3]), (uint32_t)atoi(argv[4]),
                           (uint16_t)atoi(argv[5]), (uint32_t)atoi(argv[6]), argv + 7);
    if (argc > 6 && strcmp(argv[1], "replicate") == 0 && argc == 6 + atoi(argv[2]))
        return probe_replicate(atoi(argv[2]), (unsigned)atoi(argv[3]), (uint32_t)atoi(argv[4]),
                               (uint16_t)atoi(argv[5]), argv + 6);
    if (argc == 5 && strcmp(argv[1], "blast") == 0)
        return probe_blast((unsigned)atoi(argv[2]), (size_t)atoi(argv[3]), argv[4]);
    return usage();
}
