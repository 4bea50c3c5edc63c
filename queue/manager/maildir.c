/* Delivers into Maildirs: written to tmp/, synced, renamed into new/, synced. */
#include "queue/manager/maildir.h"

#include "base/loop/loop.h"
#include "base/memory.h"
#include "queue/manager/message_head.h"
#include "base/disk/disk.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FILE_NAME_MAX = 255,
    PATH_LIMIT = 4000,
    NAME_LIMIT = 512,
    PIECE = 32 * 1024,
    DIRECTORY_MODE = 0700,
    FILE_MODE = 0600,
    GROUP_MODE = 0060,
    SET_GROUP = 02000
};

/* --- Mailboxes -------------------------------------------------------------------- */

/* Opens a mailbox. 0 and the directory, -errno, or -EDOM: no such mailbox. */
static int
open_as(const struct target *target, const struct address *address, bool lower,
        bool make, struct disk **disk, char path[PATH_LIMIT + 1])
{
    struct buffer expanded;
    int result = -EDOM;
    buffer_init(&expanded, PATH_LIMIT);
    if (maildir_path(target, address, lower, &expanded)) {
        text_copy(path, PATH_LIMIT + 1, buffer_text(&expanded));
        result = disk_open(disk, path, make);
        if (result == -ENOENT || result == -ENOTDIR)
            result = -EDOM;
    }
    buffer_free(&expanded);
    return result;
}

/* Opens the mailbox in lower case, or else one with the letters as written, from a time
 * when case mattered. */
static int
open_in_any_case(const struct target *target, const struct address *address,
                 struct disk **disk, char path[PATH_LIMIT + 1])
{
    path[0] = '\0';
    int result = open_as(target, address, true, false, disk, path);
    return result != -EDOM ? result
                           : open_as(target, address, false, false, disk, path);
}

/* user+tag has a mailbox of its own, or that of user, as with routes and aliases. */
static int
open_existing(const struct target *target, const struct address *address,
              struct disk **disk, char path[PATH_LIMIT + 1])
{
    struct address user = maildir_without_tag(address);
    int result = open_in_any_case(target, address, disk, path);
    return result != -EDOM || user.local.length == address->local.length
               ? result
               : open_in_any_case(target, &user, disk, path);
}

/* Opens the mailbox and makes it if permitted. On failure path names the directory that
 * could not be opened. */
static int
open_mailbox(const struct target *target, const struct address *address,
             struct disk **disk, char path[PATH_LIMIT + 1])
{
    struct address user = maildir_without_tag(address);
    int result = open_existing(target, address, disk, path);
    int may = result == -EDOM ? maildir_may_make(target, &user) : 0;
    if (may > 0)
        return open_as(target, &user, true, true, disk, path);
    if (may < 0)
        text_copy(path, PATH_LIMIT + 1, text_from(target->users));
    return may < 0 ? may : result;
}

/* RCPT asks this: an unknown user is refused in the dialog. */
bool
maildir_exists(const struct target *target, const struct address *address)
{
    struct disk *disk = NULL;
    struct buffer expanded;
    char path[PATH_LIMIT + 1];
    struct address user = maildir_without_tag(address);
    buffer_init(&expanded, PATH_LIMIT);
    bool good = maildir_path(target, &user, true, &expanded);
    buffer_free(&expanded);
    /* If this cannot be checked now, delivery tries and defers. */
    good = open_existing(target, address, &disk, path) != -EDOM ||
           (good && maildir_may_make(target, &user) != 0);
    disk_close(&disk);
    return good;
}

/* --- Content ---------------------------------------------------------------------- */

/* A message being written to a file: CRLF becomes LF, also across two pieces. */
struct writing {
    struct disk *disk;
    int file;
    struct buffer out;
    bool carriage; /* a CR waits for the next byte */
    bool in_line;  /* the last line has no end yet */
    int result;
};

