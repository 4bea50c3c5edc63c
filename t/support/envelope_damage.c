/* Damage to an envelope's form in todo/. */
#include "t/support/envelope_damage.h"

#include "t/support/tap.h"

void
envelope_damage_check(struct buffer *form, struct id id)
{
    unsigned read = 0;
    for (size_t i = 0; i < form->length; i++) {
        struct envelope *again = envelope_new();
        form->at[i] = (char)(form->at[i] ^ 1);
        read += envelope_read_todo(buffer_text(form), id, again) == PROGRESS_DONE;
        form->at[i] = (char)(form->at[i] ^ 1);
        envelope_free(&again);
    }
    is_number(read, 0, "no damaged byte passes");
}
