# Completion of petrel for fish. The words are the program's own: petrel complete.
function __petrel_words
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l found ($words[1] complete -- $words[2..-1] "$typed" 2>/dev/null)
    if contains -- @files $found
        __fish_complete_path "$typed"
    else
        printf '%s\n' $found
    end
end
complete -c petrel -f -a '(__petrel_words)'
