/*
 * Every setting of libbanyan, once: X(NAME, "default", "help"). The environment variable is
 * BANYAN_NAME. `banyan-perf --settings` prints this list with the current values; banyan.7 explains
 * it. Includes nothing.
 */
#define BY_SETTING_LIST(X)                                                                                   \
    X(TABLE, "", "table image of this host: a path, or a folder with HOSTNAME.table")                        \
    X(CONTROLLER, "",                                                                                        \
      "the controller, unix:PATH, tcp:HOST:PORT or tls:HOST:PORT: gives the table, and keeps calls running " \
      "when a switch or link dies")                                                                          \
    X(KEYS, "", "controller over tls: folder of this host's keys, as `banyan keys --host` makes it")         \
    X(NODE, "", "controller: name of this host in its topology; empty: the host's own name")                 \
    X(JOB, "0", "job to join: its number in the table; 0 = the only one")                                    \
    X(OFFLOAD, "auto",                                                                                       \
      "auto: trees of the table; off: no table, all between hosts, which meet by RANK, WORLD_SIZE, "         \
      "MASTER_ADDR and MASTER_PORT")                                                                         \
    X(BOOTSTRAP, "auto",                                                                                     \
      "how ranks that have to meet find each other: env (RANK, ...), pmix, pmi, none, or auto: the first "   \
      "of these that is there")                                                                              \
    X(FALLBACK, "circulant",                                                                                 \
      "schedules between hosts, where the table does not serve: circulant, ring, rhd or off")                \
    X(SMALL, "0",                                                                                            \
      "with a table: operations of at most so many bytes run between hosts; auto: those that are sooner "    \
      "done there, by what ranks measure when they meet")                                                    \
    X(TRANSPORT, "auto", "what moves packets: auto, afxdp, udp or shm; auto takes afxdp where it works")     \
    X(SHM, "", "shm: folder of the sockets at which switches of this machine share memory")                  \
    X(ARENA, "16384", "shm: MiB of buffers at most that switches read in place (banyan_alloc)")              \
    X(MODE, "fast",                                                                                          \
      "in which order floats are added: fast (as they arrive), det (as the tables say) or exact (in none)")  \
    X(XDP_MODE, "auto", "how afxdp attaches to an interface: auto, native or generic")                       \
    X(SEGMENTS, "auto",                                                                                      \
      "udp: packets cross the kernel in trains, which the link cuts: auto, on or off; auto takes them "      \
      "where "                                                                                               \
      "the link cuts for sure, which veth does not")                                                         \
    X(RING, "auto",                                                                                          \
      "udp: frames are taken out of a ring that the kernel writes, before its stack: auto, on or off; "      \
      "takes root")                                                                                          \
    X(TIMEOUT, "10", "seconds without progress after which an operation fails")                              \
    X(LINGER, "500",                                                                                         \
      "milliseconds of silence after which an inner node of a tree leaves; a tenth if nothing was lost")     \
    X(INFLIGHT, "0", "chunks in flight at most, over all trees; 0 = what windows and receive buffers hold")  \
    X(SPIN, "0", "empty polls before a waiting rank sleeps")                                                 \
    X(LOG, "1", "what goes to stderr: 0 nothing, 1 one line for each communicator, 2 one for each rank")     \
    X(GPU, "auto",                                                                                           \
      "buffers in a GPU's memory: auto (taken as they come), on (and all operations in chunks; the same on " \
      "all ranks) or off")                                                                                   \
    X(GPU_CHUNK, "4194304", "GPU on: bytes of an operation that are copied while others are on the wire")    \
    X(CUDA_LIBRARY, "", "GPU: path of the CUDA driver library; else the one that the program has loaded")    \
    X(MPI_LEAST, "0", "MPI: bytes of data from which a collective is offloaded; smaller ones are MPI's")     \
    X(LOSS, "0", "fault injection: probability that a received packet is dropped")                           \
    X(DUP, "0", "fault injection: probability that a received packet is doubled")                            \
    X(REORDER, "0", "fault injection: probability that a received packet is overtaken by later ones")        \
    X(SEED, "1", "fault injection: seed; the same seed gives the same faults")
