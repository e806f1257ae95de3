/* Reads XML from untrusted sources. See xml.h. */
#include "control/base/xml.h"

#include <errno.h>
#include <expat.h>
#include <string.h>

#include "control/base/alloc.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

#define PIECE_BYTES 65536

struct xml_reader {
    XML_Parser parser;
    const struct by_xml_handler *handler;
    struct by_problem *problem;
    uint32_t depth;
    int error;
};

static struct by_place here(XML_Parser parser)
{
    return (struct by_place){(int)XML_GetCurrentLineNumber(parser),
                             (int)XML_GetCurrentColumnNumber(parser) + 1};
}

static void stop(struct xml_reader *reader, int error)
{
    reader->error = error;
    XML_StopParser(reader->parser, XML_FALSE);
}

static void XMLCALL on_start(void *context, const XML_Char *name, const XML_Char **attributes)
{
    struct xml_reader *reader = context;
    struct by_xml_element element = {name, (const char *const *)attributes, here(reader->parser),
                                     reader->depth};
    int error;

    if (reader->error)
        return;
    if (reader->depth >= BY_XML_DEPTH_MAX) {
        stop(reader, by_problem_set(reader->problem, BY_ELIMIT, element.place,
                                    "elements are nested %u deep; the limit is %u", reader->depth + 1,
                                    BY_XML_DEPTH_MAX));
        return;
    }
    reader->depth++;
    error = reader->handler->start(reader->handler->context, &element, reader->problem);
    if (error)
        stop(reader, error);
}

static void XMLCALL on_end(void *context, const XML_Char *name)
{
    struct xml_reader *reader = context;
    int error = 0;

    if (reader->error)
        return;
    reader->depth--;
    if (reader->handler->end)
        error = reader->handler->end(reader->handler->context, name, here(reader->parser), reader->problem);
    if (error)
        stop(reader, error);
}

static void XMLCALL on_doctype(void *context, const XML_Char *name, const XML_Char *system,
                               const XML_Char *public, int internal)
{
    struct xml_reader *reader = context;

    (void)name;
    (void)system;
    (void)public;
    (void)internal;
    if (!reader->error)
        stop(reader, by_problem_set(reader->problem, BY_EFORMAT, here(reader->parser),
                                    "the file declares a document type, which these formats do not allow; "
                                    "remove it"));
}

static void reader_make(struct xml_reader *reader, const struct by_xml_handler *handler,
                        struct by_problem *problem)
{
    *reader = (struct xml_reader){.parser = XML_ParserCreate(NULL), .handler = handler, .problem = problem};
    BY_ASSERT(reader->parser);
    XML_SetUserData(reader->parser, reader);
    XML_SetElementHandler(reader->parser, on_start, on_end);
    XML_SetStartDoctypeDeclHandler(reader->parser, on_doctype);
}

/* Returns the error of the handlers or the parser after a piece of input. */
static int judge(struct xml_reader *reader, enum XML_Status status)
{
    if (!reader->error && status != XML_STATUS_OK)
        reader->error = by_problem_set(reader->problem, BY_EFORMAT, here(reader->parser), "not valid XML: %s",
                                       XML_ErrorString(XML_GetErrorCode(reader->parser)));
    return reader->error;
}

int by_xml_parse(const char *text, size_t bytes, const struct by_xml_handler *handler,
                 struct by_problem *problem)
{
    struct xml_reader reader;
    size_t at = 0;

    reader_make(&reader, handler, problem);
    do {
        size_t piece = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;

        judge(&reader, XML_Parse(reader.parser, text + at, (int)piece, at + piece == bytes));
        at += piece;
    } while (!reader.error && at < bytes);
    XML_ParserFree(reader.parser);
    return reader.error;
}

int by_xml_read(const char *path, size_t bytes_max, const struct by_xml_handler *handler,
                struct by_problem *problem)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    struct xml_reader reader;
    size_t bytes = 0;
    bool last = false;

    if (!file)
        return by_problem_set(problem, BY_EIO, (struct by_place){0, 0}, "cannot open the file: %s",
                              strerror(errno));
    reader_make(&reader, handler, problem);
    while (!reader.error && !last) {
        void *piece = XML_GetBuffer(reader.parser, PIECE_BYTES);
        size_t got;

        BY_ASSERT(piece);
        got = fread(piece, 1, PIECE_BYTES, file);
        last = got < PIECE_BYTES;
        bytes += got;
        if (ferror(file))
            reader.error = by_problem_set(problem, BY_EIO, (struct by_place){0, 0},
                                          "cannot read the file: %s", strerror(errno));
        else if (bytes > bytes_max)
            reader.error = by_problem_set(problem, BY_ELIMIT, (struct by_place){0, 0},
                                          "the file is larger than %zu MiB", bytes_max >> 20);
        else
            judge(&reader, XML_ParseBuffer(reader.parser, (int)got, last));
    }
    XML_ParserFree(reader.parser);
    if (file != stdin)
        fclose(file);
    return reader.error;
}

const char *by_xml_text(const struct by_xml_element *element, const char *name)
{
    for (size_t i = 0; element->attributes[i]; i += 2)
        if (strcmp(element->attributes[i], name) == 0)
            return element->attributes[i + 1];
    return NULL;
}

int by_xml_integer(const struct by_xml_element *element, const char *name, int64_t low, int64_t high,
                   int64_t *value, struct by_problem *problem)
{
    const char *text = by_xml_text(element, name);
    char *end = NULL;

    if (!text)
        return by_problem_set(problem, BY_EINVAL, element->place, "<%.40s> has no attribute %s; add it",
                              element->name, name);
    errno = 0;
    *value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || *value < low || *value > high)
        return by_problem_set(problem, BY_EINVAL, element->place,
                              "%s of <%.40s> is '%.40s'; it must be an integer from %lld to %lld", name,
                              element->name, text, (long long)low, (long long)high);
    return 0;
}
