/* Canonical forms and the DKIM-Signature field.
 *
 * Empty lines at the end of a body do not count (§3.4.4), but which ones are at the end
 * is known only there. They are hashed as they come; the state before the first of them
 * is kept, and is the result if no text follows. So each byte is handled once, however
 * many empty lines a message has.
 *
 * A byte that has a special meaning for the result of a verifier is passed to it
 * exactly as it is: only CRLF ends a line, a lone CR or LF is text. */
#include "mime/auth/dkim.h"

#include "base/crypto/base64.h"
#include "base/crypto/sign.h"
#include "base/memory.h"
#include "mime/header.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_WIDTH = 75, NAME_SIZE = 32 };

/* --- Names ------------------------------------------------------------------------ */

bool
dkim_is_name(struct text t)
{
    struct text label;
    if (t.length == 0 || t.length >= DKIM_NAME_MAX)
        return false;
    while (text_cut(&t, '.', &label)) {
        if (label.length == 0 || label.length > 63 || label.at[0] == '-' ||
            label.at[label.length - 1] == '-')
            return false;
        for (size_t i = 0; i < label.length; i++)
            if (!text_is_digit(label.at[i]) && label.at[i] != '-' &&
                label.at[i] != '_' &&
                !((label.at[i] | 32) >= 'a' && (label.at[i] | 32) <= 'z'))
                return false;
    }
    return true;
}

/* --- The body --------------------------------------------------------------------- */

static void
dkim_flush(struct dkim_body *b)
{
    digest_add(&b->all, text_of(b->bytes, b->pending));
    b->pending = 0;
}

static void
dkim_put(struct dkim_body *b, char c)
{
    if (b->pending == sizeof(b->bytes))
        dkim_flush(b);
    b->bytes[b->pending++] = c;
}

static void
dkim_end_line(struct dkim_body *b)
{
    if (!b->in_line && !b->in_blank) {
        dkim_flush(b);
        b->before_blank = b->all;
        b->in_blank = true;
    }
    dkim_put(b, '\r');
    dkim_put(b, '\n');
    b->in_line = b->after_blank = false;
}

static void
dkim_put_text(struct dkim_body *b, char c)
{
    if (b->after_blank)
        dkim_put(b, ' ');
    dkim_put(b, c);
    b->in_line = true;
    b->after_blank = b->in_blank = false;
}

/* A byte that may end a line or a run of white space. */
static void
dkim_put_special(struct dkim_body *b, char c)
{
    if (b->after_cr) {
        b->after_cr = false;
        if (c == '\n') {
            dkim_end_line(b);
            return;
        }
        dkim_put_text(b, '\r');
    }
    if (c == '\r')
        b->after_cr = true;
    else if (text_is_blank(c))
        b->after_blank = true;
    else
        dkim_put_text(b, c);
}

void
dkim_body_start(struct dkim_body *b)
{
    digest_begin(&b->all);
    b->after_cr = b->after_blank = b->in_line = b->in_blank = false;
    b->pending = 0;
}

void
dkim_body_add(struct dkim_body *b, struct text piece)
{
    for (size_t i = 0; i < piece.length; i++) {
        char c = piece.at[i];
        if (b->in_line && !b->after_cr && !b->after_blank && !text_is_space(c))
            dkim_put(b, c);
        else
            dkim_put_special(b, c);
    }
}

void
dkim_body_end(struct dkim_body *b, unsigned char out[DIGEST_SIZE])
{
    if (b->after_cr)
        dkim_put_text(b, '\r');
    if (b->in_line)
        dkim_end_line(b);
    dkim_flush(b);
    digest_end(b->in_blank ? &b->before_blank : &b->all, out);
}

/* --- Header fields ---------------------------------------------------------------- */

/* How often a name is in h=: n is how often the field occurs. */
enum dkim_how { DKIM_ALWAYS, DKIM_PRESENT, DKIM_AS_OFTEN }; /* n+1; n+1 if n>0; n */

