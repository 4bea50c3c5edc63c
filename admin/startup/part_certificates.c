/* Watches the files of our certificates, those of the listener and those for next hops:
 * when they have changed and rest, they are read and judged. */
#include "admin/startup/parts.h"

#include "base/format_time.h"
#include "base/memory.h"
#include "smtp/trust/client_certificates.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
certificate_tell(const struct part_tls *k, const struct tls_certificate *certificate,
                 const char *names)
{
    char date[FORMAT_TIME_MAX], text[SAID_MAX];
    format_time_at(certificate->until_ms, date);
    snprintf(text, sizeof(text), "new %scertificate in use: %s, valid until %s",
             k->is_client ? "client " : "", names[0] != '\0' ? names : "without a name",
             date);
    event_tell(k->daemon->events, &(struct event){.kind = EVENT_CERTIFICATE,
                                                  .program = "main",
                                                  .text = text_from(text)});
}

/* Whether the files in use are others. */
static bool
certificate_is_new(const struct part_tls *k, size_t index)
{
    size_t key = k->pairs.count + index;
    return !certificate_file_is_same(&k->used[index], &k->seen[index]) ||
           !certificate_file_is_same(&k->used[key], &k->seen[key]);
}

/* False: why says which one is not. Peers would refuse it, and some of them for good,
 * while the old one may still do. */
static bool
certificate_is_valid(const struct part_tls *k, size_t index,
                     const struct tls_certificate *c, char why[PART_TLS_WHY_MAX])
{
    int64_t now_ms = loop_now_ms(k->daemon->loop);
    const char *file = certificate_path(k, index);
    char date[FORMAT_TIME_MAX];
    format_time_at(c->until_ms < now_ms ? c->until_ms : c->from_ms, date);
    if (c->until_ms < now_ms)
        snprintf(why, PART_TLS_WHY_MAX, "%s: the certificate expired on %s", file,
                 date);
    else if (c->from_ms > now_ms)
        snprintf(why, PART_TLS_WHY_MAX, "%s: the certificate is not valid before %s",
                 file, date);
    return c->until_ms >= now_ms && c->from_ms <= now_ms;
}

/* --- Those that have been read ---------------------------------------------------- */

/* All of a server; or of a client, each by itself. */
struct certificates_read {
    struct tls_server *server;
    struct tls_client *clients[TLS_PAIRS_MAX];
};

static void
certificates_read(const struct part_tls *k, struct certificates_read *r,
                  char why[PART_TLS_WHY_MAX])
{
    *r = (struct certificates_read){.server = NULL};
    if (!k->is_client)
        r->server = listener_pairs_serve(&k->pairs, why, PART_TLS_WHY_MAX);
    for (size_t i = 0; k->is_client && i < k->pairs.count; i++)
        r->clients[i] = tls_client_read_own(*delivery_tls(k->daemon->delivery),
                                            &k->pairs.list[i], why, PART_TLS_WHY_MAX);
}

static void
certificates_drop(const struct part_tls *k, struct certificates_read *r)
{
    tls_server_free(&r->server);
    for (size_t i = 0; k->is_client && i < k->pairs.count; i++)
        tls_client_free(&r->clients[i]);
}

static void
certificates_serve(struct part_tls *k, struct certificates_read *r,
                   char why[PART_TLS_WHY_MAX])
{
    struct tls_certificate c;
    for (size_t i = 0; tls_server_certificate(r->server, i, &c); i++)
        if (!certificate_is_valid(k, i, &c, why))
            return;
    for (size_t i = 0; tls_server_certificate(r->server, i, &c); i++) {
        char names[NAMES_MAX] = "";
        tls_server_each_name(r->server, i, certificate_add_name, names);
        if (certificate_is_new(k, i))
            certificate_tell(k, &c, names);
    }
    listener_take_tls(k->daemon->listener, &r->server);
    certificate_files_copy(k->used, k->seen);
}

/* One that is wrong keeps no other from being renewed. */
static void
certificates_present(struct part_tls *k, struct certificates_read *r,
                     char why[PART_TLS_WHY_MAX])
{
    struct tls_certificate c;
    for (size_t i = 0; i < k->pairs.count; i++) {
        size_t key = k->pairs.count + i;
        if (r->clients[i] == NULL || !certificate_is_new(k, i))
            continue;
        tls_client_describe_own(r->clients[i], &c);
        if (!certificate_is_valid(k, i, &c, why))
            continue;
        certificate_tell(k, &c, c.name);
        tls_client_take_own(*delivery_tls(k->daemon->delivery), &r->clients[i]);
        k->used[i] = k->seen[i];
        k->used[key] = k->seen[key];
    }
}

/* --- Steps ------------------------------------------------------------------------ */

static void
part_tls_wait(struct part_tls *k, int64_t ms, void (*fire)(void *context))
{
    loop_timer_start(k->daemon->loop, &k->timer, ms, fire, k);
}

