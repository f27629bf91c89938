# Gatewright. `make` alone lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
FUZZTIME ?= 20s
RANDOM_CALLS ?= 1000000
BENCHTIME ?= 1s
THREADS ?= 1
PAGES ?= docs/evaluation/decider-server.md docs/evaluation/judgement.md

BIN := bin
# Tools that are built from modules of their own, pinned by go.sum: hack/tools/.
TOOLS := .cache/bin
GOLANGCI_LINT := $(TOOLS)/golangci-lint
OPA := $(TOOLS)/opa
HELM := $(TOOLS)/helm
KUSTOMIZE := $(TOOLS)/kustomize
CONTROLLER_GEN := $(GO) tool -modfile=go.tools.mod controller-gen
export GOLANGCI_LINT_CACHE := $(CURDIR)/.cache/golangci

say = printf '== %s\n' "$(1)"

##@ Start

.PHONY: help
help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^##@ / { printf "\n%s\n", substr($$0, 5) } /^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: build ## show the gate at work: an allowed, a clarified, a confirmed and a blocked call
	@$(call say,the gate at work on this machine)
	@hack/demo.sh

.PHONY: demo-llama
demo-llama: build build-decider ## the same with a small real model as decider; the first run fetches 100 MB
	@$(call say,the sample policies with a model in a process of its own)
	@hack/demo-llama.sh

.PHONY: build
build: ## build bin/gatewright, static
	@$(call say,building $(BIN)/gatewright $(VERSION))
	@CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$(VERSION)" -o $(BIN)/gatewright ./cmd/gatewright

.PHONY: build-decider
build-decider: ## build bin/decider, which loads the engine's libraries at run time
	@$(call say,building $(BIN)/decider $(VERSION))
	@CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$(VERSION)" -o $(BIN)/decider ./cmd/decider

.PHONY: image
image: ## pack the images into bin/images, without a container engine; DIR says where to
	@hack/image.sh

##@ Write

.PHONY: generate
generate: ## write the deep copies of the API types
	@$(call say,generating deep copies in api/)
	@$(CONTROLLER_GEN) object paths=./api/v1alpha1/...