/* Mailing lists add Sender and their List- fields, so that these are not oversigned.
 * Fields that hosts on the way add, change or remove are not signed at all. */
static const struct {
    struct text name;
    enum dkim_how how;
} dkim_names[] = {
    {TEXT("from"),                      DKIM_ALWAYS  },
    {TEXT("reply-to"),                  DKIM_ALWAYS  },
    {TEXT("subject"),                   DKIM_ALWAYS  },
    {TEXT("date"),                      DKIM_ALWAYS  },
    {TEXT("to"),                        DKIM_ALWAYS  },
    {TEXT("cc"),                        DKIM_ALWAYS  },
    {TEXT("message-id"),                DKIM_PRESENT },
    {TEXT("mime-version"),              DKIM_PRESENT },
    {TEXT("content-type"),              DKIM_PRESENT },
    {TEXT("content-transfer-encoding"), DKIM_PRESENT },
    {TEXT("in-reply-to"),               DKIM_PRESENT },
    {TEXT("references"),                DKIM_PRESENT },
    {TEXT("list-unsubscribe"),          DKIM_PRESENT },
    {TEXT("list-unsubscribe-post"),     DKIM_PRESENT },
    {TEXT("sender"),                    DKIM_AS_OFTEN},
    {TEXT("resent-date"),               DKIM_AS_OFTEN},
    {TEXT("resent-from"),               DKIM_AS_OFTEN},
    {TEXT("resent-to"),                 DKIM_AS_OFTEN},
    {TEXT("resent-cc"),                 DKIM_AS_OFTEN},
    {TEXT("list-id"),                   DKIM_AS_OFTEN},
    {TEXT("list-help"),                 DKIM_AS_OFTEN},
    {TEXT("list-owner"),                DKIM_AS_OFTEN},
    {TEXT("list-subscribe"),            DKIM_AS_OFTEN},
    {TEXT("list-post"),                 DKIM_AS_OFTEN},
    {TEXT("list-archive"),              DKIM_AS_OFTEN},
    {TEXT("feedback-id"),               DKIM_AS_OFTEN},
    {TEXT("auto-submitted"),            DKIM_AS_OFTEN},
};
enum { DKIM_NAMES = sizeof(dkim_names) / sizeof(dkim_names[0]), DKIM_FROM = 0 };

struct dkim_fields {
    struct {
        struct text value[DKIM_INSTANCES_MAX];
        unsigned count;
    } of[DKIM_NAMES];
};

/* §3.4.2: unfolded, each run of white space one space, none at both ends. Only a CRLF
 * between lines is folding, and no other stands in a header that is signed. */
static void
dkim_hash_field(struct digest *d, struct text name, struct text value)
{
    char bytes[DKIM_PENDING];
    size_t used = 0;
    bool after_blank = false;
    value = text_trim(value);
    digest_add(d, name);
    digest_add(d, TEXT(":"));
    for (size_t i = 0; i < value.length; i++) {
        char c = value.at[i];
        if (used + 2 > sizeof(bytes)) {
            digest_add(d, text_of(bytes, used));
            used = 0;
        }
        if (text_is_space(c)) {
            after_blank = true;
            continue;
        }
        if (after_blank)
            bytes[used++] = ' ';
        after_blank = false;
        bytes[used++] = c;
    }
    digest_add(d, text_of(bytes, used));
}

/* -1: it is never signed. */
static int
dkim_find_name(struct text name)
{
    for (int i = 0; i < (int)DKIM_NAMES; i++)
        if (text_equal_nocase(name, dkim_names[i].name))
            return i;
    return -1;
}

