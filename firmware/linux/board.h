/*
 * The capacity of a board: the defaults and limits of a switch, from boards/NAME/board.json. The
 * boards of this tree are built in; others are files. Start-up only.
 */
#ifndef BY_FIRMWARE_LINUX_BOARD_H
#define BY_FIRMWARE_LINUX_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/interface.h"
#include "offload/base/limits.h"

struct by_board {
    char name[BY_NAME_MAX + 1];
    uint32_t ports;       /* maximum */
    uint32_t slots;       /* of all entries together; --slots overrides it */
    uint32_t payload_max; /* bytes */
    uint32_t entries;
    uint32_t relays;
    uint32_t image_bytes;
    bool replicate, aggregate; /* abilities besides relaying; true unless the file disables them */
    unsigned driver;           /* enum by_port_driver for the interfaces: "driver", or auto */
};

/* Reads the board `name`: a built-in one, or a file when the name contains '/' or '.'. Returns 0,
 * or BY_ENOENT, BY_EFORMAT, BY_ELIMIT after reporting it. */
int by_board_read(const char *name, struct by_board *board);
/* Returns the board that this program was built for (make BOARD=). */
const char *by_board_default(void);

#endif
