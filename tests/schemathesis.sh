#!/bin/sh
# Holds a running daemon against its own document, with requests that nobody would write by hand.
#
#     tests/schemathesis.sh [ARGUMENTS OF schemathesis run]
#
# Needs `schemathesis` (pip install schemathesis) and `curl` on the PATH. The daemon is the release build, unless
# HOLON names another one; it lives in a folder of its own, which is removed in the end.
set -eu

cd "$(dirname "$0")/.."
if [ -z "${HOLON:-}" ]; then
    cargo build --release --bin holon
    HOLON=$PWD/target/release/holon
fi

folder=$(mktemp -d)
mkdir "$folder/workspace"
finish() {
    kill "$daemon" 2>/dev/null || true
    wait "$daemon" 2>/dev/null || true
    rm -rf "$folder"
}
trap finish EXIT

# The model has no key, so that of all the texts that are sent none is run as a command.
cd "$folder/workspace"
mkfifo "$folder/says"
env -u HOLON_CONTROL_TOKEN -u OPENAI_API_KEY -u OPENAI_BASE_URL HOLON_HOME="$folder/home" \
    "$HOLON" serve --listen 127.0.0.1:0 --model openai/none >"$folder/says" 2>"$folder/log" &
daemon=$!
read -r line <"$folder/says"
url=${line##* }

# Records that the document's examples name.
post() {
    curl -fsS -o "$folder/answer" -X POST "$url/control/agents/main/$1" -H 'Content-Type: application/json' -d "$2"
}
post prompt '{"text": "hello"}'
post work-items '{"objective": "be found"}'
post timers '{"duration_ms": 3600000}'
post external-triggers '{"label": "be found"}'

# Whatever else is made up, the agent is the one that is there.
cat >"$folder/schemathesis.toml" <<'END'
[parameters]
"path.id" = "main"
END

# Streams end only with their clients, and the daemon and its agent are needed to the end. What is well-formed may be
# refused for what the state is. Who may ask is looked at by tests of our own.
schemathesis --config-file "$folder/schemathesis.toml" run "$url/openapi.json" \
    --exclude-path-regex '(/stream|/archive|/runtime/shutdown)$' \
    --exclude-checks positive_data_acceptance,ignored_auth \
    --continue-on-failure --seed 1 "$@"
