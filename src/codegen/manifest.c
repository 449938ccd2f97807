/* The manifest's text form, and whether what it says still holds.
 *
 * One line per thing, words separated by one blank; strings have blanks, '%' and unprintable bytes
 * as %XX. A hash of all that precedes ends the file.
 *
 *     pypto-front 1
 *     variant 00112233445566778899aabbccddeeff sampled 2 3
 *     tensor fp32 3 -1 1 256
 *     int 4
 *     fact 0 SIZE int%20256
 *     end 00112233445566778899aabbccddeeff
 *
 * The parser is strict: a torn, edited or older file is no manifest, which costs one run of the
 * front end. Nothing in it is trusted further than that: facts are asked again, and object files
 * are found by the hash of what they were made from. */
#include "codegen/manifest.h"

#include <stdlib.h>
#include <string.h>

#define VERSION_LINE "pypto-front 1\n"
#define MOST_ARGS 4096
#define MOST_FACTS 1000000

/* ---- printing ---- */

static void add_word(text *out, const char *string)
{
    text_add(out, " ");
    for (const char *p = string; *p != '\0'; p++) {
        unsigned char byte = (unsigned char)*p;
        if (byte <= ' ' || byte == '%' || byte == 0x7f)
            text_printf(out, "%%%02x", byte);
        else
            text_add_n(out, p, 1);
    }
}

static uint64_t bits_of(double real)
{
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    return bits;
}

static void add_arg(text *out, const frontend_arg *arg)
{
    switch (arg->kind) {
    case FRONTEND_TENSOR:
        text_printf(out, "tensor %s %d", pypto_dtype_name(arg->dtype), arg->ndim);
        for (int32_t d = 0; d < arg->ndim; d++)
            text_printf(out, " %lld", (long long)arg->shape[d]);
        text_add(out, "\n");
        break;
    case FRONTEND_INT: text_printf(out, "int %lld\n", (long long)arg->integer); break;
    case FRONTEND_UINT: text_printf(out, "uint %lld\n", (long long)arg->integer); break;
    case FRONTEND_BOOL: text_printf(out, "bool %d\n", arg->integer != 0); break;
    case FRONTEND_FLOAT:
        text_printf(out, "float %llu\n", (unsigned long long)bits_of(arg->real));
        break;
    case FRONTEND_OPEN: text_add(out, "open\n"); break;
    case FRONTEND_RUNTIME: text_add(out, "runtime\n"); break;
    }
}

static void add_variant(text *out, const manifest_variant *v)
{
    char hex[33];
    hash_hex(v->c_text, hex);
    text_printf(out, "variant %s %s %lld %lld\n", hex,
                v->from_annotations ? "annotated" : "sampled", (long long)v->pattern.count,
                (long long)v->facts.count);
    for (int64_t i = 0; i < v->pattern.count; i++)
        add_arg(out, &v->pattern.items[i]);
    for (int64_t i = 0; i < v->facts.count; i++) {
        text_printf(out, "fact %d", v->facts.items[i].function);
        add_word(out, v->facts.items[i].name);
        add_word(out, v->facts.items[i].value);
        text_add(out, "\n");
    }
}

void manifest_print(text *out, const manifest *m)
{
    int64_t start = out->length;
    text_add(out, VERSION_LINE);
    for (int32_t i = 0; i < m->count; i++)
        add_variant(out, &m->variants[i]);
    char hex[33];
    hash_hex(hash_of(out->bytes + start, out->length - start), hex);
    text_printf(out, "end %s\n", hex);
}

/* ---- parsing ---- */

typedef struct reader {
    arena *a;
    const char *at;
    const char *end;
} reader;

static bool read_exactly(reader *r, const char *string)
{
    size_t length = strlen(string);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, string, length) != 0)
        return false;
    r->at += length;
    return true;
}

/* A decimal number as printf writes it. */
static bool read_int(reader *r, int64_t *value)
{
    char digits[24];
    size_t length = 0;
    const char *p = r->at;
    while (p < r->end && length < sizeof digits - 1 &&
           ((*p >= '0' && *p <= '9') || (*p == '-' && p == r->at)))
        digits[length++] = *p++;
    digits[length] = '\0';
    char *rest = NULL;
    long long number = strtoll(digits, &rest, 10);
    if (length == 0 || *rest != '\0' ||
        (number == INT64_MAX && strcmp(digits, "9223372036854775807") != 0))
        return false;
    r->at = p;
    *value = number;
    return true;
}

