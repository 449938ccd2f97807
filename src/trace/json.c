/* JSON: what the writers of this folder share. */
#include "trace/trace.h"

#include <string.h>

/* Bytes of the UTF-8 character at `at`; 0: it is none. */
static int32_t character_bytes(const unsigned char *at)
{
    const int32_t count = at[0] < 0x80   ? 1
                          : at[0] < 0xc2 ? 0
                          : at[0] < 0xe0 ? 2
                          : at[0] < 0xf0 ? 3
                          : at[0] < 0xf5 ? 4
                                         : 0;
    for (int32_t i = 1; i < count; ++i)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    const bool overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    const bool beyond = (at[0] == 0xed && at[1] > 0x9f) || (at[0] == 0xf4 && at[1] > 0x8f);
    return overlong || beyond ? 0 : count;
}

/* Bytes that are no UTF-8, as in the name of a file, become what Python makes of them: surrogates. */
void json_string(text *out, const char *string)
{
    text_add(out, "\"");
    for (const unsigned char *at = (const unsigned char *)string; *at != '\0';) {
        const int32_t bytes = character_bytes(at);
        if (bytes == 0)
            text_printf(out, "\\udc%02x", *at);
        else if (*at == '"' || *at == '\\')
            text_printf(out, "\\%c", *at);
        else if (*at < 0x20)
            text_printf(out, "\\u%04x", *at);
        else
            text_add_n(out, (const char *)at, bytes);
        at += bytes == 0 ? 1 : bytes;
    }
    text_add(out, "\"");
}

void json_next(text *out)
{
    const char last = out->length > 0 ? out->bytes[out->length - 1] : '[';
    if (last != '[' && last != '{')
        text_add(out, ",");
}

void json_numbers(text *out, const int64_t *numbers, int32_t count)
{
    text_add(out, "[");
    for (int32_t i = 0; i < count; ++i)
        text_printf(out, i > 0 ? ",%lld" : "%lld", (long long)numbers[i]);
    text_add(out, "]");
}
