#!/usr/bin/env bash
# Solves the linear programs of a campaign with glpsol's exact simplex and compares: programs.sh FOLDER.   On a fabric of compute nodes
# alone the planner's allreduce must be the program's value, elsewhere it must not be above. glpsol computes in rationals and prints
# 15 digits; the comparison allows for those. Prints how near allreduce comes to the programs; of 40 or more, at least 95% must come
# within 1%. Closes with `N passed, N failed`.
set -u
folder=$1
limit=${PROGRAM_SECONDS:-20}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$work/results"
for program in "$folder"/*.lp; do
    [ -e "$program" ] || { echo "  no linear programs in $folder" >&2; exit 2; }
    value=unsolved
    if timeout "$limit" glpsol --exact --cpxlp "$program" -w "$work/solution" >"$work/log" 2>&1; then
        # "s bas ROWS COLUMNS f f VALUE": a basic solution, primal and dual feasible, so optimal
        value=$(awk '$1 == "s" && $5 == "f" && $6 == "f" {print $7}' "$work/solution")
        [ -n "$value" ] || value=unsolved
    fi
    read -r _ _ relation num den name <"$program"
    echo "$relation $num $den $name $value" >>"$work/results"
done
awk '
    function near(a, b) { return (a > b ? a - b : b - a) <= 1e-12 * b }
    $5 == "unsolved" { unsolved++; next }
    {
        achieved = $2 / $3
        bad = $1 == "equal" ? !near(achieved, $5) : achieved > $5 && !near(achieved, $5)
        if (bad) {
            printf "FAIL   %s: the planner achieves %.12g, which must be %s %s\n", $4, achieved, $1 == "equal" ? "equal to" : "at most", $5
            failed++
        } else
            passed++
        ratio = achieved / $5
        class = near(achieved, $5) ? 0 : ratio >= 0.99 ? 1 : ratio >= 0.95 ? 2 : ratio >= 0.9 ? 3 : ratio >= 0.8 ? 4 : ratio >= 0.7 ? 5 : ratio >= 0.5 ? 6 : 7
        count[$1, class]++
    }
    END {
        printf "allreduce, achieved over the program:  1 >=.99 >=.95  >=.9  >=.8  >=.7  >=.5   <.5\n"
        split("equal atmost", kinds)
        for (k = 1; k <= 2; k++) {
            printf "  %-33s", k == 1 ? "compute nodes alone" : "with switches"
            for (c = 0; c < 8; c++)
                printf "%6d", count[kinds[k], c]
            printf "\n"
        }
        printf "oracle: %d linear programs by glpsol --exact, %d differences, %d not solved in time\n", passed + failed, failed, unsolved
        near_all = count["equal", 0] + count["equal", 1] + count["atmost", 0] + count["atmost", 1]
        if (passed + failed >= 40 && near_all < 0.95 * (passed + failed)) {
            printf "FAIL   only %d of %d allreduces come within 1%% of the program; 95%% must\n", near_all, passed + failed
            failed++
        }
        if (unsolved > (passed + failed) / 10) {
            print "FAIL   more than a tenth of the programs were not solved in time"
            failed++
        }
        printf "%d passed, %d failed\n", passed, failed
        exit failed > 0 || passed == 0
    }' "$work/results"
