/* Looks, waits until the files rest, reads and judges. */
#include "admin/startup/certificate_keeper.h"

#include "admin/control/format_time.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NAMES_MAX = 600, SAID_MAX = 1024 };

static void certificate_keeper_look(void *context);
static void certificate_keeper_settle(void *context);

/* --- Files ------------------------------------------------------------------------ */

/* The certificates, then their keys. */
static const char *
certificate_path(const struct certificate_keeper *k, size_t index)
{
    size_t count = k->pairs.count;
    return index < count ? k->pairs.list[index].certificate
                         : k->pairs.list[index - count].key;
}

static void
certificate_look_at(const struct certificate_keeper *k, struct certificate_file *files)
{
    for (size_t i = 0; i < 2 * k->pairs.count; i++) {
        files[i] = (struct certificate_file){.result = 0};
        files[i].result = disk_look(certificate_path(k, i), &files[i].info);
    }
}

/* A link that leads to another file shows that one's state. */
static bool
certificate_file_is_same(const struct certificate_file *a,
                         const struct certificate_file *b)
{
    if (a->result != 0 || b->result != 0)
        return a->result == b->result;
    return a->info.inode == b->info.inode && a->info.size == b->info.size &&
           a->info.changed_ms == b->info.changed_ms;
}

static bool
certificate_files_are_same(const struct certificate_keeper *k,
                           const struct certificate_file *a,
                           const struct certificate_file *b)
{
    for (size_t i = 0; i < 2 * k->pairs.count; i++)
        if (!certificate_file_is_same(&a[i], &b[i]))
            return false;
    return true;
}

