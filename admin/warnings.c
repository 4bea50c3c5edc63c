/* Finds settings that do not fit together, or not with their files. */
#include "admin/warnings.h"

#include "admin/secrecy.h"
#include "sched/peers.h"

#include <string.h>

static void
count(void *context, const struct target *target)
{
    size_t *others = context;
    (void)target;
    ++*others;
}

static void
warn(struct log *log, const char *what)
{
    log_say(log, LOG_LEVEL_WARNING, "main", NULL, "%s", what);
}

static void
warn_of_fragments(const struct options *options, const struct route_table *routes,
                  struct log *log)
{
    bool is_shared = strcmp(options->defrag_registry, "local") != 0,
         joins = route_defragments(routes);
    size_t others = 0;
    peers_each_target(route_peers(routes), count, &others);
    if (is_shared && others == 0)
        warn(log, "defrag_registry is for several hosts, but defrag_peers names no "
                  "other: fragments whose set another host has stay in pieces");
    if (!is_shared && others > 0)
        warn(log, "defrag_peers names other hosts, but defrag_registry is local: this "
                  "host sends them no fragments");
    if (is_shared && !joins)
        warn(log, "defrag_registry is for several hosts, but no route says "
                  "defragment=yes: this host waits for no fragments");
    if (!is_shared && joins && options->slices > 1)
        warn(log, "slices do not share fragments while defrag_registry is local: a "
                  "message whose fragments reach several of them stays in pieces");
}

void
warnings_say(const struct options *options, const struct route_table *routes,
             struct log *log)
{
    secrecy_warn(options, log);
    warn_of_fragments(options, routes, log);
}

void
warnings_at_start(const struct options *options, const struct settings *settings,
                  const struct route_table *routes, struct log *log)
{
    warnings_say(options, routes, log);
    if (options->user != NULL)
        secrecy_foresee(options, settings, log);
}
