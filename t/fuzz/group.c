/* Fuzz target: questions to the bank of a slice, by any process that may open its socket, and the file and lists of
 * members. Questions are as memory has them; between two that are alike a second goes by. Answers are fit for a group:
 * numbers within their bounds. */
#include "queue/group/group_internal.h"
#include "queue/group/group_lead.h"

#include "base/memory.h"
#include "t/support/must.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte of each key is the number of questions that are asked together. */
static size_t
ask_some(struct bank *bank, int64_t now_us, const uint8_t *data, size_t size)
{
    static struct group_ask asks[GROUP_ASK_MAX];
    static struct bank_grant grants[GROUP_ASK_MAX];
    size_t count = 1 + data[0] % 4, sites = bank_sites(bank);
    count = count * sizeof(*asks) <= size ? count : 1;
    memcpy(asks, data, count * sizeof(*asks));
    if (!group_lead_grant(bank, now_us, asks, count, grants))
        must(bank_sites(bank) == sites);
    else
        for (size_t i = 0; i < count; i++)
            must(bank_grant_is_sound(&grants[i]));
    return count * sizeof(*asks);
}

static void
note_change(void *context, const char *name, enum group_change change)
{
    (void)context;
    (void)change;
    must(*name != '\0' && strcmp(name, "own") != 0);
}

static void
read_members(struct text file)
{
    static struct group_members m, again;
    struct buffer written;
    group_members_init(&m, "own", 0);
    group_members_recall(&m, "mail", file, 0);
    (void)!group_members_read(&m, file, 1000, note_change, NULL);
    must(m.count >= 1 && m.count <= GROUP_HOSTS_MAX && m.forgotten_count <= GROUP_FORGOTTEN_MAX);
    buffer_init(&written, 1 << 20);
    group_members_write(&m, "mail", &written);
    group_members_init(&again, "own", 0);
    group_members_recall(&again, "mail", buffer_text(&written), 0);
    must(again.count == m.count && again.forgotten_count == m.forgotten_count);
    buffer_free(&written);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bank *bank = bank_new();
    int64_t now_us = 0;
    for (size_t at = 0; size - at >= sizeof(struct group_ask); now_us += 1000000)
        at += ask_some(bank, now_us, data + at, size - at);
    if (memchr(data, '\0', size) == NULL)
        read_members(text_of((const char *)data, size));
    bank_free(&bank);
    return 0;
}
