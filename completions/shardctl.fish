# Completion of shardctl in fish.
# Written by `shardctl completion fish`; see `shardctl help install`.
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
