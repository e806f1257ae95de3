# debian: the packages. dpkg-buildpackage works in a copy, so that the tree stays clean; objects of
# the last run are kept there. DEB_BUILD_OPTIONS= adds options; packages with debug symbols are left
# out by default because compressing them takes minutes.
DEB      := $(O)/deb
DEB_TREE := $(DEB)/banyan-$(VERSION)
DEB_BUILD_OPTIONS ?= noautodbgsym parallel=$(shell nproc)
export DEB_BUILD_OPTIONS

.PHONY: deb deb-deps test-packages container
deb-deps:
	$(Q)tests/deps.sh base mpi debian

deb: deb-deps ## build the Debian packages into build/deb; installs debhelper, lintian and others
	$(Q)debian/build.sh $(DEB)

test-packages: deb ## lint the packages; install, run, upgrade and remove them in a clean root with systemd; ten minutes
	$(Q)tests/packages/packages.sh $(DEB)

# The first that is installed. Each takes the base image from its own storage or from a registry.
CONTAINER_TOOL ?= $(firstword $(foreach t,podman buildah docker,$(shell command -v $(t))))
container: ## build the image "banyan" (switch, controller, tools) from the packages, with podman, buildah or docker
	$(Q)[ -n "$(CONTAINER_TOOL)" ] || { echo "container: podman, buildah or docker is required; on Debian: apt-get install podman" >&2; exit 3; }
	$(Q)$(MAKE) --no-print-directory deb
	$(Q)$(CONTAINER_TOOL) build -t banyan -f debian/Containerfile $(DEB)
