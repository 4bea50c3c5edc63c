/* Fuzz target: what a local user gives to sendmail(1): a line with the arguments, each
 * behind a tab, and a message, which is read but not stored. */
#include "admin/sendmail/flags.h"
#include "admin/sendmail/display_name.h"
#include "admin/sendmail/recipients.h"
#include "mime/address.h"
#include "mime/header.h"

#include "t/support/must.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARGUMENTS = 32, HEADER_MAX = 64 * 1024, NAME_MAX = 250 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *count, char ***arguments);

/* Complaints go nowhere; libFuzzer keeps the stream that it has. */
int
LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    stderr = fopen("/dev/null", "w");
    return 0;
}

static void
add(struct recipients *r, struct text list)
{
    const struct envelope *last = r->envelope;
    unsigned before = last->count;
    bool good = recipients_add(r, list);
    must(good || r->error != NULL);
    must(r->envelope->count <= RECIPIENTS_PER_ENVELOPE);
    for (unsigned i = r->envelope == last ? before : 0; i < r->envelope->count; i++) {
        struct address address;
        struct text kept = r->envelope->recipients[i].address;
        must(!text_has_control(kept) && address_parse(kept, &address));
    }
}

static void
check_name(const char *full_name)
{
    struct buffer out;
    buffer_init(&out, NAME_MAX);
    struct text name = display_name_clean(text_from(full_name), &out);
    must(!text_has_control(name) && text_is_utf8(name));
    buffer_free(&out);
}

static void
check_header(struct recipients *r, struct text message)
{
    struct header_field field;
    struct buffer unfolded;
    size_t taken = 0;
    buffer_init(&unfolded, HEADER_MAX);
    while (header_next(&message, &field)) {
        taken += field.whole.length;
        buffer_clear(&unfolded);
        must(header_unfold(field.value, &unfolded));
        if (text_equal_nocase(field.name, TEXT("To")))
            add(r, buffer_text(&unfolded));
    }
    must(taken <= HEADER_MAX);
    buffer_free(&unfolded);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text rest = text_of(data, size < HEADER_MAX ? size : HEADER_MAX), line, word;
    char *arguments[ARGUMENTS + 1] = {text_string(TEXT("sendmail"))};
    int count = 1;
    struct flags flags;
    struct recipients r = {.envelope = envelope_new(), .hostname = "h.test"};
    (void)!text_cut(&rest, '\n', &line);
    while (count < ARGUMENTS && text_cut(&line, '\t', &word))
        arguments[count++] = text_string(word);
    if (flags_parse(&flags, count, arguments) == 0) {
        check_name(flags.full_name);
        for (int i = 0; i < flags.recipient_count; i++)
            add(&r, text_from(flags.recipients[i]));
        if (flags.from_header)
            check_header(&r, rest);
    }
    recipients_free(&r);
    for (int i = 0; i < count; i++)
        free(arguments[i]);
    return 0;
}
