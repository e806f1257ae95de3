#!/usr/bin/env bash
# Installs into a temporary folder and uses the installation as a packager's build would: a program
# finds header and library through pkg-config, links with the shared and the static library, and
# runs. The source tree is not used afterwards.
#   install.sh MAKE
set -u
make=$1
cd "$(dirname "$0")/.."
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
passed=0
failed=0
check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$root/log" 2>&1; then
        passed=$((passed + 1))
        echo "  PASS   $what"
    else
        failed=$((failed + 1))
        echo "  FAIL   $what"
        sed 's/^/         | /' "$root/log"
    fi
}
says() { # TEXT COMMAND...
    local text=$1
    shift
    "$@" | grep -qF -- "$text"
}
cat >"$root/program.c" <<'END'
#include <banyan/banyan.h>
int main(void)
{
    return banyan_version() != BANYAN_VERSION;
}
END
prefix=$root/stage/opt/banyan
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
check "make install with DESTDIR and PREFIX" $make --no-print-directory install DESTDIR="$root/stage" PREFIX=/opt/banyan
flags() { pkg-config --define-variable=prefix="$prefix" "$@" banyan; }
# shellcheck disable=SC2046 # words are wanted
check "a program links against the shared library" gcc -o "$root/shared" "$root/program.c" $(flags --cflags --libs)
check "and runs" env LD_LIBRARY_PATH="$prefix/lib" "$root/shared"
# shellcheck disable=SC2046
check "a program links against the static library" gcc -o "$root/static" "$root/program.c" $(flags --cflags) "$prefix/lib/libbanyan.a" $(pkg-config --static --libs-only-l banyan | sed 's/-lbanyan//')
check "and runs" "$root/static"
cat >"$root/program.cpp" <<'END'
#include <banyan/banyan.hpp>
int main()
{
    return banyan::dtype_of<float>() != BANYAN_F32;
}
END
# shellcheck disable=SC2046
check "a C++ program uses the header" g++ -std=c++17 -o "$root/plus" "$root/program.cpp" $(flags --cflags --libs)
check "the Fortran module is installed" test -s "$prefix/share/banyan/fortran/banyan.f90"
python_dir=$(echo "$prefix"/lib/python3.*/dist-packages)
check "the Python package finds the library" env PYTHONPATH="$python_dir" LD_LIBRARY_PATH="$prefix/lib" /usr/bin/python3 -c \
    'import banyan; assert banyan.version() == banyan.__version__ == "0.1.0"'
check "only banyan_ is seen in the shared library" bash -c "! nm -D --defined-only '$prefix/lib/libbanyan.so.0' | awk '{print \$3}' | grep -v -e '^banyan_' -e '^LIBBANYAN' -e '^BANYAN' | grep ."
check "NCCL's plugin has a table for each version" bash -c "[ \$(nm -D --defined-only '$prefix/lib/libnccl-net-banyan.so' | grep -cE ' D nccl(Coll)?NetPlugin_v(8|9|10|11|12)\$') -eq 10 ]"
check "and loads libbanyan from its own folder" bash -c "ldd '$prefix/lib/libnccl-net-banyan.so' | grep -qF '$prefix/lib/libbanyan.so.0'"
for program in banyan banyan-perf banyan-switchd banyand; do
    check "$program --version" says "banyan" "$prefix/bin/$program" --version
done
check "banyan info -c finds banyan-perf beside it" says BANYAN_TABLE "$prefix/bin/banyan" info -c
check "the pkg-config file names the prefix" says "/opt/banyan/include" pkg-config --variable=includedir banyan
check "the units start the installed programs" bash -c "grep -q '^ExecStart=/opt/banyan/bin/banyan-switchd' $prefix/lib/systemd/system/banyan-switchd.service && grep -q '^ExecStart=/opt/banyan/bin/banyand ' $prefix/lib/systemd/system/banyand.service"
check "the units' users and the completion are installed" test -s "$prefix/lib/sysusers.d/banyand.conf" -a -s "$prefix/lib/sysusers.d/banyan-switchd.conf" -a -e "$prefix/share/bash-completion/completions/banyan-switchd"
check "manual pages are in their sections" test -s "$prefix/share/man/man1/banyan.1" -a -s "$prefix/share/man/man5/banyan-plan.5" -a -s "$prefix/share/man/man3/libbanyan.3"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
