/* The program banyand. See daemon.c. */
#include "control/base/alloc.h"
#include "control/service/daemon/daemon.h"
#include "offload/linux/output.h"

int main(int argc, char **argv)
{
    by_alloc_libraries();
    return by_output_end(by_daemon_main(argc, argv));
}
