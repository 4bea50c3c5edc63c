/* A reload of the settings in as many turns as it takes: with thousands of keys in
 * dkim_keys one turn would be too long for the others. */
#ifndef ADMIN_STARTUP_RELOAD_H
#define ADMIN_STARTUP_RELOAD_H

#include "admin/startup/configuration.h"
#include "base/loop/loop.h"

struct reload { /* zeroed before its first use */
    struct loop *loop;
    struct configuration *fresh; /* what is read; NULL: no reload is under way */
    struct loop_task task;
    void (*done)(void *context); /* must take it: configuration_end() */
    void *context;
};

/* Reads all settings anew. A reload under way is given up. If one turn is enough, done
 * comes within this call. */
void reload_begin(struct reload *r, const struct options_sources *sources);
/* Gives up what is under way; does nothing otherwise. */
void reload_stop(struct reload *r);

#endif
