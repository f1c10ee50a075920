# make help lists the targets. Needs Go, a C and C++ compiler (for DuckDB, the
# race detector and the test model server), make, git; everything else comes
# from go.sum or is built into the user's cache at a pinned version.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## build everything and run the main example; no network, no keys
	TEA_COZO=cached scripts/build
	go build -o bin/pump-simulator ./examples/pump/simulator
	scripts/demo

.PHONY: build
build: ## the host and the plugins, in bin/
	scripts/build

.PHONY: static
static: ## one static binary without the plugin host, bin/tea-static
	scripts/build static

.PHONY: quick
quick: ## in about a minute: format, vet, linters of what changed, and the short tests
	scripts/quick

.PHONY: test
test: ## the tests of all modules, with the race detector
	scripts/test

.PHONY: test-stores
test-stores: ## install the servers of all stores and run their tests
	scripts/test-stores

.PHONY: temporal
temporal: ## compare 500 generated graphs here and on a Temporal server
	scripts/temporal install
	TEA_TEMPORAL_GRAPHS=500 go test -count=1 -timeout 60m -run Generated ./cmd/tea-temporal/internal/driver

.PHONY: temporal-kills
temporal-kills: ## kill two workers and a Temporal server 200 times during runs
	scripts/temporal install
	TEA_TEMPORAL_KILLS=200 go test -count=1 -timeout 60m -v -run RandomKills ./cmd/tea-temporal/internal/driver

.PHONY: swaps
swaps: ## 10,000 calls during 100 swaps, and 100 kills of the host during one
	TEA_SWAPS=full go test -count=1 -timeout 30m -run 'Swap' ./host/subproc ./test/swap

.PHONY: bench
bench: ## measure the figures that tea promises: a table, and JSON
	scripts/build
	go run ./bench >bin/bench.json

.PHONY: findings
findings: ## run the scripts in findings/; name those whose behaviour changed
	@status=0; for f in findings/*.sh; do \
		if "$$f" >/dev/null 2>&1; then echo "as described  $$f"; else echo "changed       $$f"; status=1; fi; \
	done; exit $$status

.PHONY: soak
soak: ## 100,000 runs of tea serve with 1,000 clients that follow events: its memory
	TEA_SOAK_RUNS=100000 go test -run '^$$' -bench '^BenchmarkSoak' -benchtime 1x -timeout 1h ./cmd/tea-serve

.PHONY: performance
performance: ## write docs/reference/performance.md from the last make bench
	go run ./bench -page

.PHONY: cover
cover: ## the tests' coverage of each package and the total, in bin/cover.html
	scripts/cover

.PHONY: lint
lint: ## format, vet, linters, layer rules, file lengths
	scripts/lint

.PHONY: fmt
fmt: ## format the code
	scripts/lint fmt

.PHONY: tidy
tidy: ## tidy the go.mod of every module
	scripts/tidy

.PHONY: proto
proto: ## generate the Go code of proto/
	scripts/proto

.PHONY: size
size: ## check the sizes of the binaries for linux/arm64
	scripts/size

.PHONY: cross
cross: ## compile host and plugins for the platforms that are not tested
	scripts/cross

.PHONY: builds
builds: ## measure the programs of tea build, and write docs/reference/builds.md
	scripts/build
	go run ./bench -builds

.PHONY: release
release: ## make the files of a release in dist/: make release VERSION=0.1.0
	scripts/release $(VERSION)

.PHONY: clean
clean: ## remove what was built
	rm -rf bin dist
