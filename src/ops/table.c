/* The op table, parsed: from the text columns of ops.def to what the rest of the compiler asks for.
 *
 * The table is written for people: a signature looks like Python's, effects are "r:source w:target".
 * The first question anybody asks parses all rows once, into static memory that is sized from the
 * table itself, so that nothing can fail at run time: a row that cannot be parsed is a defect of the
 * table, which op_table_problem() reports to the unit test.
 *
 * What is asked about operations besides, is in ops.c. */
#include "ops/ops.h"

#include "ops/rules.h"

#include <pthread.h>
#include <string.h>

typedef struct op_row {
    const char *id_name;
    const char *spellings;
    const char *signature;
    const char *result;
    const char *planes;
    const char *effects;
    op_rule rule;
    const char *emit;
    const char *doc;
} op_row;

static const op_row rows[OP_COUNT] = {
#define OP(id, spellings, signature, result, planes, effects, rule, emit, doc) \
    {#id, spellings, signature, result, planes, effects, rule, emit, doc},
#include "ops/ops.def"
#undef OP
};

/* Words cut out of the rows are copied here; each row needs at most its own two texts, NULs included. */
enum {
#define OP(id, spellings, signature, ...) +(int)sizeof(spellings) + (int)sizeof(signature)
    WORD_BYTES = 0
#include "ops/ops.def"
#undef OP
};

static char words[WORD_BYTES];
static size_t words_used;
static uint64_t spelling_bits[OP_COUNT]; /* of each row's spellings: most pairs share none */
static const char *spelling_lists[OP_COUNT][OP_MAX_SPELLINGS + 1];
static op_def table[OP_COUNT];
static const char *problem;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static char *keep_word(const char *start, size_t length)
{
    char *word = words + words_used;
    memcpy(word, start, length);
    word[length] = '\0';
    words_used += length + 1;
    return word;
}

static void note_problem(const char *what)
{
    if (problem == NULL)
        problem = what;
}

/* ---- spellings ---- */

static unsigned hash_bit(const char *start, size_t length)
{
    unsigned sum = 0;
    for (size_t i = 0; i < length; i++)
        sum = sum * 31 + (unsigned char)start[i];
    return sum % 64;
}

static void parse_spellings(const op_row *row, op_def *def)
{
    const char **list = spelling_lists[def->id];
    int32_t count = 0;
    for (const char *at = row->spellings; *at != '\0';) {
        size_t length = strcspn(at, " ");
        if (count == OP_MAX_SPELLINGS) {
            note_problem(row->id_name);
            break;
        }
        list[count++] = keep_word(at, length);
        spelling_bits[def->id] |= UINT64_C(1) << hash_bit(at, length);
        at += length;
        at += strspn(at, " ");
    }
    if (count == 0)
        note_problem(row->id_name);
    def->spellings = list;
}

/* ---- signatures ---- */

static const struct kind_word {
    const char *word;
    op_operand kind;
} kind_words[] = {
    {"tile", OPERAND_TILE},
    {"tile4", OPERAND_TILE},
    {"memory", OPERAND_MEMORY},
    {"block", OPERAND_BLOCK},
    {"window", OPERAND_WINDOW},
    {"tensor", OPERAND_TENSOR},
    {"array", OPERAND_ARRAY},
    {"buffer", OPERAND_BUFFER},
    {"comm", OPERAND_COMM},
    {"scalar", OPERAND_SCALAR},
    {"int", OPERAND_INT},
    {"offsets", OPERAND_OFFSETS},
    {"indices", OPERAND_INDICES},
    {"extents", OPERAND_EXTENTS},
    {"valid", OPERAND_VALID},
    {"shape", OPERAND_SHAPE},
    {"dtype", OPERAND_DTYPE},
    {"text", OPERAND_TEXT},
    {"bool", OPERAND_BOOL},
    {"pad", OPERAND_PAD},
    {"int|shape", OPERAND_INT_OR_SHAPE},
    {"tile|scalar", OPERAND_TILE_OR_SCALAR},
    {"tile|offsets", OPERAND_TILE_OR_OFFSETS},
};

static bool word_is(const char *start, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(start, word, length) == 0;
}

static bool parse_kind(const char *start, size_t length, op_param *param)
{
    static const char prefixes[2][6] = {"enum:", "word:"};
    const size_t prefix = sizeof prefixes[0] - 1;
    for (int i = 0; i < 2; i++) {
        if (length > prefix && memcmp(start, prefixes[i], prefix) == 0) {
            param->kind = i == 0 ? OPERAND_ENUM : OPERAND_WORD;
            param->enum_name = keep_word(start + prefix, length - prefix);
            return true;
        }
    }
    for (size_t i = 0; i < sizeof kind_words / sizeof kind_words[0]; i++) {
        if (word_is(start, length, kind_words[i].word)) {
            param->kind = kind_words[i].kind;
            param->takes_packed = word_is(start, length, "tile4");
            param->enum_name = param->kind == OPERAND_PAD ? "PadValue" : NULL;
            return true;
        }
    }
    return false;
}

/* "input/tensor/tile": words one behind the other. */
static void parse_names(const char *start, size_t length, op_param *param)
{
    char *names = keep_word(start, length);
    param->name = names;
    param->name_count = 1;
    for (size_t i = 0; i < length; i++) {
        if (names[i] != '/')
            continue;
        names[i] = '\0';
        param->name_count++;
    }
}

/* One entry between commas, "name: kind" or "name: kind = default", already trimmed. */
static bool parse_param(const char *entry, size_t length, op_param *param)
{
    const char *end = entry + length;
    const char *colon = memchr(entry, ':', length);
    if (colon == NULL || colon == entry)
        return false;
    parse_names(entry, (size_t)(colon - entry), param);
    const char *kind = colon + 1 + strspn(colon + 1, " ");
    const char *kind_end = kind;
    while (kind_end < end && *kind_end != ' ' && *kind_end != '=')
        kind_end++;
    if (!parse_kind(kind, (size_t)(kind_end - kind), param))
        return false;
    const char *rest = kind_end;
    while (rest < end && (*rest == ' ' || *rest == '='))
        rest++;
    if (rest < end)
        param->default_text = keep_word(rest, (size_t)(end - rest));
    return true;
}

static void parse_signature(const op_row *row, op_def *def)
{
    bool keyword_only = false;
    for (const char *at = row->signature; *at != '\0';) {
        size_t length = strcspn(at, ",");
        size_t trimmed = length;
        while (trimmed > 0 && at[trimmed - 1] == ' ')
            trimmed--;
        if (word_is(at, trimmed, "*")) {
            keyword_only = true;
        } else if (def->param_count == OP_MAX_PARAMS ||
                   !parse_param(at, trimmed, &def->params[def->param_count])) {
            note_problem(row->id_name);
            return;
        } else {
            def->params[def->param_count++].keyword_only = keyword_only;
        }
        at += length;
        at += strspn(at, ", ");
    }
}

/* ---- effects ---- */

static int32_t param_named(const op_def *def, const char *start, size_t length)
{
    for (int32_t i = 0; i < def->param_count; i++) {
        const char *name = def->params[i].name;
        for (int32_t k = 0; k < def->params[i].name_count; k++) {
            if (word_is(start, length, name))
                return i;
            name += strlen(name) + 1;
        }
    }
    return -1;
}

/* "r:a w:b n:c a:d c:e f:g" */
static void parse_effects(const op_row *row, op_def *def)
{
    for (const char *at = row->effects; *at != '\0';) {
        size_t length = strcspn(at, " ");
        int32_t param = length > 2 && at[1] == ':' ? param_named(def, at + 2, length - 2) : -1;
        if (param < 0 || strchr("rwnacf", at[0]) == NULL) {
            note_problem(row->id_name);
            return;
        }
        const uint32_t bit = 1u << param;
        def->reads |= strchr("racf", at[0]) != NULL ? bit : 0;
        def->writes |= strchr("wncf", at[0]) != NULL ? bit : 0;
        def->notifies |= at[0] == 'n' ? bit : 0;
        def->awaits |= at[0] == 'a' ? bit : 0;
        def->signals |= at[0] == 'c' || at[0] == 'f' ? bit : 0;
        def->fences |= at[0] == 'f' ? bit : 0;
        at += length;
        at += strspn(at, " ");
    }
}

static void parse_row(const op_row *row, op_def *def)
{
    def->id_name = row->id_name;
    def->signature = row->signature;
    const bool valid_given = strncmp(row->result, "tile:", 5) == 0;
    def->result = valid_given ? "tile" : row->result;
    def->effects = row->effects;
    def->rule = row->rule;
    def->emit = row->emit;
    def->doc = row->doc;
    def->on_host = strchr(row->planes, 'H') != NULL;
    def->on_chip = strchr(row->planes, 'C') != NULL;
    def->in_core = strchr(row->planes, 'I') != NULL;
    def->as_task = strchr(row->planes, 'T') != NULL;
    parse_spellings(row, def);
    parse_signature(row, def);
    parse_effects(row, def);
    def->valid_param = -1;
    if (valid_given) {
        def->valid_param = param_named(def, row->result + 5, strlen(row->result + 5));
        if (def->valid_param < 0)
            note_problem(row->id_name);
    }
    def->result_param = -1;
    if (row->result[0] == '=') {
        def->result_param = param_named(def, row->result + 1, strlen(row->result + 1));
        if (def->result_param < 0)
            note_problem(row->id_name);
    }
}

bool op_is_spelled(const op_def *op, const char *spelling)
{
    for (const char *const *s = op->spellings; *s != NULL; s++) {
        if (strcmp(*s, spelling) == 0)
            return true;
    }
    return false;
}

static bool shares_spelling(const op_def *x, const op_def *y)
{
    if ((spelling_bits[x->id] & spelling_bits[y->id]) == 0)
        return false;
    for (const char *const *s = x->spellings; *s != NULL; s++) {
        if (op_is_spelled(y, *s))
            return true;
    }
    return false;
}

/* Appends a row to the forms of the operation that an earlier row began. */
static void link_form(op_def *added)
{
    for (int32_t k = (int32_t)added->id - 1; k >= 0; k--) {
        if (!shares_spelling(&table[k], added))
            continue;
        op_def *last = &table[k];
        while (last->next_form != NULL)
            last = &table[last->next_form->id];
        last->next_form = added;
        return;
    }
}

static void parse_table(void)
{
    for (int32_t i = 0; i < OP_COUNT; i++) {
        table[i].id = (op_id)i;
        parse_row(&rows[i], &table[i]);
        link_form(&table[i]);
    }
}

const char *op_table_problem(void)
{
    (void)pthread_once(&once, parse_table);
    return problem;
}

const op_def *op_get(op_id id)
{
    (void)pthread_once(&once, parse_table);
    return (int32_t)id >= 0 && id < OP_COUNT ? &table[id] : NULL;
}

int32_t op_param_index(const op_def *op, const char *name)
{
    return param_named(op, name, strlen(name));
}
