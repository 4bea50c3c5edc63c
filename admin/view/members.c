/* Reads members of structs. */
#include "admin/view/members.h"

#include "admin/view/listing.h"

int64_t
members_number(const struct member *m, const void *from)
{
    const void *at = (const char *)from + m->offset;
    switch (m->kind) {
    case MEMBER_IS_BOOL:
        return *(const bool *)at;
    case MEMBER_IS_NUMBER:
        return m->size == sizeof(int32_t) ? *(const int32_t *)at : *(const int64_t *)at;
    case MEMBER_IS_COUNT:
        return m->size == sizeof(uint32_t) ? *(const uint32_t *)at
                                           : (int64_t) * (const uint64_t *)at;
    case MEMBER_IS_WORD:
    case MEMBER_IS_CHARS:
    case MEMBER_IS_TEXT:
        break;
    }
    return 0;
}

static json_t *
members_value(const struct member *m, const void *from)
{
    const void *at = (const char *)from + m->offset;
    switch (m->kind) {
    case MEMBER_IS_BOOL:
        return json_boolean(*(const bool *)at);
    case MEMBER_IS_WORD:
        return json_string(*(const char *const *)at);
    case MEMBER_IS_CHARS:
        return json_string(at);
    case MEMBER_IS_TEXT:
        return listing_text(text_from(*(const char *const *)at));
    case MEMBER_IS_NUMBER:
    case MEMBER_IS_COUNT:
        break;
    }
    return json_integer(members_number(m, from));
}

void
members_put(json_t *object, const struct member *members, size_t count,
            const void *from)
{
    for (size_t i = 0; i < count; i++)
        json_object_set_new(object, members[i].name, members_value(&members[i], from));
}
