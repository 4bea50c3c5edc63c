/* Watches the files of aliases, and hands the table on. */
#include "admin/startup/alias_keeper.h"

#include "admin/settings/srs_secret.h"

/* The old table ends only now: until here the others have used it. */
static void
alias_keeper_hand_on(struct alias_keeper *k, struct aliases *table)
{
    manager_set_aliases(k->manager, table, k->srs);
    listener_set_aliases(k->listener, table, k->srs);
    aliases_free(&k->table);
    k->table = table;
}

/* --- SRS -------------------------------------------------------------------------- */

/* An error is logged once. */
static void
alias_keeper_tell_srs(struct alias_keeper *k, int error)
{
    char why[SRS_SECRET_WHY_MAX];
    if (error == k->srs_error)
        return;
    k->srs_error = error;
    srs_secret_why(error, why);
    if (error == 0)
        log_say(k->log, LOG_LEVEL_INFO, "main", NULL, "srs: the secret has been read");
    else
        log_say(k->log, LOG_LEVEL_WARNING, "main", NULL,
                "srs: %s: senders of forwarded mail stay as they are, and mail to "
                "addresses of SRS waits, until it can be read",
                why);
}

/* The caller hands it on, and frees the old one then. */
static struct srs *
alias_keeper_new_srs(struct alias_keeper *k, bool forwards)
{
    const struct configuration *c = k->configuration;
    uint64_t random[SRS_SECRET_RANDOM];
    int error;
    for (size_t i = 0; i < SRS_SECRET_RANDOM; i++)
        random[i] = loop_random(k->loop);
    struct srs *made =
        srs_secret_use(&c->options, c->routes, queue_disk(manager_queue(k->manager)),
                       random, forwards, &error);
    alias_keeper_tell_srs(k, error);
    return made;
}

/* A secret that could not be read, or that nobody needed until now. */
static void
alias_keeper_try_srs(struct alias_keeper *k)
{
    struct srs *old = k->srs;
    bool forwards = !aliases_are_empty(k->table);
    if (old != NULL ? !srs_is_blind(old) : !forwards)
        return;
    k->srs = alias_keeper_new_srs(k, forwards);
    manager_set_aliases(k->manager, k->table, k->srs);
    listener_set_aliases(k->listener, k->table, k->srs);
    srs_free(&old);
}

/* --- The files -------------------------------------------------------------------- */

static void
alias_keeper_complain(const struct alias_keeper *k, struct text lines)
{
    struct text line;
    while (lines.length > 0 && text_cut(&lines, '\n', &line))
        log_say(k->log, LOG_LEVEL_ERROR, "main", NULL, "%.*s", TEXT_ARGS(line));
    log_say(k->log, LOG_LEVEL_ERROR, "main", NULL,
            "aliases: the files have errors; the old aliases stay in use");
}

/* The files count as read even with errors: these are logged once. */
static void
alias_keeper_end(struct alias_keeper *k)
{
    struct aliases *table;
    struct alias_files *files;
    if (alias_files_end(&k->reading, &table, &files)) {
        log_say(k->log, LOG_LEVEL_INFO, "main", NULL,
                "aliases: read again: %zu names, %zu addresses", aliases_names(table),
                aliases_values(table));
        alias_keeper_hand_on(k, table);
    } else {
        alias_keeper_complain(k, buffer_text(&k->errors));
    }
    alias_files_free(&k->files);
    k->files = files;
    buffer_free(&k->errors);
}

static void alias_keeper_look(void *context);

static void
alias_keeper_watch(struct alias_keeper *k)
{
    loop_timer_start(k->loop, &k->timer, ALIAS_KEEPER_EVERY_MS, alias_keeper_look, k);
}

static void
alias_keeper_go_on(void *context)
{
    struct alias_keeper *k = context;
    if (!alias_files_go_on(k->reading)) {
        loop_post(k->loop, &k->task, alias_keeper_go_on, k);
        return;
    }
    alias_keeper_end(k);
    alias_keeper_try_srs(k);
    alias_keeper_watch(k);
}

static void
alias_keeper_look(void *context)
{
    struct alias_keeper *k = context;
    const struct configuration *c = k->configuration;
    if (alias_files_have_changed(k->files, loop_now_ms(k->loop))) {
        buffer_init(&k->errors, CONFIGURATION_ERRORS_MAX);
        k->reading = alias_files_begin(&c->options, c->routes, &k->errors);
        alias_keeper_go_on(k);
    } else {
        alias_keeper_try_srs(k);
        alias_keeper_watch(k);
    }
}

/* The settings, or the daemon, are about to end. */
static void
alias_keeper_give_up(struct alias_keeper *k)
{
    if (k->reading == NULL)
        return;
    loop_unpost(k->loop, &k->task);
    alias_files_stop(&k->reading);
    buffer_free(&k->errors);
}

void
alias_keeper_use(struct alias_keeper *k, struct configuration *c)
{
    struct aliases *table = c->aliases;
    struct srs *old = k->srs;
    alias_keeper_give_up(k);
    k->configuration = c;
    c->aliases = NULL;
    k->srs = alias_keeper_new_srs(k, !aliases_are_empty(table));
    alias_keeper_hand_on(k, table);
    srs_free(&old);
    alias_files_free(&k->files);
    k->files = c->alias_files;
    c->alias_files = NULL;
    loop_timer_stop(k->loop, &k->timer);
    if (k->files != NULL || (k->srs != NULL && srs_is_blind(k->srs)))
        alias_keeper_watch(k);
}

void
alias_keeper_stop(struct alias_keeper *k)
{
    if (k->loop != NULL) {
        loop_timer_stop(k->loop, &k->timer);
        alias_keeper_give_up(k);
    }
    aliases_free(&k->table);
    alias_files_free(&k->files);
    srs_free(&k->srs);
}
