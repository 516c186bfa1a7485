#!/bin/bash
# Runs the real kubectl through what people do with it, against the API server
# of a kubeconfig, and checks what comes back.
#
#	KUBECONFIG=… [KUBECTL=…/kubectl] suite.sh [PATTERN]
#
# The cluster needs a workload controller, a scheduler and something that makes
# pods Ready. Everything is made in a namespace of its own, which is deleted at
# the end; one node is cordoned, tainted and drained for a moment. With PATTERN
# (an extended regular expression) only the sections that match run.
#
# Prints a PASS or FAIL line for each check, "N passed, N failed" at the end,
# and exits 1 when any failed, 2 when it cannot begin.
set -u

KUBECTL=${KUBECTL:-kubectl}
pattern=${1:-.}
here=$(cd "$(dirname "$0")" && pwd)
# No check may hang for ever; nothing passes by being fast.
limit=120

if [ -z "${KUBECONFIG:-}" ] || [ ! -r "$KUBECONFIG" ]; then
	echo "suite.sh: set KUBECONFIG to a readable file (it is '${KUBECONFIG:-}')" >&2
	exit 2
fi
tmp=$(mktemp -d)
cp "$KUBECONFIG" "$tmp/kubeconfig"
export KUBECONFIG=$tmp/kubeconfig KUBECTL tmp here
export ns=kubectl-suite-$$

k() { "$KUBECTL" --cache-dir="$tmp/cache" "$@"; }
# field OBJECT JSONPATH prints one field.
field() { k get "$1" -o "jsonpath=$2"; }
# same A B: both texts are equal.
same() { [ "$1" = "$2" ] || { echo "got '$1', want '$2'"; return 1; }; }
# has TEXT: standard input holds the text; it is shown when it does not.
has() {
	local in
	in=$(cat)
	case $in in *"$1"*) return 0 ;; esac
	printf '%s\n' "$in"
	echo "'$1' is missing"
	return 1
}
# lacks TEXT: the contrary.
lacks() {
	local in
	in=$(cat)
	case $in in *"$1"*)
		printf '%s\n' "$in"
		echo "'$1' should not be there"
		return 1
		;;
	esac
}
# fails COMMAND…: it must fail; its output is printed.
fails() { ! "$@" 2>&1; }
# eventually COMMAND…: it must succeed in the end.
eventually() {
	until "$@"; do sleep 0.2; done
}
# alive SELECTOR prints the names of the pods that nobody has deleted.
alive() {
	k get pods -l "$1" -o go-template='{{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{end}}{{end}}'
}
export -f k field same has lacks fails eventually alive

passed=0
failed=0
section=
# check NAME COMMANDS: the commands run in a shell of their own that stops at
# the first failure, also inside a pipe.
check() {
	[[ $section =~ $pattern ]] || return 0
	local out
	if out=$(timeout "$limit" bash -c "set -eu -o pipefail; $2" 2>&1); then
		passed=$((passed + 1))
		echo "PASS $section: $1"
	else
		failed=$((failed + 1))
		echo "FAIL $section: $1"
		printf '%s\n' "$out" | tail -n 5 | sed 's/^/     /'
	fi
}
section() { section=$1; }
# given COMMANDS: what the section's checks start from.
given() {
	[[ $section =~ $pattern ]] || return 0
	timeout "$limit" bash -c "set -eu; $1" >/dev/null 2>&1 || echo "     $section: could not prepare: $1"
}

cleanup() {
	k uncordon "${node:-}" >/dev/null 2>&1
	k taint node "${node:-}" suite- >/dev/null 2>&1
	k delete namespace "$ns" --ignore-not-found --timeout=60s >/dev/null 2>&1
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

if ! out=$(k create namespace "$ns" 2>&1); then
	echo "suite.sh: cannot make namespace $ns: $out" >&2
	exit 2
fi
k config set-context --current --namespace="$ns" >/dev/null || exit 2
node=$(k get nodes -o 'jsonpath={.items[0].metadata.name}')
if [ -z "$node" ]; then
	echo "suite.sh: the cluster has no node" >&2
	exit 2
fi
export node

for f in "$here"/sections/*.sh; do
	# shellcheck source=/dev/null
	. "$f"
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
