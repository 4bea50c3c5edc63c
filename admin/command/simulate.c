/* `petrel simulate`: reads a scenario, runs it, prints the results. */
#include "admin/command/simulate.h"

#include "admin/settings/complaint.h"
#include "base/disk/disk.h"
#include "sched/simulate/simulation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { FILE_MAX = 4 * 1024 * 1024, MISTAKES_MAX = 64 * 1024, REPORT_MAX = 1024 * 1024 };

static int
simulate_usage(void)
{
    fputs("usage: petrel simulate SCENARIO [--trace]\n", stderr);
    return EX_USAGE;
}

static struct scenario_defaults
defaults_of(const struct options *o)
{
    struct scenario_defaults d = scenario_defaults();
    d.transport = options_transport(o);
    d.sched.active_limit = (int)o->active_limit;
    d.sched.recipient_limit = (int)o->active_recipient_limit;
    d.sched.session_limit = (int)o->delivery_session_limit;
    d.sched.site_share = (int)o->site_active_share;
    d.connect_timeout_ms = o->smtp_connect_timeout_ms;
    d.idle_ms = o->smtp_connection_cache_time_limit_ms;
    d.bulk_size = (uint64_t)o->bulk_size;
    return d;
}

static void
simulate_print_line(void *context, struct text line)
{
    fwrite(line.at, 1, line.length, context);
    putc('\n', context);
}

static int
simulate_run(const struct scenario *scenario, bool trace)
{
    struct buffer report;
    struct simulation_result *result =
        simulation_run(scenario, trace ? simulate_print_line : NULL, stdout);
    int code = result->finished ? 0 : EX_TEMPFAIL;
    buffer_init(&report, REPORT_MAX);
    simulation_report(result, scenario, &report);
    fwrite(report.at, 1, report.length, stdout);
    buffer_free(&report);
    simulation_free(&result);
    return fflush(stdout) != 0 || ferror(stdout) ? EX_IOERR : code;
}

int
command_simulate(int count, char **arguments, const struct options *options)
{
    const char *path = NULL;
    bool trace = false;
    for (int i = 0; i < count; i++) {
        if (strcmp(arguments[i], "--trace") == 0)
            trace = true;
        else if (path || arguments[i][0] == '-')
            return simulate_usage();
        else
            path = arguments[i];
    }
    char *content;
    size_t length;
    if (!path)
        return simulate_usage();
    int error = disk_read_whole(path, FILE_MAX, &content, &length);
    if (error != 0) {
        fprintf(stderr, "petrel simulate: cannot read '%s': %s\n", path,
                strerror(-error));
        return EX_NOINPUT;
    }
    struct buffer errors;
    struct scenario_defaults defaults = defaults_of(options);
    buffer_init(&errors, MISTAKES_MAX);
    struct scenario *scenario =
        scenario_new(text_of(content, length), path, &defaults, &errors);
    complaint_write(&errors);
    int code = scenario ? simulate_run(scenario, trace) : EX_DATAERR;
    scenario_free(&scenario);
    buffer_free(&errors);
    free(content);
    return code;
}
