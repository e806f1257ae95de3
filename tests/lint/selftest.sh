#!/usr/bin/env bash
# Shows that each check of `make lint` detects its faults. Plants one fault at a time in a temporary
# copy of the tree, runs the check, and requires that it fails and names the fault; then removes the
# fault and requires that it passes. Prints a line for each fault; the last line is `N passed, N
# failed`.
#   selftest.sh MAKE
set -u
make=${1:-make}
cd "$(dirname "$0")/../.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files -co --exclude-standard | while read -r file; do [ -f "$file" ] && echo "$file"; done | tar cf - -T - | tar xf - -C "$copy"
else
    tar cf - --exclude=./build . | tar xf - -C "$copy"
fi
cd "$copy" || exit 3
mkdir -p objects
passed=0
failed=0

verdict() { # verdict OK "name" "what was seen"
    if [ "$1" = 1 ]; then
        passed=$((passed + 1))
        printf '  PASS   %s\n' "$2"
    else
        failed=$((failed + 1))
        printf '  FAIL   %s\n' "$2"
        printf '%s\n' "$3" | sed 's/^/         | /' | tail -40
    fi
}

# fault "name" FILE "expected text" CHECK...     plants stdin as the content of FILE, and restores
# FILE afterwards. Reads all of stdin first: it may be made from FILE.
fault() {
    local name=$1 file=$2 expected=$3 out status=0 ok=0 kept="" planted
    shift 3
    planted=$(mktemp)
    cat >"$planted"
    mkdir -p "$(dirname "$file")"
    if [ -e "$file" ]; then
        kept=$(mktemp)
        cp -p "$file" "$kept"
    fi
    cat "$planted" >"$file"
    rm -f "$planted"
    out=$("$@" 2>&1) || status=$?
    if [ $status -ne 0 ] && grep -qF -e "$expected" <<<"$out"; then ok=1; fi
    verdict $ok "$name" "$out"
    if [ -n "$kept" ]; then mv "$kept" "$file"; else rm -f "$file"; fi
}

# sound "name" FILE CHECK...: the same for a file without a fault: the check must pass.
sound() {
    local name=$1 file=$2 out ok=0
    shift 2
    mkdir -p "$(dirname "$file")"
    cat >"$file"
    if out=$("$@" 2>&1); then ok=1; fi
    verdict $ok "$name" "$out"
    rm -f "$file"
}

build() { $make --no-print-directory O=objects "$@"; }
arrows_lines() { tests/lint/arrows.py; }
arrows_depend() { # through the compiler's own list of what a file reads
    mkdir -p objects/d/"$(dirname "$1")" && gcc -std=c11 -I. -MMD -MP -c -o objects/d/"${1%.c}.o" "$1" &&
        tests/lint/arrows.py objects/d objects/gen
    local status=$?
    rm -rf objects/d
    return $status
}
symbols() {
    local object=objects/release/obj/${1%.c}.o
    build "$object" >/dev/null && tests/lint/symbols.sh objects/release/obj
    local status=$?
    rm -rf objects/release/obj/offload
    return $status
}
tidy() { build "objects/release/lint/${1%.c}.tidy"; }
cppcheck_one() { build lint-cppcheck lint_sources="$1"; }
format_one() { build lint-format lint_files="$1"; }

fault "a lower layer that includes a higher one is caught" offload/wire/planted.c "offload/wire must not include offload/engine" arrows_lines <<'END'
#include "offload/engine/engine.h"
END
fault "an include hidden in a macro is caught through the .d file" offload/wire/planted.c "must not include offload/engine/engine.h (through" \
    arrows_depend offload/wire/planted.c <<'END'
