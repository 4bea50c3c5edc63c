/* Owners of sets as small files in a directory that the hosts share.
 *
 * A file is named after the key in hexadecimal, lies in one of 256 directories, and
 * contains "host ttl_ms born_ms mark". A claim writes a file under a random name and
 * links it to the key's name: link(2) is atomic, on NFS too, and the second host finds
 * the file of the first. There is no lock that could hang or be left behind. Only the
 * clock of the file server says how old a file is: a claim creates its file and asks
 * for its time, so that the hosts' clocks need not agree. That time is written into the
 * file, because each rename changes the file's own. A stale file is moved aside before
 * it is removed. If another host was faster and has claimed the key anew, the file
 * moved is the new one, and is put back; a random mark in each file tells the two
 * apart. Nothing is synced: after a power cut some sets are not reassembled.
 *
 * File calls block. On NFS the directory therefore has to be mounted `soft` with short
 * timeouts, as `soft,timeo=3,retrans=1`: with a hard mount a dead server stops every
 * host that uses it. A call that takes more than REGISTRY_ANSWER_MS opens the breaker,
 * which pauses for 5 s, then longer, up to five minutes. The mount point itself should
 * not be writable, so that a host on which nothing is mounted works alone instead of
 * with files of its own. All hosts use the same uid. */
#include "base/disk/disk.h"
#include "base/memory.h"
#include "defrag/registry/registry_internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    DIRECTORIES = 256,  /* without the directory of hosts' names */
    TURN_US = 10000,    /* work in one turn */
    TRIES = 4,          /* attempts of a claim, when hosts race for a stale file */
    SWEEP_MS = 14000,   /* one of the directories: all of them in an hour */
    SWEEP_NAMES = 1024, /* examined in one directory */
    LEFT_MS = 3600000,  /* age at which a leftover file of a claim is removed */
    AHEAD_MAX_MS =
        60000, /* all times are of the server's clock, which may be set back */
    NAME_SIZE = 80,
    MARK_SIZE = 16 + 1,
    CONTENT_MAX = REGISTRY_HOST_MAX + MARK_SIZE + 64
};

/* The longest life of a claim: half of the longest `notices`, 100 days, and an hour. */
#define TTL_MAX_MS (INT64_C(51) * 24 * 60 * 60 * 1000)

/* Directory of the hosts' names, beside those named after a key's first digits. */
#define HOSTS "id"

struct closing {
    unsigned char key[REGISTRY_KEY_SIZE];
    int64_t memory_ms;
    struct closing *prev, *next;
};

struct registry_dir {
    struct registry *r;
    struct disk *disk; /* NULL: not open */
    struct loop_task work;
    struct loop_timer tick; /* sweeps, or tries again when it is down */
    struct closing *closings;
    size_t closing_count;
    unsigned swept; /* directory */
};

/* The content of a name. */
struct owner {
    char host[REGISTRY_HOST_MAX + 1];
    char mark[MARK_SIZE]; /* unique in each file */
    int64_t ttl_ms, born_ms;
    int64_t changed_ms; /* of the file: each rename changes it */
};

static void
registry_dir_name_of(const unsigned char key[REGISTRY_KEY_SIZE], char out[NAME_SIZE])
{
    char hex[REGISTRY_HEX_SIZE];
    text_hex(key, REGISTRY_KEY_SIZE, hex);
    snprintf(out, NAME_SIZE, "%.2s/%s", hex, hex);
}

/* In the same directory, since some file systems do not link across. */
static void
name_of_chance(struct registry_dir *d, const char *beside, char kind,
               char out[NAME_SIZE])
{
    snprintf(out, NAME_SIZE, "%.2s/%c%016" PRIx64, beside, kind,
             loop_random(d->r->setup.loop));
}

