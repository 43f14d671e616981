#include "util/digest.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>

#include "util/check.h"

/* Fetching an algorithm and making a context cost more than hashing a key: one of each a thread, freed when
 * the thread ends. */
static __thread EVP_MD_CTX *thread_ctx;
static pthread_key_t thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void free_ctx(void *ctx)
{
    EVP_MD_CTX_free(ctx);
}

static void make_thread_end(void)
{
    CHECK(pthread_key_create(&thread_end, free_ctx) == 0);
}

static void make_thread_ctx(void)
{
    pthread_once(&once, make_thread_end);
    thread_ctx = EVP_MD_CTX_new();
    CHECK(thread_ctx && pthread_setspecific(thread_end, thread_ctx) == 0);
}

void sha256(const struct bytes *parts, size_t n, uint8_t out[SHA256_SIZE])
{
    if (!thread_ctx)
        make_thread_ctx();
    CHECK(EVP_DigestInit_ex(thread_ctx, EVP_sha256(), NULL) == 1);
    for (size_t i = 0; i < n; i++)
        CHECK(EVP_DigestUpdate(thread_ctx, parts[i].at, parts[i].len) == 1);
    CHECK(EVP_DigestFinal_ex(thread_ctx, out, NULL) == 1);
}

struct sha256_run *sha256_begin(void)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    CHECK(ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1);
    return (struct sha256_run *)ctx;
}

void sha256_add(struct sha256_run *run, struct bytes piece)
{
    CHECK(EVP_DigestUpdate((EVP_MD_CTX *)run, piece.at, piece.len) == 1);
}

void sha256_end(struct sha256_run *run, uint8_t out[SHA256_SIZE])
{
    CHECK(EVP_DigestFinal_ex((EVP_MD_CTX *)run, out, NULL) == 1);
    EVP_MD_CTX_free((EVP_MD_CTX *)run);
}

/* RFC 2104, over the parts, so that a body is never copied to be signed. */
void hmac_sha256(struct bytes secret, const struct bytes *parts, size_t n, uint8_t out[SHA256_SIZE])
{
    enum { BLOCK = 64 };
    uint8_t key[BLOCK] = {0}, pad[BLOCK], inner[SHA256_SIZE];
    if (secret.len > BLOCK)
        sha256(&secret, 1, key);
    else if (secret.len)
        memcpy(key, secret.at, secret.len);

    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    CHECK(ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1);
    for (int i = 0; i < BLOCK; i++)
        pad[i] = key[i] ^ 0x36;
    EVP_DigestUpdate(ctx, pad, BLOCK);
    for (size_t i = 0; i < n; i++)
        EVP_DigestUpdate(ctx, parts[i].at, parts[i].len);
    EVP_DigestFinal_ex(ctx, inner, NULL);

    EVP_DigestInit_ex(ctx, EVP_sha256(), NULL);
    for (int i = 0; i < BLOCK; i++)
        pad[i] = key[i] ^ 0x5c;
    EVP_DigestUpdate(ctx, pad, BLOCK);
    EVP_DigestUpdate(ctx, inner, sizeof inner);
    EVP_DigestFinal_ex(ctx, out, NULL);
    EVP_MD_CTX_free(ctx);
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t base64_write(struct bytes in, char *out)
{
    char *to = out;
    for (size_t i = 0; i < in.len; i += 3) {
        size_t left = in.len - i < 3 ? in.len - i : 3;
        uint32_t v = 0;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (k < left ? (uint8_t)in.at[i + k] : 0);
        *to++ = alphabet[v >> 18];
        *to++ = alphabet[v >> 12 & 63];
        *to++ = left > 1 ? alphabet[v >> 6 & 63] : '=';
        *to++ = left > 2 ? alphabet[v & 63] : '=';
    }
    return (size_t)(to - out);
}

void base64_encode(struct buf *out, struct bytes in)
{
    char *to = buf_extend(out, BASE64_SIZE(in.len));
    if (to)
        base64_write(in, to);
}

static int digit(char c)
{
    const char *at = c ? strchr(alphabet, c) : NULL;
    return at ? (int)(at - alphabet) : -1;
}

bool base64_decode(struct buf *out, struct bytes text)
{
    if (text.len % 4)
        return false;
    for (size_t i = 0; i < text.len; i += 4) {
        const char *p = text.at + i;
        bool last = i + 4 == text.len;
        int pads = last && p[3] == '=' ? (p[2] == '=' ? 2 : 1) : 0;
        uint32_t v = 0;
        for (int k = 0; k < 4; k++) {
            int d = k >= 4 - pads ? 0 : digit(p[k]);
            if (d < 0)
                return false;
            v = v << 6 | (uint32_t)d;
        }
        if ((pads == 1 && (v & 0xff)) || (pads == 2 && (v & 0xffff)))
            return false; /* bits that no encoder sets */
        char three[3] = {(char)(v >> 16), (char)(v >> 8), (char)v};
        buf_put(out, three, 3 - (size_t)pads);
    }
    return true;
}
