#!/bin/sh
# C as .clang-format wants it, and sound shell scripts. Neither tool is needed to build or test: without them, skipped.
set -eu
cd "$(dirname "$0")/../.."
ran=0
if command -v shellcheck >/dev/null; then
  shellcheck vendor/bootstrap .ci/run spec/lint/format.sh
  ran=1
else
  echo "skipped: no shellcheck here"
fi
if command -v clang-format >/dev/null; then
  find src spec -name '*.[ch]' -print0 | xargs -0 -r clang-format --dry-run -Werror
  ran=1
else
  echo "skipped: no clang-format here"
fi
[ "$ran" = 1 ] || exit 77