static void
put_bytes(struct writing *w, struct text t)
{
    if (w->result == 0 && w->out.length + t.length > PIECE) {
        w->result = disk_write(w->disk, w->file, buffer_text(&w->out));
        w->out.length = 0;
    }
    if (w->result == 0) {
        bool fits = buffer_add(&w->out, t);
        assert(fits);
        w->in_line = t.length > 0 ? t.at[t.length - 1] != '\n' : w->in_line;
    }
}

/* Maildirs have the line ends of the system. A lone CR is content and stays. */
static void
maildir_put(struct writing *w, struct text t)
{
    while (t.length > 0) {
        if (w->carriage && t.at[0] != '\n')
            put_bytes(w, TEXT("\r"));
        size_t at = text_find(text_before(t, PIECE), '\r');
        struct text run = text_before(t, at == TEXT_NONE ? PIECE : at);
        w->carriage = at != TEXT_NONE;
        put_bytes(w, run);
        t = text_after(t, run.length + w->carriage);
    }
}

/* Synced before the file gets its name in new/: a reader sees only whole messages. The
 * last line may lack its end (RFC 3030 §4.2), or half of it. */
static int
maildir_finish(struct writing *w)
{
    if (w->in_line || w->carriage)
        put_bytes(w, TEXT("\n"));
    if (w->result == 0)
        w->result = disk_write(w->disk, w->file, buffer_text(&w->out));
    if (w->result == 0)
        w->result = disk_sync(w->disk, w->file);
    buffer_free(&w->out);
    return w->result;
}

/* An address from the spool may hold any byte, but never begins a new line. */
static void
put_address_line(struct writing *w, const char *name, struct text address,
                 const char *end)
{
    char byte;
    maildir_put(w, text_from(name));
    for (size_t i = 0; i < address.length; i++) {
        byte = address.at[i];
        if (text_has_control(text_of(&byte, 1)))
            byte = '?';
        maildir_put(w, text_of(&byte, 1));
    }
    maildir_put(w, text_from(end));
}

/* --- Outcomes --------------------------------------------------------------------- */

/* The mailbox stands where others have the server: in the log and in the bounce. */
static struct outcome
with_path(struct outcome outcome, const char *path)
{
    snprintf(outcome.remote, sizeof(outcome.remote), "%.300s", path);
    return outcome;
}

static struct outcome
outcome_of(int error, const char *doing, const char *path)
{
    if (error == -EDOM)
        return with_path(outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1",
                                      "no such mailbox"),
                         path);
    /* A quota is the mailbox's (4.2.2), a full disk the system's (4.3.1): RFC 3463. */
    const char *enhanced = error == -EDQUOT   ? "4.2.2"
                           : error == -ENOSPC ? "4.3.1"
                                              : "4.3.0";
    /* One user's quota or permissions say nothing about the other Maildirs. */
    bool disk = error == -ENOSPC || error == -EIO || error == -EROFS;
    return with_path(outcome_make(VERDICT_DEFERRED, disk ? BLAME_SITE : BLAME_MESSAGE,
                                  0, enhanced, "cannot %s %.300s: %s", doing, path,
                                  disk_explain(error)),
                     path);
}

/* --- The file -------------------------------------------------------------------- */

/* Escapes '/' and ':' of a host name as the Maildir convention does. */
static void
add_host(const char *hostname, char name[NAME_LIMIT])
{
    size_t length = strlen(name);
    for (; *hostname != '\0' && length < FILE_NAME_MAX - 4; hostname++) {
        const char *escaped = *hostname == '/'   ? "\\057"
                              : *hostname == ':' ? "\\072"
                                                 : NULL;
        int added =
            snprintf(name + length, NAME_LIMIT - length, "%.*s",
                     escaped != NULL ? 4 : 1, escaped != NULL ? escaped : hostname);
        length += (size_t)added;
    }
}

/* A Maildir with the set-group-id bit is also for its group, which then can read files
 * of the daemon's user. */
