/* Reads the settings, and fills the values that depend on the machine. */
#include "admin/settings/options.h"

#include "admin/settings/synonyms.h"
#include "base/crypto/digest.h"
#include "base/disk/disk.h"
#include "base/dns/dns_servers.h"
#include "base/net_address.h"
#include "mime/address.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <stdio.h>
#include <unistd.h>

#define SPOOL_SYSTEM  "/var/spool/petrel"
#define SPOOL_PARENT  "/var/spool"
#define SPOOL_HERE    "./spool"
#define FILE_VARIABLE "PETREL_CONFIG="
#define FILE_HERE     "./petrel.conf" /* so that a message says which */
#define FILE_SYSTEM   "/etc/petrel/petrel.conf"

enum {
    /* MAILER-DAEMON@hostname must be an address, too. */
    HOSTNAME_MAX = ADDRESS_MAX - (int)sizeof("MAILER-DAEMON"),
    FILLED_MAX = 5 * 1024 * 1024,
    DNS_SERVERS_ERROR_MAX = 256,
    EXAMPLE_MAX = 64 * 1024,
    UNTRUSTED_MAX = 320
};

/* A value that the machine gives when the user gave none: the weakest source, so a
 * value of the user wins. */
static void
options_fill(struct settings *s, const char *key, const char *value, const char *rest)
{
    struct buffer line;
    buffer_init(&line, FILLED_MAX);
    bool added = buffer_format(&line, "%s=%s%s", key, value, rest) &&
                 buffer_add_byte(&line, '\0');
    assert(added); /* a settings file is smaller */
    settings_read_preset(s, line.at);
    buffer_free(&line);
}

/* Stricter than a mailbox's domain. */
static bool
is_hostname(struct text t)
{
    return address_is_domain(t) && text_is_ascii(t) && text_find(t, '_') == TEXT_NONE;
}

static void
fill_hostname(struct settings *s)
{
    struct utsname name;
    bool good = uname(&name) == 0 && is_hostname(text_from(name.nodename));
    options_fill(s, "hostname", good ? name.nodename : "localhost", "");
}

/* A directory of this user, or one into which a daemon lets all users inject. */
static bool
spool_is_usable(const char *path)
{
    struct disk *disk;
    struct disk_info trigger;
    if (disk_open(&disk, path, false) != 0)
        return false;
    bool usable =
        disk_is_owner(disk) || disk_inspect(disk, "lock/trigger", &trigger) == 0;
    disk_close(&disk);
    return usable;
}

static bool
spool_can_be_made(const char *parent)
{
    struct disk *disk;
    if (disk_open(&disk, parent, false) != 0)
        return false;
    bool ours = disk_is_owner(disk);
    disk_close(&disk);
    return ours;
}

static void
fill_spool(struct settings *s)
{
    bool system = spool_is_usable(SPOOL_SYSTEM) || spool_can_be_made(SPOOL_PARENT);
    options_fill(s, "spool", system ? SPOOL_SYSTEM : SPOOL_HERE, "");
}

/* Anything but an absent file: an unreadable one is an error, reported later. Not
 * passed over: settings would silently be those of another file. */
static bool
options_is_there(const char *path)
{
    struct disk_info info;
    int error = disk_look(path, &info);
    return error != -ENOENT && error != -ENOTDIR;
}

/* Root, or the caller; and nobody else may write it. A group is somebody else for root
 * alone: others may have a group of their own, and a umask that trusts it. */
static bool
options_owns(const struct disk_info *info)
{
    unsigned caller = (unsigned)geteuid();
    return (info->owner == 0 || info->owner == caller) &&
           (info->kind == DISK_OTHER || (info->mode & (caller == 0 ? 022 : 02)) == 0);
}

/* Otherwise a user who can put a file into the directory says where root's commands go.
 * A link is its owner's choice, which is why it is not followed. */
static bool
options_is_trusted(const char *name, char why[UNTRUSTED_MAX])
{
    struct disk *here;
    struct disk_info file, directory;
    if (disk_open(&here, ".", false) != 0) {
        if (disk_look(name, &file) == -EACCES)
            snprintf(why, UNTRUSTED_MAX,
                     "the current directory comes first, and cannot be read by this "
                     "user: change to another, or name the file (petrel -c FILE)");
        return why[0] == '\0';
    }
    bool is_known = disk_inspect(here, name, &file) == 0 &&
                    disk_inspect(here, ".", &directory) == 0;
    disk_close(&here);
    if (!is_known || (options_owns(&file) && options_owns(&directory)))
        return true;
    snprintf(why, UNTRUSTED_MAX,
             "found in the current directory, not obeyed: %s belongs to uid %u, mode "
             "%03o, so others could write it; use another directory, or name the file "
             "(petrel -c " FILE_HERE ")",
             options_owns(&file) ? "its directory" : "it",
             options_owns(&file) ? directory.owner : file.owner,
             options_owns(&file) ? directory.mode : file.mode);
    return false;
}