/* "host 1000 1750000000000 0123456789abcdef\n"; anything else is empty and stale. */
static void
registry_dir_read_content(struct text content, struct owner *owner)
{
    struct text host, ttl, born, mark;
    uint64_t ttl_ms, born_ms;
    *owner = (struct owner){.ttl_ms = -1};
    if (text_word(&content, " \n", &host) && text_word(&content, " \n", &ttl) &&
        text_word(&content, " \n", &born) && text_word(&content, " \n", &mark) &&
        registry_is_host(host) && text_number(ttl, INT64_MAX / 2, &ttl_ms) &&
        text_number(born, INT64_MAX / 2, &born_ms) &&
        text_copy(owner->mark, sizeof(owner->mark), mark) &&
        text_copy(owner->host, sizeof(owner->host), host)) {
        owner->ttl_ms = (int64_t)ttl_ms;
        owner->born_ms = (int64_t)born_ms;
    }
}

static int
read_owner(struct registry_dir *d, const char *name, struct owner *owner)
{
    char content[CONTENT_MAX];
    struct disk_info info;
    int file = disk_open_file(d->disk, name, false);
    if (file < 0)
        return file;
    /* Both of the open file: another host may rename the name meanwhile. */
    int64_t got = disk_read(d->disk, file, 0, content, sizeof(content));
    int result = disk_file_info(d->disk, file, &info);
    disk_close_file(d->disk, file);
    if (got < 0 || result < 0)
        return got < 0 ? (int)got : result;
    registry_dir_read_content(text_of(content, (size_t)got), owner);
    owner->changed_ms = info.changed_ms;
    return 0;
}

/* A time that is not over, or longer than any claim, is of a clock that was ahead, or not
 * ours: such a file would keep its key for ever. */
static bool
is_stale(const struct owner *owner, int64_t now_ms)
{
    return owner->ttl_ms < 0 || owner->ttl_ms > TTL_MAX_MS ||
           owner->born_ms - now_ms > AHEAD_MAX_MS ||
           now_ms - owner->born_ms > owner->ttl_ms;
}

/* A file that no other host knows yet; its time is that of the server's clock. */
static int
write_with(struct registry_dir *d, const char *name, int64_t ttl_ms, const char *mark,
           int64_t *now_ms)
{
    char content[CONTENT_MAX];
    struct disk_info info;
    int file = disk_create(d->disk, name, 0600);
    /* The 256 directories are made when they are needed. */
    if (file == -ENOENT) {
        const char parent[] = {name[0], name[1], '\0'};
        int made = disk_make_directory(d->disk, parent, 0700);
        file = made < 0 ? made : disk_create(d->disk, name, 0600);
    }
    if (file < 0)
        return file;
    int result = disk_file_info(d->disk, file, &info);
    if (result == 0) {
        *now_ms = info.changed_ms;
        int length =
            snprintf(content, sizeof(content), "%s %" PRId64 " %" PRId64 " %s\n",
                     d->r->setup.host, ttl_ms, *now_ms, mark);
        result = disk_write(d->disk, file, text_of(content, (size_t)length));
    }
    disk_close_file(d->disk, file);
    if (result < 0)
        (void)disk_unlink(d->disk, name);
    return result;
}

static int
write_own(struct registry_dir *d, const char *name, int64_t ttl_ms, int64_t *now_ms)
{
    char mark[MARK_SIZE];
    snprintf(mark, sizeof(mark), "%016" PRIx64, loop_random(d->r->setup.loop));
    return write_with(d, name, ttl_ms, mark, now_ms);
}

/* Only one of two hosts that see the same stale file moves it. The later one may have
 * moved the file of a new claim, and puts that back. */
static int
registry_dir_remove_stale(struct registry_dir *d, const char *name,
                          const struct owner *stale)
{
    char aside[NAME_SIZE];
    struct owner owner;
    name_of_chance(d, name, 'x', aside);
    int result = disk_rename(d->disk, name, aside);
    if (result == 0)
        result = read_owner(d, aside, &owner);
    if (result == 0 && strcmp(owner.mark, stale->mark) != 0)
        result = disk_link(d->disk, aside, name);
    (void)disk_unlink(d->disk, aside);
    return result == -EEXIST || result == -ENOENT ? 0 : result;
}