/* Verifiers disagree where a field ends that has another line end than CRLF. */
static bool
dkim_is_clean(struct text header)
{
    for (size_t i = 0; i < header.length; i++) {
        bool is_end =
            header.at[i] == '\r' && i + 1 < header.length && header.at[i + 1] == '\n';
        if (is_end)
            i++;
        else if (header.at[i] == '\r' || header.at[i] == '\n' || header.at[i] == '\0')
            return false;
    }
    return true;
}

/* NULL, or why the header is not signed. */
static const char *
dkim_collect(struct dkim_fields *fields, struct text header)
{
    struct header_field f;
    if (header.length > DKIM_HEADER_MAX)
        return "its header is longer than 256 KiB";
    if (!dkim_is_clean(header))
        return "its header has a bare CR or LF, or a NUL";
    while (header_next(&header, &f)) {
        int which = dkim_find_name(f.name);
        if (which < 0)
            continue;
        unsigned *count = &fields->of[which].count;
        if (*count == DKIM_INSTANCES_MAX)
            return "it has a field more than 10 times that is signed";
        fields->of[which].value[(*count)++] = f.value;
    }
    if (header.length > 0)
        return "its header has a line that is not a field";
    if (fields->of[DKIM_FROM].count != 1)
        return fields->of[DKIM_FROM].count == 0 ? "it has no From"
                                                : "it has more than one From";
    return NULL;
}

static void
dkim_keep_author(void *context, const struct address_place *place)
{
    struct buffer *author = context;
    if (author->length == 0)
        (void)!buffer_add(author, place->mailbox);
}

/* A mail reader may show an address where we read none. */
static const char *
dkim_read_author(struct buffer *author, struct text value)
{
    struct buffer unfolded;
    buffer_init(&unfolded, DKIM_HEADER_MAX);
    bool good = header_unfold(value, &unfolded) &&
                address_list_read(buffer_text(&unfolded), dkim_keep_author, NULL,
                                  author) == 0 &&
                author->length > 0;
    buffer_free(&unfolded);
    return good ? NULL : "its From is malformed";
}

static void
dkim_add_name(struct buffer *names, struct text name)
{
    bool fits =
        (names->length == 0 || buffer_add_byte(names, ':')) && buffer_add(names, name);
    assert(fits);
}

/* The last instance first (§5.4.2): fields added on the way stand above. */
static void
dkim_choose(struct dkim_header *h, const struct dkim_fields *fields)
{
    digest_begin(&h->fields);
    for (size_t i = 0; i < DKIM_NAMES; i++) {
        unsigned count = fields->of[i].count;
        for (unsigned k = count; k > 0; k--) {
            dkim_add_name(&h->names, dkim_names[i].name);
            dkim_hash_field(&h->fields, dkim_names[i].name, fields->of[i].value[k - 1]);
            digest_add(&h->fields, TEXT("\r\n"));
        }
        if (dkim_names[i].how == DKIM_ALWAYS ||
            (dkim_names[i].how == DKIM_PRESENT && count > 0))
            dkim_add_name(&h->names, dkim_names[i].name);
    }
}

bool
dkim_header_read(struct dkim_header *h, struct text header, const char **why)
{
    struct dkim_fields *fields = memory_new(sizeof(*fields));
    buffer_init(&h->names, DKIM_FIELD_MAX);
    buffer_init(&h->author, DKIM_ADDRESS_MAX);
    *why = dkim_collect(fields, header);
    if (*why == NULL)
        *why = dkim_read_author(&h->author, fields->of[DKIM_FROM].value[0]);
    if (*why == NULL)
        dkim_choose(h, fields);
    else
        dkim_header_free(h);
    free(fields);
    return *why == NULL;
}

void
dkim_header_free(struct dkim_header *h)
{
    buffer_free(&h->names);
    buffer_free(&h->author);
}

/* --- The field -------------------------------------------------------------------- */

static const char dkim_name[] = "DKIM-Signature:";

static void
dkim_write(struct buffer *out, struct text t)
{
    bool fits = buffer_add(out, t);
    assert(fits);
}

