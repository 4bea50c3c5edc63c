#!/bin/sh
# How the code looks, as a test: sizes, first lines, header pairs, no forgotten marks.
cd "$(dirname "$0")/.." || exit 1
n=0 bad=0
result() {
    n=$((n + 1))
    if [ -z "$2" ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; echo "$2" | sed 's/^/#   /'; bad=1; fi
}
folders="base mime sched queue smtp defrag admin"
product=$(for d in $folders; do ls "$d"/*.[ch] "$d"/*/*.[ch] 2>/dev/null; done; echo mta.c)
tests=$(find t -name '*.[ch]')

# Braces of functions stand in column 0, so awk can measure.
result 'functions have at most 70 lines' "$(
    awk 'FNR == 1 { s = 0 } /^\{/ { s = FNR } /^\}/ { if (s && FNR - s > 70) print FILENAME ":" s " has " FNR - s " lines"; s = 0 }' $product $tests)"
result 'files have at most 1,200 lines' "$(wc -l $product $tests | awk '$2 != "total" && $1 > 1200 { print $2 " has " $1 " lines" }')"
result 'lines have at most 100 columns' "$(awk 'length($0) > 100 { print FILENAME ":" FNR }' $product)"
result 'a function has a name of its own, an exported one that of its module before it' "$(perl t/support/names.pl $product)"
result 'the first line of a file says its job' "$(awk 'FNR == 1 && !/^\/\* [A-Za-z`]/ { print FILENAME }' $product)"
result 'a header is its own .c first include' "$(
    awk 'FNR == 1 { seen = 0 } /^#include/ && !seen++ { print FILENAME, $2 }' $(printf '%s\n' $product | grep '\.c$') |
    while read -r f first; do h=${f%.c}.h; [ ! -f "$h" ] || [ "$first" = "\"$h\"" ] || echo "$f"; done)"
result 'an include guard is the path of its header' "$(
    awk 'function ends() { if (name != "" && found != 2) print name }
        FNR == 1 { ends(); name = FILENAME; found = 0; guard = toupper(substr(name, 1, length(name) - 2)) "_H"; gsub(/[\/-]/, "_", guard) }
        /^#(ifndef|define) / && NF == 2 && $2 == guard { found++ } END { ends() }' $(printf '%s\n' $product $tests | grep '\.h$'))"
result 'static_assert and sizeof(x) are written so' "$(grep -nE '_Static_assert|\bsizeof [a-z_*]' $product $tests)"
result 'no tabs, no trailing space' "$(grep -nP '\t| +$' $product $tests | cut -d: -f1,2)"
result 'no unfinished marks' "$(grep -nwE 'TODO|FIXME|XXX|HACK' $product)"
# CONTRIBUTING.md, "Asserts".
doors=$(ls base/loop/*.c base/disk/*.c base/net/*.c base/dns/*.c base/sandbox/*.c)
result 'no assert on what the system answered' "$(grep -nE 'assert\(.*\b(errno|error|got|result|code|status)\b' $doors)"
result 'no assert changes anything' "$(grep -nE 'assert\(' $product | sed 's/"[^"]*"//g' |
    grep -E 'assert\(.*(\+\+|--|[^=!<>]=[^=])')"
result 'only a start, or lack of memory, ends the process by name' "$(
    grep -nE '\b(_?exit|abort|kill|quick_exit)\(' $(ls $product | grep '\.c$') |
        grep -vE 'abort\(\); /\* |/\* abort|^(mta|base/loop/loop)\.c:')"
result 'documents and sections that comments name exist' "$(
    grep -hoE 'doc/[a-z/]+\.md`?( "[^"]*")?' $product $tests t/dialog/*.smtp *.md doc/*.md doc/dev/*.md |
    sort -u | while read -r file section; do
        file=${file%\`} section=$(printf '%s' "$section" | tr -d '"')
        [ -f "$file" ] || { echo "$file"; continue; }
        [ -z "$section" ] || grep -qxE "#+ $section" "$file" || echo "$file: $section"
    done)"
result 'files that documents name exist' "$(grep -hoP '(?<![\w/])(base|mime|sched|queue|smtp|defrag|admin|t)/[a-z0-9_/]*\.(c|h|t)\b' *.md doc/*.md doc/dev/*.md | sort -u |
    while read -r file; do [ -e "$file" ] || echo "$file"; done
    grep -hoE '`([a-z_]+/)?[a-z][a-z0-9_]*\.[ch]`' *.md doc/*.md doc/dev/*.md | tr -d '`' | sort -u |
    { printf '%s\n' $product $tests; echo; cat; } | awk '$0 == "" { asked = 1; next }
        !asked { for (at = $0; ; at = substr(at, index(at, "/") + 1)) { there[at] = 1; if (!index(at, "/")) break }; next }
        !($0 in there)')"
result 'functions that documents name exist' "$(
    { grep -hoE '^[a-z0-9_]+\(' $product $tests | sort -u; echo; grep -hoE '`[a-z0-9_]+\(\)' *.md doc/*.md doc/dev/*.md | tr -d '`)' | sort -u; } |
    awk '$0 == "" { asked = 1; next } !asked { there[$0] = 1; next } !($0 in there) { print $0 ")" }'
    cat *.md doc/*.md doc/dev/*.md | tr '\n' ' ' | tr -s ' ' | grep -oE '`[a-z_/]+\.c`: `[a-z0-9_]+\(\)|`[a-z0-9_]+\(\)` in `[a-z_/]+\.c`' |
    sed -E 's/^`([^`]*\.c)`: `(.*)\(\)$/\1 \2/; s/^`(.*)\(\)` in `(.*)`$/\2 \1/' | sort -u |
    while read -r file f; do grep -qE "^$f\(" "$file" || echo "$f() is not in $file"; done)"
# CONTRIBUTING.md, "Words".
result 'documents use the words of the field' "$(perl t/support/words.pl texts *.md doc/*.md doc/dev/*.md man/* config.example etc/petrel.*)"
result 'replies, log and commands use them, too' "$(perl t/support/words.pl literals $product)"
result 'no sentence stands in a line of fonts, which joins its words' "$(grep -nE '^\.[BIR]{2} .* [.,:;] [A-Z][a-z]* [a-z]' man/*)"
result 'so do comments' "$(perl t/support/words.pl comments $product)"
result 'comments begin with their subject, not with What, Who or Of' "$(grep -nE '(/\*|//) *(--- )?(What|Who|Whose|Whoever|Whatever|Of)\b' $product $tests | cut -d: -f1,2)"
result 'ARCHITECTURE.md has the rooms of t/layers.t, and stays a map' "$(
    { sed -n 's/^may \([a-z/]*\).*/\1/p' t/layers.t
      grep -oE '^\| [a-z/]+/ ' ARCHITECTURE.md | sed 's/^| //; s,/ $,,'; } | sort | uniq -u
    awk 'length > 100 { print "line " FNR " is too long" } END { if (FNR > 195) print FNR " lines" }
         /^\|/ && last ~ /^\|/ && length != length(last) { print "line " FNR " is not aligned" } { last = $0 }' ARCHITECTURE.md)"
