/* Watches the files of aliases and the secret of SRS, and hands the table and keys on. */
#include "admin/startup/parts.h"

#include "admin/settings/srs_secret.h"

/* The old table ends only now: until here the others have used it. */
static void
part_aliases_hand_on(struct daemon *d, struct aliases *table)
{
    manager_set_aliases(d->manager, table, d->aliases.srs);
    listener_set_aliases(d->listener, table, d->aliases.srs);
    aliases_free(&d->aliases.table);
    d->aliases.table = table;
}

/* --- SRS -------------------------------------------------------------------------- */

/* An error is logged once. */
static void
part_aliases_tell(struct daemon *d, const char *key, int *known, int error,
                  const char *what)
{
    char why[SRS_SECRET_WHY_MAX];
    if (error == *known)
        return;
    *known = error;
    srs_secret_why(error, why);
    if (error == 0)
        log_say(d->log, LOG_LEVEL_INFO, "main", NULL, "%s: the secret has been read",
                key);
    else
        log_say(d->log, LOG_LEVEL_WARNING, "main", NULL,
                "%s: %s: %s, until it can be read", key, why, what);
}

static void
part_aliases_draw(struct daemon *d, uint64_t random[SRS_SECRET_RANDOM])
{
    for (size_t i = 0; i < SRS_SECRET_RANDOM; i++)
        random[i] = loop_random(d->loop);
}

/* The caller hands it on, and frees the old one then. */
static struct srs *
part_aliases_new_srs(struct daemon *d, const struct configuration *c, bool forwards)
{
    uint64_t random[SRS_SECRET_RANDOM];
    int error;
    part_aliases_draw(d, random);
    struct srs *made =
        srs_secret_use(&c->options, c->routes, queue_disk(manager_queue(d->manager)),
                       random, forwards, &error);
    part_aliases_tell(d, "srs", &d->aliases.srs_error, error,
                      "senders of forwarded mail stay as they are, and mail to "
                      "addresses of SRS waits");
    return made;
}

static void
part_aliases_use_tags(struct daemon *d, const struct configuration *c)
{
    uint64_t random[SRS_SECRET_RANDOM];
    struct verp *old = d->aliases.verp;
    int error;
    if (c->options.bounces == NULL && old == NULL)
        return;
    part_aliases_draw(d, random);
    d->aliases.verp = srs_secret_tags(
        &c->options, queue_disk(manager_queue(d->manager)), random, &error);
    part_aliases_tell(d, "bounces", &d->aliases.verp_error, error,
                      "senders have no tag, and reports wait");
    manager_set_verp(d->manager, d->aliases.verp);
    listener_set_verp(d->listener, d->aliases.verp);
    delivery_set_verp(d->delivery, d->aliases.verp);
    verp_free(&old);
}

static void
part_aliases_use_mask(struct daemon *d, const struct configuration *c)
{
    uint64_t random[SRS_SECRET_RANDOM];
    unsigned char key[DIGEST_SIZE];
    int error = 0;
    if (c->options.log_addresses == LOG_ADDRESSES_HASH) {
        part_aliases_draw(d, random);
        error = srs_secret_mask(&c->options, queue_disk(manager_queue(d->manager)),
                                random, key);
        log_mask_by(d->log, LOG_ADDRESSES_HASH, error == 0 ? key : NULL);
        digest_forget(key, sizeof(key));
    }
    part_aliases_tell(d, "log_addresses", &d->aliases.mask_error, error,
                      "addresses have no hash");
}

/* A secret that could not be read, or that nobody needed until now. */
static void
part_aliases_try_srs(struct daemon *d)
{
    struct srs *old = d->aliases.srs;
    bool forwards = !aliases_are_empty(d->aliases.table);
    if (d->aliases.verp != NULL && verp_is_blind(d->aliases.verp))
        part_aliases_use_tags(d, d->configuration);
    if (d->aliases.mask_error != 0)
        part_aliases_use_mask(d, d->configuration);
    if (old != NULL ? !srs_is_blind(old) : !forwards)
        return;
    d->aliases.srs = part_aliases_new_srs(d, d->configuration, forwards);
    manager_set_aliases(d->manager, d->aliases.table, d->aliases.srs);
    listener_set_aliases(d->listener, d->aliases.table, d->aliases.srs);
    srs_free(&old);
}

