/* simulate: a scenario (t/simulation/scenario.h) with the settings of a daemon.
 *
 *   simulate [-c FILE] [-o KEY=VALUE]... [--trace] SCENARIO
 * Prints the report, and before it a line for each event with --trace. Exit code 75: mail
 * was left at the end. */
#include "admin/settings/complaint.h"
#include "admin/settings/options.h"
#include "base/disk/disk.h"
#include "base/settings/settings.h"
#include "t/simulation/simulation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

enum { FILE_MAX = 4 * 1024 * 1024, ERRORS_MAX = 64 * 1024, REPORT_MAX = 1024 * 1024 };

static int
usage(void)
{
    fputs("usage: simulate [-c FILE] [-o KEY=VALUE]... [--trace] SCENARIO\n", stderr);
    return EX_USAGE;
}

static struct scenario_defaults
defaults_of(const struct options *o)
{
    struct scenario_defaults d = scenario_defaults();
    d.transport = o->transport;
    d.sched.active_limit = o->manager.sched.active_limit;
    d.sched.recipient_limit = o->manager.sched.recipient_limit;
    d.sched.session_limit = o->manager.sched.session_limit;
    d.sched.site_share = o->manager.sched.site_share;
    d.connect_timeout_ms = o->delivery.connect_timeout_ms;
    d.idle_ms = o->delivery.reuse_idle_ms;
    d.bulk_size = (uint64_t)o->manager.bulk_size;
    return d;
}

static void
print_line(void *context, struct text line)
{
    fwrite(line.at, 1, line.length, context);
    putc('\n', context);
}

static int
run(const struct scenario *scenario, bool trace)
{
    struct buffer report;
    struct simulation_result *result =
        simulation_run(scenario, trace ? print_line : NULL, stdout);
    int code = result->finished ? 0 : EX_TEMPFAIL;
    buffer_init(&report, REPORT_MAX);
    simulation_report(result, scenario, &report);
    fwrite(report.at, 1, report.length, stdout);
    buffer_free(&report);
    simulation_free(&result);
    return fflush(stdout) != 0 || ferror(stdout) ? EX_IOERR : code;
}

static int
run_file(const char *path, bool trace, const struct options *options)
{
    char *content;
    size_t length;
    struct buffer errors;
    struct scenario_defaults defaults = defaults_of(options);
    int error = disk_read_whole(path, FILE_MAX, &content, &length);
    if (error != 0) {
        fprintf(stderr, "simulate: %s: %s\n", path, strerror(-error));
        return EX_NOINPUT;
    }
    buffer_init(&errors, ERRORS_MAX);
    struct scenario *scenario =
        scenario_new(text_of(content, length), path, &defaults, &errors);
    complaint_write(&errors);
    int code = scenario ? run(scenario, trace) : EX_DATAERR;
    scenario_free(&scenario);
    buffer_free(&errors);
    free(content);
    return code;
}

int
main(int argc, char **argv)
{
    extern char **environ;
    char **overrides = calloc((size_t)argc + 1, sizeof(*overrides));
    const char *file = NULL, *path = NULL;
    int given = 0;
    bool trace = false;
    for (int i = 1; i < argc; i++) {
        bool has_value = strcmp(argv[i], "-c") == 0 || strcmp(argv[i], "-o") == 0;
        if (overrides == NULL || (has_value && i + 1 == argc))
            return usage();
        if (strcmp(argv[i], "--trace") == 0)
            trace = true;
        else if (has_value && argv[i][1] == 'c')
            file = argv[++i];
        else if (has_value)
            overrides[given++] = argv[++i];
        else if (path || argv[i][0] == '-')
            return usage();
        else
            path = argv[i];
    }
    if (!path)
        return usage();
    struct options options;
    struct options_sources sources = {.file = file,
                                      .overrides = overrides,
                                      .environment = environ,
                                      .without_secrets = true};
    struct settings *settings = options_read(&sources, &options);
    int code = settings ? run_file(path, trace, &options) : EX_CONFIG;
    if (settings)
        settings_free(&settings);
    free(overrides);
    return code;
}
