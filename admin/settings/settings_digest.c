/* Compares settings by their digests. */
#include "admin/settings/settings_digest.h"

#include "base/crypto/digest.h"

#include <stdio.h>
#include <string.h>

/* Routes, providers, limits, keys: where mail goes, in which form, and how fast. */
static const char *const digested[] = {
    "cluster",
    "cluster_egress",
    "slices",
    "routes",
    "sender_routes",
    "relay",
    "local",
    "local_domains",
    "rewrite",
    "srs",
    "srs_domain",
    "bounces",
    "verp",
    "providers",
    "dane",
    "mta_sts",
    "smtp_port",
    "dkim_keys",
    "message_size_limit",
    "recipient_limit",
    "initial_destination_concurrency",
    "default_destination_concurrency_limit",
    "default_destination_concurrency_positive_feedback",
    "default_destination_concurrency_negative_feedback",
    "default_destination_concurrency_failed_cohort_limit",
    "default_destination_recipient_limit",
    "default_destination_rate",
    "default_destination_rate_delay",
    "default_transport_rate_delay",
    "default_destination_adaptive",
    "default_connection_reuse_count_limit",
    "minimal_backoff_time",
    "maximal_backoff_time",
    "maximal_queue_lifetime",
    "bounce_queue_lifetime",
    "delay_warning_time",
};

static bool
settings_digest_has(const char *key)
{
    for (size_t i = 0; i < sizeof(digested) / sizeof(digested[0]); i++)
        if (strcmp(digested[i], key) == 0)
            return true;
    return false;
}

/* The word without the password of a URL: "//USER:PASSWORD@" loses ":PASSWORD". */
static void
settings_digest_add_word(struct digest *d, struct text word)
{
    const char *slashes =
        word.length > 2 ? memmem(word.at, word.length, "//", 2) : NULL;
    size_t start = slashes != NULL ? (size_t)(slashes - word.at) + 2 : 0;
    struct text rest = text_after(word, start);
    size_t at = text_find_last(rest, '@'), colon = text_find(rest, ':');
    if (slashes != NULL && at != TEXT_NONE && colon != TEXT_NONE && colon < at) {
        digest_add(d, text_before(word, start + colon));
        word = text_after(rest, at);
    }
    digest_add(d, word);
    digest_add(d, TEXT(" "));
}

struct settings_digest {
    void (*each)(void *context, const char *key,
                 const char digest[SETTINGS_DIGEST_HEX]);
    void *context;
};

static void
settings_digest_take(void *context, const struct setting_view *view)
{
    const struct settings_digest *s = context;
    unsigned char sum[DIGEST_SIZE];
    char hex[SETTINGS_DIGEST_HEX];
    struct digest d;
    struct text rest = text_from(view->value), word;
    if (!settings_digest_has(view->key))
        return;
    /* Unset it is the hostname, which each host has. */
    if (strcmp(view->key, "local_domains") == 0 && strcmp(view->source, "default") == 0)
        rest = TEXT("");
    digest_begin(&d);
    digest_add(&d, text_from(view->key));
    digest_add(&d, TEXT("="));
    while (text_word(&rest, " \t\r\n", &word))
        settings_digest_add_word(&d, word);
    digest_end(&d, sum);
    text_hex(sum, sizeof(hex) / 2, hex);
    s->each(s->context, view->key, hex);
}

void
settings_digest_each(const struct settings *s,
                     void (*each)(void *context, const char *key,
                                  const char digest[SETTINGS_DIGEST_HEX]),
                     void *context)
{
    struct settings_digest digest = {each, context};
    settings_each(s, settings_digest_take, &digest);
}