#define HEADER "offload/engine/engine.h"
#include HEADER
END
fault "the engine that includes the endpoint is caught" offload/engine/planted.c "must not include offload/endpoint" arrows_lines <<'END'
#include "offload/endpoint/endpoint.h"
END
fault "the endpoint that includes the engine is caught" offload/endpoint/planted.c "must not include offload/engine" arrows_lines <<'END'
#include "offload/engine/engine.h"
END
fault "the verifier that includes the planner is caught" control/verify/planted.c "must not include control/plan" arrows_lines <<'END'
#include "control/plan/plan.h"
END
fault "the controller that includes the engine is caught" control/cli/planted.c "must not include offload/engine" arrows_lines <<'END'
#include "offload/engine/engine.h"
END
fault "the dataplane that includes the controller is caught" dataplane/planted.c "must not include control/fabric" arrows_lines <<'END'
#include "control/fabric/topology.h"
END
fault "a system header in offload is caught" offload/table/planted.c "<string.h> is not among" arrows_lines <<'END'
#include <string.h>
END
fault "a public header that needs more than stdint and stddef is caught" host-driver/include/banyan/planted.h "<stdlib.h> is not among" arrows_lines <<'END'
#include <stdlib.h>
END
fault "an include that is not written from the root is caught" offload/wire/planted.c "write includes from the root" arrows_lines <<'END'
#include "wire.h"
END
arrows_ring() { # planted.h -> planted1.h -> planted2.h -> planted3.h -> planted.h
    local status=0
    echo '#include "offload/base/planted2.h"' >offload/base/planted1.h
    echo '#include "offload/base/planted3.h"' >offload/base/planted2.h
    echo '#include "offload/base/planted.h"' >offload/base/planted3.h
    arrows_lines || status=$?
    rm -f offload/base/planted[123].h
    return $status
}
arrows_call() { # a call without an include, by the symbols of the two objects: SOURCE CALLEE
    local status=0 file
    for file in "$@"; do
        mkdir -p objects/d/"$(dirname "$file")" && gcc -std=c11 -I. -c -o objects/d/"${file%.c}.o" "$file" || return 0
    done
    tests/lint/arrows.py objects/d objects/gen || status=$?
    rm -rf objects/d
    return $status
}
fault "a call against the arrows is caught" offload/wire/planted.c "offload/wire must not call by_image_check of offload/table/check.c" \
    arrows_call offload/wire/planted.c offload/table/check.c <<'END'
int by_image_check(void);
int by_planted(void);
int by_planted(void)
{
    return by_image_check();
}
END
fault "a cycle of files without a common noun is caught" offload/base/planted.h "a cycle of 4 units" arrows_ring <<'END'
#include "offload/base/planted1.h"
END
names_only() { tests/lint/names.sh "$@"; }
fault "a tag that is defined twice is caught" offload/wire/planted.h "by_frame: offload/wire/frame.h" names_only <<'END'
struct by_frame {
    int planted;
};
END
names_built() { # names_built SOURCE: the extern names of its object and of one that is there
    build objects/release/obj/offload/wire/frame.o objects/release/obj/"${1%.c}.o" >/dev/null && tests/lint/names.sh objects/release/obj
    local status=$?
    rm -rf objects/release/obj/offload
    return $status
}
fault "an extern function that is defined twice is caught" offload/base/planted.c "by_frame_build: " names_built offload/base/planted.c <<'END'
int by_frame_build(void);
int by_frame_build(void)
{
    return 0;
}
END
fault "a file at the top of the tree is caught" planted.txt "planted.txt: not among what stands at the top" names_only <<'END'
planted
END
fault "a banner of two lines is caught" offload/base/planted.c "banners have one line" names_only <<'END'
/* ---- planted ----------------------------------------------------------------------------------------
 */
END
fault "a long line of a document is caught" docs/planted.md "docs/planted.md:1: 104 columns" names_only <<'END'
This line of a document has more columns than a hundred, which is more than any line of a page may have.
END
fault "a long line of a comment is caught" offload/base/planted.c "offload/base/planted.c:2: 104 columns" names_only <<'END'
/* The first line is short, and
 * this line of a comment has more columns than a hundred, which is more than any line of it is allowed.
 */
