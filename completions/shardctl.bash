# Completion of shardctl in bash.
# Written by `shardctl completion bash`; see `shardctl help install`.
_shardctl_completion() {
    local line=${COMP_LINE:0:${COMP_POINT:-0}} answer
    [[ -n $line ]] || line="${COMP_WORDS[*]:0:COMP_CWORD+1}"
    COMPREPLY=()
    # Bash puts an answer in place of $2: a word with its quotes, or what follows an open quote or
    # the last ':' or '=' of it. Shardctl answers with what belongs there.
    while IFS= read -r answer; do
        COMPREPLY+=("$answer")
        # The name of a folder is not the end of a word.
        [[ $answer != */ && $answer != */[\'\"] ]] || compopt -o nospace 2>/dev/null
    done < <(_SHARDCTL_COMPLETE=complete_bash _SHARDCTL_COMPLETE_TEXT=$2 \
        _TYPER_COMPLETE_ARGS=$line "${1/#\~\//$HOME/}" 2>/dev/null)
}

complete -o default -F _shardctl_completion shardctl