static bool read_count(reader *r, int64_t most, int64_t *value)
{
    return read_int(r, value) && *value >= 0 && *value <= most;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hash(reader *r, hash_key *key)
{
    *key = (hash_key){0, 0};
    if (r->end - r->at < 32)
        return false;
    for (int i = 0; i < 32; i++) {
        int digit = hex_digit(r->at[i]);
        if (digit < 0)
            return false;
        key->high = key->high << 4 | key->low >> 60;
        key->low = key->low << 4 | (uint64_t)digit;
    }
    /* The order of the digits is hash_hex()'s business. */
    char hex[33];
    hash_hex(*key, hex);
    if (memcmp(hex, r->at, 32) != 0)
        return false;
    r->at += 32;
    return true;
}

/* The word up to the next blank or line end, decoded. */
static bool read_word(reader *r, const char **word)
{
    const char *end = r->at;
    while (end < r->end && *end != ' ' && *end != '\n')
        end++;
    char *decoded = arena_alloc(r->a, end - r->at + 1);
    char *to = decoded;
    while (r->at < end) {
        if (*r->at != '%') {
            *to++ = *r->at++;
            continue;
        }
        int high = end - r->at > 2 ? hex_digit(r->at[1]) : -1;
        int low = end - r->at > 2 ? hex_digit(r->at[2]) : -1;
        if (high < 0 || low < 0 || (high == 0 && low == 0))
            return false;
        *to++ = (char)(high * 16 + low);
        r->at += 3;
    }
    *word = decoded;
    return true;
}

static bool read_dtype(reader *r, pypto_dtype *dtype)
{
    const char *name;
    if (!read_word(r, &name))
        return false;
    for (int i = 0; i < PYPTO_DTYPE_COUNT; i++) {
        if (strcmp(pypto_dtype_name((pypto_dtype)i), name) == 0) {
            *dtype = (pypto_dtype)i;
            return true;
        }
    }
    return false;
}

static bool read_tensor(reader *r, frontend_arg *arg)
{
    int64_t ndim;
    arg->kind = FRONTEND_TENSOR;
    if (!read_dtype(r, &arg->dtype) || !read_exactly(r, " ") ||
        !read_count(r, PYPTO_MAX_DIMS, &ndim))
        return false;
    arg->ndim = (int32_t)ndim;
    for (int64_t d = 0; d < ndim; d++)
        if (!read_exactly(r, " ") || !read_int(r, &arg->shape[d]))
            return false;
    return read_exactly(r, "\n");
}

static bool read_float(reader *r, double *real)
{
    const char *word;
    char *rest = NULL;
    if (!read_word(r, &word) || word[0] < '0' || word[0] > '9')
        return false;
    uint64_t bits = strtoull(word, &rest, 10);
    memcpy(real, &bits, sizeof *real);
    return *rest == '\0';
}

static bool read_arg(reader *r, frontend_arg *arg)
{
    *arg = (frontend_arg){0};
    if (read_exactly(r, "tensor "))
        return read_tensor(r, arg);
    const bool is_large = read_exactly(r, "uint ");
    if (is_large || read_exactly(r, "int ")) {
        arg->kind = is_large ? FRONTEND_UINT : FRONTEND_INT;
        return read_int(r, &arg->integer) && read_exactly(r, "\n");
    }
    if (read_exactly(r, "bool ")) {
        arg->kind = FRONTEND_BOOL;
        return read_count(r, 1, &arg->integer) && read_exactly(r, "\n");
    }
    if (read_exactly(r, "open\n")) {
        arg->kind = FRONTEND_OPEN;
        return true;
    }
    if (read_exactly(r, "runtime\n")) {
        arg->kind = FRONTEND_RUNTIME;
        return true;
    }
    arg->kind = FRONTEND_FLOAT;
    return read_exactly(r, "float ") && read_float(r, &arg->real) && read_exactly(r, "\n");
}

static bool read_fact(reader *r, frontend_fact *fact)
{
    int64_t function;
    if (!read_exactly(r, "fact ") || !read_count(r, INT32_MAX, &function) ||
        !read_exactly(r, " ") || !read_word(r, &fact->name) || !read_exactly(r, " ") ||
        !read_word(r, &fact->value))
        return false;
    fact->function = (int32_t)function;
    return read_exactly(r, "\n");
}

/* Behind the word "variant ". */
static bool read_variant(reader *r, manifest_variant *v)
{
    int64_t args;
    int64_t facts;
    *v = (manifest_variant){0};
    if (!read_hash(r, &v->c_text) || !read_exactly(r, " "))
        return false;
    v->from_annotations = read_exactly(r, "annotated");
    if (!v->from_annotations && !read_exactly(r, "sampled"))
        return false;
    if (!read_exactly(r, " ") || !read_count(r, MOST_ARGS, &args) || !read_exactly(r, " ") ||
        !read_count(r, MOST_FACTS, &facts) || !read_exactly(r, "\n"))
        return false;
    for (int64_t i = 0; i < args; i++) {
        frontend_arg arg;
        if (!read_arg(r, &arg))
            return false;
        vec_push(r->a, &v->pattern, arg);
    }
    for (int64_t i = 0; i < facts; i++) {
        frontend_fact fact;
        if (!read_fact(r, &fact))
            return false;
        vec_push(r->a, &v->facts, fact);
    }
    return true;
}

bool manifest_parse(arena *a, const char *bytes, int64_t count, manifest *m)
{
    *m = (manifest){0};
    reader r = {a, bytes, bytes + count};
    /* The checksum first: what follows then reads only what this program has written. */
    const int64_t tail = (int64_t)strlen("end \n") + 32;
    hash_key said;
    r.at = count > tail ? r.end - tail : r.end;
    if (!read_exactly(&r, "end ") || !read_hash(&r, &said) || !read_exactly(&r, "\n"))
        return false;
    hash_key found = hash_of(bytes, count - tail);
    if (said.high != found.high || said.low != found.low)
        return false;

    r = (reader){a, bytes, bytes + count - tail};
    if (!read_exactly(&r, VERSION_LINE))
        return false;
    while (r.at < r.end) {
        if (m->count == MANIFEST_VARIANTS || !read_exactly(&r, "variant ") ||
            !read_variant(&r, &m->variants[m->count]))
            return false;
        m->count++;
    }
    return true;
}

/* ---- variants ---- */

static bool same_arg(const frontend_arg *x, const frontend_arg *y)
{
    if (x->kind != y->kind)
        return false;
    switch (x->kind) {
    case FRONTEND_INT:
    case FRONTEND_UINT: return x->integer == y->integer;
    case FRONTEND_BOOL: return (x->integer != 0) == (y->integer != 0);
    case FRONTEND_FLOAT: return bits_of(x->real) == bits_of(y->real);
    case FRONTEND_OPEN:
    case FRONTEND_RUNTIME: return true;
    case FRONTEND_TENSOR: break;
    }
    return x->dtype == y->dtype && x->ndim == y->ndim &&
           memcmp(x->shape, y->shape, (size_t)x->ndim * sizeof x->shape[0]) == 0;
}

static bool same_variant(const manifest_variant *x, const manifest_variant *y)
{
    if (x->from_annotations != y->from_annotations || x->pattern.count != y->pattern.count ||
        x->facts.count != y->facts.count)
        return false;
    for (int64_t i = 0; i < x->pattern.count; i++)
        if (!same_arg(&x->pattern.items[i], &y->pattern.items[i]))
            return false;
    for (int64_t i = 0; i < x->facts.count; i++) {
        const frontend_fact *a = &x->facts.items[i];
        const frontend_fact *b = &y->facts.items[i];
        if (a->function != b->function || strcmp(a->name, b->name) != 0 ||
            strcmp(a->value, b->value) != 0)
            return false;
    }
    return true;
}

void manifest_add(manifest *m, const manifest_variant *variant)
{
    manifest merged = {.count = 1};
    merged.variants[0] = *variant;
    for (int32_t i = 0; i < m->count && merged.count < MANIFEST_VARIANTS; i++)
        if (!same_variant(&m->variants[i], variant))
            merged.variants[merged.count++] = m->variants[i];
    *m = merged;
}

/* ---- does it still hold ---- */

static bool arg_matches(const frontend_arg *pattern, const frontend_arg *arg)
{
    if (pattern->kind != FRONTEND_TENSOR || arg->kind != FRONTEND_TENSOR)
        return same_arg(pattern, arg);
    if (!pypto_dtype_carries(arg->dtype, pattern->dtype) || pattern->ndim != arg->ndim)
        return false;
    const bool packed = pypto_dtype_packed(pattern->dtype);
    for (int32_t d = 0; d < arg->ndim; d++) {
        const int64_t extent = packed && d == arg->ndim - 1 ? arg->shape[d] * 2 : arg->shape[d];
        if (pattern->shape[d] >= 0 && pattern->shape[d] != extent)
            return false;
    }
    return true;
}

bool pattern_matches(const frontend_arg *pattern, int32_t pattern_count, const frontend_arg *args,
                     int32_t arg_count)
{
    if (pattern_count != arg_count)
        return false;
    for (int32_t i = 0; i < arg_count; i++)
        if (!arg_matches(&pattern[i], &args[i]))
            return false;
    return true;
}

bool facts_hold(arena *a, const frontend_embedder *embedder, const frontend_fact *facts,
                int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        name_value value =
            embedder->resolve(embedder->context, a, facts[i].function, facts[i].name);
        if (strcmp(name_value_text(a, &value), facts[i].value) != 0)
            return false;
    }
    return true;
}
