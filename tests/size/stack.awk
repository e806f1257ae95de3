# The deepest stack of the core: adds the bytes of functions along the calls, from -fcallgraph-info=su (one .ci file for each source).
#   awk -f stack.awk -v max=BYTES FILES     prints the deepest chain from each function that others may call; exit 1 beyond max
# A call through a pointer is one of a kernel (offload/reduce is the only room with tables of functions): the largest of them counts.
# What is bounded by nothing fails: recursion, alloca, arrays of variable length.
function text(name) {
    sub(/.*:/, "", name)
    return name
}
function deepest(name, i, n, list, depth, best, at) {
    if (name in total)
        return total[name]
    if (active[name]) {
        print "LIMIT: " text(name) " calls itself; the core has no recursion"
        bad = 1
        return 0
    }
    active[name] = 1
    best = 0
    at = ""
    n = split(calls[name], list, SUBSEP)
    for (i = 2; i <= n; i++) {
        depth = deepest(list[i])
        if (depth > best) {
            best = depth
            at = list[i]
        }
    }
    active[name] = 0
    under[name] = at
    return total[name] = own[name] + best
}
/^node:/ {
    match($0, /title: "[^"]*"/)
    name = substr($0, RSTART + 8, RLENGTH - 9)
    if (match($0, /[0-9]+ bytes \([a-z,]*\)/)) {
        usage = substr($0, RSTART, RLENGTH)
        own[name] = usage + 0
        if (usage ~ /dynamic/ && usage !~ /bounded/) {
            print "LIMIT: " text(name) " takes a stack of variable size"
            bad = 1
        }
        if (name !~ /:/)
            global[name] = 1
        if (FILENAME ~ /reduce\/kernels_/)
            kernel[name] = 1
    }
}
/^edge:/ {
    match($0, /sourcename: "[^"]*"/)
    from = substr($0, RSTART + 13, RLENGTH - 14)
    match($0, /targetname: "[^"]*"/)
    to = substr($0, RSTART + 13, RLENGTH - 14)
    calls[from] = calls[from] SUBSEP to
}
END {
    for (name in kernel)
        calls["__indirect_call"] = calls["__indirect_call"] SUBSEP name
    for (name in global)
        if (deepest(name) > most) {
            most = total[name]
            top = name
        }
    limit = "by_engine_step by_engine_stage by_engine_commit by_endpoint_init by_endpoint_post by_endpoint_step"
    n = split(limit, shown, " ")
    for (i = 1; i <= n; i++) {
        if (!(shown[i] in global)) {
            print "LIMIT: " shown[i] " is not in the call graph"
            bad = 1
            continue
        }
        chain = ""
        for (name = shown[i]; name != ""; name = under[name])
            if (own[name] > 0 || name == shown[i])
                chain = chain " " text(name) " " own[name]
        printf "  stack %5d  %s\n", total[shown[i]], chain
    }
    printf "  stack %5d   is the most, from %s (limit %d)\n", most, top, max
    if (most > max) {
        print "LIMIT: the deepest stack is " most " bytes, the limit is " max
        bad = 1
    }
    exit bad
}
