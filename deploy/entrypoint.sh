#!/bin/sh
# Starts the server of a container. Exit code 64: nothing says what to serve.
set -eu
if [ -z "${OMNIGRAPH_GRAPHS:-}" ]; then
  echo "set OMNIGRAPH_GRAPHS to the graphs to serve, as [ID=]URI separated by spaces" >&2
  exit 64
fi
# Several graphs stand in one variable: it is split on purpose.
# shellcheck disable=SC2086
exec omnigraph serve $OMNIGRAPH_GRAPHS "$@"
