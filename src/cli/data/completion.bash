
_deaddrop() {
    _clap_complete_deaddrop "$@"
    [[ $2 == -* ]] && return
    local word kept=()
    for word in "${COMPREPLY[@]}"; do
        [[ $word == -* || $word == . ]] || kept+=("$word")
    done
    COMPREPLY=("${kept[@]}")
}
complete -o nospace -o bashdefault -o filenames -F _deaddrop deaddrop
