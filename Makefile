# What a person or CI types. Each target does its own set-up, system packages included, on a Debian machine
# that has a Rust toolchain; where nothing is missing, set-up takes under a second.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup demo demo-short test test-live record fresh-root lint lint-tools advisories book fuzz fuzz-build fuzz-night nightly soak bench bench-quick bench-parts paper paper-tools paper-smoke paper-gates paper-render paper-here paper-check deb rpm rpm-test repository repository-test source source-test tarball tarball-test portable portable-test package-test package-autopkgtest package-lint package-again models container container-test ansible-test monitoring-test upgrade-test first-hour-test pages-test compat-test support release systemd-test arm64 arm64-check clean

CARGO ?= cargo
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?=
ORDERS ?= 100
QUICK ?=
SUITES ?= trixie
BENCH_FLAGS ?=
PHASES ?=
GATES ?=
BLOCKS ?=
PAPER_OUT ?= $(abspath $(or $(CARGO_TARGET_DIR),target))/paper
MINUTES ?=
SEED ?=
ROUND ?=
BEDS ?=
SHORT ?=
# Beds of the soak, with their catalogs and volumes, are in memory: a disk would be what is waited for.
SOAK_TMP ?= /dev/shm

# With TESTS or TARGETS `make test` runs some tests only: packages, and some of their targets, as cargo names them.
TESTS ?=
TARGETS ?=
# What `make fresh-root` does there beside the demo: what a bare host can break. The library of fd-transport looks up
# names, and locale changes the locale: there are no /etc/hosts and no locales. daemon starts as Debian configures it,
# on a host whose own name has no address. connections makes networks with iproute2 and reads hosts.allow. The house
# rules ask git for the sources. What needs the kernel or the stock daemons only is the same on any host.
FRESH_TESTS := -p bed -p fd-os -p fd-transport
FRESH_TARGETS := --lib --test locale --test daemon --test connections

# What `make nightly` runs, whatever fails of it; the last one takes most of the night.
NIGHTLY := advisories paper-check paper-smoke test-live compat-test portable-test fuzz-night

RELEASE := $(abspath $(or $(CARGO_TARGET_DIR),target))/release
# Programs are built together and started by their path: for each other choice of packages cargo builds what they have in
# common once more.
BUILD := $(CARGO) build --release -p bacula-fd -p fd-s3 -p bed
BUILD_BENCH := $(BUILD) -p bench
BENCH := $(RELEASE)/bench
# The tests judge the optimized program, whatever else lies about in the target folder.
export FERROFD_BIN ?= $(RELEASE)/bacula-fd

