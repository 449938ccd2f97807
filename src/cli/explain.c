/* `pypto explain CODE`: what a diagnostic means. Texts: base/explanations.def. */
#include "cli/cli.h"

#include "base/diag.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void print_indented(const char *text)
{
    for (const char *at = text; *at != '\0';) {
        size_t line = strcspn(at, "\n");
        printf("    %.*s\n", (int)line, at);
        at += at[line] == '\n' ? line + 1 : line;
    }
}

static void explain(diag_code code)
{
    const diag_info *info = diag_lookup(code);
    const diag_explanation *e = diag_explain(code);
    printf("%s: %s (%s)\n\n%s\n", info->code, info->title, pypto_error_kind_name(info->kind),
           e->meaning);
    if (e->example[0] != '\0') {
        printf("\nFor example:\n\n");
        print_indented(e->example);
    }
    printf("\nWhat to do: %s\n", e->fix);
}

/* Whether `word` begins like `code`, whatever its letters' case. */
static bool begins_alike(const char *code, const char *word, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (toupper((unsigned char)word[i]) != code[i])
            return false;
    }
    return true;
}

/* "PYPTO-S106", "S106" and "s106" are the same. */
static bool is_code(const char *code, const char *word)
{
    const size_t prefix = strlen("PYPTO-");
    size_t length = strlen(code);
    if (strlen(word) == length)
        return begins_alike(code, word, length);
    return strlen(word) == length - prefix && begins_alike(code + prefix, word, length - prefix);
}

int cli_explain(arena *a, int count, char **words)
{
    (void)a;
    if (count == 1 && strcmp(words[0], "--list") == 0) {
        for (int i = 0; i < DIAG_COUNT; i++) {
            const diag_info *info = diag_lookup((diag_code)i);
            printf("%s  %-24s %s\n", info->code, pypto_error_kind_name(info->kind), info->title);
        }
        return 0;
    }
    if (count != 1) {
        fputs("usage: pypto explain CODE   (or --list)\n", stderr);
        return 2;
    }
    for (int i = 0; i < DIAG_COUNT; i++) {
        if (is_code(diag_lookup((diag_code)i)->code, words[0])) {
            explain((diag_code)i);
            return 0;
        }
    }
    fprintf(stderr, "pypto: there is no diagnostic '%s'; `pypto explain --list` has all\n",
            words[0]);
    return 1;
}
