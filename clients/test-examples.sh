#!/usr/bin/env bash
# Runs the LangChain and Strands Agents examples with the real packages, a scripted model and a fake gate. The first run
# installs the packages into .cache/venv-clients; the tests themselves use nothing beyond loopback.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

./python/setup-examples.sh
export LANGSMITH_TRACING=false LANGCHAIN_TRACING_V2=false OTEL_SDK_DISABLED=true
echo "clients: framework examples"
../.cache/venv-clients/bin/python -B -m unittest discover python/examples
