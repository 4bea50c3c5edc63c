/* Reads the settings as `check` does, and runs the checks on a loop of its own. */
#include "admin/startup/doctor_command.h"

#include "admin/doctor/doctor.h"
#include "admin/startup/configuration.h"
#include "base/loop/loop.h"
#include "base/net/net.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

enum { DOCTOR_ERROR_MAX = 512 };

struct doctor_world {
    struct configuration *configuration;
    struct loop *loop;
    struct net *net;
    struct dns *dns, *validating;
    char file[DOCTOR_ERROR_MAX];
};

/* --- Keys --------------------------------------------------------------------------- */

static void
doctor_world_keys(void *context, doctor_each_key *each, void *to)
{
    const struct doctor_world *w = context;
    const struct dkim_keys *keys = w->configuration->dkim_keys;
    struct buffer public;
    buffer_init(&public, SIGN_PUBLIC_MAX);
    for (size_t i = 0; keys != NULL && i < keys->count; i++) {
        const struct dkim_key *k = &keys->list[i];
        buffer_clear(&public);
        if (k->key == NULL || !sign_key_public(k->key, &public))
            continue;
        bool is_rsa = sign_key_kind(k->key) == SIGN_RSA;
        each(to, &(struct doctor_key){.domain = k->domain,
                                      .selector = k->selector,
                                      .kind = is_rsa ? "rsa" : "ed25519",
                                      .bits = sign_key_bits(k->key),
                                      .public = buffer_text(&public)});
    }
    buffer_free(&public);
}

/* --- The world ---------------------------------------------------------------------- */

static void
doctor_world_note_file(void *context, const char *path)
{
    struct doctor_world *w = context;
    if (w->file[0] == '\0')
        (void)text_copy(w->file, sizeof(w->file), text_from(path));
}

/* NULL: the errors are on standard error. Whoever may not read secrets gets the rest. */
static struct configuration *
doctor_read_settings(const struct options_sources *sources)
{
    struct options_sources without = *sources;
    struct buffer errors;
    buffer_init(&errors, CONFIGURATION_ERRORS_MAX);
    struct configuration *c = configuration_read(sources, &errors);
    if (c == NULL && geteuid() != 0) {
        struct buffer others;
        buffer_init(&others, CONFIGURATION_ERRORS_MAX);
        without.without_secrets = true;
        c = configuration_read(&without, &others);
        buffer_free(&others);
    }
    if (c == NULL)
        fwrite(errors.at, 1, errors.length, stderr);
    buffer_free(&errors);
    return c;
}

static bool
doctor_world_open(struct doctor_world *w, char *error)
{
    const struct options *o = &w->configuration->options;
    struct text servers = text_from(o->dns_servers);
    w->loop = loop_new();
    w->net = net_new(w->loop);
    w->dns = dns_new(w->loop, servers, error, DOCTOR_ERROR_MAX);
    w->validating = dns_new(w->loop, servers, error, DOCTOR_ERROR_MAX);
    if (w->dns == NULL || w->validating == NULL)
        return false;
    dns_set_trust(w->dns, options_dns_trust(o));
    dns_set_trust(w->validating, DNS_TRUST_YES);
    settings_each_file(w->configuration->settings, doctor_world_note_file, w);
    return true;
}

static void
doctor_world_close(struct doctor_world *w)
{
    dns_free(&w->validating);
    dns_free(&w->dns);
    net_free(&w->net);
    loop_free(&w->loop);
    configuration_free(&w->configuration);
}

static int
doctor_examine(struct doctor_world *w, const struct doctor_request *request)
{
    const struct configuration *c = w->configuration;
    struct doctor_setup setup = {.options = &c->options,
                                 .routes = c->routes,
                                 .accounts = &c->accounts,
                                 .has_secrets = !c->options.without_secrets,
                                 .file = w->file[0] != '\0' ? w->file : NULL,
                                 .keys = doctor_world_keys,
                                 .context = w,
                                 .loop = w->loop,
                                 .net = w->net,
                                 .dns = w->dns,
                                 .validating = w->validating};
    return doctor_run(&setup, request);
}

int
doctor_command(int count, char **arguments, const struct options_sources *sources)
{
    struct doctor_world w = {.file = ""};
    struct doctor_request request;
    char error[DOCTOR_ERROR_MAX] = "";
    int code = EX_UNAVAILABLE;
    if (!doctor_read_request(count, arguments, &request))
        return EX_USAGE;
    w.configuration = doctor_read_settings(sources);
    if (w.configuration == NULL)
        return EX_CONFIG;
    if (doctor_world_open(&w, error))
        code = doctor_examine(&w, &request);
    else
        fprintf(stderr, "petrel doctor: %s\n", error);
    doctor_world_close(&w);
    return code;
}
