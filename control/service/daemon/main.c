/* The program banyand. See daemon.c. */
#include "control/service/daemon/daemon.h"
#include "offload/linux/output.h"

int main(int argc, char **argv)
{
    return by_output_end(by_daemon_main(argc, argv));
}
