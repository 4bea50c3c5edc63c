/* Writes the message of `petrel test`. */
#include "admin/control/test_message.h"

#include "mime/date.h"

bool
test_message_write(struct buffer *out, const char *hostname, struct text sender,
                   struct text recipient, int64_t now_ms)
{
    char date[DATE_TEXT_MAX];
    date_format(now_ms, date);
    /* Auto-Submitted: no holiday reply (RFC 3834). */
    return buffer_add(out, TEXT("From: <")) && buffer_add(out, sender) &&
           buffer_add(out, TEXT(">\r\nTo: <")) && buffer_add(out, recipient) &&
           buffer_format(out,
                         ">\r\nSubject: Test of %.255s\r\nAuto-Submitted: "
                         "auto-generated\r\nMIME-Version: 1.0\r\nContent-Type: "
                         "text/plain; charset=us-ascii\r\n\r\n"
                         "This is a test of the mail system of %.255s,\r\n"
                         "made by `petrel test` at %s.\r\n"
                         "It has arrived; nothing needs to be done.\r\n",
                         hostname, hostname, date);
}
