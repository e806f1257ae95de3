/* The program banyand: daemon.c is all of it. */
#include "control/service/daemon/daemon.h"

int main(int argc, char **argv)
{
    return by_daemon_main(argc, argv);
}
