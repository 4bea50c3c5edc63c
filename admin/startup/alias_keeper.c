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

static void
alias_keeper_complain(const struct alias_keeper *k, struct text lines)
{
    struct text line;
    while (lines.length > 0 && text_cut(&lines, '\n', &line))
        log_say(k->log, LOG_LEVEL_ERROR, "main", NULL, "%.*s", TEXT_ARGS(line));
    log_say(k->log, LOG_LEVEL_ERROR, "main", NULL,
            "aliases: the files have errors; the old aliases stay in use");
}

/* What was read counts as read even with errors: they are logged once. */
static void
alias_keeper_read(struct alias_keeper *k)
{
    const struct configuration *c = k->configuration;
    struct aliases *table;
    struct alias_files *files;
    struct buffer errors;
    buffer_init(&errors, CONFIGURATION_ERRORS_MAX);
    if (alias_files_read(&c->options, c->routes, &table, &files, &errors)) {
        log_say(k->log, LOG_LEVEL_INFO, "main", NULL,
                "aliases: read again: %zu names, %zu addresses", aliases_names(table),
                aliases_values(table));
        alias_keeper_hand_on(k, table);
    } else {
        alias_keeper_complain(k, buffer_text(&errors));
    }
    alias_files_free(&k->files);
    k->files = files;
    buffer_free(&errors);
}

static void
alias_keeper_look(void *context)
{
    struct alias_keeper *k = context;
    if (alias_files_have_changed(k->files, loop_now_ms(k->loop)))
        alias_keeper_read(k);
    loop_timer_start(k->loop, &k->timer, ALIAS_KEEPER_EVERY_MS, alias_keeper_look, k);
}

void
alias_keeper_use(struct alias_keeper *k, struct configuration *c)
{
    struct aliases *table = c->aliases;
    struct srs *old = k->srs;
    bool forwards = !aliases_are_empty(table);
    uint64_t random[SRS_SECRET_RANDOM];
    for (size_t i = 0; i < SRS_SECRET_RANDOM; i++)
        random[i] = loop_random(k->loop);
    k->configuration = c;
    c->aliases = NULL;
    k->srs =
        srs_secret_use(&c->options, c->routes, queue_disk(manager_queue(k->manager)),
                       random, forwards, k->log);
    alias_keeper_hand_on(k, table);
    srs_free(&old);
    alias_files_free(&k->files);
    k->files = c->alias_files;
    c->alias_files = NULL;
    loop_timer_stop(k->loop, &k->timer);
    if (k->files != NULL)
        loop_timer_start(k->loop, &k->timer, ALIAS_KEEPER_EVERY_MS, alias_keeper_look,
                         k);
}

void
alias_keeper_stop(struct alias_keeper *k)
{
    if (k->loop != NULL)
        loop_timer_stop(k->loop, &k->timer);
    aliases_free(&k->table);
    alias_files_free(&k->files);
    srs_free(&k->srs);
}