static size_t
dkim_column(const struct buffer *out)
{
    size_t end = text_find_last(buffer_text(out), '\n');
    return end == TEXT_NONE ? out->length : out->length - end - 1;
}

/* item stays in one piece, behind `space` or at the beginning of a line. */
static void
dkim_write_item(struct buffer *out, const char *space, struct text item)
{
    bool fits = dkim_column(out) + strlen(space) + item.length <= LINE_WIDTH;
    dkim_write(out, fits ? text_from(space) : TEXT("\r\n\t"));
    dkim_write(out, item);
}

static void
dkim_write_tag(struct buffer *out, const char *name, struct text value)
{
    char item[300];
    int length = snprintf(item, sizeof(item), "%s=%.*s;", name, TEXT_ARGS(value));
    assert(length > 0 && (size_t)length < sizeof(item));
    dkim_write_item(out, " ", text_of(item, (size_t)length));
}

/* Folding is allowed at each colon (§3.5, h=). */
static void
dkim_write_names(struct buffer *out, struct text names)
{
    struct text name;
    char item[NAME_SIZE];
    for (const char *before = "h="; text_cut(&names, ':', &name); before = "") {
        int length = snprintf(item, sizeof(item), "%s%.*s%s", before, TEXT_ARGS(name),
                              names.at == NULL ? ";" : ":");
        assert(length > 0 && (size_t)length < sizeof(item));
        dkim_write_item(out, *before ? " " : "", text_of(item, (size_t)length));
    }
}

void
dkim_field_begin(const struct dkim_header *h, const struct dkim_tags *tags,
                 struct buffer *out, unsigned char digest[DIGEST_SIZE])
{
    char number[24];
    struct buffer body;
    struct digest d = h->fields;
    assert(out->length == 0 && out->limit >= DKIM_FIELD_MAX);
    buffer_init(&body, BASE64_LENGTH(DIGEST_SIZE) + 1);
    bool fits = base64_encode(text_of(tags->body, DIGEST_SIZE), &body);
    assert(fits);
    snprintf(number, sizeof(number), "%" PRId64, tags->time_s);
    dkim_write(out, text_from(dkim_name));
    dkim_write_tag(out, "v", TEXT("1"));
    dkim_write_tag(out, "a", text_from(tags->algorithm));
    dkim_write_tag(out, "c", TEXT("relaxed/relaxed"));
    dkim_write_tag(out, "d", text_from(tags->domain));
    dkim_write_tag(out, "s", text_from(tags->selector));
    dkim_write_tag(out, "t", text_from(number));
    dkim_write_names(out, buffer_text(&h->names));
    dkim_write_tag(out, "bh", buffer_text(&body));
    dkim_write(out, TEXT("\r\n\tb="));
    buffer_free(&body);
    dkim_hash_field(&d, TEXT("dkim-signature"),
                    text_after(buffer_text(out), strlen(dkim_name)));
    digest_end(&d, digest);
}

/* White space in the value of b= does not count (§3.5). */
void
dkim_field_end(struct buffer *out, struct text signature)
{
    struct buffer packed;
    assert(signature.length <= SIGN_SIZE_MAX);
    buffer_init(&packed, BASE64_LENGTH(SIGN_SIZE_MAX) + 1);
    bool fits = base64_encode(signature, &packed);
    assert(fits);
    for (struct text rest = buffer_text(&packed); rest.length > 0;) {
        size_t space = LINE_WIDTH - dkim_column(out);
        dkim_write(out, text_before(rest, space));
        rest = text_after(rest, space);
        if (rest.length > 0)
            dkim_write(out, TEXT("\r\n\t"));
    }
    dkim_write(out, TEXT("\r\n"));
    buffer_free(&packed);
}

/* --- Published records ------------------------------------------------------------ */

static const char spaces[] = " \t\r\n";

struct key_tags {
    struct text version, kind, key, hashes, services;
};

