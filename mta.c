/* The main program: the options of the command line, and what is the process's own while
 * the daemon runs: its identity, its signals and its sandbox.
 *
 * The queue is opened as `user`, so that its files belong to this user. Then ports are
 * bound as root, root is given up for good, and the sandbox closes last. */

#include "admin/command/command.h"
#include "admin/command/command_table.h"
#include "admin/dispatch/dispatch.h"
#include "admin/sendmail/sendmail.h"
#include "admin/settings/sandbox_rules.h"
#include "admin/startup/copies_trial.h"
#include "admin/startup/daemon.h"
#include "base/disk/disk.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/redis/redis.h"
#include "base/sandbox/identity.h"
#include "queue/spool/spool_owner.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sysexits.h>
#include <unistd.h>

enum { OVERRIDES_MAX = 200 };

extern char **environ;

/* --- The daemon ------------------------------------------------------------------- */

/* A spool made by root belongs to the user. */
static void
prepare_spool(const struct daemon *d, const struct identity *who)
{
    const char *spool = d->configuration->options.spool;
    /* A file whose owner cannot be changed is an error when the queue is opened. */
    int given = who->change ? spool_owner_give(spool, who->uid, who->gid) : 0;
    if (given > 0)
        log_say(d->log, LOG_LEVEL_INFO, "main", NULL,
                "spool %s: %d files and directories of root now belong to '%s'", spool,
                given, who->name);
}

/* Root without all of its rights cannot remove another user's files from a directory that
 * this user has for everybody: mail would be delivered again, and that of sendmail(1) wait. */
static bool
is_spool_of_another(struct daemon *d, const struct identity *who)
{
    char path[PATH_MAX];
    const char *spool = d->configuration->options.spool;
    snprintf(path, sizeof(path), "%s/mess", spool);
    unsigned owner = who->change || geteuid() != 0 ? 0 : spool_owner_of(path);
    if (owner != 0)
        snprintf(
            d->error, DAEMON_ERROR_MAX,
            "spool %s: it belongs to the user %u, and the daemon would stay root: set "
            "`user` to that user, or give the spool to root: `chown -R %s %s`",
            spool, owner, "root", spool);
    return owner != 0;
}

/* The parts start, each with the rights that it needs. */
static int
mta_start(struct daemon *d)
{
    const char *user = d->configuration->options.user;
    struct identity who;
    int code = daemon_start(d, DAEMON_OPEN);
    if (code != 0)
        return code;
    if (!identity_find(&who, user)) {
        snprintf(d->error, DAEMON_ERROR_MAX, "user: no such user: '%s'", user);
        return EX_CONFIG;
    }
    if (is_spool_of_another(d, &who))
        return EX_CONFIG;
    prepare_spool(d, &who);
    /* Files that the queue makes belong to the user. */
    if (!identity_try_on(&who)) {
        snprintf(d->error, DAEMON_ERROR_MAX, "user: cannot become '%s': %s", user,
                 strerror(errno));
        return EX_NOPERM;
    }
    code = daemon_start(d, DAEMON_QUEUE);
    if (code != 0)
        return code;
    if (!identity_take_off(&who)) {
        snprintf(d->error, DAEMON_ERROR_MAX, "user: cannot become root again: %s",
                 strerror(errno));
        return EX_OSERR;
    }
    /* As root again: for ports below 1024, and for keys that only root can read. */
    code = daemon_start(d, DAEMON_DOORS);
    if (code != 0)
        return code;
    if (!identity_keep(&who)) {
        snprintf(d->error, DAEMON_ERROR_MAX, "user: cannot become '%s' for good: %s",
                 user, strerror(errno));
        return EX_NOPERM;
    }
    return daemon_start(d, DAEMON_LAST);
}

/* The last step before the loop: all steps that need more rights are done. */
static int
mta_enter_sandbox(struct daemon *d)
{
    if (sandbox_rules_enter(d->sandbox, &d->configuration->options, d->log))
        return 0;
    snprintf(d->error, DAEMON_ERROR_MAX, "sandbox: required, but this system lacks: %s",
             sandbox_get_state(d->sandbox)->missing);
    return EX_OSERR;
}

/* Until now a signal ended the process: startup is idempotent. */
static void
mta_take_signals(struct daemon *d)
{
    loop_on_signal(d->loop, SIGTERM, daemon_terminate, d);
    loop_on_signal(d->loop, SIGINT, daemon_interrupt, d);
    loop_on_signal(d->loop, SIGQUIT, daemon_interrupt, d);
    loop_on_signal(d->loop, SIGHUP, daemon_reload, d);
}

static int
mta_serve(struct daemon *d)
{
    mta_take_signals(d);
    int code = daemon_start(d, DAEMON_RUNS);
    if (geteuid() == 0 && d->configuration->options.user == NULL)
        log_say(d->log, LOG_LEVEL_WARNING, "main", NULL,
                "running as root: set `user` to leave it after binding");
    memory_trim();
    loop_run(d->loop);
    /* An orderly stop would write into a spool that is another host's now. */
    if (queue_is_lost(manager_queue(d->manager))) {
        log_free(&d->log);
        _exit(EX_TEMPFAIL);
    }
    return code;
}

static int
mta_run(const struct options_sources *sources)
{
    struct daemon d = {.sources = *sources};
    char why[COPIES_TRIAL_WHY_MAX];
    int code = EX_CONFIG;
    if (!daemon_read(&d))
        return code;
    d.loop = loop_new();
    if (copies_trial(d.configuration, why) == COPIES_TRIAL_UNFIT)
        snprintf(d.error, DAEMON_ERROR_MAX, "copies: %s", why);
    else
        code = mta_start(&d);
    if (code == 0)
        code = mta_enter_sandbox(&d);
    if (code == 0)
        code = mta_serve(&d);
    else
        fprintf(stderr, "petrel: %s\n", d.error);
    daemon_stop(&d);
    return code;
}

/* --- Other commands --------------------------------------------------------------- */

int
main(int count, char **arguments)
{
    static const struct option words[] = {
        {"help",    no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL,      0,           NULL, 0  }
    };
    char *overrides[OVERRIDES_MAX + 1] = {NULL};
    struct options_sources sources = {.environment = environ, .overrides = overrides};
    int option, code, used = 0;
    memory_return_large();
    if (disk_fill_standard() != 0)
        return EX_OSERR;
    /* a file size limit makes write() fail; the process goes on */
    signal(SIGXFSZ, SIG_IGN);
    char **called =
        sendmail_called((const char *)getauxval(AT_EXECFN), count, arguments, &used);
    if (called != NULL) {
        sources.careful = true;
        code = dispatch_sendmail(&sources, used, called);
        free(called);
        return code;
    }
    while ((option = getopt_long(count, arguments, "+c:o:hV", words, NULL)) != -1) {
        if (option == 'c')
            sources.file = optarg;
        else if (option == 'o' && used < OVERRIDES_MAX)
            overrides[used++] = optarg;
        else if (option == 'h')
            return command_help(0, NULL);
        else if (option == 'V')
            return command_version(0, NULL, redis_version());
        else
            return command_refuse_all();
    }
    return dispatch_command(&sources, count - optind, arguments + optind, mta_run);
}
