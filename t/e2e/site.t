#!/usr/bin/perl
# `make site`: each link leads somewhere, no page asks another host for anything, and a search finds a setting. In Chromium no
# page is wider than its window, and axe finds no barrier.
use lib 't/e2e';
use E2E;
use PageBrowser;

plan skip_all => "$_ is not installed" for grep { !Petrel::have($_) } qw(cmark-gfm mandoc python3);

my $site = tempdir('site-XXXXXX', TMPDIR => 1, CLEANUP => 1) . '/site';
my ($code, $said) = Petrel::command('', 'python3', "$Petrel::root/etc/site/site.py", $Petrel::root, $site);
is $code, 0, 'all links lead somewhere' or diag $said;
my @pages = map { chomp; $_ } `find $site -name '*.html'`;
cmp_ok scalar @pages, '>', 40, 'pages';
is_deeply [grep { Petrel::slurp($_) =~ m{<(?:script|link|img|iframe)\b[^>]*(?:src|href)="(?:[a-z]+:)?//} } @pages], [], 'none asks another host';
my %known = map { $_ => 1 } Petrel::slurp("$Petrel::root/config.example") =~ /^#(\w+) =/mg;
my $index = Petrel::slurp("$site/search-index.js");
is_deeply [grep { $index !~ /"\Q$_\E\b/ } sort keys %known], [], 'a search finds each setting by its name';
SKIP: {
    skip PageBrowser::missing(), 1 if PageBrowser::missing();
    PageBrowser::run(240, 10, {}, 'site.mjs', $site);
}
done_testing;