/* The name of a tag counts in its case (§3.2). False: it is not a tag, or twice there. */
static bool
take_tag(struct key_tags *tags, struct text item, unsigned *seen)
{
    static const char names[] = "vkphs";
    struct text *const places[] = {&tags->version, &tags->kind, &tags->key,
                                   &tags->hashes, &tags->services};
    size_t equals = text_find(item, '=');
    struct text name = text_trim(text_before(item, equals));
    if (equals == TEXT_NONE || name.length == 0)
        return false;
    for (unsigned i = 0; name.length == 1 && i < sizeof(names) - 1; i++) {
        if (name.at[0] != names[i])
            continue;
        if (*seen & 1U << i)
            return false;
        *seen |= 1U << i;
        *places[i] = text_trim(text_after(item, equals + 1));
    }
    return true;
}

/* v= must be the first one (§3.6.1). */
static bool
read_key_tags(struct text record, struct key_tags *tags)
{
    struct text item;
    unsigned seen = 0;
    *tags = (struct key_tags){.version = TEXT("DKIM1"),
                              .kind = TEXT("rsa"),
                              .hashes = TEXT("sha256"),
                              .services = TEXT("*")};
    for (bool first = true; text_cut(&record, ';', &item); first = false) {
        bool had_version = seen & 1U;
        if (text_trim(item).length == 0 && record.at == NULL) /* behind the last ; */
            break;
        if (!take_tag(tags, item, &seen) || (!first && !had_version && seen & 1U))
            return false;
    }
    return text_equal(tags->version, TEXT("DKIM1")) && seen & 1U << 2;
}

/* White space within a key does not count. */
static bool
is_same_key(struct text published, struct text key)
{
    struct text word;
    while (text_word(&published, spaces, &word)) {
        if (!text_starts(key, word))
            return false;
        key = text_after(key, word.length);
    }
    return key.length == 0;
}

/* A list with colons has one of them. */
static bool
list_has(struct text list, struct text one, struct text other)
{
    struct text item;
    while (text_cut(&list, ':', &item)) {
        item = text_trim(item);
        if (text_equal_nocase(item, one) || text_equal_nocase(item, other))
            return true;
    }
    return false;
}

enum dkim_record
dkim_record_judge(const struct text *texts, size_t count, struct text kind,
                  struct text key)
{
    struct key_tags tags;
    if (count != 1)
        return count == 0 ? DKIM_RECORD_NONE : DKIM_RECORD_SEVERAL;
    if (!read_key_tags(texts[0], &tags))
        return DKIM_RECORD_MALFORMED;
    if (tags.key.length == 0)
        return DKIM_RECORD_REVOKED;
    if (!text_equal_nocase(tags.kind, kind))
        return DKIM_RECORD_OTHER_KIND;
    if (!is_same_key(tags.key, key))
        return DKIM_RECORD_OTHER_KEY;
    if (!list_has(tags.hashes, TEXT("sha256"), TEXT("sha256")) ||
        !list_has(tags.services, TEXT("email"), TEXT("*")))
        return DKIM_RECORD_OTHER_USE;
    return DKIM_RECORD_FITS;
}

const char *
dkim_record_words(enum dkim_record r)
{
    static const char *const words[] = {
        [DKIM_RECORD_FITS] = "fits the key",
        [DKIM_RECORD_NONE] = "has no TXT record",
        [DKIM_RECORD_SEVERAL] = "has more than one TXT record",
        [DKIM_RECORD_MALFORMED] = "has a TXT record that is not one of DKIM",
        [DKIM_RECORD_REVOKED] = "has a revoked key (p= is empty)",
        [DKIM_RECORD_OTHER_KIND] = "has a key of another kind (k=)",
        [DKIM_RECORD_OTHER_KEY] = "has another key (p=)",
        [DKIM_RECORD_OTHER_USE] = "has a key that is not for mail (h=, s=)",
    };
    return words[r];
}