help: ## Say what can be made
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):[^#]*## /\1\t/' | sort | \
	  awk -F'\t' '{ printf "  make %-19s %s\n", $$1, $$2 }'

setup: ## Install the system packages that are missing (apt), say so if that can't be done
	@scripts/system-packages

demo: setup ## Back up and restore a real tree with Bacula's own Director, and compare with its own File Daemon
	$(BUILD)
	$(RELEASE)/bed setup
	$(RELEASE)/bed demo

demo-short: setup ## The demo over a small tree, for CI
	$(BUILD)
	$(RELEASE)/bed setup
	$(RELEASE)/bed demo --short

test: setup ## Every test, those against the real daemons included
	$(BUILD)
	$(RELEASE)/bed setup
	@$(RELEASE)/test-runner $(TESTS) $(TARGETS)

# The suites that compare with what the stock daemon did.
RECORDED = $(patsubst tests/records/%.zst,--test=%,$(wildcard tests/records/*.zst))

test-live: setup ## Whether the stock daemon still does what is recorded, and what only both daemons can show, live
	$(BUILD)
	$(RELEASE)/bed setup
	FD_UNDER_TEST=stock $(CARGO) test --workspace --no-fail-fast $(RECORDED)
	$(CARGO) test --workspace --no-fail-fast $(RECORDED) -- --ignored

record: setup ## Record what the stock daemon does, five times, as root (RECORD="bpipe snapshots": these suites only)
	@RECORD_PACKAGES=1 scripts/system-packages
	$(BUILD)
	$(RELEASE)/bed setup
	@scripts/record $(RECORD)

fresh-root: setup ## The short demo and some tests on a Debian 12 with make, ca-certificates and this Rust toolchain only
	@scripts/fresh-root bash -ec 'make demo-short; git ls-files --error-unmatch Makefile; \
	  make test TESTS="$(FRESH_TESTS)" TARGETS="$(FRESH_TARGETS)"'

lint: setup lint-tools ## Format, clippy, licences, unused dependencies, complexity, copies, the book
	@scripts/lint

advisories: lint-tools ## Known faults of the dependencies, where the RustSec database can be reached
	@scripts/lint advisories

book: ## The manual in HTML, in target/book; every link in it is followed
	@scripts/lint-tools mdbook
	@scripts/book

lint-tools: ## Install the tools of `make lint`, pinned, under ~/.cache/ferrofd
	@scripts/lint-tools

monitoring-test: ## --diagnose, metrics, alerts and dashboard, with the real Prometheus, Icinga and Zabbix; MONITORING_PICTURES=DIR takes a picture
	@MONITORING_PACKAGES=1 scripts/system-packages
	$(BUILD)
	$(RELEASE)/bed setup
	$(RELEASE)/test-runner --workspace --test monitoring
	@scripts/tested "Prometheus $$(dpkg-query -W -f '$${source:Upstream-Version}' prometheus | sed 's/+.*//')" "metrics, alerts, expressions of the dashboard" works monitoring-test
	@scripts/tested "Icinga $$(dpkg-query -W -f '$${source:Upstream-Version}' icinga2)" "the command and the service, with check_ferrofd" works monitoring-test
	@scripts/tested "Zabbix $$(dpkg-query -W -f '$${source:Upstream-Version}' zabbix-server-pgsql | sed 's/+.*//')" "the template, with zabbix-agent2" works monitoring-test

models: setup ## The model checks, in ORDERS (100) times as many orders as make test tries (SEED=N: others)
	$(BUILD)
	@FERROFD_SCHEDULES=$(ORDERS) FERROFD_SEED=$(or $(SEED),1) $(RELEASE)/test-runner --models

fuzz: ## Each fuzz target for FUZZ_SECONDS (60); FUZZ_TARGETS="a b" chooses
	@FUZZ_PACKAGES=1 scripts/system-packages
	@FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz run $(FUZZ_TARGETS)

fuzz-build: ## Build the fuzz targets only
	@FUZZ_PACKAGES=1 scripts/system-packages
	@scripts/fuzz build

nightly: ## What takes too long for every change: the paper's numbers once more, other releases, each fuzz target for an hour
	@status=0; for target in $(NIGHTLY); do $(MAKE) --no-print-directory $$target || status=1; done; exit $$status

fuzz-night: ## Each fuzz target for an hour (FUZZ_SECONDS=3600), the corpus kept and minimized; FUZZ_TARGETS="a b" chooses
	@FUZZ_PACKAGES=1 scripts/system-packages
	@scripts/nightly $(FUZZ_TARGETS)

soak: setup ## Jobs of both daemons for hours, with faults; can be resumed (MINUTES=60 SEED=1 ROUND=7 BEDS=2 SHORT=1 SOAK_TMP=DIR)
	@SOAK_PACKAGES=1 scripts/system-packages
	$(BUILD)
	@TMPDIR="$(SOAK_TMP)" $(RELEASE)/soak $(if $(MINUTES),--minutes $(MINUTES)) \
	  $(if $(SEED),--seed $(SEED)) $(if $(ROUND),--round $(ROUND) --verbose) $(if $(BEDS),--beds $(BEDS)) $(if $(SHORT),--short)

bench: setup ## Measure ferrofd beside the stock daemon; QUICK=1: three replicas; BENCH_CELLS="manyfiles10 full" chooses
	$(BUILD_BENCH)
	$(BENCH) run $(if $(QUICK),--quick) $(BENCH_FLAGS)

bench-quick: ## The same with three replicas
	@$(MAKE) bench QUICK=1

bench-parts: ## Criterion: codecs (beside liblzo2, zlib, libzstd), matching, frames, LStat, digests, sequencer
	@bench/codecs
	$(CARGO) bench -p fd-walk -p fd-bsock -p fd-records -p fd-crypto -p fd-backup \
	  --bench matching --bench frames --bench lstat --bench digests --bench sequencer

paper paper-smoke: export PATH := $(or $(FERROFD_PAPER_TOOLS),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ferrofd/paper)/bin:$(PATH)

paper: setup ## Measure what is missing of paper/perf-analysis/plan.toml; PHASES="nine,growth" and BLOCKS=1 choose
	@paper/perf-analysis/packages --build
	$(BUILD_BENCH)
	$(BENCH) paper run $(addprefix --phase ,$(PHASES)) $(addprefix --blocks ,$(BLOCKS))

paper-tools: ## Install Python for the paper (apt), say so if that can't be done
	@PAPER_PACKAGES=1 scripts/system-packages

paper-smoke: paper-tools ## One replica of the short form of every phase, rendered and computed once more, in target/paper/smoke
	@paper/perf-analysis/packages
	$(BUILD_BENCH)
	rm -rf "$(PAPER_OUT)/smoke"
	$(BENCH) paper run --smoke --data "$(PAPER_OUT)/smoke/data"
	$(BENCH) paper render --data "$(PAPER_OUT)/smoke/data" --into "$(PAPER_OUT)/smoke/generated"
	python3 paper/perf-analysis/check/check.py paper/perf-analysis --data "$(PAPER_OUT)/smoke/data" --generated "$(PAPER_OUT)/smoke/generated"

# Not as a child of cargo: its variables change what the tools of the lints do.
paper-gates: setup lint-tools ## Run what every commit has to pass, and note for the paper how it ended; count the repository (GATES="tests")
	$(BUILD_BENCH)
	$(BENCH) paper gates $(addprefix --gate ,$(GATES))

paper-render: paper-tools ## Tables, figures and text of the paper from its raw rows; HTML and PDF in target/paper
	$(BUILD_BENCH) -q
	$(BENCH) paper render
	$(BENCH) paper excerpts
	@scripts/paper-render paper/perf-analysis/generated "$(PAPER_OUT)"

paper-here: paper-tools ## The same of this host's rows, with ours beside them, in target/paper/here; SITTING=NAME chooses
	$(BUILD_BENCH) -q
	$(BENCH) paper render $(or $(addprefix --sitting ,$(SITTING)),--here) --into "$(PAPER_OUT)/here/generated"
	@scripts/paper-render "$(PAPER_OUT)/here/generated" "$(PAPER_OUT)/here"

paper-check: paper-tools ## Render again and compare, compute every number once more, look for numbers typed into the text
	$(BUILD_BENCH) -q
	$(BENCH) paper render --into "$(PAPER_OUT)/again"
	diff -r paper/perf-analysis/generated "$(PAPER_OUT)/again"
	$(BENCH) paper excerpts --check
	python3 paper/perf-analysis/check/check.py paper/perf-analysis
	rm -rf "$(PAPER_OUT)/made-up"
	$(BENCH) paper made-up --data "$(PAPER_OUT)/made-up/data"
	$(BENCH) paper render --data "$(PAPER_OUT)/made-up/data" --into "$(PAPER_OUT)/made-up/generated"
	python3 paper/perf-analysis/check/check.py paper/perf-analysis --data "$(PAPER_OUT)/made-up/data" --generated "$(PAPER_OUT)/made-up/generated"
	@scripts/paper-render "$(PAPER_OUT)/again" "$(PAPER_OUT)/one"
	@scripts/paper-render "$(PAPER_OUT)/again" "$(PAPER_OUT)/other"
	diff -r "$(PAPER_OUT)/one" "$(PAPER_OUT)/other"

deb: ## Build ferrofd_VERSION_ARCH.deb, ferrofd-s3 and -dbgsym into target/packages (PACKAGES=DIR)
	@PACKAGE_PACKAGES=yes scripts/system-packages
	@packaging/build
	@packaging/build-deb

rpm: ## Build ferrofd-VERSION-1.ARCH.rpm, ferrofd-s3 and debuginfo into target/packages
	@PACKAGE_PACKAGES=rpm scripts/system-packages
	@packaging/build
	@packaging/build-rpm

rpm-test: ## rpmlint, and the RPM over a stand-in for the stock package and back again, in throw-away roots
	@PACKAGE_PACKAGES="rpm rpmlint" scripts/system-packages
	@packaging/build
	@scripts/package-rpm-test

repository: ## Signed repositories for apt and dnf from the packages that are there (REPOSITORY_KEY=ID REPOSITORY=DIR)
	@PACKAGE_PACKAGES="rpm reprepro createrepo-c gpg" scripts/system-packages
	@packaging/build-repository

repository-test: ## apt and dnf install from such repositories, in throw-away roots, and refuse what was tampered with
	@PACKAGE_PACKAGES="rpm reprepro createrepo-c gpg gpg-agent dnf" scripts/system-packages
	@packaging/build
	@scripts/repository-test $(SUITES)

source: ## Source packages with all crates, for dpkg-buildpackage and rpmbuild without a network, into target/source
	@PACKAGE_PACKAGES="dpkg-dev" scripts/system-packages
	@packaging/build-source

source-test: ## Build packages from them without a network, with dpkg-buildpackage and rpmbuild; lintian
	@PACKAGE_PACKAGES="dpkg-dev lintian rpm" scripts/system-packages
	@scripts/source-test

tarball: ## Build ferrofd-VERSION-ARCH.tar.gz for other distributions, with an install script that can be undone
	@PACKAGE_PACKAGES=yes scripts/system-packages
	@packaging/build
	@packaging/build-tarball

tarball-test: tarball ## The tarball over the stock package and undone, in a throw-away root
	@scripts/package-tarball-test

portable: export FERROFD_PORTABLE := 1
portable: ## Tarball, DEB and RPM with OpenSSL inside, for Linux with a C library of 2.17: Enterprise Linux 7 and 8, Debian 11
	@PACKAGE_PACKAGES="rpm perl python3-venv" scripts/system-packages
	@packaging/build-all

portable-test: portable ## The portable packages over the stock ones of Debian 11 and Ubuntu 20.04 and back; Debian 11 as a server
	$(BUILD) -q
	@FERROFD_PORTABLE=1 scripts/package-test bullseye focal
	@FERROFD_PORTABLE=1 scripts/package-tarball-test bullseye
	@FERROFD_PORTABLE=1 scripts/compat-test bullseye

package-test: deb ## Install, upgrade, remove the DEB in throw-away roots (SUITES="trixie bookworm"), with the bed's Director
	$(BUILD) -q
	@scripts/package-test $(SUITES)

systemd-test: deb ## The same road where systemd runs as PID 1, the whole root saved and restored (SUITES="trixie bookworm")
	@scripts/systemd-test $(SUITES)

arm64: setup ## DEB, RPM and tarball for arm64, tests and a backup of 20,000 files under emulation
	@PACKAGE_PACKAGES=yes scripts/system-packages
	$(CARGO) build --release -p bed
	$(RELEASE)/bed setup
	@scripts/arm64-test

arm64-check: ## cargo check for arm64, in a throw-away root with Debian's standard library for it
	@PACKAGE_PACKAGES=yes scripts/system-packages
	@scripts/arm64 cargo check --locked -p bacula-fd

package-autopkgtest: deb ## Debian's test of the file daemon, re-created: ACLs saved and restored among Debian's own daemons
	@scripts/package-autopkgtest

package-lint: ## lintian over the DEB, mandoc over its pages; systemd-analyze; the policies for AppArmor and SELinux
	@PACKAGE_PACKAGES="lintian systemd mandoc apparmor checkpolicy semodule-utils" scripts/system-packages
	@$(MAKE) --no-print-directory deb
	@scripts/package-lint

package-again: deb ## Build the DEB once more elsewhere and compare every byte
	@scripts/package-again

container: ## Build ferrofd-VERSION-ARCH.oci.tar, an image for podman, docker and Kubernetes, without a registry
	@PACKAGE_PACKAGES="buildah libcap2-bin" scripts/system-packages
	@packaging/build
	@packaging/build-container

container-test: ## The image built twice; a node saved and restored through it; the schemas of its examples
	@PACKAGE_PACKAGES="buildah libcap2-bin podman crun golang-github-containers-common" scripts/system-packages
	@packaging/build
	$(BUILD) -q
	@scripts/container-test

ansible-test: deb ## The Ansible role on a throw-away host, with the bed's Director; ansible-lint, puppet, salt-lint
	@PACKAGE_PACKAGES="puppet-agent" scripts/system-packages
	$(BUILD) -q
	@scripts/ansible-test

upgrade-test: deb ## The DEB over that of the release before, in the middle of a job (UPGRADE_FROM=DEB or commit)
	$(BUILD) -q
	@scripts/upgrade-test $(SUITES)

first-hour-test: deb ## Follow docs/first-hour.md literally on a bare Debian 13, in a throw-away root
	@scripts/first-hour-test

pages-test: deb ## Walk the commands of migrating, install and monitoring.md as typed, in a throw-away root: no secret is left open
	@scripts/pages-test

# Which Director and Storage Daemon: of one release of Debian or Ubuntu, or DIRECTOR+STORAGE.
COMPAT_PAIRS ?= bookworm noble trixie bookworm+trixie trixie+bookworm
compat-test: deb ## Directors and Storage Daemons of other releases, with the stock File Daemon and ours
	$(BUILD) -q
	@scripts/compat-test $(COMPAT_PAIRS)

support: ## Put what the tests have shown on this machine into docs/support.md
	@scripts/support

release: ## Build all packages, those of this system twice, sign and test them (RELEASE_KEY=FILE, or test), into target/release-VERSION
	@PACKAGE_PACKAGES="rpm rpmlint lintian systemd openssh-client apparmor checkpolicy semodule-utils mandoc perl python3-venv" scripts/system-packages
	@scripts/release

clean: ## Remove what was built here (the bed's Debian root and the lint tools stay in their caches)
	$(CARGO) clean
	rm -rf fuzz/target fuzz/corpus fuzz/artifacts
