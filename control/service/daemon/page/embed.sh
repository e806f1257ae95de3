#!/bin/sh
# Writes a C source with the table by_page_files (page.h) of the given files to standard output.
#   embed.sh FILE...
set -eu
echo '#include "control/service/daemon/page.h"'
number=0
for file in "$@"; do
    echo "static const unsigned char file_$number[] = {"
    od -An -v -tu1 "$file" | sed 's/  *\([0-9][0-9]*\)/\1,/g'
    echo '};'
    number=$((number + 1))
done
echo 'const struct by_page_file by_page_files[] = {'
number=0
for file in "$@"; do
    case $file in
    *.html) type='text/html; charset=utf-8' ;;
    *.css) type='text/css; charset=utf-8' ;;
    *.js) type='text/javascript; charset=utf-8' ;;
    *.svg) type='image/svg+xml' ;;
    *) echo "embed.sh: $file: unknown type; known: html, css, js, svg" >&2; exit 1 ;;
    esac
    echo "{\"/${file##*/}\", \"$type\", file_$number, sizeof(file_$number)},"
    number=$((number + 1))
done
echo '{0}};'
