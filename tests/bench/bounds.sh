#!/usr/bin/env bash
# The bounds of preset fabrics, as in the table of docs/bounds.md: one line for each fabric, from
# `banyan bound --json`, with the processor time of the command.
#   bounds.sh BUILD
set -u
banyan=$1/bin/banyan
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0
TIMEFORMAT='%U %S'

# The fraction that follows "KEY": in the output, from "SECTION": on; - if it is null.
rate() { # SECTION KEY
    awk -v section="\"$1\": " -v key="\"$2\": " '
        { text = text $0 }
        END {
            text = substr(text, index(text, section))
            text = substr(text, index(text, key) + length(key))
            if (text ~ /^null/) { print "-"; exit }
            sub(/}.*/, "", text)
            gsub(/[^0-9,]/, "", text)
            split(text, part, ",")
            print part[2] == 1 ? part[1] : part[1] "/" part[2]
        }' "$folder/bound"
}
word() { sed -n "s/.*\"$1\": \"\\{0,1\\}\\([a-z_ ]*\\)[\",].*/\\1/p" "$folder/bound" | head -1 | sed "s,null,-,"; }

line() { # NAME PRESET OPTIONS...
    local name=$1 spent
    shift
    "$banyan" topo "$@" >"$folder/fabric" || { status=1; return; }
    { time "$banyan" bound "$folder/fabric" --json >"$folder/bound" 2>"$folder/errors"; } 2>"$folder/time" || {
        echo "bounds.sh: $name: $(cat "$folder/errors")" >&2
        status=1
        return
    }
    spent=$(awk '{printf "%.2f", $1 + $2}' "$folder/time")
    echo "| $name | $(rate allgather bound) | $(rate broadcast bound) | $(rate allreduce cut_set) | $(rate allreduce processes) |" \
        "$(rate allreduce links) | $(rate allreduce re_bc) | $(rate allreduce rs_ag) | $(word rs_ag_proof) |" \
        "$(rate allreduce rate_lp) | $(word rate_lp_method) | $(rate allreduce in_network) | $spent |"
}

echo "| fabric | allgather | broadcast | cut set | processes | links | RE+BC | RS+AG | proved by | tree pairs | found by | in the network | s |"
echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
line "2 A100 boxes, switches forward" a100 --boxes 2
line "2 A100 boxes, switches sum and copy" a100 --boxes 2 --capable all
line "128 A100 boxes" a100 --boxes 128 --capable all
line "16 H100 boxes" h100 --boxes 16
line "128 H100 boxes" h100 --boxes 128
line "2 MI250 boxes" mi250 --boxes 2
line "2 MI250 boxes of 8 GPUs in use" mi250 --boxes 2 --gpus 8
line "64 MI250 boxes" mi250 --boxes 64
line "torus 4 x 4" torus --sizes 4x4
line "torus 3 x 4 x 5" torus --sizes 3x4x5
line "torus 10 x 10 x 10" torus --sizes 10x10x10
line "hypercube of 64" hypercube --dimensions 6
line "ring of 64" ring --hosts 64
line "complete, 64" complete --hosts 64
line "dragonfly of 20" dragonfly
line "dragonfly of 1,056" dragonfly --groups 33 --hosts 4 --routers 8
line "fat-tree of 16" fattree
line "fat-tree of 1,024" fattree --ports 16
line "leaf-spine of 1,024" leafspine --leaves 32 --spines 32 --hosts 32
line "star of 8" star --hosts 8
line "leaf-spine of 32, links x 5 to 8, forward" leafspine --leaves 8 --spines 4 --hosts 4 --capable none --scatter 5..8
line "leaf-spine of 72, the same" leafspine --leaves 12 --spines 6 --hosts 6 --capable none --scatter 5..8
line "fat-tree of 54, the same" fattree --ports 6 --capable none --scatter 5..8
line "4 MI250 boxes, links x 1 to 5" mi250 --boxes 4 --scatter 1..5
line "2 boxes with PCIe, links x 5 to 8, forward" pcie --capable none --scatter 5..8
exit $status
