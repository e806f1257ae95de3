# Draws the samples of lab-soak.sh: memory, files, slots and jobs over time, at rest as dots on the
# lines of all samples. -v sets `title`.
BEGIN {
    FS = ";"
    width = 860; left = 70; right = 150; panel = 150; gap = 46; top = 58
    count = split("leaf0 leaf1 spine0 spine1", node, " ")
    split("#c2571a #3a7d34 #7a4a9e #b08a00", colour, " ")
    add(1, "memory, MiB", "banyand", 5, 1024, "#1f5fa8")
    add(2, "open files", "banyand", 6, 1, "#1f5fa8")
    add(4, "jobs", "jobs", 3, 1, "#1f5fa8")
    for (i = 1; i <= count; i++) {
        add(1, "memory, MiB", node[i], 4 + 3 * i, 1024, colour[i])
        add(2, "open files", node[i], 5 + 3 * i, 1, colour[i])
        add(3, "slots in use", node[i], 6 + 3 * i, 1, colour[i])
    }
}
function add(p, words, label, column, unit, fill) {
    heading[p] = words; n = ++lines[p]
    name[p, n] = label; from[p, n] = column; scale[p, n] = unit; ink[p, n] = fill
}
{ rows++; for (i = 1; i <= NF; i++) v[rows, i] = $i }
function text(x, y, anchor, size, fill, words) {
    printf "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\" fill=\"%s\">%s</text>\n", x, y, anchor, size, fill, words
}
function value(p, l, r) { return v[r, from[p, l]] / scale[p, l] }
function at_x(r) { return left + (last > 0 ? v[r, 1] / last : 0) * (width - left - right) }
# A round number of at least x.
function ceiling(x,    unit) {
    for (unit = 1; unit * 10 <= x; unit *= 10) ;
    return x <= unit ? unit : x <= 2 * unit ? 2 * unit : x <= 5 * unit ? 5 * unit : 10 * unit
}
END {
    last = v[rows, 1]
    height = top + 4 * (panel + gap)
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\">\n", width, height
    printf "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", width, height
    text(left, 26, "start", 16, "#222", title)
    for (p = 1; p <= 4; p++) {
        base = top + p * panel + (p - 1) * gap; most = 1
        for (l = 1; l <= lines[p]; l++)
            for (r = 1; r <= rows; r++) if (value(p, l, r) > most) most = value(p, l, r)
        most = ceiling(most)
        text(left, base - panel - 8, "start", 13, "#222", heading[p])
        for (i = 0; i <= 4; i++) {
            y = base - panel * i / 4
            printf "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n", left, y, width - right
            text(left - 8, y + 4, "end", 11, "#555", most * i / 4)
        }
        for (l = 1; l <= lines[p]; l++) {
            path = ""
            for (r = 1; r <= rows; r++) path = path sprintf("%s%.1f %.1f", r > 1 ? "L" : "M", at_x(r), base - panel * value(p, l, r) / most)
            printf "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1\" opacity=\"0.55\"/>\n", path, ink[p, l]
            for (r = 1; r <= rows; r++)
                if (v[r, 2] == 1) printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.2\" fill=\"%s\"/>\n", at_x(r), base - panel * value(p, l, r) / most, ink[p, l]
            text(width - right + 12, base - panel + 16 * l, "start", 12, ink[p, l], name[p, l])
        }
    }
    for (i = 0; i <= 4; i++) text(left + i / 4 * (width - left - right), base + 18, "middle", 11, "#555", sprintf("%.0f s", last * i / 4))
    print "</svg>"
}
