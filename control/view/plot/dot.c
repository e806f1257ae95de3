/*
 * Writes the same facts for Graphviz: nodes, channels with bandwidth and load, and the drawn trees
 * in colours. See picture.h.
 */
#include "control/view/plot/picture.h"

#include <string.h>

#include "control/view/plot/shade.h"

/* Writes a name as a quoted DOT string. */
static void quoted(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        if ((unsigned char)*text >= 0x20)
            fputc(*text, out);
    }
    fputc('"', out);
}

static void write_arc(const struct by_fabric *fabric, const struct by_plot_channel *channel,
                      unsigned direction, FILE *out)
{
    const struct by_node *nodes = fabric->topology->nodes;
    uint32_t from = direction ? channel->b : channel->a, to = direction ? channel->a : channel->b;
    char text[2][BY_NUMBER_TEXT_BYTES];
    double part =
        channel->capacity[direction] > 0 ? channel->load[direction] / channel->capacity[direction] : 0;

    fputs("  ", out);
    quoted(out, nodes[from].name);
    fputs(" -> ", out);
    quoted(out, nodes[to].name);
    if (fabric->plan != NULL)
        fprintf(out, " [label=\"%s/%s\", penwidth=%.2f%s];\n",
                by_number_text(channel->load[direction], text[0]),
                by_number_text(channel->capacity[direction], text[1]), 0.8 + 2.2 * part,
                part >= 1 - 1e-9 ? ", color=\"#cd212a\"" : "");
    else if (channel->capacity[0] == channel->capacity[1])
        fprintf(out, " [label=\"%s\", dir=both];\n", by_number_text(channel->capacity[direction], text[0]));
    else
        fprintf(out, " [label=\"%s\"];\n", by_number_text(channel->capacity[direction], text[0]));
}

static void write_trees(const struct by_fabric *fabric, FILE *out)
{
    for (uint32_t i = 0; i < fabric->drawn_count; i++) {
        const struct by_tree *tree = &fabric->plan->trees[fabric->drawn[i]];
        bool down, up;

        by_fabric_flow(fabric, tree, &down, &up);
        for (uint32_t e = 0; e < tree->edge_count; e++) {
            const struct by_path path = by_plan_edge(fabric->plan, tree, e);

            for (uint32_t h = 0; h + 1 < path.node_count; h++) {
                fputs("  ", out);
                quoted(out, fabric->topology->nodes[path.nodes[h]].name);
                fputs(" -> ", out);
                quoted(out, fabric->topology->nodes[path.nodes[h + 1]].name);
                fprintf(out, " [color=\"%s\", dir=%s, constraint=false, tooltip=\"tree %u\"];\n",
                        by_tree_color(i),
                        down && up ? "both"
                        : down     ? "forward"
                                   : "back",
                        fabric->drawn[i]);
            }
        }
    }
}

void by_dot_write(const struct by_fabric *fabric, FILE *out)
{
    const struct by_topology *topology = fabric->topology;

    fputs("digraph ", out);
    quoted(out, topology->name);
    fputs(" {\n  rankdir=BT;\n  node [fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", "
          "fontsize=9, color=\"#8a96a3\"];\n",
          out);
    for (uint32_t n = 0; n < topology->node_count; n++) {
        const struct by_node *node = &topology->nodes[n];

        fputs("  ", out);
        quoted(out, node->name);
        if (by_fabric_symbol(fabric, n) == BY_SYMBOL_OUTSIDE)
            fputs(" [shape=circle", out);
        else if (node->compute)
            fputs(" [shape=circle, style=filled, fillcolor=\"#2a6fdb\", fontcolor=white", out);
        else if (node->multicast || node->aggregate)
            fputs(" [shape=box, style=\"filled,rounded\", fillcolor=\"#15324f\", fontcolor=white", out);
        else
            fputs(" [shape=box, style=\"dashed,rounded\"", out);
        if (fabric->part_count > 0 && fabric->part[n] != BY_FABRIC_NO_PART)
            fprintf(out, ", color=\"%s\", penwidth=3, comment=\"part %u\"];\n",
                    by_shade_color(fabric, fabric->part[n]), fabric->part[n]);
        else
            fprintf(out, "%s];\n",
                    fabric->shaded[n] && fabric->part_count == 0 ? ", color=\"#6d3fc0\", penwidth=3" : "");
    }
    fputs("  { rank=same;", out);
    for (uint32_t n = 0; n < topology->node_count; n++)
        if (topology->nodes[n].compute) {
            fputc(' ', out);
            quoted(out, topology->nodes[n].name);
            fputc(';', out);
        }
    fputs(" }\n", out);
    for (uint32_t c = 0; c < fabric->channel_count; c++)
        for (unsigned d = 0; d < 2; d++) {
            const struct by_plot_channel *channel = &fabric->channels[c];

            if (channel->capacity[d] > 0 &&
                !(d == 1 && fabric->plan == NULL && channel->capacity[0] == channel->capacity[1]))
                write_arc(fabric, channel, d, out);
        }
    if (fabric->plan != NULL)
        write_trees(fabric, out);
    fputs("}\n", out);
}
