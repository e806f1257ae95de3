# debian: the packages. dpkg-buildpackage works in a copy, so that the tree stays clean; objects of
# the last run are kept there. DEB_BUILD_OPTIONS= adds options; packages with debug symbols are left
# out by default because compressing them takes minutes.
DEB      := $(O)/deb
DEB_TREE := $(DEB)/banyan-$(VERSION)
DEB_BUILD_OPTIONS ?= noautodbgsym parallel=$(shell nproc)
export DEB_BUILD_OPTIONS

.PHONY: deb deb-deps test-packages
deb-deps:
	$(Q)tests/deps.sh base mpi debian

deb: deb-deps ## build the Debian packages into build/deb; installs debhelper, lintian and others
	$(Q)debian/build.sh $(DEB)

test-packages: deb ## lint the packages; install, run, upgrade and remove them in a clean root with systemd; ten minutes
	$(Q)tests/packages/packages.sh $(DEB)
