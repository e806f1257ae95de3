/*
 * What a board can hold: the defaults and limits of a switch, from boards/NAME/board.json. The
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
    uint32_t ports;       /* at most */
    uint32_t slots;       /* of all entries together; --slots says another number */
    uint32_t payload_max; /* bytes */
    uint32_t entries;
    uint32_t relays;
    uint32_t image_bytes;
    bool replicate, aggregate; /* what it does with packets beside passing them on; yes unless it says no */
    unsigned driver;           /* enum by_port_driver, of interfaces: "driver", or auto */
};

/* Reads the board `name`: one that is built in, or a file when there is a '/' or '.' in it. 0, or
 * BY_ENOENT, BY_EFORMAT, BY_ELIMIT, reported. */
int by_board_read(const char *name, struct by_board *board);
/* The board that this program was built for (make BOARD=). */
const char *by_board_default(void);

#endif
