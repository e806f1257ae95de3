# The Python package, and its place in an installation: Debian's python3 searches these folders below
# /usr and /usr/local; for another PREFIX set PYTHONPATH, or PYTHON_DIR=.
PYTHON     ?= /usr/bin/python3
PYTHON_DIR ?= $(PREFIX)/lib/python3$(if $(filter /usr,$(PREFIX)),,.$(shell $(PYTHON) -c 'import sys; print(sys.version_info.minor)' 2>/dev/null))/dist-packages
PYTHON_SRC := $(wildcard host-driver/python/banyan/*.py) host-driver/python/banyan/py.typed
