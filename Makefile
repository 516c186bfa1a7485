# The two commands to know: `make lab` and `make test`.

GO      ?= go
VERSION ?=
LDFLAGS := -s -w $(if $(VERSION),-X main.version=$(VERSION))

.DEFAULT_GOAL := build

.PHONY: lab
lab: build ## build and start the lab with its screen
	./bin/kconverge lab

.PHONY: build
build: ## build the programs into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

.PHONY: deps
deps: ## install the programs that the tests drive
	@missing=; for p in nft:nftables strace:strace iptables:iptables ip:iproute2 tmux:tmux runc:runc /usr/lib/cni/bridge:containernetworking-plugins chromium:chromium asciinema:asciinema npm:npm; do \
	  command -v $${p%%:*} >/dev/null || missing="$$missing $${p##*:}"; done; \
	if [ -n "$$missing" ]; then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing; fi

.PHONY: cluster-bin
cluster-bin: ## build the real programs that the tests run: kubectl, kube-proxy, a control plane
	$(MAKE) -C testdata/cluster bin

.PHONY: cluster
cluster: deps cluster-bin build ## run a real cluster with real kube-proxies, as root, until Ctrl-C (CLUSTER='-mode iptables', CLUSTER=-real)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/cluster-pod ./engine/cluster/pod
	$(GO) run ./engine/cluster/up $(CLUSTER)

.PHONY: cluster-down
cluster-down: ## end the cluster that `make cluster` runs in another terminal
	$(GO) run ./engine/cluster/up -down

.PHONY: e2e
e2e: deps cluster-bin ## the end-to-end tests on a real cluster: the model against nft, iptables-save and nft monitor
	$(GO) test -count=1 -v -timeout 20m ./engine/cluster/...

.PHONY: test
test: deps cluster-bin build ## everything that must pass
	$(GO) test -race -timeout 30m ./...
	CGO_ENABLED=0 $(GO) test -trimpath -timeout 20m ./engine/scenario -run Scenarios
	$(GO) test -C testdata/oracle . -rapid.checks=10000
	$(GO) test -C testdata/consumers -timeout 10m .

.PHONY: soak
soak: deps cluster-bin build ## the long forms: many more random worlds, and what is measured
	$(GO) test -timeout 60m ./engine/desired ./engine/timeline ./engine/lanes -rapid.checks=5000
	$(GO) test -timeout 60m ./engine/timeline -run 'Reference|Prefix|Retention|Interleavings|HoweverClose' -rapid.checks=50000
	$(GO) test -timeout 60m ./engine/rulesync -run TestRulesAreThoseOfTheRealKubeProxy -operations=2000
	$(GO) test -timeout 8h ./engine/scenario -run Scenarios -count=20
	$(GO) test -race -timeout 120m ./engine/scenario -run Scenarios -races -parallel 2
	$(GO) test -timeout 60m ./engine/scenario -run 'Scenarios/cut-endpoints' -heavy
	$(GO) test -C testdata/oracle . -rapid.checks=200000 -operations=2000 -timeout 30m
	$(GO) test -count=1 -v -timeout 60m ./engine/cluster -instants=200 -arrivals=500 -operations=500
	$(GO) test -timeout 30m -run '^$$' -bench 'EventToScreen' -benchtime 500x ./cmd/kconverge
	$(GO) test -timeout 30m -run '^$$' -bench 'Witness' -benchtime 50x ./cmd/kconverge
	$(GO) test -timeout 30m -run '^$$' -bench 'Start$$' -benchtime 10x ./cmd/kconverge
	$(GO) test -timeout 120m -run '^$$' -bench LongRecording -benchtime 1x ./cmd/kconverge -recorded=10000000
	$(GO) test -timeout 30m -run '^$$' -bench 'Agent$$' -benchtime 60x ./cmd/kconverge-agent
	$(GO) test -timeout 60m -run '^$$' -bench 'Large$$' -benchtime 1x ./engine/lab

.PHONY: screenshots
screenshots: build ## take the README's pictures of a lab run, on a terminal emulator
	$(GO) run ./ui/screenshots -program bin/kconverge -out testdata/screenshots

.PHONY: lint
lint: ## formatting and vet
	@out=$$(git ls-files '*.go' | xargs gofmt -l); if [ -n "$$out" ]; then echo "gofmt these files:"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	$(GO) mod tidy -diff

.PHONY: bench
bench: ## benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...

.PHONY: fmt
fmt: ## format the code
	gofmt -w $$(git ls-files '*.go')

.PHONY: generate
generate: ## regenerate what is generated (OpenAPI definitions)
	$(GO) generate ./...

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'
