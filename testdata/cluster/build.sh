#!/bin/sh
# Builds real Kubernetes programs, at the versions that the modules here name,
# into bin/.
#
#	build.sh             every program of the table below
#	build.sh kubectl …   only the named ones
#
# A program is built again only when it is missing or when its module's go.mod or
# go.sum or this script changed since. Builds run at low priority; two callers at a time
# wait for each other. Prints the folder of the programs as its last line.
set -eu

cd "$(dirname "$0")"

# One line for each program: name, package, folder of the module that it is built
# in (a module has each package at one version only), build tags if any (with
# commas). A program of another module needs a "tool" line in go.mod too, so that
# "go mod tidy" keeps what it imports.
#
# containerd's tags leave out what needs C libraries, or devices that nobody here has.
programs='
kubectl                  k8s.io/kubernetes/cmd/kubectl                                    .
kube-proxy               k8s.io/kubernetes/cmd/kube-proxy                                 .
kube-proxy-1.34          k8s.io/kubernetes/cmd/kube-proxy                                 v1.34
etcd                     go.etcd.io/etcd/server/v3                                        .
kube-apiserver           k8s.io/kubernetes/cmd/kube-apiserver                             .
kube-controller-manager  k8s.io/kubernetes/cmd/kube-controller-manager                    .
kube-scheduler           k8s.io/kubernetes/cmd/kube-scheduler                             .
kwok                     sigs.k8s.io/kwok/cmd/kwok                                        kwok
kubelet                  k8s.io/kubernetes/cmd/kubelet                                    .
containerd               github.com/containerd/containerd/v2/cmd/containerd               containerd  no_btrfs,no_devmapper,no_zfs
containerd-shim-runc-v2  github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2  containerd  no_btrfs,no_devmapper,no_zfs
ctr                      github.com/containerd/containerd/v2/cmd/ctr                      containerd  no_btrfs,no_devmapper,no_zfs
'

# column COLUMN PROGRAM prints one field of the program's line.
column() {
	printf '%s' "$programs" | awk -v n="$1" -v name="$2" '$1 == name { print $n }'
}

# version_flags stamps the version as a release build does: without it kubectl
# and the servers say v0.0.0-master+$Format, and containerd 2.4.2+unknown. kwok is
# not one of them.
version_flags() {
	printf -- '-s -w'
	case $1 in
	kwok) return ;;
	containerd)
		version=$(go list -C "$1" -m -f '{{.Version}}' github.com/containerd/containerd/v2)
		printf ' -X github.com/containerd/containerd/v2/version.Version=%s' "$version"
		return
		;;
	esac
	version=$(go list -C "$1" -m -f '{{.Version}}' k8s.io/kubernetes)
	bare=${version#v}
	minor=${bare#*.}
	set -- gitVersion="$version" gitMajor="${bare%%.*}" gitMinor="${minor%%.*}" gitTreeState=clean
	for v in "$@"; do
		printf ' -X k8s.io/component-base/version.%s' "$v"
	done
}

build() {
	name=$1
	package=$(column 2 "$name")
	if [ -z "$package" ]; then
		echo "build.sh: no program $name; there are:$(printf '%s' "$programs" | awk '{printf " %s", $1}')" >&2
		exit 2
	fi
	module=$(column 3 "$name")
	tags=$(column 4 "$name")
	inputs="$(cat "$module/go.mod" "$module/go.sum" build.sh | sha256sum | cut -d' ' -f1) $(go env GOVERSION GOOS GOARCH | tr '\n' ' ')"
	if [ -x "bin/$name" ] && [ "$(cat "bin/.$name.inputs" 2>/dev/null || true)" = "$inputs" ]; then
		return
	fi
	echo "building $name ($package); the first time takes minutes" >&2
	# CGO off: the programs then run in any root file system.
	CGO_ENABLED=0 nice -n 10 go build -C "$module" -trimpath -buildvcs=false -tags "$tags" -ldflags "$(version_flags "$module")" -o "$PWD/bin/.$name.new" "$package"
	# Renamed last, so that nobody runs half a program.
	mv "bin/.$name.new" "bin/$name"
	printf '%s\n' "$inputs" >"bin/.$name.inputs"
}

mkdir -p bin
exec 9>bin/.lock
flock 9
if [ $# -eq 0 ]; then
	# Split into words, one for each program.
	# shellcheck disable=SC2046
	set -- $(printf '%s' "$programs" | awk '{print $1}')
fi
for name in "$@"; do
	build "$name"
done
echo "$PWD/bin"
