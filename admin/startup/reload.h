/* A reload of the settings in as many turns as it takes: with thousands of keys in
 * dkim_keys one turn would be too long for the others. */
#ifndef ADMIN_STARTUP_RELOAD_H
#define ADMIN_STARTUP_RELOAD_H

#include "admin/startup/configuration.h"
#include "base/loop/loop.h"
#include "base/sandbox/sandbox.h"

#include <jansson.h>

struct reload { /* zeroed before its first use */
    struct loop *loop;
    struct log *log;
    void (*done)(void *context); /* must call reload_end() */
    void *context;
    /* Private. */
    struct configuration *fresh; /* the settings being read; NULL: no reload is under
                                  * way */
    struct loop_task task;
    json_t *errors; /* of the last reload; NULL: it had none */
};

/* Reads all settings anew. A reload under way is given up. If one turn is enough, done
 * comes within this call. */
void reload_begin(struct reload *r, const struct options_sources *sources);
/* The new settings with the certificates that next hops are verified by, if all can be
 * used; the caller frees them. NULL: they cannot, which the log says. running: those in
 * use; a file that has been emptied since is refused; NULL: none. */
struct configuration *reload_end(struct reload *r, const struct settings *running,
                                 const struct sandbox *sandbox);
/* The lines that the log got of the last reload_end(), borrowed; NULL: it was good. */
const json_t *reload_errors(const struct reload *r);
/* Gives up a reload under way, and forgets errors. */
void reload_stop(struct reload *r);

#endif