END
fault "a second definition of an offset of the wire is caught" dataplane/planted.c "dataplane/planted.c:1:#define TREE_AT 4u" names_only <<'END'
#define TREE_AT 4u
END
fault "a second definition of a flag of the wire is caught" host-driver/planted.h "FLAG_KEYED" names_only <<'END'
enum planted {
    FLAG_KEYED = 0x80
};
END
fault "a switch that lacks a value of its enum does not compile" offload/base/planted.c "BY_MODE_EXACT" build objects/release/obj/offload/base/planted.o <<'END'
#include "offload/wire/types.h"
int by_planted(enum by_mode mode);
int by_planted(enum by_mode mode)
{
    switch (mode) {
    case BY_MODE_FAST:
    case BY_MODE_DET:
    default:
        return 0;
    }
}
END
fault "a folder without a row in the table is caught" control/planted/planted.c "has no row" arrows_lines <<'END'
#include <stdio.h>
END
fault "a C library header does not compile in offload" offload/base/planted.c "stdio.h: No such file" build objects/release/obj/offload/base/planted.o <<'END'
#include <stdio.h>
END
fault "a C library symbol in offload is caught" offload/base/planted.c "symbols from outside offload: strcmp" symbols offload/base/planted.c <<'END'
int strcmp(const char *a, const char *b);
int by_planted(const char *a, const char *b);
int by_planted(const char *a, const char *b)
{
    return strcmp(a, b);
}
END
fault "a mutable static variable in offload is caught" offload/base/planted.c "mutable static data: counter" symbols offload/base/planted.c <<'END'
int by_planted(void);
int by_planted(void)
{
    static int counter;

    return ++counter;
}
END
sound "const data in offload passes" offload/base/planted.c symbols offload/base/planted.c <<'END'
const char *by_planted(unsigned i);
const char *by_planted(unsigned i)
{
    static const char *const names[] = {"a", "b"};

    return names[i & 1];
}
END
fault "code in another format is caught" offload/base/planted.c "offload/base/planted.c:1" format_one offload/base/planted.c <<'END'
int by_planted( void ){ return 1; }
END
fault "a null pointer that is read is caught by clang-tidy" dataplane/planted.c "clang-analyzer-core.NullDereference" tidy dataplane/planted.c <<'END'
int by_planted(int a);
int by_planted(int a)
{
    int *p = a > 0 ? &a : 0;

    return *p;
}
END
fault "memory that is too small is caught by clang-tidy" control/planted.c "bugprone-misplaced-operator-in-strlen-in-alloc" tidy control/planted.c <<'END'
#include <stdlib.h>
#include <string.h>
char *by_planted(const char *text);
char *by_planted(const char *text)
{
    char *copy = malloc(strlen(text + 1));

    return copy ? strcpy(copy, text) : copy;
}
END
fault "a read beyond an array is caught by cppcheck" control/planted.c "out of bounds" cppcheck_one control/planted.c <<'END'
int by_planted(void);
int by_planted(void)
{
    int table[4] = {1, 2, 3, 4};
    int sum = 0;

    for (int i = 0; i <= 4; i++)
        sum += table[i];
    return sum;
}
END
fault "a manual page with an error is caught" docs/man/banyan-planted.1 "banyan-planted.1" tests/lint/man.sh <<'END'
.Dd November 21, 2026
.Dt BANYAN-PLANTED 1
.Os
.Sh NAME
.Nm banyan-planted
.Nd a page
.Bl -tag
.Sh DESCRIPTION
END
fault "a manual page that names one that is not there is caught" docs/man/banyan-planted.1 "names banyan-nowhere(1)" tests/lint/man.sh <<'END'
.Dd November 21, 2026
.Dt BANYAN-PLANTED 1
.Os
.Sh NAME
.Nm banyan-planted
.Nd a page
.Sh DESCRIPTION
See
.Xr banyan-nowhere 1 .
END
# A library that exports what the unchanged header declares.
grep -ohE '\bbanyan_[a-z0-9_]+\(' host-driver/include/banyan/{banyan,exchange}.h | tr -d '(' | sort -u | sed 's/.*/int &(void);\nint &(void)\n{\n    return 0;\n}/' >objects/api.c
cc -shared -fPIC -o objects/api.so objects/api.c
header=host-driver/include/banyan/banyan.h
api() { tests/lint/api.sh objects/api.so; }
sound "the public interface passes" docs/man/passes.md api </dev/null
fault "a function without a manual page is caught" $header "docs/man/banyan_planted.3: missing" api < <(cat $header && echo 'BANYAN_API int banyan_planted(void);')
fault "a function without an example is caught" $header "no example uses banyan_planted" api < <(cat $header && echo 'BANYAN_API int banyan_planted(void);')
fault "a function without a docstring is caught" $header "without a docstring: BANYAN_API int banyan_planted(void);" api < <(cat $header && echo 'BANYAN_API int banyan_planted(void);')
fault "an exported function that is not declared is caught" $header "exports banyan_version, which" api < <(sed '/int banyan_version(void)/d' $header)
fault "a page of no function is caught" docs/man/banyan_planted.3 "declares no such function" api < docs/man/libbanyan.3
fault "an example that nobody builds and runs is caught" host-driver/examples/planted.c "does not run it" api < host-driver/examples/barrier.c
# A library of another interface.
if command -v abidiff >/dev/null; then
    echo '#include <banyan/banyan.h>
        banyan_status_t banyan_fabric_link(const struct banyan_fabric *fabric, uint32_t index, struct banyan_link *link)
        { return fabric && index && link ? 0 : 1; }' >objects/abi.c
    mkdir -p objects/banyan
    cp host-driver/include/banyan/exchange.h objects/banyan/
    cc -g -shared -fPIC -Ihost-driver/include -o objects/abi.so objects/abi.c
    sed 's/^    uint64_t packets;$/    uint32_t packets;/' host-driver/include/banyan/banyan.h >objects/banyan/banyan.h
    cc -g -shared -fPIC -Iobjects -o objects/changed.so objects/abi.c
    echo 'int banyan_planted(void); int banyan_planted(void) { return 0; }' | cc -g -shared -fPIC -o objects/other.so -xc -
    stored() { abidw --headers-dir host-driver/include objects/abi.so; }
    fault "a changed struct of the interface is caught" host-driver/libbanyan.abi "'uint64_t packets' changed" tests/lint/abi.sh objects/changed.so < <(stored)
    fault "a removed function of the interface is caught" host-driver/libbanyan.abi "1 Removed" tests/lint/abi.sh objects/other.so < <(stored)
