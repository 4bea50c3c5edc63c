/* Reads the settings of a group of hosts. */
#include "queue/group/group_settings.h"

#include "base/crypto/digest.h"
#include "base/memory.h"
#include "base/net_address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP_PORT ":4650" /* of the peer door, by custom */

static const char separators[] = " \t\r\n,";

static void
group_complain(struct buffer *errors, const char *key, struct text value,
               const char *what)
{
    (void)!buffer_format(errors, "%s: '%.*s': %s\n", key,
                         TEXT_ARGS(text_before(value, 100)), what);
}

bool
group_name_read(struct text name, char *out, size_t size)
{
    if (!redis_is_name(name) || !text_copy(out, size, name))
        return false;
    text_lower(out, name.length);
    return true;
}

/* All slices have the same settings, but each is a host. */
static bool
group_name_slice(const struct group_texts *texts, unsigned slice,
                 char host[GROUP_HOST_MAX + 1])
{
    char whole[GROUP_HOST_MAX + 32];
    struct text name = text_before(texts->host, GROUP_HOST_MAX);
    if (!redis_is_name(texts->host))
        return false;
    if (texts->slices > 1)
        snprintf(whole, sizeof(whole), "%.*s.%u", TEXT_ARGS(name), slice);
    else
        snprintf(whole, sizeof(whole), "%.*s", TEXT_ARGS(name));
    return group_name_read(text_from(whole), host, GROUP_HOST_MAX + 1);
}

/* The URL may have a password: it is not quoted. */
static bool
group_read_place(struct text url, struct text password, struct redis_place *place,
                 struct buffer *errors)
{
    const char *wrong = redis_place_parse(url, place);
    if (wrong == NULL && place->password[0] != '\0')
        wrong = "write the password in cluster_redis_password_file or "
                "cluster_redis_password, not here";
    else if (wrong == NULL && place->user[0] != '\0' && password.length == 0)
        wrong = "a user needs cluster_redis_password";
    else if (wrong == NULL &&
             !text_copy(place->password, sizeof(place->password), password))
        wrong = "cluster_redis_password is longer than 256 bytes";
    if (wrong != NULL)
        (void)!buffer_format(errors, "cluster_redis: %s\n", wrong);
    return wrong == NULL;
}

static bool
group_read_places(const struct group_texts *texts, struct group_settings *out,
                  struct buffer *errors)
{
    struct text rest = texts->redis, word;
    bool good = true;
    if (text_equal(texts->redis, TEXT("none")))
        return true;
    while (text_word(&rest, separators, &word)) {
        if (out->place_count == REDIS_PLACES_MAX) {
            (void)!buffer_format(errors, "cluster_redis: at most %d servers\n",
                                 REDIS_PLACES_MAX);
            return false;
        }
        good &= group_read_place(word, texts->redis_password,
                                 &out->places[out->place_count], errors);
        out->place_count++;
    }
    if (texts->redis.length > 0 && out->place_count == 0) {
        (void)!buffer_format(errors, "cluster_redis: no server: write none if there "
                                     "is no Redis\n");
        return false;
    }
    return good;
}

static bool
group_has_peer(const struct group_settings *s, const char *name)
{
    for (size_t i = 0; i < s->peer_count; i++)
        if (strcmp(s->peers[i], name) == 0)
            return true;
    return false;
}

/* HOST:PORT or [IP]:PORT; without a port that of the peer door. False: it is none. */
static bool
group_read_address(struct text address, char out[GROUP_ADDRESS_MAX + 1])
{
    struct redis_place place;
    size_t colon = text_find_last(address, ':');
    bool has_port = colon != TEXT_NONE && colon + 1 < address.length &&
                    text_find(text_after(address, colon), ']') == TEXT_NONE;
    if (address.length == 0 || address.length > REDIS_HOST_MAX ||
        redis_server_parse(address, &place) != NULL)
        return false;
    snprintf(out, GROUP_ADDRESS_MAX + 1, "%.*s%s", TEXT_ARGS(address),
             has_port ? "" : GROUP_PORT);
    return true;
}

/* NULL: good. */
static const char *
group_read_peer(struct text entry, struct group_settings *out)
{
    char name[GROUP_HOST_MAX + 1], place[GROUP_ADDRESS_MAX + 1];
    size_t equals = text_find(entry, '=');
    struct text address = text_after(entry, equals + 1);
    if (equals == TEXT_NONE || !group_read_address(address, place) ||
        !group_name_read(text_before(entry, equals), name, sizeof(name)))
        return "write NAME=ADDRESS:PORT; a name has only letters, digits, '-', '_' "
               "and '.'";
    if (group_has_peer(out, name))
        return "duplicate name";
    if (strcmp(name, out->host) == 0)
        return NULL; /* the list may be the same on all hosts */
    if (out->peer_count == GROUP_HOSTS_MAX - 1)
        return "too many hosts (at most 256)";
    memcpy(out->peers[out->peer_count], name, sizeof(name));
    memcpy(out->addresses[out->peer_count++], place, sizeof(place));
    return NULL;
}