/* NULL: none. why: if not empty, the file that was found must not be read. */
static const char *
options_find(const struct options_sources *sources, char why[UNTRUSTED_MAX])
{
    why[0] = '\0';
    if (sources->file)
        return sources->file;
    for (char *const *e = sources->environment; e && *e; e++)
        if (strncmp(*e, FILE_VARIABLE, strlen(FILE_VARIABLE)) == 0 &&
            (*e)[strlen(FILE_VARIABLE)])
            return *e + strlen(FILE_VARIABLE);
    if (options_is_there(FILE_HERE) &&
        (options_is_trusted(FILE_HERE, why) || !sources->careful))
        return FILE_HERE;
    why[0] = '\0';
    return options_is_there(FILE_SYSTEM) ? FILE_SYSTEM : NULL;
}

/* --- Checks ----------------------------------------------------------------------- */

static void
check_hostname(struct settings *s, const char *hostname)
{
    struct text name = text_from(hostname);
    if (!is_hostname(name))
        settings_complain(s, "hostname", "'%.100s' is not a host name",
                          hostname ? hostname : "");
    else if (name.length > HOSTNAME_MAX)
        settings_complain(s, "hostname", "is longer than %d bytes", HOSTNAME_MAX);
}

static void
check_bounce_sender(struct settings *s, const char *value)
{
    struct address address;
    if (value == NULL ||
        (strcmp(value, "<>") != 0 &&
         (!address_parse(text_from(value), &address) || address.domain.length == 0 ||
          !text_is_ascii(text_from(value)) || strlen(value) > 254)))
        settings_complain(s, "bounce_sender", "'%.100s' is not <> or an address",
                          value ? value : "");
}

static void
check_feedback(struct settings *s, const char *key, const char *value)
{
    struct feedback feedback;
    if (!transport_params_parse_feedback(text_from(value), &feedback))
        settings_complain(s, key,
                          "'%.100s' is not 1, a/b, a/concurrency or a/sqrt_concurrency",
                          value ? value : "");
}

static bool
is_same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* An address in brackets is no name for a registry. "localhost" is then never used:
 * check_fragments() demands defrag_host where hosts share sets. */
const char *
options_host_of(const struct options *o)
{
    if (o->defrag_host != NULL)
        return o->defrag_host;
    return o->hostname != NULL && o->hostname[0] == '[' ? "localhost" : o->hostname;
}

static void
check_fragments(struct settings *s, const struct options *o)
{
    bool is_local = is_same(o->defrag_registry, "local"),
         has_password = o->defrag_registry && o->defrag_registry[0] == 'r';
    if (o->defrag_registry_password != NULL && o->defrag_registry_password[0] &&
        !has_password)
        settings_complain(s, "defrag_registry_password",
                          "only redis:// and rediss:// of defrag_registry have one");
    if (o->defrag_host == NULL && o->hostname && o->hostname[0] == '[' &&
        (o->defrag_peers != NULL || !is_local))
        settings_complain(s, "hostname",
                          "'%.100s' is not a name: set defrag_host, by which the other "
                          "hosts know this one",
                          o->hostname);
}

static const char ready_separators[] = ", \t\r\n";

bool
options_ready_needs_upstream(const struct options *o)
{
    struct text words = text_from(o->ready_when), word;
    while (text_word(&words, ready_separators, &word))
        if (text_equal(word, TEXT("upstream")))
            return true;
    return false;
}

/* "age:30m". False: the word is another, or no age. */
static bool
read_ready_age(struct text word, int64_t *age_ms)
{
    struct text prefix = TEXT("age:");
    return text_starts(word, prefix) &&
           settings_parse_duration(text_after(word, prefix.length), age_ms) &&
           *age_ms > 0;
}

int64_t
options_ready_age_ms(const struct options *o)
{
    struct text words = text_from(o->ready_when), word;
    int64_t least_ms = 0, age_ms;
    while (text_word(&words, ready_separators, &word))
        if (read_ready_age(word, &age_ms) && (least_ms == 0 || age_ms < least_ms))
            least_ms = age_ms;
    return least_ms;
}

