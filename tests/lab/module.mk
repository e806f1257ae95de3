# lab: real switches, hosts and links in network namespaces. Tests that do not require root also run
# without it, in one process.
# The longest first, because all.sh runs several at a time; switchd changes the number of hugepages.
LAB_SHORT := lab-attacks documents lab-groups lab-ranks lab-site lab-gso lab-modes lab-xdp lab-jobs lab-nccl lab-survive lab-ipv6 planning \
             lab-dpdk lab-languages lab-again lab-faults lab-workers lab-leaks lab-discover lab-blame lab-teardown lab-join lab-shm \
             rate lab-series lab-kill lab-smoke lab-daemon lab-your-machines lab-top sim options output lab-doctor lab-page lab-push plot lab-tls \
             lab-refusals -- switchd

# Attacks with a raw socket, for lab-attacks.sh.
TOOLS += lab-attack control-attack lab-tenant lab-attack-shm
lab-attack-shm_SRC    := tests/lab/attack_shm.c
lab-attack-shm_LIBS   := offload
lab-tenant_SRC        := tests/lab/tenant.c
lab-tenant_LDLIBS      = $(LIBBANYAN_SO) -Wl,-rpath,'$$ORIGIN/../lib' -lpthread
$(B)/tools/lab-tenant: $(LIBBANYAN_SO)
lab-attack_SRC        := tests/lab/attack.c tests/lab/probe_link.c
lab-attack_LIBS       := offload
control-attack_SRC    := tests/lab/attack_control.c tests/unit/firmware/client.c
control-attack_LIBS   := agent offload
control-attack_LDLIBS := -lprotobuf-nanopb -lssl -lcrypto
$(B)/obj/tests/lab/attack.o $(B)/obj/tests/lab/attack_control.o: | $(GEN)/proto/control.pb.h

# A blackhole cable, for lab-survive.sh.
TOOLS += lab-blackhole
lab-blackhole_SRC := tests/lab/blackhole.c

# Creation and destruction of communicators, with the shared library, like a user's program.
TOOLS += communicators
communicators_SRC     := tests/lab/communicators.c
communicators_LDLIBS   = $(LIBBANYAN_SO) -Wl,-rpath,'$$ORIGIN/../lib' -lpthread
$(B)/tools/communicators: $(LIBBANYAN_SO)
# Communicators of some ranks of another one, likewise, for lab-groups.sh.
TOOLS += lab-groups
lab-groups_SRC     := tests/lab/groups.c
lab-groups_LDLIBS   = $(LIBBANYAN_SO) -Wl,-rpath,'$$ORIGIN/../lib'
$(B)/tools/lab-groups: $(LIBBANYAN_SO)

.PHONY: survive soak leaks demo train lab lab-short lab-mpi lab-languages lab-torch lab-slurm lab-etcd etcd-deps lab-metal lab-boards
demo: all ## plan, check and run all six collectives on a small fabric, and draw it
	$(Q)tests/lab/demo.sh $(O)/bin $(O)/demo

lab: all build-tools ## run all collectives on every kind of fabric, 16 MiB, with and without faults; termination by signals; then the lab tests of make test
	$(Q)FAULTS=all tests/lab/all.sh $(B) lab-topologies lab-signals $(LAB_SHORT)

# The packages of the MPIs are large, and only this target requires them.
lab-mpi: mpi ## run unmodified MPI programs in C, Fortran and Python over real switches (installs Open MPI and MPICH); RUNS=20 runs it 20 times
	$(Q)tests/lab/all.sh $(B) -- $(foreach run,$(shell seq $(or $(RUNS),1)),lab-mpi lab-mpi-groups) mpi-loops mpi-random

.PHONY: mpi-loops
mpi-loops: mpi ## as root: 100 communicators made, called and freed, LOOPS= times (default 10000), under Open MPI and MPICH, over real switches; 64 at once, of which a rank stops or is killed
	$(Q)LOOPS=$(or $(LOOPS),10000) tests/lab/mpi-loops.sh $(B)

