# Everything that is done with Weft has a target here; `make help` lists them.
# CI calls `make test` and nothing else.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
GOFMT ?= $(shell $(GO) env GOROOT)/bin/gofmt
# Extra flags for `go test`, such as -run or -v: make test-main GOTEST='-v -run TestX'.
GOTEST ?=
# How long each fuzz target runs.
FUZZTIME ?= 30s
# What Debian's package zookeeper brings.
ZOOKEEPER ?= /usr/share/java/zookeeper.jar
# The modules beside the main one, whose requirements its hosts need not have.
# go.work names them.
NESTED := cmd internal/apicheck internal/shim rawnode/metrics rawnode/tracing rafttest rafttest/lockstep rawnode/state/pebble
LOCKSTEP := rafttest/lockstep
# Pinned, so that a lint run means the same thing everywhere. It is built from
# the module proxy once (about three minutes on two cores) and then cached.
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ tests

# The tests live in a few megabytes, and leave much garbage: a collection at each doubling would cost a tenth of their time.
test test-main test-programs test-simulators: export GOGC ?= 400

.PHONY: test
test: fmt-check vet ## everything that must pass before a change goes in (12 to 17 minutes on two cores)
	@$(MAKE) --no-print-directory -j 3 lane-processes lane-cores lane-others

.PHONY: fmt-check
fmt-check: ## fail if a Go file is not gofmt-ed
	@files=$$(find . -name '*.go' -not -path './.*' -print0 | xargs -0 $(GOFMT) -l); \
	if [ -n "$$files" ]; then echo "not gofmt-ed, run make fmt:"; echo "$$files"; exit 1; fi

.PHONY: vet
vet: ## go vet over all modules
	$(GO) vet work

.PHONY: test-main
test-main: ## tests of the main module, with the versions that its go.mod names
	GOWORK=off $(GO) test -vet=off -timeout 15m $(GOTEST) ./...

.PHONY: test-programs
test-programs: ## tests of the commands and of the small nested modules, and upstream's own
	$(GO) test -vet=off -timeout 15m $(GOTEST) $(patsubst %,./%/...,$(filter-out rafttest $(LOCKSTEP),$(NESTED))) ./rafttest/shim ./rafttest/front

# `make test` has three lanes. The tests in the first have processes and clocks; they wait for half of their time, and get a
# processor when they need one: the other two are nice. There all time is virtual, and the simulators of cores are as much
# work as the rest. Lockstep has one thread, so it does not come last, when nothing else may be left for the other processor.
.PHONY: lane-processes
lane-processes:
	@$(MAKE) --no-print-directory test-main
	@$(MAKE) --no-print-directory test-programs

.PHONY: test-simulators
test-simulators: ## tests under rafttest, the core's invariants and its coverage, in two lanes
	@$(MAKE) --no-print-directory -j 2 lane-cores lane-others

.PHONY: lane-cores
lane-cores:
	nice $(GO) test -vet=off -timeout 20m $(GOTEST) ./rafttest

.PHONY: lane-others
lane-others:
	cd $(LOCKSTEP) && nice $(GO) test -vet=off -timeout 20m $(GOTEST) ./cover
	@mkdir -p .cache
	cd $(LOCKSTEP) && nice $(GO) test -vet=off -v -timeout 20m -coverpkg=github.com/weftraft/weft/raft -coverprofile=$(CURDIR)/.cache/lockstep.cover $(GOTEST) .
	cd $(LOCKSTEP) && nice $(GO) run ./cover -lockstep $(CURDIR)/.cache/lockstep.cover
	nice $(GO) test -vet=off -timeout 20m -p 1 $(GOTEST) $$($(GO) list ./rafttest/... | grep -vE '/(rafttest|shim|front)$$')

.PHONY: test-redis
test-redis: ## redis-cli and redis-benchmark against a cluster of kvdemo, and answers compared with redis-server; needs Debian's redis-tools and redis-server
	@for t in redis-cli redis-benchmark redis-server; do command -v $$t >/dev/null || { echo "$$t is not installed: apt-get install redis-tools redis-server"; exit 1; }; done
	cd cmd && $(GO) test -count 1 -run 'Redis' $(GOTEST) ./kvdemo/internal/resp -redis-server
	cd cmd && $(GO) test -count 1 -run 'TestRedisTools' $(GOTEST) ./kvdemo -redis-tools

.PHONY: race
race: ## all tests under the race detector, fewer seeds (an hour or so)
	$(GO) test -race -short -timeout 60m $(GOTEST) work

# How often in a path something happens that need not, in an exhaustive exploration.
DEVIATIONS ?= 2

