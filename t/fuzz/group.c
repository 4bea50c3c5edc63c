/* Fuzz target: questions to the bank of a slice, by any process that may open its socket, and the file and lists of
 * members. A question is a line, its words are divided by blanks; an empty line lets a second go by. Answers are fit
 * for a group: numbers within their bounds. */
#include "queue/group/group_answer.h"
#include "queue/group/group_internal.h"

#include "base/memory.h"
#include "t/support/must.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_answer(struct text answer)
{
    static const uint64_t most[] = {BANK_COUNT_MAX, BANK_COUNT_MAX, BANK_COUNT_MAX, BANK_COUNT_MAX, (BANK_AHEAD_PERIODS + 1) * BANK_PERIOD_US};
    struct text word;
    uint64_t number;
    size_t count = 0;
    while (text_word(&answer, " ", &word))
        must(text_number(word, most[count++ % 5], &number));
    must(count > 0 && count % 5 == 0);
}

static void
ask_line(struct bank *bank, int64_t now_us, struct text line)
{
    const char *words[GROUP_WORDS_MAX];
    char *copy = text_string(line);
    struct text rest = text_from(copy), word;
    struct buffer out;
    size_t count = 0;
    while (count < GROUP_WORDS_MAX && text_word(&rest, " ", &word)) {
        words[count++] = word.at;
        copy[word.at - copy + (ptrdiff_t)word.length] = '\0';
        rest = text_from(word.at + word.length + (rest.length > 0));
    }
    buffer_init(&out, 1 << 16);
    size_t sites = bank_sites(bank);
    if (group_answer_grant(bank, now_us, words, count, &out) == NULL)
        check_answer(buffer_text(&out));
    else
        must(out.length == 0 && bank_sites(bank) == sites);
    buffer_free(&out);
    free(copy);
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
    struct text all = text_of((const char *)data, size), rest = all, line;
    struct bank *bank = bank_new();
    int64_t now_us = 0;
    if (memchr(data, '\0', size) == NULL) {
        while (text_cut(&rest, '\n', &line)) {
            ask_line(bank, now_us, line);
            now_us += line.length == 0 ? 1000000 : 1000;
        }
        read_members(all);
    }
    bank_free(&bank);
    return 0;
}
