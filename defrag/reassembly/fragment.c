/* Recognises fragments by the header of the message.
 *
 * A message that breaks the rules is malformed and passes. It is not repaired: no set
 * begins on a number or total that may be wrong. The whole header is read, not only its
 * first Content-Type, since a second one makes the type ambiguous. */
#include "defrag/reassembly/fragment.h"

#include "mime/header.h"
#include "mime/parts/parameter.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The fields that matter, and how the header ended. */
struct found {
    struct parameters type; /* of the first */
    unsigned types;
    bool any_partial, encoded, versioned;
    bool ended_well; /* by an empty line, or with the message */
    bool cut_off;    /* the header is longer than FRAGMENT_HEADER_MAX */
    size_t body;
};

/* RFC 2046 §5.2.2 wants 7bit; the others that encode nothing are tolerated. */
static bool
encodes(struct text value)
{
    struct text word = parameter_token(&value);
    if (word.length == 0)
        return text_trim(value).length > 0;
    return !text_equal_nocase(word, TEXT("7bit")) &&
           !text_equal_nocase(word, TEXT("8bit")) &&
           !text_equal_nocase(word, TEXT("binary"));
}

static void
found_read_type(struct found *found, struct text value)
{
    struct parameters other = {0}, *type = found->types++ > 0 ? &other : &found->type;
    parameters_read(type, value);
    found->any_partial =
        found->any_partial || parameters_is(type, "message", "partial");
    parameters_free(&other);
}

static void
found_read_field(struct found *found, const struct header_field *field)
{
    if (text_equal_nocase(field->name, TEXT("content-type"))) {
        found_read_type(found, field->value);
    } else if (text_equal_nocase(field->name, TEXT("content-transfer-encoding"))) {
        found->encoded = found->encoded || encodes(field->value);
    } else if (text_equal_nocase(field->name, TEXT("mime-version"))) {
        found->versioned = true;
    }
}

static struct found
find_fields(struct text message)
{
    struct found found = {.ended_well = true};
    struct text head = text_before(message, FRAGMENT_HEADER_MAX), rest = head;
    struct header_field field;
    /* "From SENDER DATE" of an mbox is not a field, and would end the header. */
    header_skip_mailbox_line(&rest);
    size_t fields = head.length - rest.length; /* their length */
    while (header_next(&rest, &field)) {
        found_read_field(&found, &field);
        fields += field.whole.length;
    }
    found.body = head.length - rest.length;
    /* Cuts off the empty line; a line that is not a field stays in place. */
    if (found.body == fields && rest.length > 0)
        found.ended_well = false;
    if (found.body == fields && head.length == FRAGMENT_HEADER_MAX)
        found.cut_off = text_find(rest, '\n') == TEXT_NONE;
    return found;
}

/* NULL: present and valid. */
static const char *
read_count(const struct parameters *p, const char *name, uint32_t *value)
{
    const struct parameter *given = parameters_find(p, name);
    uint64_t number;
    assert(given != NULL);
    struct text digits = text_trim(given->value);
    if (given->twice)
        return "a parameter is given twice with different values";
    if (digits.length > FRAGMENT_DIGITS_MAX ||
        !text_number(digits, UINT32_MAX, &number))
        return "number or total is no number";
    if (number == 0)
        return "numbering begins with 1, not 0";
    *value = (uint32_t)number;
    return NULL;
}

static const char *
read_id(const struct parameters *p, struct fragment_reading *out)
{
    const struct parameter *id = parameters_find(p, "id");
    if (id == NULL || id->value.length == 0)
        return "it has no id";
    if (id->twice)
        return "a parameter is given twice with different values";
    if (id->both)
        out->why = "its id is given plain, which is taken, and in RFC 2231's form";
    /* For a longer one the length alone: objection() lets the message pass. */
    out->id_length = id->value.length;
    if (id->value.length <= FRAGMENT_ID_MAX)
        memcpy(out->id, id->value.at, id->value.length);
    return NULL;
}

/* Why the fragment is malformed; NULL when it is not. */
static const char *
read_parameters(const struct parameters *p, struct fragment_reading *out)
{
    const char *wrong = read_id(p, out);
    if (wrong == NULL && parameters_find(p, "number") == NULL)
        wrong = "it has no number";
    if (wrong == NULL)
        wrong = read_count(p, "number", &out->number);
    if (wrong == NULL && parameters_find(p, "total") != NULL)
        wrong = read_count(p, "total", &out->total);
    if (wrong == NULL && out->total > 0 && out->number > out->total)
        wrong = "its number is above its total";
    return wrong;
}

