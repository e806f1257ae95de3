/* SVG primitives and the geometry of curves. See svg.h. */
#include "control/view/plot/svg.h"

#include <math.h>

void by_svg_escape(FILE *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            if ((unsigned char)*text >= 0x20) /* control characters are not allowed in XML 1.0 */
                fputc(*text, out);
        }
}

void by_svg_begin(FILE *out, double width, double height, const char *title)
{
    fprintf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
        "font-family=\"'DejaVu Sans', Verdana, 'Segoe UI', sans-serif\" role=\"img\">\n<title>",
        width, height, width, height);
    by_svg_escape(out, title);
    fprintf(out, "</title>\n<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n", width, height);
}

void by_svg_end(FILE *out)
{
    fputs("</svg>\n", out);
}

void by_svg_group_begin(FILE *out, double x, double y, const char *extra)
{
    fprintf(out, "<g transform=\"translate(%.1f %.1f)\"%s%s>\n", x, y, extra ? " " : "", extra ? extra : "");
}

void by_svg_group_end(FILE *out)
{
    fputs("</g>\n", out);
}

void by_svg_text(FILE *out, double x, double y, const struct by_svg_text *style, const char *text)
{
    static const char *const anchors[] = {"start", "start", "middle", "end"};

    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.4g\" text-anchor=\"%s\" fill=\"%s\"%s%s>", x, y,
            style->size, anchors[style->anchor], style->fill, style->bold ? " font-weight=\"bold\"" : "",
            style->halo
                ? " stroke=\"#ffffff\" stroke-width=\"3.5\" stroke-linejoin=\"round\" paint-order=\"stroke\""
                : "");
    by_svg_escape(out, text);
    fputs("</text>\n", out);
}

void by_svg_curve(FILE *out, const struct by_curve *curve, const char *stroke, double width,
                  const char *extra, const char *tip)
{
    fprintf(
        out,
        "<path d=\"M%.1f %.1fQ%.1f %.1f %.1f %.1f\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.2f\"%s%s",
        curve->from.x, curve->from.y, curve->control.x, curve->control.y, curve->to.x, curve->to.y, stroke,
        width, extra ? " " : "", extra ? extra : "");
    if (tip == NULL) {
        fputs("/>\n", out);
        return;
    }
    fputs("><title>", out);
    by_svg_escape(out, tip);
    fputs("</title></path>\n", out);
}

void by_svg_arrow(FILE *out, struct by_point at, struct by_point direction, double size, const char *fill)
{
    double bx = at.x - direction.x * size, by = at.y - direction.y * size;
    double nx = -direction.y * size * 0.5, ny = direction.x * size * 0.5;

    fprintf(out,
            "<path d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fL%.1f %.1fZ\" fill=\"%s\" stroke=\"#ffffff\" "
            "stroke-width=\"0.8\"/>\n",
            at.x, at.y, bx + nx, by + ny, bx + direction.x * size * 0.28, by + direction.y * size * 0.28,
            bx - nx, by - ny, fill);
}

struct by_curve by_curve_shifted(const struct by_curve *curve, double distance)
{
    double dx = curve->to.x - curve->from.x, dy = curve->to.y - curve->from.y;
    double length = fmax(hypot(dx, dy), 1e-9);
    double sx = -dy / length * distance, sy = dx / length * distance;
    struct by_curve shifted = *curve;

    shifted.from.x += sx;
    shifted.from.y += sy;
    shifted.control.x += sx;
    shifted.control.y += sy;
    shifted.to.x += sx;
    shifted.to.y += sy;
    return shifted;
}

struct by_point by_curve_at(const struct by_curve *curve, double t)
{
    double a = (1 - t) * (1 - t), b = 2 * t * (1 - t), c = t * t;

    return (struct by_point){a * curve->from.x + b * curve->control.x + c * curve->to.x,
                             a * curve->from.y + b * curve->control.y + c * curve->to.y};
}

struct by_point by_curve_direction(const struct by_curve *curve, double t)
{
    double dx = (1 - t) * (curve->control.x - curve->from.x) + t * (curve->to.x - curve->control.x);
    double dy = (1 - t) * (curve->control.y - curve->from.y) + t * (curve->to.y - curve->control.y);
    double length = fmax(hypot(dx, dy), 1e-9);

    return (struct by_point){dx / length, dy / length};
}
