# Everything a person does with this repository. `make help` lists it.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  = -s -w -X postern/proxy/cli.Version=$(VERSION)

.DEFAULT_GOAL := help

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the static binary bin/postern
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "$(LDFLAGS)" -o bin/postern .

.PHONY: run
run: build ## start Postern on its embedded spool and deliver a first postback that you can see
	./bin/postern run --dev --hello

.PHONY: demo
demo: build ## watch a few hundred postbacks meet a receiver that is slow, fails, throttles and comes back
	./bin/postern demo

.PHONY: test
test: lint ## run every test, with the race detector
	@./.ci/postgres
	@./.ci/chromium
	@./.ci/axe
	@./.ci/examples
	$(GO) test -race -parallel 4 -timeout 9m ./...
	cd examples/manifests && $(GO) vet ./... && $(GO) test ./...   # a module of its own: the schemas are large

.PHONY: docs
docs: ## write what is made from the code: docs/configuration.md
	$(GO) test -count=1 -run '^TestReferenceDocument$$' ./configs -update

.PHONY: lint
lint: ## gofmt, go vet, staticcheck, module sums
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt would change: $$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) mod verify

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (default 20s)
	@grep -roE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' . | sort | while IFS=: read -r file declared; do \
		target=$${declared#func }; dir=$$(dirname $$file); \
		echo "$$target in $$dir"; $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $${FUZZTIME:-20s} $$dir || exit 1; done

# The version is pinned like any module's; the database is the Go project's, or a copy named in VULNDB.
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@v1.9.0
VULNDB     ?= https://vuln.go.dev

.PHONY: vuln
vuln: ## look for known vulnerabilities in the code that is called (needs vuln.go.dev, or VULNDB)
	@found=$$($(GO) run $(GOVULNCHECK) -db $(VULNDB) ./... 2>&1); code=$$?; echo "$$found"; \
	case "$$found" in *'fetching vulnerabilities'*) \
		echo 'NOTHING WAS CHECKED: the database of vulnerabilities cannot be reached at $(VULNDB). Run it where it can, or set VULNDB to a copy.' >&2;; \
	esac; exit $$code

.PHONY: bench
bench: ## measure throughput, latency and memory beside references, eight to fifteen minutes (ARGS=--quick: two; ARGS=--help)
	$(GO) run ./proxy/bench $(ARGS)

.PHONY: bench-plot
bench-plot: ## measure growth up to ten times the sizes of bench, and draw it into docs/img (ten to thirty minutes; ARGS=--quick: two minutes)
	$(GO) run ./proxy/bench --growth --json docs/img/growth.json --plot docs/img/growth.svg $(ARGS)

.PHONY: bench-redraw
bench-redraw: ## draw docs/img/growth.svg anew from docs/img/growth.json
	$(GO) run ./proxy/bench --json docs/img/growth.json --plot docs/img/growth.svg

# A go test binary whose flags are given by name here: make torture DURATION=10m SEED=7 ONLY=SIGKILL JSON=torture.json
.PHONY: torture
torture: ## break everything around Postern for DURATION (default 10m), from a SEED that is printed
	@./.ci/postgres
	$(GO) test -count=1 -timeout 0 -v -run '^TestTorture$$' ./proxy/torture -for $(or $(DURATION),10m) -seed $(or $(SEED),0) -only '$(ONLY)' -report '$(abspath $(JSON))'

.PHONY: torture-load
torture-load: ## bursts, very many endpoints and great backlogs, in full size (minutes)
	$(GO) test -count=1 -timeout 0 -v -run '^Test(Burst|BurstIntoASmallSpool|ManyEndpoints|BacklogBesideAHealthyEndpoint|GrowthAndAfter)$$' ./proxy/torture -heavy

.PHONY: soak
soak: ## run at RATE events a second (default 200) for DURATION (default 1h), and end where it began
	$(GO) test -count=1 -timeout 0 -v -run '^TestSoak$$' ./proxy/torture -soak $(or $(DURATION),1h) -rate $(or $(RATE),200) -report '$(abspath $(JSON))'

.PHONY: clean
clean: ## remove what was built; a spool in postern-data stays
	rm -rf bin
