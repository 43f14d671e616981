#include "util/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/check.h"

void *mem_alloc(size_t size)
{
    void *p = malloc(size ? size : 1);
    CHECK(p != NULL);
    return p;
}

void *mem_zalloc(size_t size)
{
    void *p = calloc(1, size ? size : 1);
    CHECK(p != NULL);
    return p;
}

void *mem_resize(void *old, size_t size)
{
    void *p = realloc(old, size ? size : 1);
    CHECK(p != NULL);
    return p;
}

char *mem_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(mem_alloc(size), text, size);
}

char *mem_format(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    CHECK(n >= 0);
    return text;
}
