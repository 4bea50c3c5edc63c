/* The options that `listen` and `http` have alike. */
#include "base/net_place.h"

/* Three octal digits, optionally after a 0. */
static bool
net_users_read_mode(struct text digits, unsigned *mode)
{
    *mode = 0;
    for (size_t i = 0; i < digits.length; i++) {
        if (digits.at[i] < '0' || digits.at[i] > '7')
            return false;
        *mode = *mode * 8 + (unsigned)(digits.at[i] - '0');
    }
    return digits.length >= 3 && digits.length <= 4 && *mode > 0 && *mode <= 0777;
}

const char *
net_users_read(struct net_users *users, const struct net_address *address,
               struct text option)
{
    uint64_t uid;
    if (address->family != NET_UNIX)
        return "only allowed for unix:PATH";
    if (text_starts(option, TEXT("mode=")))
        return net_users_read_mode(text_after(option, 5), &users->mode)
                   ? NULL
                   : "the mode of a socket is like 0660";
    /* UINT32_MAX is no user: SERVER_NO_UID. */
    if (!text_number(text_after(option, 4), UINT32_MAX - 1, &uid))
        return "not a user id; use uid=NUMBER, once for each";
    if (users->uid_count == NET_USERS_MAX)
        return "too many user ids: use a group and mode=0660";
    users->uids[users->uid_count++] = (unsigned)uid;
    return NULL;
}

bool
net_users_have(const struct net_users *users, unsigned uid)
{
    for (size_t i = 0; i < users->uid_count; i++)
        if (users->uids[i] == uid)
            return true;
    return users->uid_count == 0;
}

bool
net_option_is_repeated(struct text options, struct text option)
{
    struct text other, name = text_before(option, text_find(option, '='));
    while (text_word(&options, "&", &other) && other.at != option.at)
        if (text_equal(text_before(other, text_find(other, '=')), name))
            return !text_equal(name, TEXT("uid"));
    return false;
}

bool
net_address_is_taken(const struct net_address *a, const struct net_address *b)
{
    bool has_port = a->family == NET_IPV4 || a->family == NET_IPV6;
    return net_address_equal(a, b) && (!has_port || a->port != 0);
}
