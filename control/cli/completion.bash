# Completion of bash for the programs of banyan. Commands and options are those that --help prints
# from the programs' tables of options, so they are always those of the installed version.
#
# Completes COMP_WORDS[COMP_CWORD]: a command after `banyan`, an option after a dash, a word of the
# list that --help gives for an option, and otherwise a file.
_banyan() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local program=${COMP_WORDS[0]} help choices
    local -a command=("$program")
    COMPREPLY=()
    if [[ ${program##*/} == banyan ]]; then
        if ((COMP_CWORD == 1)) && [[ $current != -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$("$program" --help 2>/dev/null |
                sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\)  .*/\1/p')" -- "$current")
            return
        fi
        ((COMP_CWORD == 1)) || command+=("${COMP_WORDS[1]}")
        # `banyan job` and `banyan lab` have commands of their own.
        if ((COMP_CWORD == 2)) && [[ $current != -* && ${COMP_WORDS[1]} == @(job|lab) ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$("${command[@]}" --help 2>/dev/null |
                sed -nE "s/^(usage:| ) +banyan ${COMP_WORDS[1]} ([a-z|]+).*/\\2/p" | tr '|' ' ')" -- "$current")
            return
        fi
    fi
    help=$("${command[@]}" --help 2>/dev/null)
    if [[ $current == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(grep -oE '^ +(-[A-Za-z], )?--[a-z-]+' <<<"$help" |
            grep -oE -- '-+[A-Za-z-]+')" -- "$current")
        return
    fi
    if [[ $previous == -* ]]; then
        # "--driver DRIVER   ...: auto, af_xdp, ring (default ...)": the words of a list.
        choices=$(awk -v option="$previous" '
            /^ +(-[A-Za-z], )?--[a-z-]+/ { inside = 0 }
            $0 ~ "^ +(-[A-Za-z], )?" option "[ =[]" || $0 ~ "^ +" option ", " { inside = 1 }
            inside { text = text " " $0 }
            END { if (match(text, /: [a-z0-9_-]+(, +[a-z0-9_-]+)+( +(or|and) +[a-z0-9_-]+)?/)) {
                      words = substr(text, RSTART + 2, RLENGTH - 2)
                      gsub(/, +| +(or|and) +/, " ", words)
                      print words } }' <<<"$help")
        if [[ -n $choices ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$current")
            return
        fi
    fi
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    compopt -o filenames 2>/dev/null
}
complete -F _banyan banyan banyand banyan-switchd banyan-perf banyan-run banyan-sim