.PHONY: exhaust
exhaust: ## explore small groups of cores in every order of events, up to DEVIATIONS (2; make test: 1), for hours; prints states and depth
	$(GO) test -count=1 -v -timeout 0 ./rafttest/exhaust -run '^TestNothingIsWrongInAnyScenario$$' -deviations $(DEVIATIONS) -progress $(GOTEST)

.PHONY: mutants-exhaust
mutants-exhaust: ## put bugs where coding, leases and changes meet, and show which exploration finds which (about 2 minutes)
	$(GO) run ./rafttest/mutants exhaust

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (30s)
	@$(GO) list -f '{{.Dir}}' work | while read -r dir; do \
	  { grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$$dir"/*_test.go 2>/dev/null || true; } | sed 's/^func //' | while read -r f; do \
	    echo "$$f in $${dir#$$PWD/}"; (cd "$$dir" && $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x .); \
	  done; done

.PHONY: mutants
mutants: ## put each known bug into a copy of the core and show which test finds it
	$(GO) run ./rafttest/mutants plain

.PHONY: mutants-coded
mutants-coded: ## the same for coded replication: which schedule or seed finds which bug (about 8 minutes)
	$(GO) run ./rafttest/mutants

.PHONY: mutants-joints
mutants-joints: ## the same where coding, leases and changes of members meet (about 3 minutes)
	$(GO) run ./rafttest/mutants joints

.PHONY: mutants-late
mutants-late: ## the same for disks that hang (about 3 minutes)
	$(GO) run ./rafttest/mutants late

.PHONY: mutants-compartments
mutants-compartments: ## the same for gateways, names and relays: which test or seed finds which bug (about 5 minutes)
	$(GO) run ./rafttest/mutants compartments

.PHONY: mutants-catchup
mutants-catchup: ## the same for the budget in which groups catch up (about 3 minutes)
	$(GO) run ./rafttest/mutants catchup

.PHONY: mutants-leases
mutants-leases: ## the same for roster leases: which schedule or seed finds which bug (about 6 minutes)
	$(GO) run ./rafttest/mutants leases

.PHONY: test-metrics
test-metrics: ## a real Prometheus (apt-get install prometheus) scrapes nodes: histograms, alerts, dashboard (about a minute)
	cd cmd && KVDEMO_TEST_NEEDS_PROMETHEUS=1 $(GO) test -count=1 -v -timeout 10m -run 'Promtool|Alerts|Prometheus' ./kvdemo

.PHONY: test-deploy
test-deploy: ## what is in deploy/: the Dockerfile's program is built, the compose file's nodes run (about 3 minutes the first time)
	cd cmd && KVDEMO_TEST_DEPLOY=1 $(GO) test -count=1 -v -timeout 15m -run 'Deployed|Dockerfile|Compose|Unit|DeployPage' ./kvdemo

.PHONY: test-bench-etcd
test-bench-etcd: etcd-released ## weftbench reads --real measures released etcd, which is built first (about 2 minutes)
	cd cmd && WEFTBENCH_TEST_ETCD=$(CURDIR)/.cache/etcd-released/etcd $(GO) test -count=1 -v -timeout 10m -run '^TestRealReadsOfEtcd$$' ./weftbench

.PHONY: test-bench-zookeeper
test-bench-zookeeper: ## weftbench reads --real measures ZooKeeper (half a minute; needs Debian's zookeeper)
	cd cmd && WEFTBENCH_TEST_ZOOKEEPER=$(ZOOKEEPER) $(GO) test -count=1 -v -timeout 10m -run '^TestRealReadsOfZooKeeper$$' ./weftbench

# The commits whose kvdemo the members run first; the second one knows gateways.
UPGRADE_FROM ?= dbc16eb 8cc29f4

.PHONY: test-upgrade
test-upgrade: ## members and gateways of earlier commits' kvdemo (UPGRADE_FROM) are upgraded one by one under load, and taken back
	cd cmd && KVDEMO_TEST_UPGRADE_FROM="$(UPGRADE_FROM)" $(GO) test -count=1 -v -timeout 30m -run '^TestMembersAreUpgradedAndTakenBack$$' ./kvdemo

.PHONY: cover
cover: ## coverage of ./raft by lockstep, its own tests and clusters, with the core's invariants checked at each step; fails under 90%
	cd $(LOCKSTEP) && $(GO) run ./cover

##@ code

.PHONY: fmt
fmt: ## gofmt everything
	@find . -name '*.go' -not -path './.*' -print0 | xargs -0 $(GOFMT) -w

.PHONY: lint
lint: ## golangci-lint over all modules
	@failed=; for m in . $(NESTED) rafttest/etcd cmd/weftbench/peers; do echo "lint ./$$m/..."; (cd $$m && $(GO) run $(GOLANGCI) run --config $(CURDIR)/.golangci.yml ./...) || failed="$$failed $$m"; done; \
	test -z "$$failed" || { echo "not clean:$$failed"; exit 1; }

.PHONY: api
api: ## compare the exported API with upstream's; prints counts and additions
	$(GO) test -count=1 -v -run TestAPI ./internal/apicheck

.PHONY: pages
pages: ## write the tables of docs/metrics.md
	$(GO) run ./cmd/kvdemo/internal/pages

.PHONY: picture
picture: ## draw docs/benchmark-etcd.svg, a picture for README, from docs/data/etcd.md
	$(GO) run ./internal/docs/picture

.PHONY: shape
shape: ## how the code is laid out: what crosses the seam, which files need each other, how comments read
	$(GO) run ./internal/shape

.PHONY: shim
shim: ## upstream's own scenarios and tests against our package, in full
	$(GO) test -count=1 -v ./rafttest/shim

.PHONY: tidy-check
tidy-check: ## fail if a go.mod or go.sum is not tidy
	$(GO) run ./internal/modules -check
	cd rafttest/etcd && $(GO) mod tidy -diff
	cd cmd/weftbench/peers && $(GO) mod tidy -diff

.PHONY: tidy
tidy: ## bring all go.mod and go.sum in agreement with what is imported
	$(GO) run ./internal/modules
	cd rafttest/etcd && $(GO) mod tidy
	cd cmd/weftbench/peers && $(GO) mod tidy

# The commit that would be released: make release-check COMMIT=main.
COMMIT ?= HEAD

.PHONY: release-check
release-check: ## what a release of COMMIT (HEAD) would be: each module built from its tag's files alone, at a proxy, programs installed, docs/service.md followed (about 10 minutes the first time)
	cd internal/apicheck && $(GO) test -count=1 -v -timeout 60m -run '^TestRelease$$' . -commit $(COMMIT)

##@ hosts

# Flags for the run: make bench-etcd BENCH=--stop-after=10m, make bench-peers BENCH=--nodes=3.
BENCH ?=
# Flags for the run: make conformance-etcd ETCD=--core=upstream.
ETCD ?=

.PHONY: conformance-etcd
conformance-etcd: ## etcd's own tests, and clusters of etcd processes under faults, on Weft (under 15 minutes)
	cd rafttest/etcd && $(GO) vet ./... && $(GO) test ./... && $(GO) run . $(ETCD)

.PHONY: etcd
etcd: ## etcd, etcdctl and etcdutl v3.7.3 on Weft into bin/, see docs/adopt-etcd.md (about 2 minutes)
	cd rafttest/etcd && $(GO) run . build --out $(CURDIR)/bin

.PHONY: test-adopt-etcd
test-adopt-etcd: ## execute docs/adopt-etcd.md: released etcd taken over by etcd on Weft, and back (about 2 minutes)
	cd rafttest/etcd && $(GO) test -count=1 -v -timeout 15m -run '^TestAdoptEtcd$$' .

# A directory for pictures of the page: make test-page SHOTS=docs.
SHOTS ?=

.PHONY: test-page
test-page: ## the page of a demonstration in headless Chromium, which must be installed (under a minute); SHOTS=DIR keeps pictures
	cd cmd && KVDEMO_TEST_BROWSER=1 KVDEMO_TEST_SCREENSHOTS=$(abspath $(SHOTS)) $(GO) test -count=1 -v -run '^TestPageInChromium$$' ./kvdemo

##@ running

# The commands name their commit, also where the go command cannot find it.
BUILD = $(GO) build -ldflags "-X main.revision=$$(git rev-parse HEAD 2>/dev/null || true)" -o bin/
COMPILING := compiling kvdemo: the first time, the go command fetches 400 MB and compiles for 2 to 8 minutes; then seconds

.PHONY: demo
demo: ## five nodes replicate the Go distribution's sources and survive kills (under 2 minutes, and the first compilation: 400 MB, 2 to 8 minutes)
	@echo '$(COMPILING)'
	@$(BUILD) ./cmd/kvdemo && exec bin/kvdemo demo

.PHONY: demo-page
demo-page: ## the same with a page to watch, and buttons to kill nodes and shape links, until Ctrl-C
	@echo '$(COMPILING)'
	@$(BUILD) ./cmd/kvdemo && exec bin/kvdemo demo --serve

.PHONY: build
build: ## the commands, into bin/
	$(BUILD) ./cmd/...

.PHONY: bench-upstream
bench-upstream: ## benchmarks against upstream's library, written to docs/data/core.md
	$(GO) run ./rafttest/bench/report

.PHONY: bench-host
bench-host: ## Host beside a minimal loop, real processes, written to docs/data/host.md (about 11 minutes)
	$(GO) build -o bin/ ./cmd/kvdemo ./cmd/weftbench && exec bin/weftbench host --out docs/data/host.md

.PHONY: bench-host-quick
bench-host-quick: ## the same, printed, with short rounds (about 90 seconds)
	$(GO) build -o bin/ ./cmd/kvdemo ./cmd/weftbench && exec bin/weftbench host --quick

.PHONY: bench-peers
bench-peers: ## Host beside dragonboat, hashicorp/raft and a minimal loop, into docs/data/peers.md (an hour or so)
	cd cmd/weftbench/peers && $(GO) run . bench --out $(CURDIR)/docs/data/peers.md $(BENCH)

.PHONY: bench-peers-quick
bench-peers-quick: ## the same, printed: two loads and one short round (under a minute, and the first compilation)
	cd cmd/weftbench/peers && $(GO) run . bench --quick $(BENCH)

.PHONY: test-peers
test-peers: ## each library of bench-peers as processes: all that was acknowledged is applied at all nodes
	cd cmd/weftbench/peers && $(GO) vet ./... && $(GO) test -count=1 ./...

.PHONY: bench-coding
bench-coding: ## coding on beside off, real processes, into docs/data/coded.md (about 45 minutes)
	$(GO) build -o bin/ ./cmd/kvdemo ./cmd/weftbench && exec bin/weftbench coding --out docs/data/coded.md

.PHONY: bench-sweep
bench-sweep: ## each constant of the adaptive policy halved and doubled, virtual time, into ecraft/adaptive/README.md (about 20 minutes)
	$(GO) run ./cmd/weftbench/internal/adaptive/sweep

.PHONY: bench-slow
bench-slow: etcd-released ## a leader or a follower of three is slow, hangs, is mute: Host, etcd and a minimal loop, into docs/data/slow.md (half an hour or so)
	$(GO) build -o bin/ ./cmd/kvdemo ./cmd/weftbench && exec bin/weftbench slow --nodes 3 --who leader,follower \
		--faults hang,disk,cpu,link,mute --out docs/data/slow.md $(or $(BENCH),--sides weft,coded,etcd,loop)

.PHONY: bench-slow-all
bench-slow-all: ## the same of three and five nodes, with leases, dead nodes and as many followers as may fail, printed (about 80 minutes)
	$(GO) build -o bin/ ./cmd/kvdemo ./cmd/weftbench && exec bin/weftbench slow $(BENCH)

.PHONY: bench-slow-quick
bench-slow-quick: ## the same, printed, with one short round of three nodes (about 90 seconds)
	$(GO) build -o bin/ ./cmd/kvdemo ./cmd/weftbench && exec bin/weftbench slow --quick

# What YCSB and etcd need is kept in .cache, and made again when what it is made of changes.
YCSB := cmd/weftbench/internal/ycsb/java
MAVEN_COPY := org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies

.PHONY: ycsb
ycsb: .cache/ycsb/made ## YCSB's client and the bindings for it, into .cache/ycsb; needs Debian's maven and default-jdk-headless

.cache/ycsb/made: $(wildcard $(YCSB)/*) $(wildcard $(YCSB)/weft/*)
	@for t in mvn javac; do command -v $$t >/dev/null || { echo "$$t is not installed: apt-get install maven default-jdk-headless"; exit 1; }; done
	rm -rf .cache/ycsb && mkdir -p .cache/ycsb/lib
	mvn -q -B --strict-checksums -f $(YCSB)/pom.xml $(MAVEN_COPY) -DoutputDirectory=$(CURDIR)/.cache/ycsb/lib
	cd .cache/ycsb/lib && sha256sum --quiet --strict -c $(CURDIR)/$(YCSB)/jars.sha256
	javac -Xlint:all -Werror -d .cache/ycsb/classes -cp '.cache/ycsb/lib/*' $(YCSB)/weft/*.java
	touch $@

.PHONY: etcd-released
etcd-released: .cache/etcd-released/etcd ## etcd v3.7.3 as released, into .cache/etcd-released (about 2 minutes)

.cache/etcd-released/etcd: rafttest/etcd/go.mod
	cd rafttest/etcd && $(GO) run . build --core upstream --out $(CURDIR)/.cache/etcd-released
	touch $@

.PHONY: etcd-on-weft
etcd-on-weft: ## the same sources of etcd on Weft, into .cache/etcd-on-weft (about 2 minutes)
	cd rafttest/etcd && $(GO) run . build --core weft --out $(CURDIR)/.cache/etcd-on-weft

.PHONY: bench-ycsb
bench-ycsb: ycsb etcd-released etcd-on-weft ## kvdemo, etcd on Weft and etcd by YCSB, on a LAN and a WAN, into docs/data/ycsb.md (about 90 minutes; needs Debian's maven and default-jdk-headless)
	$(GO) build -o bin/ ./cmd/kvdemo ./cmd/weftbench && exec bin/weftbench ycsb --out docs/data/ycsb.md

.PHONY: bench-ycsb-quick
bench-ycsb-quick: ycsb etcd-released etcd-on-weft ## the same, printed, with one short round (about 7 minutes)
	$(GO) build -o bin/ ./cmd/kvdemo ./cmd/weftbench && exec bin/weftbench ycsb --quick

.PHONY: bench-redis
bench-redis: ycsb etcd-released ## kvdemo beside redis-server and etcd, with redis-benchmark and YCSB, into docs/data/redis.md (about 45 minutes; needs Debian's redis-tools, redis-server, maven and default-jdk-headless)
	$(GO) build -o bin/ ./cmd/kvdemo ./cmd/weftbench && exec bin/weftbench redis --out docs/data/redis.md

.PHONY: bench-redis-quick
bench-redis-quick: ycsb etcd-released ## the same, printed, with one short round (about 3 minutes)
	$(GO) build -o bin/ ./cmd/kvdemo ./cmd/weftbench && exec bin/weftbench redis --quick

.PHONY: papers
papers: ## the figures of four papers beside Weft, in virtual time, into docs/papers.md and docs/data (about 6 minutes)
	$(GO) run ./cmd/weftbench papers --out docs

.PHONY: papers-real
papers-real: etcd-released ## those figures that can run as processes of this machine, into docs/data/papers-real.md (an hour or so; needs Debian's zookeeper)
	$(GO) build -o bin/ ./cmd/kvdemo ./cmd/weftbench && exec bin/weftbench papers --net real --out docs

.PHONY: compartments
compartments: ## one compartment after the other, in virtual time, into docs/data/compartments.md (about a minute)
	$(GO) run ./cmd/weftbench compartments --out docs/data/compartments.md

.PHONY: compartments-real
compartments-real: ## what calls cost real processes, at the leader and at gateways, into docs/data/compartments-real.md (about 10 minutes)
	$(GO) build -o bin/ ./cmd/weftbench && exec bin/weftbench compartments --real --out docs/data/compartments-real.md

.PHONY: costs
costs: ## what work takes of a processor, fitted to real processes, into docs/data/costs.md and fitted.go (about 12 minutes)
	$(GO) build -o bin/ ./cmd/weftbench && exec bin/weftbench costs --out docs/data/costs.md --code cmd/weftbench/internal/costs/fitted.go

.PHONY: bench-reads
bench-reads: etcd-released ## reads by policy beside released etcd, leaders killed and responders that fail, real processes, into docs/data/reads.md (about 25 minutes)
	$(GO) build -o bin/ ./cmd/kvdemo ./cmd/weftbench
	bin/weftbench reads --real --etcd .cache/etcd-released/etcd $(if $(wildcard $(ZOOKEEPER)),--zookeeper $(ZOOKEEPER)) --out docs/data/reads.md
	bin/weftbench kills --out docs/data/reads.md

.PHONY: bench-etcd
bench-etcd: ## released etcd beside etcd on Weft, into docs/data/etcd.md (an hour or more; goes on where it broke off)
	cd rafttest/etcd && $(GO) run . bench --out $(CURDIR)/docs/data/etcd.md --rows $(CURDIR)/.cache/bench-etcd.jsonl $(BENCH)
	$(GO) run ./internal/docs/picture

.PHONY: bench-etcd-quick
bench-etcd-quick: ## the same, printed, with few and short rounds (about a minute)
	cd rafttest/etcd && $(GO) run . bench --quick $(BENCH)

.PHONY: torture
torture: ## kill -9 nodes and gateways under load 50 times, with either core and with leases, stop them, and fill disks (about 11 minutes)
	$(GO) build -o bin/ ./cmd/kvdemo ./cmd/weftbench
	bin/weftbench torture
	bin/weftbench torture --core upstream --seed 2
	bin/weftbench torture --leases --seed 3
	bin/weftbench torture --leases --lease-notes --seed 4
	bin/weftbench torture --gateways 3 --seed 5
	bin/weftbench torture --full-disk