static void
check_ready(struct settings *s, const struct options *o)
{
    struct text words = text_from(o->ready_when), word;
    int64_t age_ms;
    while (text_word(&words, ready_separators, &word))
        if (!text_equal(word, TEXT("accepting")) &&
            !text_equal(word, TEXT("upstream")) && !read_ready_age(word, &age_ms))
            settings_complain(
                s, "ready_when",
                "'%.*s': say accepting, upstream, or age:30m (the oldest message)",
                TEXT_ARGS(text_before(word, 40)));
}

/* The daemon asks them, and would not start. */
static void
check_dns_servers(struct settings *s, const char *list)
{
    char error[DNS_SERVERS_ERROR_MAX];
    struct dns_servers servers;
    dns_servers_init(&servers);
    if (!dns_servers_parse(&servers, text_from(list), error, sizeof(error)))
        settings_complain(s, "dns_servers", "%s", error);
}

static void
options_check(struct settings *s, const struct options *o)
{
    check_hostname(s, o->hostname);
    check_bounce_sender(s, o->delivery.bounce_sender);
    if (o->spool == NULL)
        settings_complain(s, "spool", "must be a directory");
    if (o->control == NULL)
        settings_complain(s, "control", "must be a path");
    else if (strlen(o->control) >= NET_PATH_MAX)
        settings_complain(s, "control", "is longer than %d bytes", NET_PATH_MAX - 1);
    if (strcmp(o->log_to, "stderr") != 0 && options_log_socket(o) == NULL)
        settings_complain(s, "log_to", "must be stderr, syslog or syslog:/PATH");
    check_fragments(s, o);
    check_ready(s, o);
    check_dns_servers(s, o->dns_servers);
    if (o->slices > 0 && (o->slices & (o->slices - 1)) != 0)
        settings_complain(s, "slices", "%d is not a power of two (1, 2, 4, ...)",
                          (int)o->slices);
    else if (o->slices > 0 && o->slice >= o->slices)
        settings_complain(s, "slice", "%d: with slices = %d it is 0 to %d",
                          (int)o->slice, (int)o->slices, (int)o->slices - 1);
    check_feedback(s, "default_destination_concurrency_positive_feedback",
                   o->positive_feedback);
    check_feedback(s, "default_destination_concurrency_negative_feedback",
                   o->negative_feedback);
    struct rate rate;
    if (!bucket_rate_parse(text_from(o->destination_rate), &rate))
        settings_complain(
            s, "default_destination_rate",
            "'%.100s' is not N/s, N/m, N/h or N/d, optionally with ,burst=B, or none",
            o->destination_rate ? o->destination_rate : "");
    /* 0: an error of its own */
    if (o->transport.maximal_backoff_ms > 0 &&
        o->transport.minimal_backoff_ms > o->transport.maximal_backoff_ms)
        settings_complain(s, "minimal_backoff_time",
                          "is longer than maximal_backoff_time");
}

/* --- Sections --------------------------------------------------------------------- */

/* Texts that options_check() complains of, if they are wrong. */
static void
options_fill_transport(const struct options *o, struct transport_params *t)
{
    (void)!bucket_rate_parse(text_from(o->destination_rate), &t->rate);
    (void)!transport_params_parse_feedback(text_from(o->positive_feedback),
                                           &t->positive);
    (void)!transport_params_parse_feedback(text_from(o->negative_feedback),
                                           &t->negative);
}

void
options_fill_sections(struct options *o)
{
    struct queue_settings *queue = &o->manager.queue;
    o->server.hostname = o->delivery.hostname = o->manager.hostname =
        o->fragments.hostname = o->hostname;
    queue->spool = o->spool;
    queue->host = o->hostname;
    queue->slices = (unsigned)o->slices;
    queue->slice = (unsigned)o->slice;
    queue->message_size_limit = o->server.message_size_limit = o->message_size_limit;
    o->server.lifetime_ms = o->transport.lifetime_ms;
    o->delivery.dane = !o->no_dane;
    if (is_same(o->delivery.bounce_sender, "<>"))
        o->delivery.bounce_sender = NULL;
    options_fill_transport(o, &o->transport);
}

/* --- Reading ---------------------------------------------------------------------- */

