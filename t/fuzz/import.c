/* Fuzz target: settings of other programs. The first byte is the program, the rest its file. Files that it names are not read.
 * Each line has a fate and settings have no control characters. */
#include "admin/import/import.h"

#include "t/support/must.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct import_kind *const kinds[] = {&import_postfix,    &import_msmtp, &import_ssmtp,     &import_dma,
                                                      &import_nullmailer, &import_exim,  &import_opensmtpd, &import_postfix};
    struct import im;
    struct buffer out;
    if (size == 0)
        return 0;
    import_init(&im, "/etc/petrel");
    im.kind = kinds[data[0] % 8];
    im.files = IMPORT_FILES_MAX; /* none is opened */
    struct text content = text_from(import_keep(&im, text_of(data + 1, size - 1)));
    (void)import_guess("x", content);
    im.kind->read(&im, "", content);
    if (im.count > 0)
        import_run(&im);
    import_settle(&im);
    buffer_init(&out, 4 * IMPORT_TEXT_MAX);
    import_write(&im, &out);
    for (size_t i = 0; i < im.setting_count; i++) {
        struct text rest = buffer_text(&im.settings[i].value), entry;
        while (text_cut(&rest, '\n', &entry))
            must(!text_has_control(entry));
    }
    for (size_t i = 0; i < im.count; i++)
        must(im.lines[i].name != NULL && im.lines[i].value != NULL && im.lines[i].fate <= IMPORT_LEFT);
    buffer_free(&out);
    import_free(&im);
    return 0;
}
