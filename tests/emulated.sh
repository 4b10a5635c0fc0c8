#!/usr/bin/env bash
# Run test files in an AArch64 Python under QEMU, on a machine of another kind.
#
#   tests/emulated.sh                                   the files of the list below
#   tests/emulated.sh tests/engine -k threads           files and options of pytest
#   EVERY=20 tests/emulated.sh tests/ops/test_cases.py  one in 20 of the tests of a file; START=1: the next ones
#   FEATURES="asimd" tests/emulated.sh tests/saved      a processor with these features (/proc/cpuinfo's names)
#
# The first call makes the environment in out/aarch64 (EMULATED= another folder): Debian's Python, and wheels of the
# package index, 700 MB. It needs Debian's packages mmdebstrap and qemu-user, and a Python with pip. Nothing is installed.
# FEATURES are what the emulated /proc/cpuinfo says; QEMU runs all of those named here. An emulator on x86 keeps memory
# in order, so it shows no missing barrier.
set -euo pipefail
cd "$(dirname "$0")/.."
HOST_PYTHON=${PYTHON:-python3}
HOME_OF=${EMULATED:-$PWD/out/aarch64}
ROOT=$HOME_OF/root
FEATURES=${FEATURES:-fp asimd asimdhp fphp asimddp i8mm bf16}
PACKAGES="numpy numba llvmlite scipy threadpoolctl safetensors graphviz onnx==1.22.* ml_dtypes protobuf>=6.33.5 h5py Pillow
pytest hypothesis ndindex mpmath"

for tool in mmdebstrap qemu-aarch64; do
    command -v "$tool" > /dev/null || { echo "$tool is missing: apt-get install mmdebstrap qemu-user" >&2; exit 1; }
done

if [ ! -e "$HOME_OF/ready" ]; then
    rm -rf "$HOME_OF"
    mkdir -p "$HOME_OF/wheels"
    mmdebstrap --quiet --variant=extract --arch=arm64 \
        --include=python3,libgomp1,libstdc++6,zlib1g,libffi8,libssl3 bookworm "$ROOT"
    platforms=()
    for name in manylinux_2_28 manylinux_2_27 manylinux_2_26 manylinux_2_17 manylinux2014; do
        platforms+=(--platform "${name}_aarch64")
    done
    # shellcheck disable=SC2086 # one word for each package
    "$HOST_PYTHON" -m pip download --quiet --only-binary=:all: --python-version 3.11 --implementation cp \
        --abi cp311 --abi abi3 --abi none "${platforms[@]}" --dest "$HOME_OF/wheels" $PACKAGES
    mkdir -p "$ROOT/opt/site"
    for wheel in "$HOME_OF"/wheels/*.whl; do
        "$HOST_PYTHON" -m zipfile -e "$wheel" "$ROOT/opt/site"
    done
    # Child processes: Python starts itself by sys.executable, which must be a program of this machine.
    printf 'import os\nimport sys\n\nsys.executable = os.environ["EMULATED_PYTHON"]\n' > "$ROOT/opt/site/sitecustomize.py"
    touch "$HOME_OF/ready"
fi

for ((i = 0; i < $(nproc); i++)); do
    printf 'processor\t: %d\nBogoMIPS\t: 100.00\nFeatures\t: %s\nCPU implementer\t: 0x41\n' "$i" "$FEATURES"
    printf 'CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd40\nCPU revision\t: 1\n\n'
done > "$HOME_OF/cpuinfo"

# Without qemu's -L, which would open / and /tmp below the root.
cat > "$HOME_OF/python" << END
#!/bin/sh
export PYTHONHOME="$ROOT/usr" PYTHONDONTWRITEBYTECODE=1 EMULATED_PYTHON="$HOME_OF/python"
export PYTHONPATH="$PWD:$ROOT/opt/site" XDG_CACHE_HOME="\${XDG_CACHE_HOME-$HOME_OF/cache}"
exec qemu-aarch64 -cpu max "$ROOT/lib/ld-linux-aarch64.so.1" \\
    --library-path "$ROOT/lib/aarch64-linux-gnu:$ROOT/usr/lib/aarch64-linux-gnu" "$ROOT/usr/bin/python3.11" "\$@"
END
chmod +x "$HOME_OF/python"

if [ $# -eq 0 ]; then
    set -- tests/engine/test_threads.py tests/engine/test_teams.py tests/engine/test_cores.py tests/system \
        tests/kernels/test_store.py tests/kernels/test_cache.py tests/kernels/test_conv8.py \
        tests/kernels/test_product8.py tests/kernels/test_pointwise.py tests/saved tests/ops/test_cases.py -m "not slow"
fi
if [ -n "${EVERY:-}" ]; then
    set -- -p tests.support.every "$@"
fi
rights=-m
[ "$(id -u)" -eq 0 ] || rights=-rm # a user becomes root in a namespace of its own
exec unshare "$rights" sh -c 'mount --bind "$0/cpuinfo" /proc/cpuinfo && exec "$0/python" -m pytest "$@"' "$HOME_OF" "$@"
