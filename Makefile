# What this project is checked with. Each target is a command that can be run by
# hand, too. `make help` lists them.

GO      ?= go
RACE    ?= -race
MODULES := . browsertest compat torture bench

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: servers check ## everything that has to pass, with real servers, under the race detector
	$(GO) test $(RACE) -shuffle=on ./...
	$(GO) test ./token ./replay/... -run 'Alloc|Memory' # counts that the race detector would falsify
	binary=$$(sh scripts/valkey.sh) && SUBMITONCE_TEST_REDIS_BINARY=$$binary $(GO) test $(RACE) ./replay/redisstore
	cd browsertest && $(GO) test $(RACE) ./...
	cd compat && $(GO) test $(RACE) ./...
	cd torture && $(GO) test $(RACE) ./...
	cd torture && $(GO) test -run Waiters ./... # a time that the race detector would falsify
	cd bench && $(GO) vet ./...

.PHONY: servers
servers: ## installs what the tests need: PostgreSQL, Redis, Valkey, PgBouncer, Chromium
	sh scripts/servers.sh
	@sh scripts/valkey.sh

.PHONY: check
check: ## formatting, vet, tidy go.mod files
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofmt -w $$out"; exit 1; fi
	@for m in $(MODULES); do (cd $$m && $(GO) mod tidy -diff && $(GO) vet ./...) || exit 1; done

.PHONY: lint
lint: check ## staticcheck and golangci-lint, in the versions of tools/go.mod
	$(GO) tool -modfile=tools/go.mod staticcheck ./...
	$(GO) tool -modfile=tools/go.mod golangci-lint run ./...

.PHONY: vuln
vuln: ## govulncheck, which needs its database on the network
	$(GO) tool -modfile=tools/go.mod govulncheck ./...

.PHONY: fuzz
FUZZTIME ?= 60s
fuzz: ## each fuzz target for FUZZTIME
	@for p in $$($(GO) list ./...); do \
		for f in $$($(GO) test $$p -list '^Fuzz' | grep '^Fuzz'); do \
			echo "$$p $$f"; $(GO) test $$p -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) || exit 1; \
		done; \
	done

.PHONY: bench
bench: servers ## the table and the picture of docs/benchmarks.md; takes minutes
	valkey=$$(sh scripts/valkey.sh) && cd bench && SUBMITONCE_TEST_VALKEY=$$valkey $(GO) run . -out ../docs

.PHONY: torture
TORTURE ?= 10m
torture: servers ## kills and pauses processes and servers for TORTURE, then counts effects
	cd torture && $(GO) run . -for $(TORTURE)
