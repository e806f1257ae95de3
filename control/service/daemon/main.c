/* The program banyand: daemon.c is all of it. */
#include "control/service/daemon/daemon.h"
#include "offload/linux/output.h"

int main(int argc, char **argv)
{
    return by_output_end(by_daemon_main(argc, argv));
}