.PHONY: mpi-random
mpi-random: mpi ## as root: random MPI programs over real switches, from SEED= (default 1), SEEDS= of them (default 20), with STEPS= (default 300); EACH=2: two ranks on each host
	$(Q)FIRST=$(or $(SEED),1) SEEDS=$(or $(SEEDS),20) STEPS=$(or $(STEPS),300) tests/lab/mpi-random.sh $(B)

# Hours: each of 18 cells takes up to CELL seconds over banyan and as many without it.
.PHONY: mpi-suites
mpi-suites: mpi ## as root: the tests of mpi4py, hpcc and ScaLAPACK with 1, 2 and 8 ranks on each host, under Open MPI and MPICH, over real switches and without them; hours; SUITES="hpcc scalapack mpi4py" MPIS=openmpi EACH="1 2" CELL=600 PROGRAMS="xdlu xdqr" MPI4PY=FOLDER
	$(Q)tests/lab/mpi-suite.sh $(B)

.PHONY: mpi-applications
mpi-applications: mpi ## as root: LAMMPS and Quantum ESPRESSO over real switches, and without them; EACH=2: two ranks on each host
	$(Q)tests/deps.sh applications
	$(Q)tests/lab/mpi-applications.sh $(B)

.PHONY: groups-campaign
groups-campaign: mpi build-tools ## as root: make, use and free communicators for S= seconds (default 300) with libbanyan, Open MPI and MPICH each, and compare what banyand holds (15 minutes)
	$(Q)SECONDS_OF_LOOP=$(or $(S),300) tests/lab/all.sh $(B) lab-groups lab-mpi-groups

lab-languages: mpi-deps build-all build-tools ## use libbanyan from C++, Fortran and Python on real switches; installs the compilers and numpy
	$(Q)tests/lab/all.sh $(B) lab-languages

lab-torch: torch ## test the backend of torch.distributed on real switches; installs Debian's PyTorch; SUITE=all runs all of PyTorch's own tests (half an hour)
	$(Q)SUITE=$(SUITE) tests/lab/all.sh $(B) lab-torch

# Downloads 200 MB, and installs nothing but mmdebstrap.
.PHONY: lab-torch-newer
lab-torch-newer: build-all ## as root: test the backend of torch.distributed with the PyTorch of a newer Debian, unpacked into build/torch (2 GB; 5 minutes); SUITE=
	$(Q)tests/deps.sh newer
	$(Q)SUITE=$(SUITE) tests/torch/newer.sh $(B) $(O)/torch

lab-slurm: slurm build-tools ## run jobs of Slurm over real switches (srun --banyan): shares, refusals, ends; installs Slurm; TIMELIMIT=1 adds a time limit and salloc (two minutes)
	$(Q)TIMELIMIT=$(TIMELIMIT) tests/lab/all.sh $(B) lab-slurm

etcd-deps:
	$(Q)tests/deps.sh base etcd
lab-etcd: etcd-deps build-all build-tools $(B)/tests/daemon-etcd ## several banyands over one etcd: the leader is killed, stopped, cut off; members of etcd are lost; installs etcd
	$(Q)$(B)/tests/daemon-etcd
	$(Q)tests/lab/all.sh $(B) lab-etcd

train: torch ## as root: train two models over banyan and over Gloo, check that the losses agree to the bit, kill a spine, and draw build/training.svg (6 minutes); STEPS=
	$(Q)$(PYTHON) -W ignore host-driver/examples/train/show.py $(B) -o $(O)/training.svg --steps $(or $(STEPS),24)

survive: build-all ## as root: inject N= random faults (default 200) during collectives, with banyand, or with three over etcd (STORE=etcd); SEED= replays a run (15 minutes)
	$(Q)[ "$(STORE)" != etcd ] || tests/deps.sh etcd
	$(Q)N=$(or $(N),200) SEED=$(SEED) STORE=$(STORE) tests/lab/lab-survive.sh $(B)

soak: build-all ## as root: create and end jobs at random for MINUTES= (default 60) while the fabric fails and is repaired; checks that memory, files and slots stay flat, and draws build/soak.svg
	$(Q)MINUTES=$(or $(MINUTES),60) PERIOD=60 SEED=$(SEED) SOAK=$(O)/soak.svg tests/lab/lab-soak.sh $(B)

