/* What can be seen to be wrong with an HTTP sink before it is used. Messages begin with the option's name. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "deliver/sinks/http_priv.h"

/* The same message, with the option's name in front. */
static enum status of_option(const char *option, enum status status, struct error *err)
{
    if (status == STATUS_OK || !err)
        return status;
    struct error inner = *err;
    return error_set(err, status, "%s: %s", option, inner.text);
}

static enum status check_readable(const char *option, const char *path, struct error *err)
{
    if (!path)
        return STATUS_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set(err, STATUS_INVALID, "%s: can't read %.300s: %s", option, path, strerror(errno));
    close(fd);
    return STATUS_OK;
}

static enum status check_header(const struct http_shape *shape, const struct sink_header *header,
                                struct error *err)
{
    if (!bytes_is_token(bytes_str(header->name)))
        return error_set(err, STATUS_INVALID,
                         "headers: a header name must be letters, digits and '-', got \"%.60s\"",
                         header->name);
    if (http_header_is_ours(shape, bytes_str(header->name)))
        return error_set(err, STATUS_INVALID, "headers: %.60s is written by the gateway and can't be set",
                         header->name);
    for (const char *p = header->value; *p; p++)
        if ((*p < 0x20 && *p != '\t') || *p > 0x7e || *p < 0)
            return error_set(err, STATUS_INVALID,
                             "headers: the value of %.60s must be printable ASCII on one line", header->name);
    return STATUS_OK;
}

static enum status check_headers(const struct sink_options *options, struct error *err)
{
    struct http_shape shape;
    http_shape_init(&shape, options);
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < options->header_count; i++)
        status = check_header(&shape, &options->headers[i], err);
    http_shape_free(&shape);
    return status;
}

static enum status check_method(const char *method, struct error *err)
{
    if (!method || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 || strcmp(method, "PATCH") == 0)
        return STATUS_OK;
    return error_set(err, STATUS_INVALID, "method: must be POST, PUT or PATCH, got \"%.40s\"", method);
}

enum status http_check(const struct sink_options *options, const struct egress_rules *egress,
                       struct error *err)
{
    if (!options->url)
        return error_set(err, STATUS_INVALID, "url: is required");
    enum status status = of_option("url", egress_url_check(options->url, egress, err), err);
    if (status == STATUS_OK && options->proxy)
        status = of_option("proxy", egress_proxy_check(options->proxy, egress, err), err);
    if (status == STATUS_OK)
        status = check_method(options->method, err);
    if (status == STATUS_OK)
        status = check_headers(options, err);
    if (status == STATUS_OK)
        status = check_readable("tls.ca", options->tls_ca, err);
    if (status == STATUS_OK)
        status = check_readable("tls.cert", options->tls_cert, err);
    if (status == STATUS_OK)
        status = check_readable("tls.key", options->tls_key, err);
    if (status == STATUS_OK && options->timeout_ms < 1)
        status = error_set(err, STATUS_INVALID, "timeout_ms: must be at least 1");
    if (status == STATUS_OK && options->tls_key && !options->tls_cert)
        status = error_set(err, STATUS_INVALID, "tls.key: needs tls.cert");
    return status;
}
