#!/bin/sh
# Prints the tests of what differs from HEAD, for `make quick`: unit tests of the rooms, those that use what has changed in t/,
# end-to-end tests that have changed themselves.
set -u
export LC_ALL=C
changed=$({ git diff --name-only HEAD; git ls-files --others --exclude-standard; } | sort -u)

# Of the room $1.
units() { ls "t/unit/$1"/*.c 2>/dev/null; }
for file in $changed; do
    case $file in
    t/unit/*.c | t/unit/*.t | t/e2e/*.t) [ ! -e "$file" ] || echo "$file" ;;
    t/support/*.[ch]) grep -lF "\"${file%.?}.h\"" -r t/unit ;;
    t/sim/*.[ch])
        grep -lF "\"${file%.?}.h\"" -r t/unit
        grep -h '^/\* link: ' -r t/unit | sort -u | sed 's,^/\* link: \(.*\) \*/$,\1,' | while read -r links; do
            case " $(echo $links) " in *" ${file%.?}.c "*) grep -lxF "/* link: $links */" -r t/unit ;; esac
        done ;;
    t/e2e/*.pm) name=${file##*/}; grep -lw "^use ${name%.pm}" t/e2e/*.t ;;
    t/roof/*.[ch] | t/roof/seeds/*) echo t/roof.c ;;
    t/crash/*.[ch]) echo t/crash.c ;;
    mta.c) units admin/startup ;;
    *.[ch]) units "${file%/*}" ;;
    esac
done | sort -u
