#!/usr/bin/env bash
# Everything that needs an NVIDIA GPU, in one command from the working tree, without network and
# without installing anything: staging of CUDA buffers with rates, streams and training with torch,
# and NCCL with the plugin as two nodes on one GPU. docs/gpu.md says what has been run.
#   gpu.sh BUILD      PYTHON: an interpreter with a PyTorch for CUDA (default python3). DEVICE=cpu runs
#                     the training on the processor, which tests this script where there is no GPU
# Exit status: 0; 1 a test failed; 77 there is no GPU. What cannot run (no PyTorch with CUDA, no NCCL)
# is named as skipped.
set -u
[ $# -eq 1 ] || { echo "usage: gpu.sh BUILD" >&2; exit 2; }
cd "$(dirname "$0")/../.." || exit 2
build=$(realpath "$1")
python=${PYTHON:-python3}
device=${DEVICE:-cuda}
dir=$(mktemp -d -t banyan-gpu-XXXXXX)
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0
report() { # STATUS WHAT [LOG]
    case $1 in
    0) echo "  PASS   $2"; passed=$((passed + 1)) ;;
    77) echo "  SKIP   $2: $(sed -E 's/.*skipped: //' "$3" | head -n 1)" ;;
    *) [ $# -lt 3 ] || tail -n 30 "$3"; echo "  FAIL   $2"; failed=$((failed + 1)) ;;
    esac
}

if [ "$device" = cuda ]; then
    "$build/tests/gpu_staging_test" gpu >"$dir/log" 2>&1
    status=$?
    if [ $status -eq 77 ]; then
        echo "gpu.sh: skipped: there is no NVIDIA GPU here: $(sed -nE 's/.*skipped: //p' "$dir/log" | tail -n 1)" >&2
        exit 77
    fi
    command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sed 's/^/# /'
    grep '^BANYAN_GPU' "$dir/log" | sed 's/^/  /'
    report $status "staging of CUDA buffers: every collective, sizes, alignments, kinds of memory" "$dir/log"
fi

# The backend for this interpreter's PyTorch; Debian's is that of `make torch`.
package=$build/lib/banyan/torch
torch=$("$python" -c 'import torch; print(torch.__path__[0])' 2>/dev/null)
if [ -n "$torch" ] && [ -d "$torch/include/torch" ] && [ "$torch" != /usr/lib/python3/dist-packages/torch ]; then
    package=$dir/package
    mkdir -p "$package/banyan_torch"
    cp host-driver/plugin/torch/banyan_torch/*.py "$package/banyan_torch"
    include=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
    abi=$("$python" -c 'import torch; print(int(torch._C._GLIBCXX_USE_CXX11_ABI))')
    # shellcheck disable=SC2086 # TORCH_FLAGS are words
    g++ -std=c++17 -O2 -fPIC -fvisibility=hidden -shared -D_GLIBCXX_USE_CXX11_ABI="$abi" -DTORCH_EXTENSION_NAME=_C ${TORCH_FLAGS:-} \
        -Ihost-driver/include -isystem "$include" -isystem "$torch/include" -isystem "$torch/include/torch/csrc/api/include" \
        -o "$package/banyan_torch/_C.so" host-driver/plugin/torch/*.cpp "$build/lib/libbanyan.so.0" -L"$torch/lib" \
        -ltorch_python -ltorch -ltorch_cpu -lc10 -Wl,-rpath,"$build/lib" >"$dir/log" 2>&1
    report $? "the backend builds with the PyTorch of $python" "$dir/log"
fi

two() { # BACKEND DEVICE WRAP [VARIABLE=VALUE...]: both ranks; $dir/out.0 and out.1
    local backend=$1 where=$2 wrap=$3 status=0 one pids=() rank
    shift 3
    local port=$((20000 + RANDOM % 10000))
    for rank in 0 1; do
        env PYTHONPATH="$package" PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
            GLOO_SOCKET_IFNAME=lo BANYAN_OFFLOAD=off BANYAN_LOG=0 NCCL_HOSTID=node$rank "$@" timeout 200 "$python" -W ignore tests/gpu/train.py \
            "$backend" "$where" "$wrap" >"$dir/out.$rank" 2>&1 &
        pids+=($!)
    done
    for one in "${pids[@]}"; do wait "$one" || status=$?; done
    return $status
}
losses() { sed -nE 's/.*: losses (.*)/\1/p' "$dir/out.0"; }
# Whether the losses in out.0 are those of the reference, up to rounding.
alike() {
    paste -d ' ' <(tr ' ' '\n' <"$dir/reference") <(losses | tr ' ' '\n') |
        awk 'NF != 2 || $1 - $2 > 0.002 || $2 - $1 > 0.002 {wrong = 1} END {exit wrong || NR < 8}'
}

if [ -z "$torch" ]; then
    echo "$python cannot import torch" >"$dir/log"
    report 77 "training with torch" "$dir/log"
elif [ ! -e "$package/banyan_torch/_C.so" ]; then
    echo "the backend is not built: make torch" >"$dir/log"
    report 77 "training with torch" "$dir/log"
else
    two gloo cpu ddp
    report $? "the losses over Gloo on the processor: $(losses)" "$dir/out.0"
    losses >"$dir/reference"
    for wrap in ddp fsdp fsdp2; do
        for setting in auto on; do
            two banyan "$device" $wrap BANYAN_GPU=$setting
            status=$?
            [ $status -ne 0 ] || alike || status=1
            cp "$dir/out.0" "$dir/log"
            [ $status -eq 0 ] || [ $status -eq 77 ] || cat "$dir/out.1" >>"$dir/log"
            report $status "$wrap on $device over banyan has the losses of Gloo (BANYAN_GPU=$setting)" "$dir/log"
        done
    done
    # Two nodes on one GPU: NCCL refuses one GPU twice on one node, and NCCL_HOSTID makes two nodes of it.
    if [ "$device" = cuda ]; then
        two nccl cuda ddp NCCL_DEBUG=INFO NCCL_NET_PLUGIN="$build/lib/libnccl-net-banyan.so" NCCL_COLLNET_ENABLE=1 BANYAN_NCCL_INTERFACE=lo \
            NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1
        status=$?
        [ $status -ne 0 ] || { grep -q 'NET/banyan\|network banyan' "$dir/out.0" && alike; } || status=1
        report $status "NCCL with the plugin, as two nodes on one GPU" "$dir/out.0"
    fi
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
