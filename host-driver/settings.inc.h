/*
 * Every setting of libbanyan, once: X(NAME, "default", "help"). The environment variable is
 * BANYAN_NAME. `banyan-perf --settings` prints this list with the current values; banyan.7 explains
 * it. Includes nothing.
 */
#define BY_SETTING_LIST(X)                                                                                   \
    X(TABLE, "", "table image of this host: a path, or a folder with HOSTNAME.table")                        \
    X(CONTROLLER, "",                                                                                        \
      "address of the controller: unix:PATH, tcp:HOST:PORT or tls:HOST:PORT, or several with commas "        \
      "between, of which one accepts hosts; it supplies the table, and keeps calls running when a switch "   \
      "or link fails")                                                                                       \
    X(KEYS, "", "controller over tls: folder of this host's keys, as `banyan keys --host` makes it")         \
    X(NODE, "", "controller: name of this host in its topology; if empty: the host's own name")              \
    X(JOB, "0", "number of the job in the table; 0: the only one")                                           \
    X(OFFLOAD, "auto",                                                                                       \
      "auto: use the trees of the table; off: use no table, and run all collectives between hosts, "         \
      "which meet by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT")                                         \
    X(BOOTSTRAP, "auto",                                                                                     \
      "how ranks that must meet find each other: env (RANK, ...), pmix, pmi, none, or auto: the first "      \
      "of these that is available")                                                                          \
    X(FALLBACK, "circulant",                                                                                 \
      "schedules between hosts, for what the table does not serve: circulant, ring, rhd or off; if set, "    \
      "ranks meet even if the table serves all collectives that have trees")                                 \
    X(SCHEDULE, "",                                                                                          \
      "files of `banyan export --format hosts`, with commas between: schedules that execute all-to-all, "    \
      "scatter, gather or reduce between hosts; ranks meet for them")                                        \
    X(NEAR, "memory",                                                                                        \
      "between ranks of one host that meet: memory (which they share), pairs (of ranks) or tcp")             \
    X(SMALL, "0",                                                                                            \
      "with a table: operations of at most this many bytes run between hosts; auto: those that are "         \
      "faster there, as measured when the ranks meet")                                                       \
    X(TRANSPORT, "auto",                                                                                     \
      "transport of packets: auto, afxdp, udp, dpdk or shm; auto uses afxdp where it works, and never "      \
      "dpdk")                                                                                                \
    X(DPDK_PORTS, "",                                                                                        \
      "dpdk: the device of each port, separated by semicolons: a PCI address, an interface, or a virtual "   \
      "device of DPDK; in the order of the table's ports, or as PORT=DEVICE; if empty: the interfaces of "   \
      "the table")                                                                                           \
    X(DPDK_DRIVER, "af_packet",                                                                              \
      "dpdk: driver of interfaces: af_packet, af_xdp, ring, gso or auto, as for banyan-switchd")             \
    X(DPDK_OPTIONS, "", "dpdk: options for DPDK itself, separated by blanks, such as --no-huge")             \
    X(DPDK_LIBRARY, "",                                                                                      \
      "dpdk: path of libbanyan-dpdk.so.0; if empty: the one beside libbanyan, or the system's")              \
    X(SHM, "", "shm: folder of the sockets at which switches on this machine share memory")                  \
    X(ARENA, "16384", "shm: limit, in MiB, on buffers that switches read in place (banyan_alloc)")           \
    X(MODE, "fast",                                                                                          \
      "order in which floats are added: fast (as they arrive), det (as the tables specify) or exact "        \
      "(independent of the order)")                                                                          \
    X(XDP_MODE, "auto", "how afxdp attaches to an interface: auto, native or generic")                       \
    X(SEGMENTS, "auto",                                                                                      \
      "udp: exchange GSO batches with the kernel, which the link cuts into frames: auto, on or off; "        \
      "auto uses them where the link certainly cuts them, which veth does not")                              \
    X(RING, "auto",                                                                                          \
      "udp: receive from a ring of frames that the kernel writes before its network stack: auto, on or "     \
      "off; requires root")                                                                                  \
    X(TIMEOUT, "10", "seconds without progress after which an operation fails")                              \
    X(WAIT, "0",                                                                                             \
      "seconds that an operation waits for ranks that have not called it, while the network works; at "      \
      "least BANYAN_TIMEOUT, and without a limit under MPI if neither is set")                               \
    X(LINGER, "500",                                                                                         \
      "milliseconds of silence after which an inner node of a tree leaves; a tenth of this if no "           \
      "packet was lost")                                                                                     \
    X(INFLIGHT, "0",                                                                                         \
      "limit on chunks in flight, over all trees; 0: as many as windows and receive buffers hold")           \
    X(CONGESTION, "auto",                                                                                    \
      "what narrows a rank's window: losses (and marks), marks: only ECN marks, for paths all of whose "     \
      "queues mark packets before they drop any, or auto: marks if the table states such paths")             \
    X(SPIN, "0", "empty polls before a waiting rank sleeps")                                                 \
    X(LOG, "1", "lines on standard error: 0: none, 1: one for each communicator, 2: one for each rank")      \
    X(GPU, "auto",                                                                                           \
      "buffers in GPU memory: auto (copied whole), on (all operations in chunks; the same on all "           \
      "ranks) or off")                                                                                       \
    X(GPU_CHUNK, "4194304", "GPU on: bytes of a chunk, which is copied while another is on the wire")        \
    X(CUDA_LIBRARY, "",                                                                                      \
      "GPU: path of the CUDA driver library; if empty: the one that the program has loaded")                 \
    X(MPI_LEAST, "0", "MPI: least size in bytes from which a collective is offloaded")                       \
    X(MPI_AFTER, "2", "MPI, with a controller: calls of a communicator before it gets trees of its own")     \
    X(MPI_PERSISTENT, "off",                                                                                 \
      "MPI: persistent collectives: off (left to MPI), or ordered: offloaded; all ranks then start them "    \
      "in one order, together with their other collectives")                                                 \
    X(NCCL_INTERFACE, "",                                                                                    \
      "NCCL: interfaces of the plugin, separated by commas; if empty: all that are up with an address, "     \
      "except the loopback interface")                                                                       \
    X(NCCL_STREAMS, "2", "NCCL: TCP streams of a connection, 1 to 8")                                        \
    X(NCCL_COLLNET, "auto",                                                                                  \
      "NCCL: offer collectives (CollNet): auto (with the trees of a table), on (also between the hosts) "    \
      "or off")                                                                                              \
    X(NCCL_RATE, "",                                                                                         \
      "NCCL: rate of an allreduce in the trees in GB/s, a comma, and its latency in us, for NCCL's choice "  \
      "of algorithms; if empty: NCCL's own predictions")                                                     \
    X(LOSS, "0", "fault injection: probability that a received packet is dropped")                           \
    X(DUP, "0", "fault injection: probability that a received packet is duplicated")                         \
    X(REORDER, "0", "fault injection: probability that a received packet is overtaken by later ones")        \
    X(SEED, "1", "fault injection: seed; the same seed gives the same faults")