/* 0: owner is set. own: our file, which may now be the one under the key's name. */
static int
link_or_read(struct registry_dir *d, const char *own, const char *name, int64_t now_ms,
             struct owner *owner)
{
    int result = -EAGAIN;
    for (int i = 0; i < TRIES; i++) {
        result = disk_link(d->disk, own, name);
        if (result == 0) {
            text_copy(owner->host, sizeof(owner->host), text_from(d->r->setup.host));
            return 0;
        }
        if (result == -EEXIST)
            result = read_owner(d, name, owner);
        if (result == 0 && !is_stale(owner, now_ms))
            return 0;
        if (result == 0)
            result = registry_dir_remove_stale(d, name, owner);
        if (result < 0 && result != -ENOENT) /* the file is gone: try again */
            return result;
    }
    return -EAGAIN;
}

static int
registry_dir_find_owner(struct registry_dir *d, const struct registry_claim *claim,
                        struct owner *owner)
{
    char own[NAME_SIZE], name[NAME_SIZE];
    int64_t now_ms;
    registry_dir_name_of(claim->key, name);
    name_of_chance(d, name, 't', own);
    int result = write_own(d, own, claim->ttl_ms, &now_ms);
    if (result < 0)
        return result;
    result = link_or_read(d, own, name, now_ms, owner);
    (void)disk_unlink(d->disk, own);
    return result;
}

/* The claim may expire between the check and the rename, and another host have it: two
 * owners of a key cost a reassembly at most. */
static int
close_set(struct registry_dir *d, const struct closing *c)
{
    char own[NAME_SIZE], name[NAME_SIZE];
    struct owner owner;
    int64_t now_ms;
    registry_dir_name_of(c->key, name);
    int result = read_owner(d, name, &owner);
    if (result < 0 || strcmp(owner.host, d->r->setup.host) != 0)
        return result == -ENOENT ? 0 : result;
    if (c->memory_ms == 0)
        return disk_unlink(d->disk, name);
    name_of_chance(d, name, 't', own);
    result = write_own(d, own, c->memory_ms, &now_ms);
    return result < 0 ? result : disk_rename(d->disk, own, name);
}

/* The file of our instance, named by a digest: a host's name may be too long for a
 * file, or "..". */
static void
name_of_host(const struct registry_dir *d, char out[NAME_SIZE])
{
    unsigned char key[REGISTRY_KEY_SIZE];
    char host[REGISTRY_HOST_MAX + 1], hex[REGISTRY_HEX_SIZE];
    snprintf(host, sizeof(host), "%s", d->r->setup.host);
    text_lower(host, strlen(host));
    digest_plain(text_from(host), key);
    text_hex(key, REGISTRY_KEY_SIZE, hex);
    snprintf(out, NAME_SIZE, HOSTS "/%s", hex);
}

/* The holder of a name refreshes it, and any host of that name may take a stale one. If
 * two take it at the same time, the loser finds the other at its next check. */
static int
keep_host(struct registry_dir *d)
{
    struct registry *r = d->r;
    char own[NAME_SIZE], name[NAME_SIZE];
    struct owner owner;
    int64_t now_ms;
    name_of_host(d, name);
    name_of_chance(d, HOSTS, 't', own);
    int result = write_with(d, own, NAME_TTL_MS, r->name.instance, &now_ms);
    if (result < 0)
        return result;
    result = read_owner(d, name, &owner);
    bool is_gone = result == -ENOENT;
    bool is_other = result == 0 && !is_stale(&owner, now_ms) &&
                    strcmp(owner.mark, r->name.instance) != 0;
    if (is_other)
        registry_name_other(r, text_from(owner.mark), owner.born_ms);
    else if (result == 0 || result == -ENOENT)
        result = disk_rename(d->disk, own, name);
    if (is_other || result < 0)
        (void)disk_unlink(d->disk, own);
    else
        registry_name_ours(&r->name);
    if (is_gone && result == 0 && r->name.is_kept)
        registry_emptied(r);
    if (is_other || result == 0)
        r->name.is_kept = !is_other;
    return result;
}