.PHONY: manifests
manifests: $(HELM) ## write CRDs, the manager's role, the chart's copies of them, and what config/ renders from the chart
	@$(call say,generating CRDs in config/crd/bases and the manager's role in config/rbac)
	@$(CONTROLLER_GEN) crd paths=./api/v1alpha1/... output:crd:dir=config/crd/bases
	@$(CONTROLLER_GEN) rbac:roleName=gatewright-manager,fileName=manager.yaml "paths={./cmd/manager/...,./controllers/...,./internal/webhook/...}" output:rbac:dir=config/rbac
	@$(call say,bringing the chart and config/ in step)
	@hack/chart.sh files
	@hack/chart.sh config

.PHONY: fmt
fmt: ## format the Go files
	@$(call say,formatting)
	@find . -name '*.go' -not -path './.cache/*' -not -path '*/node_modules/*' -print0 | xargs -0 gofmt -s -l -w

.PHONY: tidy
tidy: ## bring go.mod and go.sum in line with the imports
	@$(call say,tidying go.mod)
	@$(GO) mod tidy

##@ Check

.PHONY: test
test: ## run every test with the race detector, then those of the clients and of the web page; installs what is missing
	@hack/prepare.sh
	@$(call say,llama.cpp and three small models for the decider; the first run fetches 450 MB)
	@hack/llama/fetch.sh
	@hack/kube.sh
	@$(call say,Go: unit and schema tests and tests on a real API server with the race detector; the first run compiles for some minutes)
	@GATEWRIGHT_REQUIRE_MODELS=1 GATEWRIGHT_REQUIRE_APISERVER=1 $(GO) test -race -timeout 20m ./...
	@$(call say,clients: Go - Python - JavaScript)
	@TESTFLAGS=-race clients/test.sh
	@$(call say,the web page in a browser)
	@hack/browser.sh

.PHONY: test-browser
test-browser: ## test the web page in chromium; SHOTS=FOLDER keeps pictures of it
	@hack/prepare.sh
	@hack/browser.sh

.PHONY: test-examples
test-examples: ## run the examples for agent frameworks with their real packages, installed by pip into .cache
	@$(call say,clients: examples for agent frameworks - the first run installs their packages)
	@clients/test-examples.sh

.PHONY: test-peers
test-peers: ## check deciders with real models, llama-server and an SDK of others; the first run fetches 400 MB and builds ten minutes
	@$(call say,peers: real models - llama-server - the Python SDK of typed questions)
	@hack/peers/test.sh

.PHONY: test-unit
test-unit: ## run the Go tests fast, without the race detector; those on a real API server where `make kube` was run
	@$(call say,Go: unit and schema tests)
	@$(GO) test ./...

.PHONY: lint
lint: $(GOLANGCI_LINT) ## lint the Go code, imports and API conventions included, and the syntax of the scripts
	@$(call say,golangci-lint)
	@$(GOLANGCI_LINT) run ./...
	@$(call say,syntax of the scripts)
	@find hack bench clients .ci -type f -not -path '*/node_modules/*' -exec grep -lE '^#!.*bash' {} + | xargs -n 1 bash -n

.PHONY: vet
vet: ## run go vet
	@$(call say,go vet)
	@$(GO) vet ./...
	@$(GO) vet -tags e2e ./test/e2e

.PHONY: verify
verify: ## run all writers, then all checks, then fail if a file changed or is untracked
	@$(MAKE) --no-print-directory generate manifests tidy fmt
	@$(MAKE) --no-print-directory vet lint
	@$(call say,what was generated fits the types: schema tests)
	@$(GO) test ./api/... ./config/...
	@hack/verify-clean.sh

.PHONY: presubmit
presubmit: ## run exactly what CI runs
	@.ci/run

.PHONY: chart
chart: $(HELM) $(KUSTOMIZE) ## lint the chart, render it with many values, compare it with config/default
	@hack/chart.sh check

##@ Longer runs

.PHONY: e2e
e2e: $(HELM) ## install the chart on a real node on this machine and try every outcome; needs root, builds the node first
	@hack/e2e.sh

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (20s), then RANDOM_CALLS (1000000) random calls through the gate
	@FUZZTIME=$(FUZZTIME) RANDOM_CALLS=$(RANDOM_CALLS) hack/fuzz.sh

.PHONY: bench
bench: build $(OPA) ## run the Go benchmarks, then one decision over HTTP side by side with OPA, then what the audit log costs
	@$(call say,Go benchmarks)
	@$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./internal/...
	@$(call say,one decision over HTTP: Gatewright and OPA in turns - one to two minutes)
	@bench/compare.sh
	@$(call say,what the audit log costs: the same gate with its log and without - one minute)
	@bench/audit.sh

.PHONY: monitoring
monitoring: build ## check the alert rules; draw the dashboard from a minute of real calls into docs/images
	@$(call say,alert rules and dashboard on a running gate and Prometheus: about two minutes)
	@hack/monitoring/check.sh live

.PHONY: train
train: .cache/training/.ready ## train the embedded judge and measure it into models/README.md; some minutes on one core
	@$(call say,training the embedded judge into models/ - some minutes)
	@.cache/training/bin/python training/lookups.py
	@.cache/training/bin/python training/journeys.py
	@.cache/training/bin/python training/chains.py
	@.cache/training/bin/python training/train.py
	@.cache/training/bin/python training/report.py

.PHONY: trials
trials: .cache/trials/.ready ## measure what was tried against the embedded judge: training/trials/README.md; an hour on two cores
	@$(call say,a reader over frozen layers - then likeness of meaning)
	@.cache/trials/bin/python training/trials/reader.py
	@.cache/trials/bin/python training/trials/likeness.py

.cache/training/.ready: training/requirements.txt
.cache/trials/.ready: training/trials/requirements.txt
.cache/training/.ready .cache/trials/.ready:
	@$(call say,installing what $< pins into $(@D))
	@python3.11 -m venv $(@D)
	@$(@D)/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $<
	@touch $@

.PHONY: promises
promises: build ## run every command of PAGES, by default the pages on the decider server and the judgement; two hours, half of them make trials
	@hack/promises.sh $(PAGES)

.PHONY: bench-decider
bench-decider: build-decider ## measure the decider server beside llama-server, into bench/decider/last.md
	@$(call say,decider server and llama-server in turns - some minutes)
	@hack/llama/fetch.sh library
	@hack/llama/fetch.sh gemma
	@hack/llama/server.sh
	@hack/peers/prepare.sh
	@$(GO) run ./bench/decider -threads $(THREADS)

##@ Tools

.PHONY: kube
kube: ## build kube-apiserver, etcd and kubectl for the tests into .cache/kube/bin; from nothing five to fifteen minutes
	@hack/kube.sh

.PHONY: tools
tools: $(GOLANGCI_LINT) $(OPA) $(HELM) $(KUSTOMIZE) ## build the pinned tools into .cache/bin

$(GOLANGCI_LINT): hack/tools/golangci/go.mod hack/tools/golangci/go.sum hack/tools/golangci/main.go
	@$(call say,building golangci-lint - one to three minutes - once)
	@cd hack/tools/golangci && $(GO) build -trimpath -buildvcs=false -ldflags '-s -w' -o '$(CURDIR)/$@' .

$(OPA): hack/tools/opa/go.mod hack/tools/opa/go.sum
	@$(call say,building OPA - one to two minutes - once)
	@cd hack/tools/opa && CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '-s -w' -o '$(CURDIR)/$@' github.com/open-policy-agent/opa

$(HELM): hack/tools/helm/go.mod hack/tools/helm/go.sum
	@$(call say,building helm - one to two minutes - once)
	@cd hack/tools/helm && CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '-s -w' -o '$(CURDIR)/$@' helm.sh/helm/v4/cmd/helm

$(KUSTOMIZE): hack/tools/kustomize/go.mod hack/tools/kustomize/go.sum
	@$(call say,building kustomize - once)
	@cd hack/tools/kustomize && CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '-s -w' -o '$(CURDIR)/$@' sigs.k8s.io/kustomize/kustomize/v5

.PHONY: clean
clean: ## remove what was built, the tools and their caches included
	@$(call say,removing $(BIN) and .cache)
	@rm -rf $(BIN) .cache coverage.*
