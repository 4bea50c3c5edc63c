/* Fuzz target: the files of one message in a spool, with right lengths and checksums
 * for any content, our own or (for root) another user's. A queue opens on them as at a
 * start, loads what it finds, settles and defers it, and opens once more. */
#include "queue/queue.h"

#include "base/crc.h"
#include "base/log/log_internal.h"
#include "base/loop/loop.h"
#include "queue/queue_fragments.h"

#include "t/support/must.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FORM_MAX = 1024 * 1024, LENGTH_LINE = 18, NOBODY = 65534, TURNS = 12 };
enum { WITH_JOURNAL = 1, FOREIGN = 2, HELD = 4 };

static const struct id id = {.time_ms = 1700000000000, .hash = 0x1234567890};
static char home[64];

/* --- Files ------------------------------------------------------------------------ */

static void
path_of(const char *dir, char out[128])
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    snprintf(out, 128, "%s/%s/%s", home, dir, name);
}

static void
put(const char *dir, struct text bytes, bool foreign)
{
    char path[128];
    path_of(dir, path);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    must(file >= 0 && write(file, bytes.at, bytes.length) == (ssize_t)bytes.length);
    must(!foreign || fchown(file, NOBODY, NOBODY) == 0);
    close(file);
}

/* Title, due slot, length and trailer around the records. */
static void
forge(const char *dir, const char *title, struct text records, bool foreign)
{
    struct buffer out;
    char name[ID_LENGTH + 1], slot[ENVELOPE_DUE_SIZE];
    struct envelope due = {.id = id, .delivery.due_ms = 1700000001000, .delivery.attempts = 3};
    if (records.length == 0)
        return;
    buffer_init(&out, FORM_MAX);
    id_format(id, name);
    must(buffer_format(&out, "%s", title));
    envelope_write_due(&due, slot);
    if (strncmp(title, "petrel-info", 11) == 0)
        must(buffer_add(&out, text_of(slot, sizeof(slot))));
    size_t start = out.length;
    must(buffer_format(&out, "length %010zu\n",
                       start + LENGTH_LINE + records.length + 17) &&
         buffer_add(&out, records));
    uint32_t crc = crc_add(crc_add(0, name, ID_LENGTH), title, strlen(title));
    crc = crc_add(crc, out.at + start, out.length - start);
    must(buffer_format(&out, "crc %08" PRIx32 "\nend\n", crc));
    put(dir, buffer_text(&out), foreign);
    buffer_free(&out);
}

static void
sweep(void)
{
    static const char *const dirs[] = {"mess",   "todo",   "intd", "info",  "local",
                                        "remote", "bounce", "hold", "defrag"};
    char path[128], corrupt[200];
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        path_of(dirs[i], path);
        (void)unlink(path);
    }
    static const char *const tails[] = {"note",  "mess",   "todo",   "intd", "info",
                                        "local", "remote", "bounce", "hold"};
    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        path_of("corrupt", path);
        snprintf(corrupt, sizeof(corrupt), "%s.%s", path, tails[i]);
        (void)unlink(corrupt);
    }
}

/* --- A queue ---------------------------------------------------------------------- */

struct life {
    struct loop *loop;
    struct log *log;
    struct buffer lines;
    struct queue *queue;
    unsigned found;
};

static void
on_found(void *context, const struct queue_entry *entry)
{
    struct life *l = context;
    must(id_compare(entry->id, id) == 0);
    l->found++;
}

static void
work_on(struct life *l)
{
    struct envelope *e = queue_load(l->queue, id);
    if (e == NULL)
        return;
    must(e->count <= ENVELOPE_RECIPIENTS_MAX && e->birth_ms >= 0);
    int content = queue_content_open(l->queue, e);
    if (content >= 0)
        queue_content_close(l->queue, content);
    if (e->delivery.done < e->count) {
        unsigned i = 0;
        while (e->recipients[i].done)
            i++;
        struct failure failure = {
            .recipient = i,
            .outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1", "no")};
        queue_settle(l->queue, e, i, i % 2 ? &failure : NULL);
    }
    if (e->delivery.done < e->count)
        queue_defer(l->queue, &e, 1700000002000, e->delivery.attempts + 1);
    else
        queue_retire(l->queue, &e);
}

static void
live(bool with_journal)
{
    struct life l = {.loop = loop_new()};
    char error[300];
    struct queue_settings settings = {.spool = home,
                                      .slices = 1,
                                      .message_size_limit = FORM_MAX,
                                      .bytes_reserve = 1,
                                      .inodes_reserve = 1,
                                      .journal_size = with_journal ? 256 * 1024 : 0,
                                      .sync_blocks = true};
    l.log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    buffer_init(&l.lines, FORM_MAX);
    log_capture(l.log, &l.lines);
    must(queue_open(&l.queue, l.loop, l.log, &settings, on_found, &l, error,
                    sizeof(error)) == 0);
    for (unsigned i = 0; i < TURNS; i++)
        loop_turn(l.loop, 0);
    if (l.found > 0)
        work_on(&l);
    for (unsigned i = 0; i < TURNS; i++)
        loop_turn(l.loop, 0);
    struct id *made;
    (void)queue_made(l.queue, &made);
    free(made);
    queue_close(&l.queue);
    log_free(&l.log);
    buffer_free(&l.lines);
    loop_free(&l.loop);
}

static struct text
part(struct text *rest)
{
    const char *at =
        rest->length > 0 ? memmem(rest->at, rest->length, "\n--\n", 4) : NULL;
    size_t length = at ? (size_t)(at - rest->at) + 1 : rest->length;
    struct text one = text_before(*rest, length);
    *rest = text_after(*rest, at ? length + 3 : length);
    return one;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (home[0] == '\0') {
        snprintf(home, sizeof(home), "/dev/shm/petrel-spool-XXXXXX");
        must(mkdtemp(home) != NULL);
        live(false);
    }
    if (size == 0)
        return 0;
    struct text rest = text_of(data + 1, size - 1);
    bool foreign = (data[0] & FOREIGN) != 0 && geteuid() == 0;
    put("mess", part(&rest), foreign);
    forge("todo", "petrel-todo   1\n", part(&rest), foreign);
    forge("info", "petrel-info   1\n", part(&rest), false);
    forge("local", "petrel-local  1\n", part(&rest), false);
    forge("remote", "petrel-remote 1\n", part(&rest), false);
    if (rest.length > 0)
        put("bounce", rest, false);
    if ((data[0] & HELD) != 0)
        put("hold", TEXT("1 x\n"), false);
    live((data[0] & WITH_JOURNAL) != 0);
    live((data[0] & WITH_JOURNAL) == 0);
    sweep();
    return 0;
}
