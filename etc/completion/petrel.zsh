#compdef petrel
# Completion of petrel for zsh. The words are the program's own: petrel complete.
_petrel() {
    local line word
    local -a described
    for line in "${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}"; do
        word=${line%%$'\t'*}
        case $word in
        '') ;;
        @files) _files ;;
        *=) compadd -S '' -- "$word" ;;
        *) described+=("${word//:/\\:}:${line#*$'\t'}") ;;
        esac
    done
    (( $#described == 0 )) || _describe petrel described
}
# Loaded by itself as _petrel, or read by ~/.zshrc.
if [[ $funcstack[1] == _petrel ]]; then
    _petrel "$@"
elif (( $+functions[compdef] )); then
    compdef _petrel petrel
fi