static const char *
malformation(const struct found *found, struct fragment_reading *out)
{
    if (found->types > 1)
        return "it has two Content-Type fields";
    if (found->encoded)
        return "it is encoded, which message/partial must not be";
    if (!found->ended_well)
        return "its header ends with a line that is no field";
    return read_parameters(&found->type, out);
}

/* Why a well-formed fragment passes nevertheless; NULL: it does not. */
static const char *
objection(const struct fragment_envelope *envelope, const struct fragment_reading *r)
{
    if (envelope->sender.length == 0)
        return "its sender is the null sender";
    if (envelope->binary)
        return "its body is binary";
    if (r->id_length > FRAGMENT_ID_MAX)
        return "its id is too long";
    if (r->number > envelope->parts_max || r->total > envelope->parts_max)
        return "its set has too many parts";
    return NULL;
}

/* Reads a message whose type is message/partial. */
static void
fragment_judge(const struct found *found, const struct fragment_envelope *envelope,
               struct fragment_reading *out)
{
    if (found->cut_off) {
        out->why = "its header is too long";
        return;
    }
    const char *wrong = malformation(found, out);
    const char *against = wrong == NULL ? objection(envelope, out) : NULL;
    if (wrong != NULL || against != NULL) {
        *out = (struct fragment_reading){.kind = wrong != NULL ? FRAGMENT_MALFORMED
                                                               : FRAGMENT_NOT,
                                         .why = wrong != NULL ? wrong : against};
        return;
    }
    out->kind = FRAGMENT_GOOD;
    out->body = found->body;
    if (out->why == NULL && !found->versioned)
        out->why = "it has no MIME-Version";
    assert(out->number >= 1 && out->id_length > 0);
}

void
fragment_read(struct text message, const struct fragment_envelope *envelope,
              struct fragment_reading *out)
{
    struct found found = find_fields(message);
    *out = (struct fragment_reading){.kind = FRAGMENT_NOT};
    if (found.any_partial)
        fragment_judge(&found, envelope, out);
    parameters_free(&found.type);
}

struct text
fragment_id(const struct fragment_reading *reading)
{
    return text_of(reading->id, reading->id_length);
}

/* The length before each text: otherwise texts of other lengths could have the same
 * bytes together, and two sets one key. */
static void
add_counted(struct buffer *to, struct text t)
{
    unsigned char size[4];
    assert(t.length <= UINT32_MAX);
    for (unsigned i = 0; i < sizeof(size); i++)
        size[i] = (unsigned char)(t.length >> (24 - 8 * i));
    bool fits = buffer_add(to, text_of(size, sizeof(size))) && buffer_add(to, t);
    assert(fits);
}

/* The kind is hashed first, so that keys of different kinds are never equal. */
void
fragment_hash(char kind, const struct text *texts, size_t count,
              unsigned char key[DIGEST_SIZE])
{
    struct buffer hashed;
    size_t space = 1;
    for (size_t i = 0; i < count; i++)
        space += 4 + texts[i].length;
    buffer_init(&hashed, space);
    bool fits = buffer_add_byte(&hashed, kind);
    assert(fits);
    for (size_t i = 0; i < count; i++)
        add_counted(&hashed, texts[i]);
    digest_plain(buffer_text(&hashed), key);
    buffer_free(&hashed);
}

void
fragment_key(enum fragment_trust trust, struct text login, struct text sender,
             struct text id, unsigned char key[DIGEST_SIZE])
{
    static const char *const names[] = {"ext", "int", "auth:"};
    char *lowered = text_string(sender);
    size_t at = text_find_last(sender, '@');
    struct buffer trusted;
    /* The local part may be case-sensitive (RFC 5321 §2.4), the domain is not. */
    if (at != TEXT_NONE)
        text_lower(lowered + at, sender.length - at);
    buffer_init(&trusted, login.length + 8);
    bool fits = buffer_add(&trusted, text_from(names[trust])) &&
                (trust != FRAGMENT_LOGIN || buffer_add(&trusted, login));
    assert(fits);
    fragment_hash(
        1, (struct text[]){buffer_text(&trusted), text_of(lowered, sender.length), id},
        3, key);
    buffer_free(&trusted);
    free(lowered);
}
