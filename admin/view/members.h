/* JSON of plain structs, by a table of their members. */
#ifndef ADMIN_VIEW_MEMBERS_H
#define ADMIN_VIEW_MEMBERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum member_kind {
    MEMBER_IS_BOOL,
    MEMBER_IS_NUMBER, /* of 32 or 64 bits */
    MEMBER_IS_COUNT,  /* the same, without a sign */
    MEMBER_IS_WORD,   /* a string of ours; NULL: the member is left out */
    MEMBER_IS_CHARS,
    MEMBER_IS_TEXT /* a string that a peer may have made: escaped */
};

struct member {
    const char *name; /* in JSON */
    enum member_kind kind;
    size_t offset, size;
};

#define MEMBER_OF(type, member, name, kind)                                            \
    {                                                                                  \
        name, kind, offsetof(type, member), sizeof(((type *)0)->member)                \
    }
/* A row for a member of a struct. */
#define MEMBER(type, member, name)                                                     \
    MEMBER_OF(type, member, name, MEMBER_KIND(((type *)0)->member))
#define MEMBER_TEXT(type, member, name) MEMBER_OF(type, member, name, MEMBER_IS_TEXT)
#define MEMBER_KIND(value)                                                             \
    _Generic((value),                                                                  \
        bool: MEMBER_IS_BOOL,                                                          \
        int: MEMBER_IS_NUMBER,                                                         \
        long: MEMBER_IS_NUMBER,                                                        \
        long long: MEMBER_IS_NUMBER,                                                   \
        unsigned: MEMBER_IS_COUNT,                                                     \
        unsigned long: MEMBER_IS_COUNT,                                                \
        unsigned long long: MEMBER_IS_COUNT,                                           \
        const char *: MEMBER_IS_WORD,                                                  \
        char *: MEMBER_IS_CHARS)

/* Sets those members of the object, in the order of the table. */
void members_put(json_t *object, const struct member *members, size_t count,
                 const void *from);
#define MEMBERS_PUT(object, table, from)                                               \
    members_put(object, table, sizeof(table) / sizeof((table)[0]), from)
/* A bool is 0 or 1, a string 0. */
int64_t members_number(const struct member *member, const void *from);

#endif