fi
# Rules, dashboard and the page of alerts.
alerts() { tests/lint/alerts.py; }
sound "the alerts pass" docs/planted.md alerts < <(echo "A page.")
fault "an alert without advice is caught" docs/operate.md "no section '### BanyanPortDown'" alerts < <(sed 's/^### BanyanPortDown$/### BanyanPort/' docs/operate.md)
fault "a rule of a metric that nothing writes is caught" docs/operate/banyan.rules.yml "banyan_port_upp is not a metric" alerts < <(sed 's/banyan_port_up /banyan_port_upp /' docs/operate/banyan.rules.yml)
if command -v promtool >/dev/null; then # which evaluates the rules
    fault "an alert that never fires is caught" docs/operate/banyan.rules.yml "BanyanSwitchDown" alerts < <(sed 's/banyan_switch_up == 0/banyan_switch_up == 2/' docs/operate/banyan.rules.yml)
fi
fault "a panel of a series that is not recorded is caught" docs/operate/dashboard.json "is not recorded" alerts < <(sed 's/banyan:job_opt:ratio/banyan:job_opt:part/' docs/operate/dashboard.json)
fault "a path with blanks is caught" "docs/a planted|page.md" "a path holds letters" tests/lint/text.py < <(echo "A page.")
fault "a file that is too long is caught" control/planted.c "701 lines; the limit is 700" tests/lint/text.py < <(yes '/* line */' | head -701)
fault "a path of a private machine is caught" docs/planted.md "docs/planted.md:1" tests/lint/text.py < <(echo "see /hom""e/me/notes.txt")
fault "a note to oneself is caught" control/planted.c "control/planted.c:1" tests/lint/text.py < <(echo "/* TO""DO: later */")
fault "blanks at the end of a line are caught" control/planted.c "end in blanks" tests/lint/text.py < <(printf 'int a; \n')
fault "a file without a final newline is caught" docs/planted.md "no newline at the end" tests/lint/text.py < <(printf 'text')
# docs/extending.md: an addition that omits a place. Each row of a list is planted alone; a place
# that must follow does not build.
# object NAME: builds an object of offload, host-driver or control again.
object() {
    build objects/release/obj/"$1"
    local status=$?
    rm -rf objects/release/obj
    return $status
}
fault "an operator that the public interface lacks is caught" offload/wire/types.h "BANYAN_PLANTED" object host-driver/error.o \
    < <(sed 's/    X(BXOR, 7, "bxor")/    X(BXOR, 7, "bxor") X(PLANTED, 8, "planted")/' offload/wire/types.h)
fault "an operator without a kernel is caught" offload/reduce/kernels.h "PLANTED" object offload/reduce/kernels_scalar.o \
    < <(sed 's/X(BXOR, __VA_ARGS__)/X(BXOR, __VA_ARGS__) X(PLANTED, __VA_ARGS__)/' offload/reduce/kernels.h)
fault "an element type that the public interface lacks is caught" offload/wire/types.h "BANYAN_PLANTED" object host-driver/error.o \
    < <(sed 's/    X(F64, 10, "f64", 8)/    X(F64, 10, "f64", 8) X(PLANTED, 11, "planted", 8)/' offload/wire/types.h)
fault "a collective that the endpoint does not place is caught" offload/wire/types.h "BY_COLLECTIVE_PLANTED" object offload/endpoint/share.o \
    < <(sed 's/    X(BARRIER, 6, \(.*\))$/    X(BARRIER, 6, \1) X(PLANTED, 7, "planted", 0, 0, 1, BY_DATA_BOTH)/' offload/wire/types.h)
fault "a transport whose table lacks a function is caught" host-driver/udp.c "missing initializer" object host-driver/udp.o \
    < <(sed 's/udp_close, udp_readdress};/udp_close};/' host-driver/udp.c)