/* An IPv6 address may be as Kubernetes has that of a pod, without brackets. */
static bool
group_read_own_address(struct text address, char out[GROUP_ADDRESS_MAX + 1])
{
    struct net_address ip;
    if (!net_address_parse_ip(address, &ip) || ip.family != NET_IPV6)
        return group_read_address(address, out);
    snprintf(out, GROUP_ADDRESS_MAX + 1, "[%.*s]" GROUP_PORT, TEXT_ARGS(address));
    return true;
}

static bool
group_read_peers(const struct group_texts *texts, struct group_settings *out,
                 struct buffer *errors)
{
    struct text rest = texts->peers, word;
    bool good = true;
    out->peers = memory_array(GROUP_HOSTS_MAX, sizeof(*out->peers));
    out->addresses = memory_array(GROUP_HOSTS_MAX, sizeof(*out->addresses));
    while (text_word(&rest, separators, &word)) {
        const char *wrong = group_read_peer(word, out);
        if (wrong != NULL)
            group_complain(errors, "cluster_peers", word, wrong);
        good &= wrong == NULL;
    }
    return good;
}

/* Without Redis and without another machine one slice can be the bank. */
static void
group_find_lead(const struct group_texts *texts, struct group_settings *out)
{
    char name[GROUP_HOST_MAX + 1];
    size_t known = 0, count = 0;
    for (unsigned i = 0; i < texts->slices; i++)
        known += group_name_slice(texts, i, name) && group_has_peer(out, name);
    out->has_lead = texts->slices > 1 && texts->slices <= GROUP_HOSTS_MAX &&
                    out->place_count == 0 && known == out->peer_count;
    for (unsigned i = 0; out->has_lead && i < texts->slices; i++)
        if (i != texts->slice && group_name_slice(texts, i, name))
            memcpy(out->peers[count++], name, sizeof(name));
    if (out->has_lead) {
        out->peer_count = count;
        out->shares_addresses = true; /* those of this machine */
    }
}

static bool
group_read(const struct group_texts *texts, struct group_settings *out,
           struct buffer *errors)
{
    static const char names[] = "at most 63 letters, digits, '-', '_' and '.'";
    bool good = true;
    if (!group_name_read(texts->cluster, out->name, sizeof(out->name))) {
        group_complain(errors, "cluster", texts->cluster, names);
        good = false;
    }
    if (!group_name_slice(texts, texts->slice, out->host)) {
        group_complain(errors, "cluster_host", texts->host,
                       "set it to a name of this host: letters, digits, '-', '_' and "
                       "'.'");
        good = false;
    }
    if (!group_name_read(texts->egress, out->egress, sizeof(out->egress)) ||
        strcmp(out->egress, "account") == 0) {
        group_complain(errors, "cluster_egress", texts->egress,
                       "shared, own, or a name of the address that hosts share");
        good = false;
    }
    if (texts->address.length > 0 &&
        !group_read_own_address(texts->address, out->address)) {
        group_complain(errors, "cluster_address", texts->address,
                       "not an address where other hosts reach this one (HOST:PORT)");
        good = false;
    }
    out->shares_addresses = strcmp(out->egress, "own") != 0;
    good &= group_read_places(texts, out, errors);
    good &= group_read_peers(texts, out, errors);
    if (good)
        group_find_lead(texts, out);
    else
        group_settings_free(out);
    return good;
}

bool
group_settings_read(const struct group_texts *texts, struct group_settings *out,
                    struct buffer *errors)
{
    *out = (struct group_settings){.shares_addresses = true};
    if (texts->cluster.length > 0)
        return group_read(texts, out, errors);
    if (texts->slices < 2 || texts->slices > GROUP_HOSTS_MAX)
        return true;
    const struct group_texts own = {.cluster = TEXT("slices"),
                                    .host = TEXT("slice"),
                                    .egress = TEXT("shared"),
                                    .slice = texts->slice,
                                    .slices = texts->slices};
    return group_read(&own, out, errors);
}

bool
group_needs_tls(const struct group_settings *settings)
{
    for (size_t i = 0; i < settings->place_count; i++)
        if (settings->places[i].tls)
            return true;
    return false;
}

void
group_settings_free(struct group_settings *settings)
{
    free(settings->peers);
    free(settings->addresses);
    digest_forget(settings, sizeof(*settings));
}