static void
leave_host(struct registry_dir *d)
{
    char name[NAME_SIZE];
    struct owner owner;
    name_of_host(d, name);
    if (read_owner(d, name, &owner) == 0 &&
        strcmp(owner.mark, d->r->name.instance) == 0)
        (void)disk_unlink(d->disk, name);
}

static void
registry_dir_take_name(struct registry_dir *d, const char *name, int64_t now_ms)
{
    struct owner owner;
    bool is_own = strlen(name) == 2 + 1 + REGISTRY_HEX_SIZE - 1;
    if (read_owner(d, name, &owner) < 0)
        return;
    if (is_own && is_stale(&owner, now_ms))
        (void)registry_dir_remove_stale(d, name, &owner);
    else if (!is_own && now_ms - owner.changed_ms > LEFT_MS)
        (void)disk_unlink(d->disk, name);
}

struct names {
    char (*at)[NAME_SIZE];
    size_t count;
    char path[3];
};

static bool
registry_dir_add_name(void *context, const char *name)
{
    struct names *names = context;
    size_t length = strlen(name);
    bool is_left = length == 17 && (name[0] == 't' || name[0] == 'x');
    /* Other files are not ours to remove. */
    if (is_left || length == REGISTRY_HEX_SIZE - 1)
        snprintf(names->at[names->count++], NAME_SIZE, "%s/%.64s", names->path, name);
    return names->count < SWEEP_NAMES;
}

/* Removes stale files in one of the directories, for at most TURN_US. */
static void
registry_dir_sweep(struct registry_dir *d)
{
    char probe[NAME_SIZE];
    struct names names = {.path = HOSTS};
    int64_t began_us = loop_clock_us(), now_ms = 0;
    if (d->swept < DIRECTORIES)
        snprintf(names.path, sizeof(names.path), "%02x", d->swept & 255U);
    d->swept = (d->swept + 1) % (DIRECTORIES + 1);
    names.at = memory_array(SWEEP_NAMES, NAME_SIZE);
    (void)disk_list(d->disk, names.path, registry_dir_add_name, &names);
    name_of_chance(d, names.path, 't', probe);
    if (names.count > 0 && write_own(d, probe, 1, &now_ms) == 0) {
        for (size_t i = 0; i < names.count; i++) {
            if (loop_clock_us() - began_us > TURN_US)
                break;
            registry_dir_take_name(d, names.at[i], now_ms);
        }
        (void)disk_unlink(d->disk, probe);
    }
    free(names.at);
}

/* Opened anew each time: an open descriptor would not see a later mount. */
static int
open_disk(struct registry_dir *d)
{
    char probe[NAME_SIZE];
    int64_t now_ms;
    disk_close(&d->disk);
    int result = disk_open(&d->disk, d->r->place.path, false);
    if (result < 0)
        return result;
    name_of_chance(d, "00", 't', probe);
    result = write_own(d, probe, 1, &now_ms);
    if (result == 0)
        result = disk_unlink(d->disk, probe);
    return result;
}

/* Judges a call by its result and its duration. 0: go on; otherwise the pause in ms. A
 * failure closes the directory; on_tick() opens it again after the pause. */
static int64_t
registry_dir_judge(struct registry_dir *d, int result, int64_t began_us)
{
    char why[128];
    int64_t took_ms = (loop_clock_us() - began_us) / 1000;
    if (result == 0 && took_ms <= d->r->patience_ms) {
        registry_good(d->r);
        return 0;
    }
    if (result < 0)
        snprintf(why, sizeof(why), "%s", strerror(-result));
    else
        snprintf(why, sizeof(why), "a call took %" PRId64 " ms", took_ms);
    disk_close(&d->disk);
    return registry_failed(d->r, why);
}