static unsigned
file_mode(struct disk *disk)
{
    struct disk_info info;
    bool of_group =
        disk_inspect(disk, "tmp", &info) == 0 && (info.mode & SET_GROUP) != 0;
    return of_group ? FILE_MODE | (info.mode & GROUP_MODE) : FILE_MODE;
}

/* Makes the file in tmp/, with a name that new/ lacks, too; sets both paths. */
static int
create(struct disk *disk, struct loop *loop, const char *hostname,
       char in_tmp[NAME_LIMIT + 8], char in_new[NAME_LIMIT + 8])
{
    char name[NAME_LIMIT];
    struct disk_info info;
    int64_t now_ms = loop_now_ms(loop);
    for (;;) {
        /* Q: a turn delivers many in one millisecond, so a random number makes names
         * unique. */
        snprintf(name, sizeof(name), "%" PRId64 ".M%06" PRId64 "P%ldQ%" PRIu64 ".",
                 now_ms / 1000, now_ms % 1000 * 1000, (long)getpid(),
                 loop_random(loop));
        add_host(hostname, name);
        snprintf(in_tmp, NAME_LIMIT + 8, "tmp/%s", name);
        snprintf(in_new, NAME_LIMIT + 8, "new/%s", name);
        if (disk_inspect(disk, in_new, &info) == 0)
            continue;
        int file = disk_create(disk, in_tmp, file_mode(disk));
        if (file != -EEXIST)
            return file;
    }
}

/* They may have been removed while the daemon runs. */
static int
make_dirs(struct disk *disk)
{
    static const char *const parts[] = {"tmp", "new", "cur"};
    int result = 0;
    for (size_t i = 0; i < 3 && result == 0; i++)
        result = disk_make_directory(disk, parts[i], DIRECTORY_MODE);
    return result;
}

/* Moves the file from tmp/ to new/ durably; on failure removes it. */
static int
maildir_move(struct disk *disk, const char *in_tmp, const char *in_new, int result)
{
    if (result == 0)
        result = disk_rename(disk, in_tmp, in_new);
    if (result == 0) {
        result = disk_sync_directory(disk, "new");
        if (result < 0)
            /* The delivery is deferred and comes again, so this copy must go. */
            (void)!disk_unlink(disk, in_new);
    } else {
        (void)!disk_unlink(disk, in_tmp);
    }
    return result;
}

/* --- A delivery ------------------------------------------------------------------ */

struct maildir_delivery {
    struct queue *queue;
    struct disk *disk; /* the mailbox; NULL: it could not be opened */
    struct writing writing;
    int content; /* < 0: -errno */
    int64_t offset, size;
    struct outcome outcome; /* of a delivery that ended when it began */
    bool is_over;
    char path[PATH_LIMIT + 1], in_tmp[NAME_LIMIT + 8], in_new[NAME_LIMIT + 8];
};

static void
maildir_end_early(struct maildir_delivery *d, struct outcome outcome)
{
    d->outcome = outcome;
    d->is_over = true;
}

static void
maildir_begin_content(struct maildir_delivery *d, const struct envelope *e)
{
    struct buffer header;
    int64_t used;
    buffer_init(&header, 2 * MESSAGE_HEAD_MAX);
    d->content = queue_content_open(d->queue, e);
    d->size = e->content_size;
    used = message_head_for_mailbox(d->queue, d->content, e, &header);
    maildir_put(&d->writing, buffer_text(&header));
    d->offset = used;
    buffer_free(&header);
    if (used < 0 && d->content >= 0) {
        queue_content_close(d->queue, d->content);
        d->content = (int)used;
    }
}