result 'make help has a sentence for every target' "$(sed -n 's/^\.PHONY: \$([^)]*)//p' Makefile | tr ' ' '\n' | grep . |
    while read -r target; do grep -qE "^$target:.* ## [A-Z].*\.\$" Makefile || echo "$target"; done)"
result 'one address for reports, in security.txt and the packages (make contact)' "$(
    { sed -n 's/^Contact: mailto://p' security.txt; sed -n 's/^Maintainer:.*<\(.*\)>/\1/p' debian/control
      sed -n 's/^ -- .*<\(.*\)>.*/\1/p' debian/changelog | head -1; } | sort -u | sed 1d)"
result 'the index of petrel.conf(5) has each setting, and nothing else' "$(
    { sed -n 's/^#\([a-z_]*\) =.*/\1/p' config.example; sed -n '/^.SH INDEX/,/^.SH FILES/s/^\([a-z_]*\)\t.*/\1/p' man/petrel.conf.5; } | sort | uniq -u)"
result 'and says in which part of the page each is' "$(awk '
    /^\.S[HS] / { part = substr($0, 5); index_ = part == "INDEX" }
    tag && match($0, /^\.BI? [a-z_]+ =/) { split($0, word, " "); if (!(word[2] in at)) at[word[2]] = part }
    { tag = /^\.TP/ }
    index_ && split($0, row, "\t") == 2 && at[row[1]] != row[2] { print row[1] " is in " at[row[1]] }' man/petrel.conf.5)"
result 'no merge left its marks' "$(git grep -nE '^(<{7}|>{7}) ' -- ':!t/fuzz/corpus' 2>/dev/null)"
result 'a test program with a main() of its own runs its TEST()s' "$(grep -l '^TEST(' $(git ls-files 't/unit/*.c' 2>/dev/null || find t/unit -name '*.c') |
    xargs grep -l '^main(' | xargs grep -L 'tap_tests(')"
result 'every module has a unit test' "$(
    tested=$(echo "$tests" | sed -n 's,^t/unit/.*/\([^/]*\)\.c$,\1,p' | tr '\n' ' ')
    included=$(grep -hoE '^#include "[^"]*"' $tests | sort -u | cut -d'"' -f2 | tr '\n' ' ')
    for f in $product; do
        case $f in *.h | defrag/*) continue ;; esac
        h=${f%.c}.h m=${f##*/} m=${m%.c} # x_part is tested as a part of x
        [ -f "$h" ] || continue
        case " $tested $included" in *" $m "* | *" ${m%%_*} "* | *" $h "*) ;; *) echo "$f" ;; esac
    done)"
result 'SECURITY.md names tests that exist' "$(grep -oE '\bt/[a-z0-9_/.]*[a-z0-9]' SECURITY.md | sort -u |
    while read -r f; do [ -e "$f" ] || echo "$f"; done)"
# Versions differ in taste; Debian 12's decides.
if codespell --version 2>/dev/null | grep -q '^2\.2\.'; then
    result 'words are spelled right' "$(t/support/spelling.sh)"
else
    n=$((n + 1)); echo "ok $n # SKIP codespell 2.2 is not installed"
fi
if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
    result 'clang-format agrees' "$(clang-format --dry-run $product 2>&1 | grep warning: | cut -d: -f1 | sort | uniq -c)"
else
    n=$((n + 1)); echo "ok $n # SKIP clang-format 14 is not installed"
fi
echo "1..$n"
exit $bad