fault "a driver of the switch that is not opened is caught" dataplane/interface.h "BY_DRIVER_PLANTED" object dataplane/port.o \
    < <(sed 's/    X(GSO, "gso")/    X(GSO, "gso") X(PLANTED, "planted")/' dataplane/interface.h)
fault "a driver of the switch whose table lacks a function is caught" dataplane/port_gso.c "gso_ops lacks .settle" names_only \
    < <(sed '/\.settle = settle,/d' dataplane/port_gso.c)
fault "a board without its numbers is caught" boards/planted/board.mk "board.json" build BOARD=planted objects/release/obj/firmware/linux/board.o < boards/x86-dpdk/board.mk
fault "an importer that is not declared is caught" control/fabric/import/planted.c "no previous prototype" object control/fabric/import/planted.o <<'END'
#include "control/fabric/import/draft.h"
int by_import_planted(void)
{
    return 0;
}
END
fault "an exporter that is not declared is caught" control/study/export/planted.c "no previous prototype" object control/study/export/planted.o <<'END'
#include "control/study/export/export.h"
int by_export_planted(void)
{
    return 0;
}
END
# The pages for newcomers and the index of decisions.
guide() { tests/lint/guide.py; }
sound "the pages for newcomers pass" docs/man/passes.md guide </dev/null
fault "a page that names a missing file is caught" docs/where.md "offload/nowhere.c does not exist" guide < <(cat docs/where.md && echo '| where? | `offload/nowhere.c` | `by_planted()` |')
fault "a page that names a missing function is caught" docs/where.md "does not define by_planted" guide < <(cat docs/where.md && echo '| where? | `offload/wire/wire.c` | `by_planted()` |')
fault "a function that the file only calls is caught" docs/where.md "does not define by_header_decode" guide < <(cat docs/where.md && echo '| where? | `offload/engine/engine.c` | `by_header_decode()` |')
fault "a name that the file does not mention is caught" docs/glossary.md "does not mention by_planted" guide < <(cat docs/glossary.md && echo '| planted | a word | none | `offload/wire/wire.c` `by_planted` |')
fault "a call that the caller does not make is caught" docs/walk.md "does not call by_send_results" guide < <(sed 's/^| 11 | call | .*by_contrib_take.*/| 11 | call | `offload\/engine\/send.c` | `by_send_results()` | |/' docs/walk.md)
fault "a call through a wrong function is caught" docs/walk.md "does not call send_all" guide < <(sed 's/via `finish` |/via `send_all` |/' docs/walk.md)
fault "a walk of 16 stops is caught" docs/walk.md "more than 15 stops" guide < <(cat docs/walk.md && echo '| 16 | pointer | `offload/engine/load.c` | `by_engine_abort()` | |')
fault "a missing page is caught" docs/walk.md "docs/extending.md is missing" eval 'mv docs/extending.md extending && { guide; s=$?; mv extending docs/extending.md; (exit $s); }' < <(cat docs/walk.md)
fault "an operator that the glossary does not list is caught" offload/wire/types.h "BY_OP_PLANTED" guide < <(sed 's/    X(SUM, 1, "sum")/    X(PLANTED, 8, "planted") \\\n&/' offload/wire/types.h)
fault "a setting that the glossary does not list is caught" host-driver/settings.inc.h "BANYAN_PLANTED" guide < <(sed 's/    X(SEED, /    X(PLANTED, "", "") \\\n&/' host-driver/settings.inc.h)
fault "a part of make test that CONTRIBUTING.md does not list is caught" tests/test.sh "does not list the parts" guide \
    < <(sed 's/^    part unit /    part planted "a part" true\n&/' tests/test.sh)
fault "a decision without a row in the index is caught" docs/decisions/0999-planted.md "names 0999-planted.md 0 times" guide < <(echo '# 999. Planted')
fault "a decision that is in the index twice is caught" docs/decisions/README.md "names 0001-one-slot-state-machine-for-all-collectives.md 2 times" guide \
    < <(cat docs/decisions/README.md && grep -F '](0001-' docs/decisions/README.md)
fault "an index with another title is caught" docs/decisions/README.md "the title of 0001-one-slot" guide < <(sed 's/\[One slot state machine/[A slot state machine/' docs/decisions/README.md)
fault "a superseded decision that the index does not mark is caught" docs/decisions/README.md "must say: superseded by 195" guide < <(sed 's/, superseded in part by 195//' docs/decisions/README.md)
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