static void
on_tick(void *context)
{
    struct registry_dir *d = context;
    int64_t began_us = loop_clock_us();
    int64_t pause_ms = registry_dir_judge(d, open_disk(d), began_us);
    if (pause_ms == 0) {
        began_us = loop_clock_us();
        registry_dir_sweep(d);
        pause_ms = registry_dir_judge(d, 0, began_us);
    }
    loop_timer_start(d->r->setup.loop, &d->tick, pause_ms == 0 ? SWEEP_MS : pause_ms,
                     on_tick, d);
}

static int
do_closing(struct registry_dir *d)
{
    struct closing *c = d->closings;
    int result = close_set(d, c);
    DL_DELETE(d->closings, c);
    d->closing_count--;
    free(c);
    return result;
}

static int
do_claim(struct registry_dir *d)
{
    struct registry_claim *claim = d->r->waiting;
    struct owner owner;
    int result = registry_dir_find_owner(d, claim, &owner);
    if (result == 0)
        registry_answer_owner(d->r, claim, text_from(owner.host));
    else
        registry_answer(d->r, claim, REGISTRY_UNAVAILABLE);
    return result == -EAGAIN ? 0 : result; /* a race, not a failure of the directory */
}

static void
on_work(void *context)
{
    struct registry_dir *d = context;
    int64_t turn_us = loop_clock_us(), pause_ms = 0;
    while (d->disk != NULL && (d->r->waiting != NULL || d->closings != NULL)) {
        int64_t began_us = loop_clock_us();
        /* Each call blocks, so a turn has its share of time, not of claims. */
        if (began_us - turn_us > TURN_US) {
            loop_post(d->r->setup.loop, &d->work, on_work, d);
            return;
        }
        int result = d->r->waiting != NULL ? do_claim(d) : do_closing(d);
        pause_ms = registry_dir_judge(d, result, began_us);
    }
    if (pause_ms > 0)
        loop_timer_start(d->r->setup.loop, &d->tick, pause_ms, on_tick, d);
}

struct registry_dir *
registry_dir_new(struct registry *r)
{
    struct registry_dir *d = memory_new(sizeof(*d));
    int64_t began_us = loop_clock_us();
    d->r = r;
    /* So that hosts do not all check the same one. */
    d->swept = (unsigned)(loop_random(r->setup.loop) % (DIRECTORIES + 1));
    int64_t pause_ms = registry_dir_judge(d, open_disk(d), began_us);
    loop_timer_start(r->setup.loop, &d->tick, pause_ms == 0 ? SWEEP_MS : pause_ms,
                     on_tick, d);
    return d;
}

void
registry_dir_free(struct registry_dir **dir)
{
    struct registry_dir *d = *dir;
    if (d == NULL)
        return;
    while (d->closings != NULL) {
        struct closing *c = d->closings;
        DL_DELETE(d->closings, c);
        free(c);
    }
    loop_timer_stop(d->r->setup.loop, &d->tick);
    loop_unpost(d->r->setup.loop, &d->work);
    if (d->disk != NULL)
        leave_host(d);
    disk_close(&d->disk);
    free(d);
    *dir = NULL;
}

void
registry_dir_claim(struct registry_dir *d)
{
    loop_post(d->r->setup.loop, &d->work, on_work, d);
}

void
registry_dir_close(struct registry_dir *d, const unsigned char key[REGISTRY_KEY_SIZE],
                   int64_t memory_ms)
{
    if (d->closing_count >= REGISTRY_CLOSES_MAX)
        return;
    struct closing *c = memory_new(sizeof(*c));
    memcpy(c->key, key, REGISTRY_KEY_SIZE);
    c->memory_ms = memory_ms;
    DL_APPEND(d->closings, c);
    d->closing_count++;
    loop_post(d->r->setup.loop, &d->work, on_work, d);
}

void
registry_dir_check_name(struct registry_dir *d)
{
    if (d->disk == NULL)
        return;
    int64_t began_us = loop_clock_us();
    int64_t pause_ms = registry_dir_judge(d, keep_host(d), began_us);
    if (pause_ms > 0)
        loop_timer_start(d->r->setup.loop, &d->tick, pause_ms, on_tick, d);
}