/* Return-Path is the envelope's sender, which no later reader could know. */
static void
maildir_begin_file(struct maildir_delivery *d, struct loop *loop, const char *hostname,
                   const struct envelope *e, unsigned recipient)
{
    struct writing *w = &d->writing;
    int result = make_dirs(d->disk);
    w->disk = d->disk;
    w->file =
        result < 0 ? result : create(d->disk, loop, hostname, d->in_tmp, d->in_new);
    if (w->file < 0) {
        maildir_end_early(d, outcome_of(w->file, "write to", d->path));
        return;
    }
    buffer_init(&w->out, PIECE);
    /* The final delivery adds it (RFC 5321 §4.4). */
    put_address_line(w, "Return-Path: <",
                     envelope_sender_of(e, &e->recipients[recipient]), ">\n");
    put_address_line(w, "Delivered-To: ", e->recipients[recipient].address, "\n");
    maildir_begin_content(d, e);
}

struct maildir_delivery *
maildir_start(struct queue *queue, struct loop *loop, const struct target *target,
              const char *hostname, const struct envelope *e, unsigned recipient)
{
    struct maildir_delivery *d = memory_new(sizeof(*d));
    struct address address = {.local = TEXT("postmaster")};
    assert(recipient < e->count);
    struct text mailbox = e->recipients[recipient].address;
    d->queue = queue;
    d->content = d->writing.file = -1;
    if (!text_equal_nocase(mailbox, TEXT("postmaster")) &&
        !address_parse(mailbox, &address)) {
        maildir_end_early(d, outcome_of(-EDOM, "", ""));
        return d;
    }
    int result = open_mailbox(target, &address, &d->disk, d->path);
    if (result < 0)
        maildir_end_early(d, outcome_of(result, "open", d->path));
    else
        maildir_begin_file(d, loop, hostname, e, recipient);
    return d;
}

/* Copies a part. True: all is copied. */
static bool
copy_some(struct maildir_delivery *d, int64_t budget)
{
    struct writing *w = &d->writing;
    char *piece = memory_new(PIECE);
    int64_t got = PIECE;
    while (got > 0 && budget > 0 && w->result == 0) {
        got = queue_content_read(d->queue, d->content, d->offset, piece, PIECE);
        if (got <= 0)
            break;
        maildir_put(w, text_of(piece, (size_t)got));
        d->offset += got;
        budget -= got;
    }
    free(piece);
    if (got > 0 && w->result == 0)
        return false;
    queue_content_close(d->queue, d->content);
    /* The envelope states the size. */
    d->content = got < 0 ? (int)got : got == 0 && d->offset != d->size ? -EILSEQ : 0;
    return true;
}

static struct outcome
maildir_end_file(struct maildir_delivery *d)
{
    int result = maildir_finish(&d->writing);
    disk_close_file(d->disk, d->writing.file);
    result = maildir_move(d->disk, d->in_tmp, d->in_new,
                          d->content < 0 ? d->content : result);
    if (d->content < 0)
        return outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.0",
                            "cannot read the message: %s", strerror(-d->content));
    if (result < 0)
        return outcome_of(result, "write to", d->path);
    return with_path(outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0",
                                  "delivered to maildir"),
                     d->path);
}

static void
forget_delivery(struct maildir_delivery **delivery)
{
    disk_close(&(*delivery)->disk);
    free(*delivery);
    *delivery = NULL;
}

bool
maildir_go(struct maildir_delivery **delivery, int64_t budget, struct outcome *outcome)
{
    struct maildir_delivery *d = *delivery;
    struct writing *w = &d->writing;
    if (!d->is_over && d->content >= 0 && !copy_some(d, budget)) {
        /* Spreads the work: the last sync has no more to do than this one. */
        w->result = disk_sync(w->disk, w->file);
        return false;
    }
    *outcome = d->is_over ? d->outcome : maildir_end_file(d);
    forget_delivery(delivery);
    return true;
}

void
maildir_stop(struct maildir_delivery **delivery)
{
    struct maildir_delivery *d = *delivery;
    if (d == NULL)
        return;
    if (!d->is_over && d->content >= 0)
        queue_content_close(d->queue, d->content);
    if (!d->is_over) {
        buffer_free(&d->writing.out);
        disk_close_file(d->disk, d->writing.file);
        (void)!disk_unlink(d->disk, d->in_tmp);
    }
    forget_delivery(delivery);
}

