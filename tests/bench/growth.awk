# Draws time against size: reads lines "SERIES;GPUS;MICROSECONDS" and prints an SVG with two
# logarithmic axes. Exponents are least-squares slopes over the points from 256 GPUs on, and are
# written beside their lines. -v sets `title` and `note`.
BEGIN {
    FS = ";"
    colour[1] = "#1f5fa8"; colour[2] = "#c2571a"; colour[3] = "#3a7d34"; colour[4] = "#7a4a9e"
    shape[1] = "circle"; shape[2] = "square"; shape[3] = "diamond"; shape[4] = "circle"
    left = 92; right = 250; top = 74; bottom = 64; width = 860; height = 560
}
NF == 3 {
    if (!($1 in series)) { series[$1] = ++count; name[count] = $1 }
    s = series[$1]; n = ++points[s]
    x[s, n] = $2; y[s, n] = $3 / 1e3
    if (n == 1 && s == 1) { low = high = y[s, n]; least = most = x[s, n] }
    if (y[s, n] < low) low = y[s, n]
    if (y[s, n] > high) high = y[s, n]
    if (x[s, n] < least) least = x[s, n]
    if (x[s, n] > most) most = x[s, n]
}
function at_x(v) { return left + (log(v) - log(least)) / (log(most) - log(least)) * (width - left - right) }
function at_y(v) { return height - bottom - (log(v) - log(floor)) / (log(ceiling) - log(floor)) * (height - top - bottom) }
function text(px, py, anchor, size, fill, words) {
    printf "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\" fill=\"%s\">%s</text>\n", px, py, anchor, size, fill, words
}
function time(v) { return v >= 1000 ? v / 1000 " s" : v " ms" }
function slope(s,    i, a, b, m, sx, sy, sxx, sxy) {
    for (i = 1; i <= points[s]; i++) {
        if (x[s, i] < 256) continue
        a = log(x[s, i]); b = log(y[s, i]); m++
        sx += a; sy += b; sxx += a * a; sxy += a * b
    }
    return (m * sxy - sx * sy) / (m * sxx - sx * sx)
}
function mark(s, px, py) {
    if (shape[s] == "square") printf "<rect x=\"%.1f\" y=\"%.1f\" width=\"9\" height=\"9\" fill=\"%s\"/>\n", px - 4.5, py - 4.5, colour[s]
    else if (shape[s] == "diamond") printf "<path d=\"M%.1f %.1fl6 6l-6 6l-6 -6z\" fill=\"%s\"/>\n", px, py - 6, colour[s]
    else printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"%s\"/>\n", px, py, colour[s]
}
END {
    if (count == 0) { print "growth.awk: no points" >"/dev/stderr"; exit 1 }
    for (floor = 0.001; floor * 10 <= low; floor *= 10) continue
    for (ceiling = floor; ceiling < high; ceiling *= 10) continue
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\">\n", width, height, width, height
    printf "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", width, height
    text(left, 32, "start", 19, "#222222", title)
    text(left, 54, "start", 13, "#555555", note)
    for (v = floor; v <= ceiling * 1.001; v *= 10) {
        printf "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#cccccc\" fill=\"none\"/>\n", left, at_y(v), width - right
        text(left - 10, at_y(v) + 5, "end", 14, "#333333", time(v))
        for (m = 2; m < 10 && v * 10 <= ceiling * 1.001; m++)
            printf "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#eeeeee\" fill=\"none\"/>\n", left, at_y(m * v), width - right
    }
    for (v = least; v <= most; v *= 2) {
        printf "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#dddddd\" fill=\"none\"/>\n", at_x(v), top, height - bottom
        text(at_x(v), height - bottom + 22, "middle", 14, "#333333", v)
    }
    text((left + width - right) / 2, height - 18, "middle", 14, "#333333", "GPUs")
    # The growth of the edges of all trees together, through the last point of the first series.
    a = y[1, points[1]] / (most / 256) ^ 2
    printf "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#888888\" stroke-dasharray=\"5 5\" fill=\"none\"/>\n", at_x(256), at_y(a), at_x(most), at_y(y[1, points[1]])
    text(at_x(256) + 4, at_y(a) + 22, "start", 12, "#777777", "slope 2")
    for (s = 1; s <= count; s++) {
        printf "<path d=\""
        for (i = 1; i <= points[s]; i++) printf "%s%.1f %.1f", i == 1 ? "M" : "L", at_x(x[s, i]), at_y(y[s, i])
        printf "\" stroke=\"%s\" stroke-width=\"2\" fill=\"none\"/>\n", colour[s]
        for (i = 1; i <= points[s]; i++) mark(s, at_x(x[s, i]), at_y(y[s, i]))
        place[s] = at_y(y[s, points[s]])
    }
    # Names at the right, moved apart if lines end close to each other.
    for (round = 1; round <= 50; round++)
        for (s = 1; s <= count; s++)
            for (r = 1; r <= count; r++)
                if (r != s && place[r] >= place[s] && place[r] - place[s] < 40 && (place[r] > place[s] || r > s)) { place[r] += 2; place[s] -= 2 }
    for (s = 1; s <= count; s++) {
        text(width - right + 14, place[s], "start", 14, colour[s], name[s])
        text(width - right + 14, place[s] + 16, "start", 12, colour[s], sprintf("exponent %.2f from 256 on", slope(s)))
    }
    print "</svg>"
}