struct settings *
options_read(const struct options_sources *sources, struct options *options)
{
    memset(options, 0, sizeof(*options));
    transport_params_default(&options->transport);
    options->without_secrets = sources->without_secrets;
    struct settings *s = settings_new(options_rows, "PETREL", options);
    settings_accept_names(s, synonyms_rows);
    if (sources->runs)
        settings_never_wait(s);
    if (sources->without_secrets)
        settings_leave_secrets(s);
    char untrusted[UNTRUSTED_MAX];
    const char *file = options_find(sources, untrusted);
    if (file && untrusted[0] != '\0')
        settings_refuse_file(s, file, untrusted);
    else if (file)
        settings_read_file(s, file);
    if (sources->environment)
        settings_read_environment(s, sources->environment);
    for (char *const *o = sources->overrides; o && *o; o++)
        settings_read_argument(s, *o);
    settings_apply(s);
    fill_hostname(s);
    if (options->spool == NULL)
        fill_spool(s);
    settings_apply(s);
    char control[32] = "/control";
    if (options->slices > 1)
        snprintf(control, sizeof(control), "/control.%u", (unsigned)options->slice);
    /* These defaults depend on spool and hostname, which are final only now. */
    options_fill(s, "control", options->spool ? options->spool : "", control);
    options_fill(s, "local_domains", options->hostname ? options->hostname : "", "");
    settings_apply(s);
    options_check(s, options);
    options_fill_sections(options);
    return s;
}

/* Adds the key when its value is another. */
static void
options_note(char out[OPTIONS_RESTART_MAX], const char *key, bool same)
{
    size_t used = strlen(out);
    if (same)
        return;
    int added = snprintf(out + used, OPTIONS_RESTART_MAX - used, "%s%s",
                         used > 0 ? ", " : "", key);
    assert(added > 0 && used + (size_t)added < OPTIONS_RESTART_MAX);
}

void
options_need_restart(const struct options *old, const struct options *fresh,
                     char out[OPTIONS_RESTART_MAX])
{
    out[0] = '\0';
    options_note(out, "listen", text_equal(old->server.listen, fresh->server.listen));
    options_note(out, "http", is_same(old->http, fresh->http));
    options_note(out, "log_to", is_same(old->log_to, fresh->log_to));
    options_note(out, "spool", is_same(old->spool, fresh->spool));
    options_note(out, "user", is_same(old->user, fresh->user));
    options_note(out, "sandbox", old->sandbox == fresh->sandbox);
    options_note(out, "control", is_same(old->control, fresh->control));
    options_note(out, "dns_servers", is_same(old->dns_servers, fresh->dns_servers));
    options_note(out, "slices", old->slices == fresh->slices);
    options_note(out, "slice", old->slice == fresh->slice);
    options_note(out, "journal_size",
                 old->manager.queue.journal_size == fresh->manager.queue.journal_size);
    options_note(
        out, "defrag_registry",
        is_same(old->defrag_registry, fresh->defrag_registry) &&
            is_same(old->defrag_registry_password, fresh->defrag_registry_password));
    options_note(out, "defrag_host",
                 is_same(options_host_of(old), options_host_of(fresh)));
    options_note(out, "cluster", is_same(old->cluster, fresh->cluster));
    options_note(out, "cluster_host", is_same(old->cluster_host, fresh->cluster_host));
    options_note(
        out, "cluster_redis",
        is_same(old->cluster_redis, fresh->cluster_redis) &&
            is_same(old->cluster_redis_password, fresh->cluster_redis_password));
    /* Another secret is used immediately; but there is no peer without any. */
    options_note(out, "cluster_secret",
                 (old->cluster_secret == NULL) == (fresh->cluster_secret == NULL));
    options_note(out, "cluster_address",
                 is_same(old->cluster_address, fresh->cluster_address));
    options_note(out, "cluster_egress",
                 is_same(old->cluster_egress, fresh->cluster_egress));
    options_note(out, "copies",
                 is_same(old->copies.copies, fresh->copies.copies) &&
                     is_same(old->copies.password, fresh->copies.password));
    options_note(out, "copies_required",
                 old->copies.required == fresh->copies.required);
    options_note(out, "copies_replicas",
                 old->copies.replicas == fresh->copies.replicas);
    options_note(out, "copies_message_max",
                 old->copies.message_max == fresh->copies.message_max);
    options_note(out, "journal_message_max",
                 old->manager.queue.journal_message_max ==
                     fresh->manager.queue.journal_message_max);
}

const char *
options_log_socket(const struct options *options)
{
    const char *to = options->log_to;
    if (strcmp(to, "syslog") == 0)
        return "/dev/log";
    bool is_path = strncmp(to, "syslog:/", strlen("syslog:/")) == 0 ||
                   strncmp(to, "syslog:@", strlen("syslog:@")) == 0;
    return is_path && strlen(to) > strlen("syslog:/") ? to + strlen("syslog:") : NULL;
}

void
options_print_example(void)
{
    struct buffer out;
    buffer_init(&out, EXAMPLE_MAX);
    settings_example(options_rows, &out);
    fwrite(out.at, 1, out.length, stdout);
    buffer_free(&out);
}