/* --- The directory of a mailbox, and the names for which one may be made --------- */

enum {
    PART_MAX = 255,             /* of one expansion, which is a file name */
    NAMES_MAX = 8 * 1024 * 1024 /* bytes of the file of names */
};

/* One part of an address as (part of) a file name. */
static bool
add_part(struct text part, bool lower, struct buffer *out)
{
    if (part.length == 0 || part.length > PART_MAX || part.at[0] == '.' ||
        text_find(part, '/') != TEXT_NONE || text_has_control(part))
        return false;
    if (!buffer_add(out, part))
        return false;
    if (lower)
        text_lower(out->at + out->length - part.length, part.length);
    return true;
}

static bool
add_local(const struct address *address, bool lower, struct buffer *out)
{
    struct buffer local;
    buffer_init(&local, PART_MAX);
    bool good = address_write_local(address, &local) &&
                add_part(buffer_text(&local), lower, out);
    buffer_free(&local);
    return good;
}

bool
maildir_path(const struct target *target, const struct address *address, bool lower,
             struct buffer *out)
{
    assert(target->kind == TARGET_MAILDIR);
    for (const char *at = target->path; *at != '\0'; at++) {
        bool good;
        if (*at != '%' || at[1] == '\0')
            good = buffer_add_byte(out, *at);
        else if (*++at == 'u')
            good = add_local(address, lower, out);
        else if (*at == 'd')
            good = add_part(address->domain, true, out);
        else
            good = buffer_add_byte(out, *at);
        if (!good)
            return false;
    }
    return true;
}

struct address
maildir_without_tag(const struct address *address)
{
    struct address user = *address;
    size_t plus = user.local.length > 0 && user.local.at[0] != '"'
                      ? text_find(user.local, '+')
                      : TEXT_NONE;
    if (plus != TEXT_NONE && plus > 0)
        user.local = text_before(user.local, plus);
    return user;
}

void
maildir_root(const struct target *target, char root[TARGET_PATH_MAX])
{
    struct text path = text_from(target->path);
    size_t percent = text_find(path, '%');
    assert(target->kind == TARGET_MAILDIR);
    if (percent != TEXT_NONE)
        path = text_before(path, text_find_last(text_before(path, percent), '/') + 1);
    (void)!text_copy(root, TARGET_PATH_MAX, path);
}

/* The operator has configured a Maildir for all recipients, so it always exists. */
bool
maildir_may_be_made(const struct target *target)
{
    return target->create || strchr(target->path, '%') == NULL;
}

/* '+' and '-' begin entries that glibc takes from NIS. */
static bool
is_line_of(struct text line, struct text name)
{
    line = text_trim(text_before(line, text_find(line, ':')));
    return line.length > 0 && line.at[0] != '+' && line.at[0] != '-' &&
           line.at[0] != '#' && text_equal_nocase(line, name);
}

/* As maildir_may_make(). The file is read on each question, which is seldom: only for a
 * mailbox that does not exist. */
static int
names_have(const char *file, struct text name)
{
    char *content;
    size_t length;
    bool found = false;
    if (text_equal_nocase(name, TEXT("postmaster")))
        return 1;
    int result = disk_read_regular(file, NAMES_MAX, &content, &length);
    if (result < 0)
        return result == -ENOENT ? 0 : result;
    struct text rest = text_of(content, length), line;
    while (!found && text_cut(&rest, '\n', &line))
        found = is_line_of(line, name);
    free(content);
    return found;
}

int
maildir_may_make(const struct target *target, const struct address *address)
{
    struct buffer local;
    if (!maildir_may_be_made(target))
        return 0;
    if (target->users[0] == '\0' || strstr(target->path, "%u") == NULL)
        return 1;
    buffer_init(&local, PART_MAX);
    int result = address_write_local(address, &local)
                     ? names_have(target->users, buffer_text(&local))
                     : 0;
    buffer_free(&local);
    return result;
}
