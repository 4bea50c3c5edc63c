# Completion of petrel for bash. The words are the program's own: petrel complete.
_petrel() {
    local line=${COMP_LINE:0:COMP_POINT} word words
    # Not COMP_WORDS: bash breaks words at '=' and ':'.
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=('')
    COMPREPLY=()
    while IFS=$'\t' read -r word _; do
        case $word in
        @files)
            compopt -o filenames
            mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
            ;;
        *=)
            compopt -o nospace
            COMPREPLY+=("$word")
            ;;
        *) COMPREPLY+=("$word") ;;
        esac
    done < <("$1" complete -- "${words[@]:1}" 2>/dev/null)
}
complete -F _petrel petrel
