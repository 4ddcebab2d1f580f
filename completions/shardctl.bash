# Completion of shardctl in bash.
# Written by `_SHARDCTL_COMPLETE=source_bash shardctl`; see `shardctl help install`.
_shardctl_completion() {
    local line=${COMP_LINE:0:${COMP_POINT:-0}} word cut= breaks answer
    [[ -n $line ]] || line="${COMP_WORDS[*]:0:COMP_CWORD+1}"
    # Bash completes what follows the last ':' or '=' of a word, outside quotes; shardctl answers
    # with whole words.
    word=${line##*[[:space:]]}
    breaks=${COMP_WORDBREAKS//[!:=]/}
    if [[ -n $breaks && $word != [\'\"]* ]]; then
        cut=${word%"${word##*["$breaks"]}"}
    fi
    COMPREPLY=()
    while IFS= read -r answer; do
        COMPREPLY+=("${answer#"$cut"}")
    done < <(_SHARDCTL_COMPLETE=complete_bash _TYPER_COMPLETE_ARGS=$line \
        "${1/#\~\//$HOME/}" 2>/dev/null)
}

complete -o default -F _shardctl_completion shardctl
