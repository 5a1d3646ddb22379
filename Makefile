# Targets: check (what CI runs), test, race, lint, fmt, generate, bench, bench-comm, soak, fuzz, install. Variables: PKG, TESTFLAGS, BENCH, FUZZTIME, SOAKTIME.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

PKG       ?= ./...
TESTFLAGS ?=
BENCH     ?= train gemm
FUZZTIME  ?= 20s
SOAKTIME  ?= 30m
FIRSTTIME ?= 20s

GOLANGCI := bin/golangci-lint

.PHONY: check fmt fix lint vet generate reproduce layers test race noasm cross build first-run bench bench-comm soak fuzz install clean

# Cheap and likely to fail first.
check:
	@step() { local t=$$SECONDS; echo "== make $$1"; $(MAKE) --no-print-directory $$1; echo "== make $$1: $$((SECONDS - t)) s"; }; \
	for target in layers vet cross build lint reproduce test race noasm first-run; do step $$target; done
	@echo "check: all good"

# ---- source

fmt: $(GOLANGCI)
	$(GOLANGCI) fmt

# Mends what the linters can mend by themselves.
fix: $(GOLANGCI)
	$(GOLANGCI) fmt
	$(GOLANGCI) run --fix

# Formatting (gofumpt, import groups) and the chosen linters (staticcheck among them); .golangci.yml says why each.
lint: $(GOLANGCI)
	$(GOLANGCI) fmt --diff
	$(GOLANGCI) run
	$(GOLANGCI) run --build-tags noasm

vet:
	go vet ./...

layers:
	go test -run 'TestLayers|TestFeatures|TestLinks|TestDecisions' .

generate:
	go generate ./...

reproduce:
	scripts/reproduce.sh

# ---- tests

test: test-needs
	go test $(TESTFLAGS) $(PKG)

race: test-needs
	CGO_ENABLED=1 go test -race -shuffle=on $(TESTFLAGS) $(PKG)

# The portable kernels, on a machine where the assembly would hide them.
noasm:
	go test -tags noasm ./tensor/...

# Another architecture, another system, and the engine behind a tag still compile.
cross:
	GOARCH=arm64 go vet ./...
	GOOS=darwin GOARCH=arm64 go build ./...

fuzz:
	scripts/fuzz.sh $(FUZZTIME)

# What tests start or link: the race detector's C library, two MPIs, a browser.
.PHONY: test-needs
test-needs:
	@scripts/need.sh gcc=gcc /usr/include/stdio.h=libc6-dev mpirun.openmpi=openmpi-bin mpiexec.mpich=mpich chromium=chromium

# ---- the program

build:
	CGO_ENABLED=0 go build -trimpath -o bin/carve ./cmd/carve

install:
	CGO_ENABLED=0 go install -trimpath ./cmd/carve

first-run:
	scripts/first-run.sh $(FIRSTTIME)

# ---- measurements

# Peers and carve side by side: docs/benchmarks.md says how to read it.
bench: build
	@scripts/need.sh gcc=gcc /usr/include/stdio.h=libc6-dev /usr/lib/python3/dist-packages/torch=python3-torch \
	  '/usr/lib/*/openblas-openmp/libopenblas.so.0=libopenblas0-openmp' '/usr/lib/*/libdnnl.so.2=libdnnl2' \
	  mpirun.openmpi=openmpi-bin '/usr/lib/*/openmpi/include/mpi.h=libopenmpi-dev' mpiexec.mpich=mpich '/usr/include/*/mpich/mpi.h=libmpich-dev'
	go run ./bench $(BENCH)

# Collectives between ranks of this machine: Open MPI, MPICH, gloo.
bench-comm:
	$(MAKE) --no-print-directory bench BENCH=comm

soak: build
	scripts/soak.sh $(SOAKTIME)

# ---- tools

bin/%: _tools/go.mod _tools/go.sum
	cd _tools && CGO_ENABLED=0 go build -o ../bin/ $$(go list -f '{{.ImportPath}}' tool | grep '/$*$$')
	@touch $@

clean:
	rm -rf bin
