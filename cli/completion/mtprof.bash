# SPDX-License-Identifier: Apache-2.0
#
# bash completion for mtprof. The command itself knows what may come next; this passes words on.
_mtprof() {
    local current=${COMP_WORDS[COMP_CWORD]} line before files=
    COMPREPLY=()
    # bash splits words at '=' and ':': put them together again, and remember what stands before.
    local -a words=()
    local i word joined=
    for ((i = 1; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word == [=:] && ${#words[@]} -gt 0 ]]; then
            words[-1]+=$word
            joined=yes
        elif [[ -n $joined ]]; then
            words[-1]+=$word
            joined=
        else
            words+=("$word")
        fi
    done
    [[ -z $joined ]] || current=
    before=${words[-1]%"$current"}
    while IFS= read -r line; do
        if [[ $line == :files ]]; then
            files=yes
        else
            line=${line%%$'\t'*}
            COMPREPLY+=("${line#"$before"}")
        fi
    done < <("${COMP_WORDS[0]}" __complete "${words[@]}" 2>/dev/null)
    if [[ -n $files ]]; then
        while IFS= read -r line; do
            COMPREPLY+=("$line")
        done < <(compgen -f -- "$current")
        compopt -o filenames 2>/dev/null
    fi
}
complete -F _mtprof mtprof
