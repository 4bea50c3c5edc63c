/* Content piece by piece: prefix, then what is in the queue; and what is wrong with it.
 */
#include "smtp/client/content_reader.h"

#include "base/memory.h"
#include "t/support/queue_kit.h"
#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

static char folder[] = "/tmp/petrel-reader-XXXXXX";

/* All of it; the pieces' sizes are within bounds. */
static enum progress
read_all(struct content_reader *c, struct buffer *out, const char **why)
{
    struct text piece;
    enum progress progress;
    bool good = true;
    while ((progress = content_reader_read(c, &piece, why)) == PROGRESS_MORE)
        good = good && piece.length > 0 && piece.length <= CONTENT_READER_PIECE &&
               buffer_add(out, piece);
    ok_named(good, "pieces");
    return progress;
}

static void
check(struct kit *k, size_t prefix, size_t length)
{
    static const char *const to[] = {"b@b.test", NULL};
    static struct content_reader c;
    char *bytes = memory_new(length + 1), *lines = memory_new(prefix + 1);
    const char *why = NULL;
    struct buffer all;
    buffer_init(&all, 4 * 1024 * 1024);
    memset(lines, 'p', prefix);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (char)(i * 7);
    struct envelope *e =
        queue_kit_accept(k, kit_envelope("a@a.test", to), text_of(bytes, length));
    e->prefix = text_of(lines, prefix);
    ok(content_reader_open(&c, k->queue, e, NULL, &why));
    is_number(read_all(&c, &all, &why), PROGRESS_DONE, "whole");
    ok_named(all.length == prefix + length &&
                 (prefix == 0 || memcmp(all.at, lines, prefix) == 0) &&
                 (length == 0 || memcmp(all.at + prefix, bytes, length) == 0),
             "prefix, then content");
    content_reader_close(&c);
    content_reader_close(&c);

    e->content_crc ^= 1;
    buffer_clear(&all);
    ok(content_reader_open(&c, k->queue, e, NULL, &why));
    is_number(read_all(&c, &all, &why), PROGRESS_BAD, "other bytes");
    is_string(why, "it differs from the stored content", "and it says so");
    content_reader_close(&c);
    e->content_crc ^= 1;
    e->content_size++;
    ok(content_reader_open(&c, k->queue, e, NULL, &why));
    buffer_clear(&all);
    is_number(read_all(&c, &all, &why), PROGRESS_BAD, "fewer than there should be");
    content_reader_close(&c);
    e->content_size--;
    queue_retire(k->queue, &e);
    buffer_free(&all);
    free(bytes);
    free(lines);
}

static void
test_gone(struct kit *k)
{
    static struct content_reader c;
    const char *why = NULL;
    struct envelope *e = envelope_new();
    e->id = (struct id){.time_ms = 1700000000000, .hash = 5};
    ok(!content_reader_open(&c, k->queue, e, NULL, &why));
    ok(why != NULL && why[0] != '\0' && !c.open);
    content_reader_close(&c);
    envelope_free(&e);
}

int
main(void)
{
    struct kit k;
    if (mkdtemp(folder) == NULL)
        abort();
    is_number(queue_kit_open(&k, folder), 0, k.error);
    check(&k, 0, 0);
    check(&k, 30, 1);
    check(&k, 100, CONTENT_READER_PIECE);
    check(&k, CONTENT_READER_PIECE + 1, CONTENT_READER_PIECE + 1);
    check(&k, 100, 1000000);
    test_gone(&k);
    kit_close(&k);
    char command[100];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command) != 0 ? 1 : done();
}