/* --- The files -------------------------------------------------------------------- */

static void
part_aliases_complain(const struct daemon *d, struct text lines)
{
    struct text line;
    while (lines.length > 0 && text_cut(&lines, '\n', &line))
        log_say(d->log, LOG_LEVEL_ERROR, "main", NULL, "%.*s", TEXT_ARGS(line));
    log_say(d->log, LOG_LEVEL_ERROR, "main", NULL,
            "aliases: the files have errors; the old aliases stay in use");
}

/* The files count as read even with errors: these are logged once. */
static void
part_aliases_end(struct daemon *d)
{
    struct aliases *table;
    struct alias_files *files;
    if (alias_files_end(&d->aliases.reading, &table, &files)) {
        log_say(d->log, LOG_LEVEL_INFO, "main", NULL,
                "aliases: read again: %zu names, %zu addresses", aliases_names(table),
                aliases_values(table));
        part_aliases_hand_on(d, table);
    } else {
        part_aliases_complain(d, buffer_text(&d->aliases.errors));
    }
    alias_files_free(&d->aliases.files);
    d->aliases.files = files;
    buffer_free(&d->aliases.errors);
}

static void part_aliases_look(void *context);

static void
part_aliases_watch(struct daemon *d)
{
    loop_timer_start(d->loop, &d->aliases.timer, PART_ALIASES_EVERY_MS,
                     part_aliases_look, d);
}

static void
part_aliases_go_on(void *context)
{
    struct daemon *d = context;
    if (!alias_files_go_on(d->aliases.reading)) {
        loop_post(d->loop, &d->aliases.task, part_aliases_go_on, d);
        return;
    }
    part_aliases_end(d);
    part_aliases_try_srs(d);
    part_aliases_watch(d);
}

static void
part_aliases_look(void *context)
{
    struct daemon *d = context;
    const struct configuration *c = d->configuration;
    if (alias_files_have_changed(d->aliases.files, loop_now_ms(d->loop))) {
        buffer_init(&d->aliases.errors, CONFIGURATION_ERRORS_MAX);
        d->aliases.reading =
            alias_files_begin(&c->options, c->routes, &d->aliases.errors);
        part_aliases_go_on(d);
    } else {
        part_aliases_try_srs(d);
        part_aliases_watch(d);
    }
}

/* The settings, or the daemon, are about to end. */
static void
part_aliases_give_up(struct daemon *d)
{
    if (d->aliases.reading == NULL)
        return;
    loop_unpost(d->loop, &d->aliases.task);
    alias_files_stop(&d->aliases.reading);
    buffer_free(&d->aliases.errors);
}

void
part_aliases_reload(struct daemon *d, struct configuration *fresh)
{
    struct part_aliases *a = &d->aliases;
    struct aliases *table = fresh->aliases;
    struct srs *old = a->srs;
    part_aliases_give_up(d);
    fresh->aliases = NULL;
    a->srs = part_aliases_new_srs(d, fresh, !aliases_are_empty(table));
    part_aliases_hand_on(d, table);
    part_aliases_use_tags(d, fresh);
    part_aliases_use_mask(d, fresh);
    srs_free(&old);
    alias_files_free(&a->files);
    a->files = fresh->alias_files;
    fresh->alias_files = NULL;
    loop_timer_stop(d->loop, &a->timer);
    if (a->files != NULL || (a->srs != NULL && srs_is_blind(a->srs)) ||
        (a->verp != NULL && verp_is_blind(a->verp)) || a->mask_error != 0)
        part_aliases_watch(d);
}

int
part_aliases_start(struct daemon *d)
{
    part_aliases_reload(d, d->configuration);
    return 0;
}

void
part_aliases_stop(struct daemon *d)
{
    loop_timer_stop(d->loop, &d->aliases.timer);
    part_aliases_give_up(d);
}

void
part_aliases_free(struct daemon *d)
{
    aliases_free(&d->aliases.table);
    alias_files_free(&d->aliases.files);
    srs_free(&d->aliases.srs);
    verp_free(&d->aliases.verp);
}
