"""The scripts that make bash, zsh and fish ask shardctl for completions."""

from __future__ import annotations

SHELLS = ("bash", "zsh", "fish")

_HEAD = "Written by `_SHARDCTL_COMPLETE=source_{shell} shardctl`; see `shardctl help install`."

_BASH = r"""# Completion of shardctl in bash.
# @HEAD@
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
"""

_ZSH = r"""#compdef shardctl
# Completion of shardctl in zsh.
# @HEAD@

# To zsh train[40:] is a pattern of file names, to shardctl a subsplit.
alias shardctl='noglob shardctl'

_shardctl() {
  local line="${(j: :)words[1,CURRENT]}" program="${${(Q)words[1]}/#\~\//$HOME/}"
  local -a answers folders
  answers=("${(@f)$(
    _SHARDCTL_COMPLETE=complete_zsh _TYPER_COMPLETE_ARGS=$line "$program" 2>/dev/null
  )}")
  answers=(${answers:#})
  # After an option's '=' zsh completes the value alone.
  if compset -P '--[^=]#='; then
    answers=(${answers#--[^=]#=})
  fi
  # The name of a folder is not the end of a word.
  folders=(${(M)answers:#*/})
  answers=(${answers:#*/})
  if (( $#answers + $#folders )); then
    _describe -t values shardctl answers -- folders -S ''
  else
    _files
  fi
}

if [[ $funcstack[1] == _shardctl ]]; then
  _shardctl "$@"
else
  compdef _shardctl shardctl
fi
"""

_FISH = r"""# Completion of shardctl in fish.
# @HEAD@
function __shardctl_complete
    set -l program (string replace -r '^~/' "$HOME/" -- (commandline -opc)[1])
    set -l answers (env _SHARDCTL_COMPLETE=complete_fish \
        _TYPER_COMPLETE_ARGS=(commandline -cp | string join ' ') $program 2>/dev/null)
    if test (count $answers) -gt 0
        printf '%s\n' $answers
    else
        __fish_complete_path (commandline -ct)
    end
end

complete --command shardctl --no-files --arguments '(__shardctl_complete)'
"""

_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def completion_script(shell: str) -> str:
    """Return the completion script for one of `SHELLS`.

    >>> completion_script("zsh").splitlines()[0]
    '#compdef shardctl'
    """
    return _SCRIPTS[shell].replace("@HEAD@", _HEAD.format(shell=shell))