leaks: build-all build-tools ## as root: create and free 1,000 communicators of each rank under valgrind; checks memory, files, slots of the switch (minutes)
	$(Q)ROUNDS=1000 tests/lab/all.sh $(B) lab-leaks
	$(Q)ROUNDS=1000 VALGRIND=1 tests/lab/all.sh $(B) lab-leaks

lab-short: build-all build-tools
	$(Q)tests/lab/all.sh $(B) $(LAB_SHORT)

# The image without an operating system. Installs the cross-compiler and QEMU if necessary.
lab-metal: build-all build-tools ## test the bare-metal image in QEMU: start, faults, control channel, lab fabrics with it
	$(Q)tests/deps.sh metal
	$(Q)$(MAKE) --no-print-directory firmware BOARD=qemu-virt-arm64
	$(Q)tests/lab/all.sh $(B) metal metal-control metal-banyand trace

# Installs the cross-compiler and QEMU if necessary.
.PHONY: trace
trace: build-all build-tools ## check that one trace of frames gives the same output in the engine, the DPDK build, the simulator and the bare-metal image (TRACE_SEEDS="1 2 3")
	$(Q)tests/deps.sh metal
	$(Q)$(MAKE) --no-print-directory firmware BOARD=qemu-virt-arm64
	$(Q)tests/lab/all.sh $(B) trace

# Installs Debian's Chromium.
.PHONY: test-page
test-page: build-all ## as root: test the live page in Chromium, on a lab and with 1,024 hosts; pictures go to build/page; a minute; installs chromium
	$(Q)tests/deps.sh page
	$(Q)tests/page/page.sh $(B) $(O)/page

# Downloads Debian's kernel (70 MB) and unpacks it into build/vm-amd64; installs QEMU if necessary.
.PHONY: lab-pci lab-pci-packages
lab-pci-packages:
	$(Q)tests/deps.sh vm
	$(Q)tests/lab/vm/kernel.sh amd64 $(O)/vm-amd64
lab-pci: build-all build-tools lab-pci-packages ## test poll-mode drivers of NICs: banyan-switchd behind vfio in a virtual machine, as the switch of lab fabrics (RUNS=20, NICS="e1000e vmxnet3")
	$(Q)RUNS=$(RUNS) NICS="$(NICS)" tests/lab/all.sh $(B) lab-pci

# Downloads QEMU of Debian's backports too, for igb, and unpacks it into build/qemu.
.PHONY: pci-table
pci-table: build-all lab-pci-packages ## table of emulated NICs: errors, bytes and time of collectives through each, in a virtual machine (RUNS=20, NICS="e1000e igb")
	$(Q)tests/lab/vm/qemu.sh $(O)/qemu || echo "  note: without a newer QEMU, igb is skipped"
	$(Q)RUNS=$(RUNS) NICS="$(NICS)" RECORD="$(RECORD)" tests/lab/pci-table.sh $(B)

# Downloads the kernel and Debian's arm64 libraries too.
.PHONY: lab-arm64
lab-arm64: build-all build-tools ## test the cross-compiled switch in an arm64 virtual machine, on emulated NICs behind vfio
	$(Q)tests/deps.sh metal neon
	$(Q)$(MAKE) --no-print-directory firmware BOARD=arm64-dpdk
	$(Q)tests/lab/vm/kernel.sh arm64 $(O)/vm-arm64
	$(Q)ARCH=arm64 RUNS=$(RUNS) NICS="$(or $(NICS),virtio-net-pci e1000e)" tests/lab/all.sh $(B) lab-pci

.PHONY: lab-xdp
lab-xdp: build-all build-tools ## test replication and relaying in the kernel (--driver xdp): collectives, losses, ends, refusals
	$(Q)tests/lab/all.sh $(B) lab-xdp

# Downloads Debian's arm64 libraries (about 60 MB) and unpacks them into build/sysroot.
lab-boards: build-all build-tools ## build every board; add boards with a folder only; run the arm64 switch under emulation
	$(Q)tests/deps.sh metal neon
	$(Q)$(MAKE) --no-print-directory boards
	$(Q)tests/lab/all.sh $(B) boards
