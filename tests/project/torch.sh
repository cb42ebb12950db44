#!/usr/bin/env bash
# Compares ops, and programs of views and in-place ops, with PyTorch: see tests/outside/compare_torch.py. Skipped if
# TENON_PEER_PYTHON (default: python3) has no PyTorch 2.15 or later.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

python=${TENON_PEER_PYTHON:-python3}
command -v "$python" >/dev/null || { echo "skipped: there is no $python" && exit 77; }
mkdir -p "$TENON_BUILD/figures"
"$python" tests/outside/compare_torch.py "$TENON_SO" | tee "$TENON_BUILD/figures/torch-ops"
code=${PIPESTATUS[0]}
[ "$code" = 0 ] || { rm "$TENON_BUILD/figures/torch-ops"; exit "$code"; }
"$python" tests/outside/compare_torch_programs.py "$TENON_SO" | tee "$TENON_BUILD/figures/torch-programs"
exit "${PIPESTATUS[0]}"
