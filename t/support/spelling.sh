#!/bin/sh
# Common misspellings (codespell) in what people read: product, tests, documents. The list has
# words that tests misspell on purpose, parts of encoded text, names in programs, and French.
cd "$(dirname "$0")/../.." || exit 1
exec codespell -q 3 -L nd,te,fo,bu,sie,opne,concurency,isnt,swith,upto,authentification,adresse,invalide,limite -S '*/fuzz/corpus/*' -S '*/node_modules/*' \
    mta.c base mime sched queue smtp defrag admin t doc man etc .ci Makefile config.example *.md
