# Petrel. GNU make; no configure. `make help` lists the targets.
PREFIX ?= /usr/local
VERSION := 1.0.0
comma := ,
BUILD ?= build$(if $(SAN),-$(subst $(comma),-,$(SAN)))

# For another processor: make static CROSS=aarch64-linux-gnu, with its compiler and the libraries of its architecture.
PKG_CONFIG := pkg-config
STRIP := strip
ifdef CROSS
CC := $(CROSS)-gcc
AR := $(CROSS)-ar
STRIP := $(CROSS)-strip
PKG_CONFIG := PKG_CONFIG_LIBDIR=/usr/lib/$(CROSS)/pkgconfig:/usr/share/pkgconfig pkg-config
endif

# `make V=1` shows the commands.
Q := $(if $(V),,@)

# In the order in which they know each other (t/layers.t proves it).
DIRS := base mime sched queue smtp defrag admin
# May be missing: no registry in Redis then. LIBHIREDIS= builds without it.
LIBHIREDIS := $(shell $(PKG_CONFIG) --libs hiredis 2>/dev/null)
# May be missing: no Ed25519 keys for DKIM then. LIBSODIUM= builds without it.
LIBSODIUM := $(shell $(PKG_CONFIG) --libs libsodium 2>/dev/null)
sources = $(wildcard $(1)/*.c $(1)/*/*.c)
SRC := $(foreach d,$(DIRS),$(call sources,$(d)))
UNIT := $(patsubst t/unit/%.c,%,$(wildcard t/unit/*/*.c t/unit/*/*/*.c))
SIM := $(wildcard t/sim/*.c)
PEERS := sink load fill decide fetch resolve simulate mime_tree

# May be missing: domains beyond ASCII are refused then. LIBIDN2= builds without it.
LIBIDN2 := $(shell $(PKG_CONFIG) --libs libidn2 2>/dev/null)

# Some systems ship no .pc file for libev or mbedTLS: ask, then fall back. A sanitizer
# wraps crypt_r(), and the linker would think that libcrypt is not needed.
library = $(shell $(PKG_CONFIG) --libs $(1) 2>/dev/null || echo $(2))
LDLIBS := $(call library,libev,-lev) $(call library,libcares,-lcares) \
          $(call library,mbedtls mbedx509 mbedcrypto,-lmbedtls -lmbedx509 -lmbedcrypto) $(call library,jansson,-ljansson) \
          $(LIBHIREDIS) $(LIBSODIUM) $(LIBIDN2) $(if $(SAN),-Wl$(comma)--no-as-needed) $(call library,libcrypt,-lcrypt)

# Optional: found by pkg-config, reported by `petrel version`.
ifeq ($(shell $(PKG_CONFIG) --exists libseccomp 2>/dev/null && echo yes),yes)
override CPPFLAGS += -DHAVE_LIBSECCOMP $(shell $(PKG_CONFIG) --cflags libseccomp)
LDLIBS += $(shell $(PKG_CONFIG) --libs libseccomp)
endif

# Further flags of this compiler, for this processor, against memory errors.
supported = $(foreach flag,$(1),$(shell $(CC) -Werror $(flag) -c -x c /dev/null -o /dev/null 2>/dev/null && echo $(flag)))
HARDENING := $(call supported,-fstack-clash-protection -fcf-protection -mbranch-protection=standard)

# The same bytes from any folder. Counters of coverage are found by their own.
PREFIX_MAP := $(if $(findstring --coverage,$(CFLAGS)),,$(call supported,-ffile-prefix-map=$(CURDIR)=.))

# Offsets beyond 2 GB, where a long has 32 bits. (Times are those of the libraries: c-ares has them in its calls.)
LARGE_FILES := $(if $(findstring __LP64__,$(shell echo __LP64__ | $(CC) -E -P -x c - 2>/dev/null)),-D_FILE_OFFSET_BITS=64)

# Nothing unwinds at run time: debuggers have .debug_frame, profilers the frame pointer.
FRAME_POINTER := -fno-omit-frame-pointer
CFLAGS ?= -O2 -g
override CFLAGS += -std=c11 -Wall -Wextra -Wshadow -Wvla -Wundef -Wformat=2 \
    -Wswitch-enum -Wconversion -Wwrite-strings -Wstrict-prototypes \
    -Wmissing-prototypes -fstack-protector-strong $(FRAME_POINTER) -fPIE \
    -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables \
    $(HARDENING) $(PREFIX_MAP) $(if $(WERROR),-Werror)
override CPPFLAGS += -I. -D_GNU_SOURCE -MMD -MP -DPETREL_VERSION='"$(VERSION)"' \
    $(if $(SAN),,-D_FORTIFY_SOURCE=3) $(if $(LIBIDN2),-DHAVE_LIBIDN2) \
    $(if $(LIBHIREDIS),-DHAVE_HIREDIS) $(if $(LIBSODIUM),-DHAVE_LIBSODIUM) $(LARGE_FILES)
override LDFLAGS += -pie -Wl,-z,relro,-z,now -Wl,--gc-sections -Wl,--as-needed
ifdef SAN
override CFLAGS += -fsanitize=$(SAN) -fno-sanitize-recover=all
override LDFLAGS += -fsanitize=$(SAN)
endif

# Folders that take at most 1 % of a relay's time are optimized for size.
COLD := admin defrag $(addprefix base/,disk dns event http redis sandbox settings) $(addprefix queue/,group recovery spool suppression) sched/route smtp/oauth mime/report
COLD_FLAGS := $(if $(SAN),,$(if $(findstring -O2,$(CFLAGS)),-Os))
$(foreach d,$(COLD),$(eval $(BUILD)/$(d)/%.o: override CFLAGS += $$(COLD_FLAGS)))

# The code that runs first comes first (doc/dev/hacking.md), where the linker is GNU's.
GNU_LD := $(findstring GNU ld,$(shell $(CC) $(LDFLAGS) -Wl$(comma)--version 2>/dev/null))
FIRST_CODE := $(if $(GNU_LD),-Wl$(comma)-T$(comma)etc/first-code.ld)
# Relative relocations take 75 kB less where that linker packs them and the loader (glibc 2.36) reads them.
PACKED := $(if $(GNU_LD),$(if $(findstring pack-relative-relocs,$(shell $(CC) -Wl$(comma)--help 2>/dev/null)),$(if \
    $(shell getconf GNU_LIBC_VERSION 2>/dev/null | awk '$$2 >= 2.36'),-Wl$(comma)-z$(comma)pack-relative-relocs)))

object = $(patsubst %.c,$(BUILD)/%.o,$(1))
archive = $(foreach d,$(1),$(BUILD)/$(d).a)
# The folders up to and including that of the test $(1).
upto = $(call until,$(firstword $(subst /, ,$(1))),$(DIRS))
until = $(if $(2),$(firstword $(2)) $(if $(filter $(1),$(firstword $(2))),,$(call until,$(1),$(wordlist 2,99,$(2)))))
reversed = $(if $(1),$(call reversed,$(wordlist 2,99,$(1))) $(firstword $(1)))

all: petrel ## Builds ./petrel, as `make` alone does.

# Always: ./petrel may be that of another BUILD, and newer.
petrel: $(BUILD)/petrel ## Builds ./petrel.
	$(Q)cmp -s $< $@ || cp -f $< $@

$(BUILD)/petrel: $(call object,mta.c) $(call archive,$(call reversed,$(DIRS))) etc/first-code.ld
	$(Q)echo "  link $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $(PACKED) $(FIRST_CODE) -o $@ $(filter-out %.ld,$^) $(LDLIBS)

# The next version, for t/e2e/rolling_upgrade.t: the number of its forms is one higher.
NEXT := queue/envelope/envelope_form.c
$(BUILD)/next/%.o: %.c
	@mkdir -p $(@D)
	$(Q)echo "  $(CC) $< (next)"
	$(Q)$(CC) $(CPPFLAGS) -DENVELOPE_FORM=2 $(CFLAGS) -c -o $@ $<

$(BUILD)/petrel-next: $(NEXT:%.c=$(BUILD)/next/%.o) $(call object,mta.c) $(call archive,$(call reversed,$(DIRS)))
	$(Q)echo "  link $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# Objects of the folder; an empty folder is an empty archive.
define folder
$(BUILD)/$(1).a: $(call object,$(call sources,$(1)))
	@mkdir -p $$(@D)
	@rm -f $$@
	$(Q)$(AR) rcs $$@ $$^
endef
$(foreach d,$(DIRS),$(eval $(call folder,$(d))))

# A unit test links the helpers of t/support/ and t/simulation/ that it uses, its own folder and those below.
# A test with a line `/* link: t/sim/disk*.c */` links that stand-in before the real door.
SUPPORT := $(BUILD)/t/support.a
$(SUPPORT): $(call object,$(wildcard t/support/*.c t/simulation/*.c))
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

# All of these lines in one call, as unit/queue/marks=t/sim/loop.c: a shell for each test took most of the time of `make`.
LINKED := $(shell grep -rHoP '^/\* link: \K.*(?= \*/$$)' t/unit t/fuzz --include='*.c' | \
    awk -F: '{ sub("^t/", "", $$1); sub("[.]c$$", "", $$1); n = split($$2, w, " "); for (i = 1; i <= n; i++) print $$1 "=" w[i] }')
stand_ins = $(call object,$(wildcard $(patsubst $(1)=%,%,$(filter $(1)=%,$(LINKED)))))
define unit
$(BUILD)/t/unit/$(1).t: $(BUILD)/t/unit/$(1).o $(call stand_ins,unit/$(1)) $(SUPPORT) \
        $(call archive,$(call reversed,$(call upto,$(1))))
	$$(Q)echo "  link $$@"
	$$(Q)$$(CC) $$(CFLAGS) $$(LDFLAGS) -o $$@ $$^ $$(LDLIBS)
endef
$(foreach u,$(UNIT),$(eval $(call unit,$(u))))

# For the measurements alone: GMime, where it is there, beside our own.
GMIME = $(shell $(PKG_CONFIG) --exists gmime-3.0 2>/dev/null && echo gmime-3.0)
$(BUILD)/t/bench/mime.o: override CPPFLAGS += \
    $(if $(GMIME),-DHAVE_GMIME $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags $(GMIME))))
$(BUILD)/t/bench/mime: LDLIBS += $(if $(GMIME),$(shell $(PKG_CONFIG) --libs $(GMIME)))

$(patsubst %,$(BUILD)/t/bench/%,$(PEERS) mime): $(BUILD)/t/bench/%: $(BUILD)/t/bench/%.o $(SUPPORT) \
        $(call archive,$(call reversed,$(DIRS)))
	$(Q)echo "  link $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# The page is in the program, its large files as browsers take them.
PAGE_PACKED := $(BUILD)/admin/page/
$(PAGE_PACKED)%.gz: admin/page/%
	@mkdir -p $(@D)
	$(Q)gzip -n9 <$< >$@.new && mv $@.new $@
$(BUILD)/admin/page/page.o: admin/page/index.html admin/page/icon.svg $(PAGE_PACKED)page.css.gz $(PAGE_PACKED)page.js.gz
$(BUILD)/admin/page/page.o: override CPPFLAGS += -DPAGE_PACKED='"$(PAGE_PACKED)"'

# So are the paragraphs of petrel.conf(5), as small as `petrel help` can read them.
HELP_TEXT := $(BUILD)/admin/command/help_text.bin
$(HELP_TEXT): man/help_text.pl man/petrel.conf.5 config.example
	@mkdir -p $(@D)
	$(Q)perl $^ >$@.new && mv $@.new $@
$(BUILD)/admin/command/help_text.o: $(HELP_TEXT)
$(BUILD)/admin/command/help_text.o: override CPPFLAGS += -DHELP_TEXT_FILE='"$(HELP_TEXT)"'

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(Q)echo "  $(CC) $<"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

# Power cuts at every change of the simulated disk: bounded as a test, or ROUNDS=n of
# workloads left to chance, from SEED=n on.
$(BUILD)/t/crash.t: $(call object,$(wildcard t/crash/*.c t/sim/disk*.c) t/sim/loop.c) $(SUPPORT) \
        $(call archive,queue sched mime base)
	$(Q)echo "  link $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# Of the roof's fresh seeds: those of the commit, so that a test that runs again has the same.
FRESH ?= $(shell git log -1 --format=%ct 2>/dev/null || date +%s)

# The whole MTA with all stand-ins: bounded as a test, or SEED=n RUNS=n MINUTES=n ONLY=reload,kill TRACE=1.
ROOF_SIM := $(wildcard t/sim/disk*.c) t/sim/loop.c t/sim/dns.c t/sim/copies_database.c
$(BUILD)/t/roof.t: $(call object,$(wildcard t/roof/*.c) $(ROOF_SIM)) $(SUPPORT) \
        $(call archive,$(call reversed,$(DIRS)))
	$(Q)echo "  link $@"
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -Wl,--wrap=digest_stretch_go -o $@ $^ $(LDLIBS)

roof: $(BUILD)/t/roof.t ## Runs the whole MTA in virtual time, judged by a model: SEED=1 RUNS=300 MINUTES=600 ONLY=reload,kill TRACE=1 WITHOUT='mail:0-9' KEEP=name KEPT=name.
	$(Q)BUILD=$(BUILD) SEED=$(SEED) RUNS=$(RUNS) MINUTES=$(MINUTES) ONLY=$(ONLY) TRACE=$(TRACE) \
	    WITHOUT='$(WITHOUT)' KEEP=$(KEEP) KEPT=$(KEPT) FRESH=$(FRESH) $<

mutants: ## Plants the defects of t/roof/mutants/ one by one, and counts those that the roof finds: RUNS=600 SEED=1 JOBS=2 ONLY=name,name.
	$(Q)RUNS=$(RUNS) SEED=$(SEED) JOBS=$(JOBS) ONLY=$(ONLY) perl t/roof/mutants.pl $(BUILD)

crash: $(BUILD)/t/crash.t $(BUILD)/t/unit/queue/group/give_crash.t ## Cuts the power of simulated disks at random: ROUNDS=500 SEED=1.
	$(Q)$< $(or $(ROUNDS),500) $(or $(SEED),1)
	$(Q)$(BUILD)/t/unit/queue/group/give_crash.t $(or $(ROUNDS),30) $(or $(SEED),1)

# The longest first, so that no core is idle at the end.
LONGEST := $(BUILD)/t/crash.t $(BUILD)/t/roof.t
UNIT_TESTS := $(LONGEST) $(UNIT:%=$(BUILD)/t/unit/%.t)
unit: $(UNIT_TESTS) ## Runs all unit tests; `make t/unit/queue/marks` one of them, `make t/unit/queue/` those of a room.
	$(Q)BUILD=$(BUILD) FRESH=$(FRESH) t/run.sh $^

# One of them: make t/unit/queue/marks
$(UNIT:%=t/unit/%): t/unit/%: $(BUILD)/t/unit/%.t
	$(Q)BUILD=$(BUILD) prove -v $<

# Those of a room and of the rooms in it: make t/unit/queue/
ROOMS := $(filter-out ./,$(sort $(foreach u,$(UNIT),$(dir $(u)) $(dir $(patsubst %/,%,$(dir $(u)))))))
.PHONY: $(ROOMS:%=t/unit/%)
define room
t/unit/$(1): $(patsubst %,$(BUILD)/t/unit/%.t,$(filter $(1)%,$(UNIT)))
	$$(Q)BUILD=$$(BUILD) t/run.sh $$^
endef
$(foreach r,$(ROOMS),$(eval $(call room,$(r))))

# For a look before a commit. Tests end to end need the programs that `make check` builds.
quick: ## Runs the rules, and the tests of the rooms that differ from HEAD.
	$(Q)$(MAKE) --no-print-directory quick-tests CHANGED="$$(t/changed.sh | tr '\n' ' ')"

QUICK := $(patsubst t/%.c,$(BUILD)/t/%.t,$(CHANGED))
.PHONY: quick-tests
quick-tests: petrel $(QUICK) $(if $(filter t/e2e/%,$(QUICK)),$(BUILD)/petrel-next $(PEERS:%=$(BUILD)/t/bench/%))
	$(Q)BUILD=$(BUILD) t/run.sh t/tidy.t t/layers.t $(QUICK)

tests: $(BUILD)/petrel $(BUILD)/petrel-next $(UNIT_TESTS) $(PEERS:%=$(BUILD)/t/bench/%) ## Builds what `make check` runs.

# A part of those end to end: E2E='t/e2e/tls*.t t/e2e/dkim*.t'.
E2E ?= t/e2e/*.t
# Everything: unit tests, the rules, and with real peers end to end: these wait more than they work.
check: petrel tests ## Runs all tests: unit, rules, end to end with real peers.
	$(Q)BUILD=$(BUILD) FRESH=$(FRESH) t/run.sh $(LONGEST) $(if $(SAN),,$(wildcard $(E2E))) $(wildcard t/*.t t/unit/*.t) t/release/chart.t $(filter-out $(LONGEST),$(UNIT_TESTS))

# A message by SMTP through Petrel to a sink, one to a Maildir, before your eyes.
demo: petrel $(PEERS:%=$(BUILD)/t/bench/%) ## Sends mail through Petrel to a sink and to a Maildir, and shows it.
	$(Q)BUILD=$(BUILD) sh t/e2e/demo.sh

# Ratios on this machine, against Postfix where it is set up. Not a test.
bench: petrel $(patsubst %,$(BUILD)/t/bench/%,$(PEERS) mime) ## Measures Petrel on this machine, beside Postfix if that is set up.
	BUILD=$(BUILD) sh t/bench/run.sh

# SECONDS_EACH=60 a target, of at most MAX_LEN=65536 octets; the input that broke one goes to t/fuzz/corpus.
FUZZERS := $(basename $(notdir $(wildcard t/fuzz/*.c)))
FUZZ_FLAGS := -g -O2 -fno-sanitize-recover=all
fuzz: ## Runs each fuzzer for SECONDS_EACH=60 (needs clang).
	$(MAKE) BUILD=build-fuzz CC=clang SAN=address,undefined,fuzzer-no-link \
	    CFLAGS='$(FUZZ_FLAGS)' $(FUZZERS:%=build-fuzz/fuzz/%)
	broken=; for f in $(FUZZERS); do mkdir -p build-fuzz/corpus/$$f t/fuzz/corpus/$$f; \
	    build-fuzz/fuzz/$$f -max_total_time=$${SECONDS_EACH:-60} -timeout=10 -max_len=$${MAX_LEN:-65536} \
	        -artifact_prefix=t/fuzz/corpus/$$f/ build-fuzz/corpus/$$f t/fuzz/corpus/$$f || \
	        broken="$$broken $$f"; done; \
	    [ -z "$$broken" ] || { echo "broken:$$broken"; exit 1; }

define fuzzer
$(BUILD)/fuzz/$(1): $(BUILD)/t/fuzz/$(1).o $(call stand_ins,fuzz/$(1)) $(SUPPORT) \
        $(call archive,$(call reversed,$(DIRS)))
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS) -fsanitize=fuzzer $$(LDFLAGS) -o $$@ $$^ $$(LDLIBS)
endef
$(foreach f,$(FUZZERS),$(eval $(call fuzzer,$(f))))

# Unit tests alone: the daemon of the others cannot write its counters from its sandbox.
# Code of a test in a child process that ends by _exit() is not counted.
coverage: ## Runs the unit tests, and prints lines and branches that they reach, by room.
	$(Q)[ ! -d build-coverage ] || find build-coverage -name '*.gcda' -delete
	umask 0; $(MAKE) BUILD=build-coverage CFLAGS='-Og -g --coverage -DCOVERAGE=\"$(CURDIR)/build-coverage\"' unit
	$(Q)gcovr -r . -e t/ --exclude-branches-by-pattern '.*assert\(.*' build-coverage --csv - | perl t/support/coverage.pl

PRODUCT := mta.c $(SRC) $(wildcard $(DIRS:%=%/*.h) $(DIRS:%=%/*/*.h))
tidy: ## Checks format (clang-format), common errors (cppcheck) and spelling (codespell).
	$(Q)clang-format --dry-run -Werror $(PRODUCT)
	$(Q)cppcheck -q -j2 --error-exitcode=1 --inline-suppr --enable=warning,portability \
	    --suppress=unknownMacro --suppress=missingInclude --suppress='*:/usr/include/*' \
	    --include=/usr/include/utlist.h --include=/usr/include/uthash.h \
	    -DPETREL_VERSION='""' -I. mta.c $(SRC)
	$(Q)if command -v codespell >/dev/null; then t/support/spelling.sh; else echo 'spelling is not checked: codespell is not installed'; fi
	@echo 'format, code and spelling are as they should be'

# A DESTDIR, which packages set, has no user and no owner yet: the system of
# the package makes them. SYSCONFDIR is never overwritten.
SYSCONFDIR ?= /etc
# Pages for those who run it; those of doc/dev/ are about the source.
GUIDE := $(wildcard doc/*.md) doc/openapi.yaml
INSTALL_STRIP ?= -s
INSTALLED := sbin/petrel $(patsubst man/%,share/man/man8/%,$(wildcard man/petrel*.8)) share/man/man5/petrel.conf.5 \
    share/man/man5/petrel-spool.5 share/man/man7/petrel-metrics.7 share/doc/petrel/petrel.rules.yml share/doc/petrel/fail2ban.conf share/doc/petrel/fail2ban-jail.conf share/doc/petrel/config.example \
    $(patsubst doc/%,share/doc/petrel/%,$(GUIDE)) \
    lib/sysusers.d/petrel.conf lib/tmpfiles.d/petrel.conf lib/systemd/system/petrel.service \
    lib/systemd/system/petrel@.service lib/systemd/system/petrel.socket share/bash-completion/completions/petrel \
    share/zsh/site-functions/_petrel share/fish/vendor_completions.d/petrel.fish
install: petrel ## Installs below PREFIX=/usr/local, for packages below DESTDIR=.
	install -D $(INSTALL_STRIP) -m 755 petrel $(DESTDIR)$(PREFIX)/sbin/petrel
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man8 man/petrel*.8
	install -D -m 644 man/petrel.conf.5 $(DESTDIR)$(PREFIX)/share/man/man5/petrel.conf.5
	install -D -m 644 man/petrel-spool.5 $(DESTDIR)$(PREFIX)/share/man/man5/petrel-spool.5
	install -D -m 644 man/petrel-metrics.7 $(DESTDIR)$(PREFIX)/share/man/man7/petrel-metrics.7
	install -D -m 644 etc/prometheus/petrel.rules.yml $(DESTDIR)$(PREFIX)/share/doc/petrel/petrel.rules.yml
	install -D -m 644 etc/fail2ban/petrel.conf $(DESTDIR)$(PREFIX)/share/doc/petrel/fail2ban.conf
	install -D -m 644 etc/fail2ban/jail.d/petrel.conf $(DESTDIR)$(PREFIX)/share/doc/petrel/fail2ban-jail.conf
	install -D -m 644 config.example $(DESTDIR)$(PREFIX)/share/doc/petrel/config.example
	install -m 644 $(GUIDE) $(DESTDIR)$(PREFIX)/share/doc/petrel/
	install -D -m 644 etc/completion/petrel.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/petrel
	install -D -m 644 etc/completion/petrel.zsh $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_petrel
	install -D -m 644 etc/completion/petrel.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/petrel.fish
	install -D -m 644 etc/petrel.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/petrel.conf
	install -D -m 644 etc/petrel.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/petrel.conf
	for unit in petrel.service petrel@.service; do \
	    install -D -m 644 etc/$$unit $(DESTDIR)$(PREFIX)/lib/systemd/system/$$unit && \
	    sed -i 's,/usr/local/sbin,$(PREFIX)/sbin,g' $(DESTDIR)$(PREFIX)/lib/systemd/system/$$unit || exit 1; done
	install -D -m 644 etc/petrel.socket $(DESTDIR)$(PREFIX)/lib/systemd/system/petrel.socket
	install -d -m 755 $(DESTDIR)$(SYSCONFDIR)/petrel
	[ -e $(DESTDIR)$(SYSCONFDIR)/petrel/petrel.conf ] || \
	    install -m 644 etc/petrel.conf $(DESTDIR)$(SYSCONFDIR)/petrel/petrel.conf
	[ -n "$(DESTDIR)" ] || [ "$$(id -u)" != 0 ] || sh etc/install-user.sh

# Settings, the spool with the mail in it and the user stay.
uninstall: ## Removes what install has installed, but neither settings nor mail.
	rm -f $(INSTALLED:%=$(DESTDIR)$(PREFIX)/%)
	rmdir $(DESTDIR)$(PREFIX)/share/doc/petrel 2>/dev/null || true

# Where programs look for sendmail. The program of another mail server there steps aside for good
# (dpkg-divert), and comes back with uninstall-sendmail.
SENDMAIL := /usr/sbin/sendmail /usr/lib/sendmail /usr/bin/mailq /usr/bin/newaliases
SENDMAIL_MAN := sendmail.1 mailq.1 newaliases.1
DIVERT = if [ -d "$(DESTDIR)/var/lib/dpkg" ]; then dpkg-divert --root="$(DESTDIR)/" --local --rename --divert $$f.before-petrel
install-sendmail: ## Makes /usr/sbin/sendmail, mailq and newaliases links to petrel.
	for f in $(SENDMAIL); do \
	    mkdir -p $(DESTDIR)$${f%/*} || exit 1; \
	    [ "$$(readlink $(DESTDIR)$$f)" = $(PREFIX)/sbin/petrel ] && continue; \
	    $(DIVERT) --add $$f || exit 1; \
	    elif [ -e $(DESTDIR)$$f ] || [ -L $(DESTDIR)$$f ]; then mv $(DESTDIR)$$f $(DESTDIR)$$f.before-petrel || exit 1; fi; \
	    ln -s $(PREFIX)/sbin/petrel $(DESTDIR)$$f || exit 1; done
	for m in $(SENDMAIL_MAN); do install -D -m 644 man/$$m $(DESTDIR)$(PREFIX)/share/man/man1/$$m || exit 1; done

uninstall-sendmail: ## Removes these links and restores what was there before.
	for f in $(SENDMAIL); do \
	    [ "$$(readlink $(DESTDIR)$$f)" = $(PREFIX)/sbin/petrel ] || continue; \
	    rm $(DESTDIR)$$f || exit 1; \
	    $(DIVERT) --remove $$f || exit 1; \
	    elif [ -e $(DESTDIR)$$f.before-petrel ] || [ -L $(DESTDIR)$$f.before-petrel ]; then mv $(DESTDIR)$$f.before-petrel $(DESTDIR)$$f || exit 1; fi; done
	rm -f $(SENDMAIL_MAN:%=$(DESTDIR)$(PREFIX)/share/man/man1/%)

# One file that runs on any Linux of this architecture: with musl and libraries that etc/release/musl.sh makes of Debian's sources.
TRIPLET := $(or $(CROSS),$(shell gcc -dumpmachine 2>/dev/null))
MUSL := build-musl/$(TRIPLET)
MUSL_SOURCES := musl libev c-ares mbedtls jansson hiredis libidn2 libseccomp libsodium
# Names of system calls, which libseccomp would have in tables: it asks for one of them, and abort() stands for the others.
STATIC_LD := $(if $(filter petrel-static,$(MAKECMDGOALS)),$(if $(findstring pack-relative-relocs,$(shell $(CC) -Wl$(comma)--help 2>/dev/null)),-Wl$(comma)-z$(comma)pack-relative-relocs)) \
    -Wl,--wrap=arch_syscall_resolve_name -Wl,--defsym=__wrap_arch_syscall_resolve_name=sandbox_seccomp_number \
    $(patsubst %,-Wl$(comma)--defsym=%=abort,syscall_resolve_name syscall_resolve_name_kver syscall_resolve_num syscall_resolve_num_kver syscall_iterate)
STATIC_BUILD := build-static$(CROSS:%=-%)
# Make with the libraries above. A request of ioctl() is an int there. No kernel tracks branches of a program of musl, which does not
# ask for it: -fcf-protection would be 20 kB for nothing. Frame pointers would be 70 kB, for profilers that find no symbols.
MUSL_MAKE = $(MAKE) FRAME_POINTER= HARDENING='$(filter-out -fcf-protection,$(HARDENING))' CC=$(CURDIR)/$(MUSL)/bin/musl-gcc PKG_CONFIG='PKG_CONFIG_LIBDIR=$(CURDIR)/$(MUSL)/lib/pkgconfig pkg-config' \
    LIBHIREDIS=-lhiredis CFLAGS='-Os -g -Wno-sign-conversion'
musl: ## Builds the libraries of the static program with musl, from Debian's sources, into build-musl/.
	etc/release/sources.sh build-musl/source $(MUSL_SOURCES)
	etc/release/musl.sh $(TRIPLET) build-musl/source $(MUSL)

static: musl ## Builds ./petrel-static, one file for any Linux of this architecture, or of CROSS=aarch64-linux-gnu.
	+$(MUSL_MAKE) BUILD=$(STATIC_BUILD) petrel-static
	@echo 'petrel-static is made. It finds the users in /etc/passwd, not those of LDAP and other services.'

# A few stand in for functions of a shared C library, or measure glibc's.
unit-musl: musl ## Runs the unit tests, built with musl as the static program is.
	+$(MUSL_MAKE) BUILD=build-unit-musl FIRST_CODE= unit UNIT_TESTS="$$(grep -rLE 'RTLD_NEXT|mallinfo2|t/sim/clock|^epoll_wait' t/unit --include='*.c' | \
	    sed 's,\(.*\)\.c$$,build-unit-musl/\1.t,' | tr '\n' ' ')"

# Always: it may be that of another processor, and newer.
petrel-static: $(BUILD)/petrel-static FORCE
	$(STRIP) -R .eh_frame -R .eh_frame_hdr -R .gcc_except_table -R .note.ABI-tag -o $@ $<

FORCE:

$(BUILD)/petrel-static: $(call object,mta.c) $(call archive,$(call reversed,$(DIRS))) etc/first-code.ld $(wildcard $(MUSL)/made/*)
	$(Q)echo "  link $@"
	$(Q)$(CC) $(CFLAGS) $(STATIC_LD) $(FIRST_CODE) -Wl,-z,relro,-z,now -Wl,--gc-sections -Wl,-Map=$@.map -o $@ $(filter %.o %.a,$^) \
	    $(LDLIBS) -lm -lpthread

# After the code that runs at startup or for a message has changed much. Of a program in which no code comes first: valgrind finds
# its functions in .text alone.
first-code: $(BUILD)/t/bench/sink ## Writes etc/first-code.ld anew: which code comes first in the program (needs valgrind).
	rm -f $(STATIC_BUILD)/petrel-static
	$(MAKE) static FIRST_CODE=
	$(Q)BUILD=$(BUILD) perl t/support/first_code.pl $(STATIC_BUILD)/petrel-static etc/first-code.ld

# Packages for this release of Debian, built in a copy, as dpkg-buildpackage leaves its traces everywhere.
DEB ?= build-deb
DEB_SOURCE := Makefile mta.c $(DIRS) man etc doc debian config.example README.md CHANGELOG.md SECURITY.md security.txt
deb: ## Builds the Debian packages petrel and petrel-mta into build-deb/, or those of CROSS=aarch64-linux-gnu.
	rm -rf $(DEB) && mkdir -p $(DEB)/petrel
	cp -R $(DEB_SOURCE) $(DEB)/petrel
	sed -i "1s/(\([^)]*\))/(\1~deb$$(sed -n 's/^VERSION_ID="\([0-9]*\)"/\1/p' /etc/os-release)u1)/" $(DEB)/petrel/debian/changelog
	cd $(DEB)/petrel && MAKEFLAGS= dpkg-buildpackage $(CROSS:%=-t%) -us -uc -b -J$$(nproc)

# The root of an image: one file, certificates to verify others by, a user and a spool. Times are those of the release.
IMAGE ?= build-image
CERTIFICATES ?= /etc/ssl/certs/ca-certificates.crt
SOURCE_DATE_EPOCH ?= $(shell date -d "$$(sed -n 's/^ -- .*>  //p;T;q' debian/changelog)" +%s)
image-root: static ## Lays out the root of a container image in build-image/root.
	rm -rf $(IMAGE)/root
	install -D -m 755 petrel-static $(IMAGE)/root/petrel
	install -D -m 644 $(CERTIFICATES) $(IMAGE)/root/etc/ssl/certs/ca-certificates.crt
	echo 'petrel:x:65532:0:Petrel:/spool:/petrel' >$(IMAGE)/root/etc/passwd
	chmod 644 $(IMAGE)/root/etc/passwd
	install -d -m 770 $(IMAGE)/root/spool
	[ "$$(id -u)" != 0 ] || chown 65532:0 $(IMAGE)/root/spool

image: image-root ## Packs it into build-image/petrel.oci.tar, an OCI archive.
	SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) etc/container/image.sh $(IMAGE)/root $(IMAGE)/petrel.oci.tar \
	    $(or $(CROSS),$(shell uname -m)) $(VERSION)

# As root, with a network: a bare Debian of each release is made, and packages are installed in it. SUITE=trixie: of one alone.
check-packages: petrel image $(BUILD)/t/bench/sink ## Builds the packages, and installs, upgrades and removes them in a bare Debian.
	$(Q)for suite in $(or $(SUITE),bookworm trixie); do BUILD=$(BUILD) SUITE=$$suite prove $(wildcard t/packages/*.t) || exit 1; done

# PROCESSORS=x86_64-linux-gnu DEBIAN= is a part of it.
RELEASE ?= build-release
PROCESSORS ?= x86_64-linux-gnu aarch64-linux-gnu arm-linux-gnueabihf riscv64-linux-gnu
release: ## Builds all files of a release from a tag into build-release/ (doc/releasing.md); ANY=1 of any commit.
	+SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) etc/release/release.sh $(VERSION) $(RELEASE) $(PROCESSORS)

check-release: petrel $(BUILD)/t/bench/sink ## Tests the files in build-release/: each is installed in a bare root, and used.
	$(Q)BUILD=$(BUILD) RELEASE=$(RELEASE) prove $(wildcard t/release/*.t)

# For a release: the same source makes the same bytes. WHAT=deb builds the packages alone; WHAT=release that in build-release/ once more.
reproducible: ## Builds program, image and packages twice, elsewhere and otherwise, and says what differs.
	$(Q)t/packages/reproducible $(WHAT)

# Packages for building; further ones for the tests. Debian 12 and 13.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
PACKAGES := gcc libc6-dev make pkg-config libev-dev libc-ares-dev libmbedtls-dev libcrypt-dev \
    libjansson-dev libseccomp-dev libidn2-dev libhiredis-dev libsodium-dev uthash-dev swaks \
    ca-certificates
TEST_PACKAGES := openssl perl python3 python3-spf python3-yaml python3-aiodns python3-aiohttp curl iproute2 msmtp nsd unbound ldnsutils nginx-light dovecot-core dovecot-lmtpd redis-tools strace procps patch \
    clang clang-format cppcheck codespell gcovr util-linux mount e2fsprogs nodejs libsasl2-modules libnet-ssleay-perl \
    opendkim opendkim-tools libmail-dkim-perl python3-dkim python3-nacl prometheus python3-prometheus-client zsh fish python3-jsonschema \
    s-nail mutt php-cli git git-email cmark-gfm mandoc glusterfs-server glusterfs-client qemu-system-x86 xz-utils libio-socket-ssl-perl libauthen-sasl-perl libmailtools-perl
site: ## Renders README, doc/ and the manuals as HTML with a search box into build-site/ (needs cmark-gfm and mandoc).
	python3 etc/site/site.py . build-site

deps: ## Installs the Debian packages that building and the demo need.
	$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $(PACKAGES)
deps-test: deps ## Installs the packages and peers that the tests need, too.
	$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $(TEST_PACKAGES)
	$(SUDO) sh t/e2e/get-peers.sh

# For `make static`: what builds libraries from their sources.
STATIC_PACKAGES := gcc libc6-dev make pkg-config ca-certificates dpkg-dev patch gperf autoconf automake libtool python3 uthash-dev
deps-static: ## Installs what `make static` and `make image` need.
	$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $(STATIC_PACKAGES)

# For `make release` and its tests: compilers and an emulator of other processors, tools of other systems.
RELEASE_PACKAGES := git rpm apt-utils gnupg minisign busybox-static qemu-user-static openssl $(foreach p,aarch64-linux-gnu:arm64 \
    arm-linux-gnueabihf:armhf riscv64-linux-gnu:riscv64,gcc-$(firstword $(subst :, ,$(p))) linux-libc-dev-$(lastword $(subst :, ,$(p)))-cross)
deps-release: deps-packages deps-static ## Installs what `make release` and `make check-release` need.
	$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $(RELEASE_PACKAGES)

# For `make deb` and `make check-packages`.
DEB_PACKAGES := build-essential dpkg-dev debhelper lintian debootstrap iproute2 util-linux
deps-packages: deps ## Installs what building and testing the Debian packages needs.
	$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $(DEB_PACKAGES)

# The test of the page: 100 MB. Without them it looks at the files alone.
deps-page: ## Installs Chromium and what drives it, for the test of the page.
	$(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends chromium
	cd t/e2e/page && npm ci --ignore-scripts --no-audit --no-fund

contact: ## Writes the address for reports, ADDRESS=security@example.org, into security.txt and the packages.
	@echo '$(ADDRESS)' | grep -qE '^[^@ <>,]+@[^@ <>,]+\.[a-z]+$$' || { echo 'contact: ADDRESS=you@example.org is needed' >&2; exit 64; }
	sed -i 's,^Contact: mailto:.*,Contact: mailto:$(ADDRESS),' security.txt
	sed -i 's,^Maintainer: \(.*\) <.*>,Maintainer: \1 <$(ADDRESS)>,' debian/control
	sed -i '0,/^ -- /s/^ -- \(.*\) <[^>]*>/ -- \1 <$(ADDRESS)>/' debian/changelog

clean: ## Removes all that was built.
	rm -rf build build-* petrel petrel-static

help: ## Prints this list.
	@sed -n 's/^\([a-z-]*\):.* ## /\1|/p' Makefile | while IFS='|' read -r t text; do printf '%-20s%s\n' "$$t" "$$text"; done
	@echo 'Variables: SAN=address,undefined CC=clang WERROR=1 BUILD=folder V=1 (shows the commands).'

.PHONY: $(UNIT:%=t/unit/%) all petrel unit tests check quick demo bench crash roof mutants fuzz coverage tidy install uninstall install-sendmail uninstall-sendmail musl static unit-musl first-code deb image-root image release check-release check-packages reproducible deps deps-test deps-packages deps-static deps-release deps-page site contact clean help
.PRECIOUS: $(BUILD)/%.o
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
