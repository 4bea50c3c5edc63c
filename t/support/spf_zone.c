/* Answers from a list of lines. */
#include "t/support/spf_zone.h"

#include "base/memory.h"

#include <stdio.h>
#include <string.h>

enum { ARENA_MAX = 64 * 1024 * 1024, CHAIN_MAX = 10 };

void
spf_zone_init(struct spf_zone *zone)
{
    memset(zone, 0, sizeof(*zone));
    arena_init(&zone->arena, ARENA_MAX);
}

/* \xx becomes an octet. */
struct text
spf_zone_unescape(struct spf_zone *zone, struct text t)
{
    char *out = arena_get(&zone->arena, t.length + 1);
    size_t length = 0;
    for (size_t i = 0; i < t.length; i++) {
        if (t.at[i] == '\\' && i + 2 < t.length) {
            out[length++] =
                (char)(text_hex_digit(t.at[i + 1]) * 16 + text_hex_digit(t.at[i + 2]));
            i += 2;
        } else {
            out[length++] = t.at[i];
        }
    }
    return text_of(out, length);
}

void
spf_zone_add(struct spf_zone *zone, struct text line)
{
    if (zone->count < SPF_ZONE_LINES)
        zone->lines[zone->count++] = (struct spf_zone_line){
            spf_zone_unescape(zone, text_before(line, text_find(line, ' '))),
            arena_copy(&zone->arena, text_after(line, text_find(line, ' ') + 1))};
}

void
spf_zone_free(struct spf_zone *zone)
{
    arena_free(&zone->arena);
}

/* Whether the line is of that name; then its type and value. */
static bool
spf_zone_read(const struct spf_zone_line *line, struct text name, struct text *type,
              struct text *value)
{
    size_t space = text_find(line->rest, ' ');
    if (!text_equal_nocase(line->name, name))
        return false;
    *type = text_before(line->rest, space == TEXT_NONE ? line->rest.length : space);
    *value = space == TEXT_NONE ? TEXT("") : text_after(line->rest, space + 1);
    return true;
}

static struct text
spf_zone_follow(struct spf_zone *zone, struct text name)
{
    struct text type, value;
    for (size_t chain = 0, i = 0; i < zone->count && chain < CHAIN_MAX; i++)
        if (spf_zone_read(&zone->lines[i], name, &type, &value) &&
            text_equal(type, TEXT("CNAME"))) {
            name = value;
            chain++;
            i = SIZE_MAX;
        }
    return name;
}

static void
spf_zone_take(struct spf_zone *zone, struct spf_answer *answer, enum spf_type asked,
              struct text type, struct text value)
{
    static const char *const types[] = {[SPF_TEXTS] = "TXT", [SPF_EXCHANGERS] = "MX"};
    if (answer->count == SPF_ZONE_ANSWER)
        return;
    if (asked == SPF_ADDRESSES) {
        if (!text_equal(type, TEXT("A")) && !text_equal(type, TEXT("AAAA")))
            return;
        struct net_address *list = (struct net_address *)(uintptr_t)answer->addresses;
        if (net_address_parse_ip(value, &list[answer->count]))
            answer->count++;
    } else if (text_equal(type, text_from(types[asked]))) {
        struct text *list =
            (struct text *)(uintptr_t)(asked == SPF_TEXTS ? answer->texts
                                                          : answer->hosts);
        list[answer->count++] = spf_zone_unescape(zone, value);
    }
}

static bool
spf_zone_is_new(struct spf_zone *zone, enum spf_type type, const char *name)
{
    char key[SPF_NAME_MAX + 16];
    snprintf(key, sizeof(key), "%d %s", (int)type, name);
    for (size_t i = 0; i < zone->seen_count; i++)
        if (strcmp(zone->seen[i], key) == 0)
            return false;
    if (zone->seen_count < 200)
        memcpy(zone->seen[zone->seen_count++], key, sizeof(key));
    zone->asked++;
    return true;
}

const struct spf_answer *
spf_zone_look_up(void *context, enum spf_type type, const char *name)
{
    struct spf_zone *zone = context;
    struct spf_answer *answer = arena_get(&zone->arena, sizeof(*answer));
    if (spf_zone_is_new(zone, type, name) && zone->is_slow)
        return NULL;
    struct text real = spf_zone_follow(zone, text_from(name)), kind, value;
    answer->addresses =
        arena_get(&zone->arena, SPF_ZONE_ANSWER * sizeof(*answer->addresses));
    answer->texts = answer->hosts =
        arena_get(&zone->arena, SPF_ZONE_ANSWER * sizeof(*answer->texts));
    for (size_t i = 0; i < zone->count; i++) {
        if (!spf_zone_read(&zone->lines[i], real, &kind, &value))
            continue;
        if (text_equal(kind, TEXT("DEAD")))
            answer->found = SPF_UNKNOWN;
        else
            spf_zone_take(zone, answer, type, kind, value);
    }
    if (answer->count > 0 || answer->found != SPF_UNKNOWN)
        answer->found = answer->count > 0 ? SPF_RECORDS : SPF_VOID;
    return answer;
}
