# lab: real switches, hosts and links in network namespaces. Without root the same in one process.
.PHONY: demo lab lab-smoke lab-switchd
demo: all ## plan, check and run all six collectives on a small fabric; draws it
	$(Q)tests/lab/demo.sh $(O)/bin $(O)/demo

lab: all ## all collectives on every kind of fabric, with and without faults, 16 MiB (long)
	$(Q)tests/lab/lab.sh $(O)/bin full

lab-smoke: build-all
	$(Q)tests/lab/lab.sh $(O)/bin smoke

lab-switchd: build-all build-tools
	$(Q)status=0; tests/lab/switchd.sh $(B) || status=$$?; \
	    if [ $$status -eq 77 ]; then echo "note: banyan-switchd by hand needs root; skipped"; else exit $$status; fi
