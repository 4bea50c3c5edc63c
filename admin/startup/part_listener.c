/* Mail in: the listener, and its certificates. Their files are watched: when they have
 * changed and rest, they are read and judged. */
#include "admin/startup/parts.h"

#include "base/format_time.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

enum { NAMES_MAX = 600, SAID_MAX = 1024 };

static void part_tls_look(void *context);
static void part_tls_settle(void *context);

/* --- Files ------------------------------------------------------------------------ */

/* The certificates, then their keys. */
static const char *
certificate_path(const struct part_tls *k, size_t index)
{
    size_t count = k->pairs.count;
    return index < count ? k->pairs.list[index].certificate
                         : k->pairs.list[index - count].key;
}

static void
certificate_look_at(const struct part_tls *k, struct part_tls_file *files)
{
    for (size_t i = 0; i < 2 * k->pairs.count; i++) {
        files[i] = (struct part_tls_file){.result = 0};
        files[i].result = disk_look(certificate_path(k, i), &files[i].info);
    }
}

/* A link that leads to another file shows that one's state. */
static bool
certificate_file_is_same(const struct part_tls_file *a, const struct part_tls_file *b)
{
    if (a->result != 0 || b->result != 0)
        return a->result == b->result;
    return a->info.inode == b->info.inode && a->info.size == b->info.size &&
           a->info.changed_ms == b->info.changed_ms;
}

static bool
certificate_files_are_same(const struct part_tls *k, const struct part_tls_file *a,
                           const struct part_tls_file *b)
{
    for (size_t i = 0; i < 2 * k->pairs.count; i++)
        if (!certificate_file_is_same(&a[i], &b[i]))
            return false;
    return true;
}

static void
certificate_files_copy(struct part_tls_file *to, const struct part_tls_file *from)
{
    memcpy(to, from, PART_TLS_FILES_MAX * sizeof(*to));
}

/* --- Certificates ----------------------------------------------------------------- */

/* "a.example, b.example"; a list without space ends with "...". */
static void
certificate_add_name(void *context, const char *name)
{
    char *names = context;
    size_t length = strlen(names);
    if (length + strlen(name) + sizeof(", , ...") < NAMES_MAX)
        snprintf(names + length, NAMES_MAX - length, "%s%s", length > 0 ? ", " : "",
                 name);
    else if (strcmp(names + length - 3, "...") != 0)
        snprintf(names + length, NAMES_MAX - length, ", ...");
}

static void
certificate_tell(const struct daemon *d, const struct tls_server *server, size_t index)
{
    struct tls_certificate certificate;
    char names[NAMES_MAX] = "", date[FORMAT_TIME_MAX], text[SAID_MAX];
    if (!tls_server_certificate(server, index, &certificate))
        return;
    tls_server_each_name(server, index, certificate_add_name, names);
    format_time_at(certificate.until_ms, date);
    snprintf(text, sizeof(text), "new certificate in use: %s, valid until %s",
             names[0] != '\0' ? names : "without a name", date);
    event_tell(d->events, &(struct event){.kind = EVENT_CERTIFICATE,
                                          .program = "main",
                                          .text = text_from(text)});
}

/* Only those whose files are others than before. */
static void
certificate_tell_new(const struct daemon *d, const struct tls_server *server)
{
    const struct part_tls *k = &d->tls;
    size_t count = k->pairs.count;
    for (size_t i = 0; i < count; i++)
        if (!certificate_file_is_same(&k->used[i], &k->seen[i]) ||
            !certificate_file_is_same(&k->used[count + i], &k->seen[count + i]))
            certificate_tell(d, server, i);
}

/* False: why says which one is not. Clients would refuse it, and some of them for good,
 * while the old one may still do. */
static bool
certificates_are_valid(const struct daemon *d, const struct tls_server *server,
                       char why[PART_TLS_WHY_MAX])
{
    struct tls_certificate c;
    char date[FORMAT_TIME_MAX];
    int64_t now_ms = loop_now_ms(d->loop);
    for (size_t i = 0; tls_server_certificate(server, i, &c); i++) {
        const char *file = certificate_path(&d->tls, i);
        format_time_at(c.until_ms < now_ms ? c.until_ms : c.from_ms, date);
        if (c.until_ms < now_ms)
            snprintf(why, PART_TLS_WHY_MAX, "%s: the certificate expired on %s", file,
                     date);
        else if (c.from_ms > now_ms)
            snprintf(why, PART_TLS_WHY_MAX,
                     "%s: the certificate is not valid before %s", file, date);
        else
            continue;
        return false;
    }
    return true;
}

/* --- Steps ------------------------------------------------------------------------ */

static void
part_tls_wait(struct daemon *d, int64_t ms, void (*fire)(void *context))
{
    loop_timer_start(d->loop, &d->tls.timer, ms, fire, d);
}

/* The finding begins and ends by it. */
static void
part_tls_conclude(struct daemon *d, const char *why)
{
    struct part_tls *k = &d->tls;
    if (strcmp(k->why, why) == 0)
        return;
    snprintf(k->why, sizeof(k->why), "%s", why);
    if (d->findings.findings != NULL)
        findings_look(d->findings.findings);
}