static void
certificate_files_copy(struct certificate_file *to, const struct certificate_file *from)
{
    memcpy(to, from, CERTIFICATE_FILES_MAX * sizeof(*to));
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
certificate_tell(struct certificate_keeper *k, const struct tls_server *server,
                 size_t index)
{
    struct tls_certificate certificate;
    char names[NAMES_MAX] = "", date[FORMAT_TIME_MAX], text[SAID_MAX];
    if (!tls_server_certificate(server, index, &certificate))
        return;
    tls_server_each_name(server, index, certificate_add_name, names);
    format_time_at(certificate.until_ms, date);
    snprintf(text, sizeof(text), "new certificate in use: %s, valid until %s",
             names[0] != '\0' ? names : "without a name", date);
    event_tell(k->events, &(struct event){.kind = EVENT_CERTIFICATE,
                                          .program = "main",
                                          .text = text_from(text)});
}

/* Only those whose files are others than before. */
static void
certificate_tell_new(struct certificate_keeper *k, const struct tls_server *server)
{
    size_t count = k->pairs.count;
    for (size_t i = 0; i < count; i++)
        if (!certificate_file_is_same(&k->used[i], &k->seen[i]) ||
            !certificate_file_is_same(&k->used[count + i], &k->seen[count + i]))
            certificate_tell(k, server, i);
}

/* False: why says which one is not. Clients would refuse it, and some of them for good,
 * while the old one may still do. */
static bool
certificates_are_valid(const struct certificate_keeper *k,
                       const struct tls_server *server, char why[CERTIFICATE_WHY_MAX])
{
    struct tls_certificate c;
    char date[FORMAT_TIME_MAX];
    int64_t now_ms = loop_now_ms(k->loop);
    for (size_t i = 0; tls_server_certificate(server, i, &c); i++) {
        const char *file = certificate_path(k, i);
        format_time_at(c.until_ms < now_ms ? c.until_ms : c.from_ms, date);
        if (c.until_ms < now_ms)
            snprintf(why, CERTIFICATE_WHY_MAX, "%s: the certificate expired on %s",
                     file, date);
        else if (c.from_ms > now_ms)
            snprintf(why, CERTIFICATE_WHY_MAX,
                     "%s: the certificate is not valid before %s", file, date);
        else
            continue;
        return false;
    }
    return true;
}

/* --- Steps ------------------------------------------------------------------------ */

static void
certificate_keeper_wait(struct certificate_keeper *k, int64_t ms,
                        void (*fire)(void *context))
{
    loop_timer_start(k->loop, &k->timer, ms, fire, k);
}

/* The finding begins and ends by it. */
static void
certificate_keeper_conclude(struct certificate_keeper *k, const char *why)
{
    bool differs = strcmp(k->why, why) != 0;
    if (differs)
        snprintf(k->why, sizeof(k->why), "%s", why);
    if (differs && k->changed != NULL)
        k->changed(k->context);
}

static void
certificate_keeper_judge(struct certificate_keeper *k)
{
    char why[CERTIFICATE_WHY_MAX] = "";
    struct certificate_file after[CERTIFICATE_FILES_MAX];
    struct tls_server *server = listener_pairs_serve(&k->pairs, why, sizeof(why));
    certificate_look_at(k, after);
    if (!certificate_files_are_same(k, after, k->seen)) { /* written just now */
        tls_server_free(&server);
        certificate_files_copy(k->seen, after);
        certificate_keeper_wait(k, CERTIFICATE_SETTLED_MS, certificate_keeper_settle);
        return;
    }
    certificate_files_copy(k->judged, k->seen);
    if (server != NULL && certificates_are_valid(k, server, why)) {
        certificate_tell_new(k, server);
        listener_take_tls(k->listener, &server);
        certificate_files_copy(k->used, k->seen);
        why[0] = '\0';
    }
    tls_server_free(&server);
    certificate_keeper_conclude(k, why);
    certificate_keeper_wait(k, CERTIFICATE_LOOK_MS, certificate_keeper_look);
}

static void
certificate_keeper_settle(void *context)
{
    struct certificate_keeper *k = context;
    struct certificate_file now[CERTIFICATE_FILES_MAX];
    certificate_look_at(k, now);
    if (certificate_files_are_same(k, now, k->seen)) {
        certificate_keeper_judge(k);
        return;
    }
    certificate_files_copy(k->seen, now);
    certificate_keeper_wait(k, CERTIFICATE_SETTLED_MS, certificate_keeper_settle);
}

/* Files that could not be used may become good without a change: one that is not valid
 * yet. */
static void
certificate_keeper_look(void *context)
{
    struct certificate_keeper *k = context;
    certificate_look_at(k, k->seen);
    if (k->why[0] == '\0' && certificate_files_are_same(k, k->seen, k->judged))
        certificate_keeper_wait(k, CERTIFICATE_LOOK_MS, certificate_keeper_look);
    else
        certificate_keeper_wait(k, CERTIFICATE_SETTLED_MS, certificate_keeper_settle);
}

/* --- public ----------------------------------------------------------------------- */

void
certificate_keeper_note(struct certificate_keeper *k,
                        const struct listener_settings *settings)
{
    certificate_keeper_stop(k);
    /* The listener has refused, or will refuse, errors here. */
    if (!listener_pairs_read(settings, &k->pairs))
        listener_pairs_free(&k->pairs);
    certificate_look_at(k, k->used);
    certificate_files_copy(k->judged, k->used);
}

/* A file that root could see and the daemon's user cannot never changes for us. */
void
certificate_keeper_watch(struct certificate_keeper *k)
{
    const char *hidden = NULL;
    for (size_t i = 0; i < 2 * k->pairs.count; i++) {
        struct certificate_file now = {.result = 0};
        now.result = disk_look(certificate_path(k, i), &now.info);
        if (now.result != -EACCES)
            continue;
        k->used[i] = k->judged[i] = now;
        hidden = certificate_path(k, i);
    }
    if (hidden != NULL)
        log_say(k->log, LOG_LEVEL_WARNING, "main", NULL,
                "tls_certificate: `user` cannot look at %s: a new one is used after a "
                "restart only; put it where `user` can read it",
                hidden);
    if (k->pairs.count > 0)
        certificate_keeper_wait(k, CERTIFICATE_LOOK_MS, certificate_keeper_look);
}

void
certificate_keeper_stop(struct certificate_keeper *k)
{
    if (k->loop != NULL)
        loop_timer_stop(k->loop, &k->timer);
    listener_pairs_free(&k->pairs);
    k->why[0] = '\0';
}

const char *
certificate_keeper_trouble(const struct certificate_keeper *k)
{
    return k->why[0] != '\0' ? k->why : NULL;
}

const char *
certificate_keeper_file(const struct certificate_keeper *k, size_t index)
{
    return index < k->pairs.count ? k->pairs.list[index].certificate : "";
}