/* The finding begins and ends by it. */
static void
part_tls_conclude(struct part_tls *k, const char *why)
{
    if (strcmp(k->why, why) == 0)
        return;
    snprintf(k->why, sizeof(k->why), "%s", why);
    if (k->daemon->findings.findings != NULL)
        findings_look(k->daemon->findings.findings);
}

static void
part_tls_judge(struct part_tls *k)
{
    char why[PART_TLS_WHY_MAX] = "";
    struct part_tls_file after[PART_TLS_FILES_MAX];
    struct certificates_read r;
    certificates_read(k, &r, why);
    certificate_look_at(k, after);
    if (!certificate_files_are_same(k, after, k->seen)) { /* written just now */
        certificates_drop(k, &r);
        certificate_files_copy(k->seen, after);
        part_tls_wait(k, PART_TLS_SETTLED_MS, part_tls_settle);
        return;
    }
    certificate_files_copy(k->judged, k->seen);
    if (k->is_client)
        certificates_present(k, &r, why);
    else if (r.server != NULL)
        certificates_serve(k, &r, why);
    certificates_drop(k, &r);
    part_tls_conclude(k, why);
    part_tls_wait(k, PART_TLS_LOOK_MS, part_tls_look);
}

static void
part_tls_settle(void *context)
{
    struct part_tls *k = context;
    struct part_tls_file now[PART_TLS_FILES_MAX];
    certificate_look_at(k, now);
    if (certificate_files_are_same(k, now, k->seen)) {
        part_tls_judge(k);
        return;
    }
    certificate_files_copy(k->seen, now);
    part_tls_wait(k, PART_TLS_SETTLED_MS, part_tls_settle);
}

/* Files that could not be used may become good without a change: one that is not valid
 * yet. */
static void
part_tls_look(void *context)
{
    struct part_tls *k = context;
    certificate_look_at(k, k->seen);
    if (k->why[0] == '\0' && certificate_files_are_same(k, k->seen, k->judged))
        part_tls_wait(k, PART_TLS_LOOK_MS, part_tls_look);
    else
        part_tls_wait(k, PART_TLS_SETTLED_MS, part_tls_settle);
}

/* --- The files in use -------------------------------------------------------------- */

static void
part_tls_end(struct daemon *d, struct part_tls *k)
{
    loop_timer_stop(d->loop, &k->timer);
    listener_pairs_free(&k->pairs);
    k->why[0] = '\0';
}

static void
part_tls_note_files(struct part_tls *k)
{
    certificate_look_at(k, k->used);
    certificate_files_copy(k->judged, k->used);
}

void
part_tls_note(struct daemon *d, const struct listener_settings *settings)
{
    struct part_tls *k = &d->tls;
    k->daemon = d;
    part_tls_end(d, k);
    /* The listener has refused, or will refuse, errors here. */
    if (!listener_pairs_read(settings, &k->pairs))
        listener_pairs_free(&k->pairs);
    part_tls_note_files(k);
}

/* The files of routes are copied: they belong to settings that a reload frees. */
static void
part_hop_tls_note(struct daemon *d, const struct route_table *routes)
{
    struct tls_pair pairs[TLS_PAIRS_MAX];
    size_t count = client_certificates_list(routes, pairs);
    part_hop_tls_stop(d);
    if (count == 0)
        return;
    struct part_tls *k = d->client_tls = memory_new(sizeof(*k));
    k->daemon = d;
    k->is_client = true;
    for (size_t i = 0; i < count; i++)
        k->pairs.list[k->pairs.count++] = (struct tls_pair){
            memory_string(pairs[i].certificate), memory_string(pairs[i].key)};
    part_tls_note_files(k);
    part_tls_wait(k, PART_TLS_LOOK_MS, part_tls_look);
}

int
part_hop_tls_start(struct daemon *d)
{
    part_hop_tls_note(d, d->configuration->routes);
    return 0;
}

void
part_hop_tls_reload(struct daemon *d, struct configuration *fresh)
{
    part_hop_tls_note(d, fresh->routes);
}

void
part_hop_tls_stop(struct daemon *d)
{
    if (d->client_tls != NULL)
        part_tls_end(d, d->client_tls);
    free(d->client_tls);
    d->client_tls = NULL;
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
        part_tls_wait(k, PART_TLS_LOOK_MS, part_tls_look);
    return 0;
}

void
part_tls_stop(struct daemon *d)
{
    part_tls_end(d, &d->tls);
}

const char *
part_tls_trouble(const struct daemon *d)
{
    if (d->tls.why[0] != '\0')
        return d->tls.why;
    return d->client_tls != NULL && d->client_tls->why[0] != '\0' ? d->client_tls->why
                                                                  : NULL;
}

const char *
part_tls_file(const struct daemon *d, size_t index)
{
    const struct listener_pairs *pairs = &d->tls.pairs;
    return index < pairs->count ? pairs->list[index].certificate : "";
}