static void
part_tls_judge(struct daemon *d)
{
    struct part_tls *k = &d->tls;
    char why[PART_TLS_WHY_MAX] = "";
    struct part_tls_file after[PART_TLS_FILES_MAX];
    struct tls_server *server = listener_pairs_serve(&k->pairs, why, sizeof(why));
    certificate_look_at(k, after);
    if (!certificate_files_are_same(k, after, k->seen)) { /* written just now */
        tls_server_free(&server);
        certificate_files_copy(k->seen, after);
        part_tls_wait(d, PART_TLS_SETTLED_MS, part_tls_settle);
        return;
    }
    certificate_files_copy(k->judged, k->seen);
    if (server != NULL && certificates_are_valid(d, server, why)) {
        certificate_tell_new(d, server);
        listener_take_tls(d->listener, &server);
        certificate_files_copy(k->used, k->seen);
        why[0] = '\0';
    }
    tls_server_free(&server);
    part_tls_conclude(d, why);
    part_tls_wait(d, PART_TLS_LOOK_MS, part_tls_look);
}

static void
part_tls_settle(void *context)
{
    struct daemon *d = context;
    struct part_tls *k = &d->tls;
    struct part_tls_file now[PART_TLS_FILES_MAX];
    certificate_look_at(k, now);
    if (certificate_files_are_same(k, now, k->seen)) {
        part_tls_judge(d);
        return;
    }
    certificate_files_copy(k->seen, now);
    part_tls_wait(d, PART_TLS_SETTLED_MS, part_tls_settle);
}

/* Files that could not be used may become good without a change: one that is not valid
 * yet. */
static void
part_tls_look(void *context)
{
    struct daemon *d = context;
    struct part_tls *k = &d->tls;
    certificate_look_at(k, k->seen);
    if (k->why[0] == '\0' && certificate_files_are_same(k, k->seen, k->judged))
        part_tls_wait(d, PART_TLS_LOOK_MS, part_tls_look);
    else
        part_tls_wait(d, PART_TLS_SETTLED_MS, part_tls_settle);
}

/* --- The files in use -------------------------------------------------------------- */

void
part_tls_note(struct daemon *d, const struct listener_settings *settings)
{
    struct part_tls *k = &d->tls;
    part_tls_stop(d);
    /* The listener has refused, or will refuse, errors here. */
    if (!listener_pairs_read(settings, &k->pairs))
        listener_pairs_free(&k->pairs);
    certificate_look_at(k, k->used);
    certificate_files_copy(k->judged, k->used);
}

/* As the daemon's user: a file that root could see and this user cannot never changes for
 * us. */
int
part_tls_start(struct daemon *d)
{
    struct part_tls *k = &d->tls;
    const char *hidden = NULL;
    for (size_t i = 0; i < 2 * k->pairs.count; i++) {
        struct part_tls_file now = {.result = 0};
        now.result = disk_look(certificate_path(k, i), &now.info);
        if (now.result != -EACCES)
            continue;
        k->used[i] = k->judged[i] = now;
        hidden = certificate_path(k, i);
    }
    if (hidden != NULL)
        log_say(d->log, LOG_LEVEL_WARNING, "main", NULL,
                "tls_certificate: `user` cannot look at %s: a new one is used after a "
                "restart only; put it where `user` can read it",
                hidden);
    if (k->pairs.count > 0)
        part_tls_wait(d, PART_TLS_LOOK_MS, part_tls_look);
    return 0;
}

void
part_tls_stop(struct daemon *d)
{
    struct part_tls *k = &d->tls;
    loop_timer_stop(d->loop, &k->timer);
    listener_pairs_free(&k->pairs);
    k->why[0] = '\0';
}

const char *
part_tls_trouble(const struct daemon *d)
{
    return d->tls.why[0] != '\0' ? d->tls.why : NULL;
}

const char *
part_tls_file(const struct daemon *d, size_t index)
{
    const struct listener_pairs *pairs = &d->tls.pairs;
    return index < pairs->count ? pairs->list[index].certificate : "";
}

/* --- The listener -------------------------------------------------------------------- */

/* A session_flush(). */
static enum server_flush
part_listener_flush(void *context, const char *node, const char *client)
{
    switch (flush_ask(context, node, client)) {
    case FLUSH_STARTED:
        return SERVER_FLUSH_STARTED;
    case FLUSH_RECENT:
        return SERVER_FLUSH_RECENT;
    case FLUSH_FULL:
        break;
    }
    return SERVER_FLUSH_UNABLE;
}

int
part_listener_start(struct daemon *d)
{
    const struct configuration *c = d->configuration;
    part_tls_note(d, &c->options.server);
    d->listener = listener_new(d->loop, d->net, d->events, d->manager, c->routes,
                               &c->options.server, d->error, DAEMON_ERROR_MAX);
    if (d->listener == NULL)
        return net_passed_is_missing(d->net) ? EX_CONFIG : EX_UNAVAILABLE;
    listener_on_flush(d->listener, part_listener_flush, d->flush);
    return 0;
}

void
part_listener_reload(struct daemon *d, struct configuration *fresh)
{
    const struct listener_settings *settings = &fresh->options.server;
    part_tls_note(d, settings);
    listener_reload(d->listener, fresh->routes, settings);
    (void)part_tls_start(d);
}

void
part_listener_stop(struct daemon *d)
{
    listener_free(&d->listener);
}
