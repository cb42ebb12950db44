#!/usr/bin/env bash
# Compares ops, programs of views and in-place ops, and beam search with PyTorch and transformers: see
# tests/outside/compare_torch.py, beams_check.py. Skipped if
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
code=${PIPESTATUS[0]}
[ "$code" = 0 ] || exit "$code"
"$python" tests/outside/beams_check.py "$TENON_SO" # with transformers, if it is installed
code=$?
exit $((code == 77 ? 0 : code))
