// The list of pages is closed where it would fill the screen.
'use strict';
document.querySelector('.menu').open = matchMedia('(min-width: 50em)').matches;

// Sections that have all words of the search box: those with the words in their titles first.
(() => {
    const MOST = 30;
    const input = document.getElementById('search');
    const results = document.getElementById('results');
    const up = document.body.dataset.up;

    const score = (words, [, page, , title, text]) => {
        const names = `${page} ${title}`.toLowerCase();
        const all = `${names} ${text.toLowerCase()}`;
        let sum = 0;
        for (const word of words) {
            if (!all.includes(word)) return 0;
            sum += (title.toLowerCase() === word ? 20 : 0) + (names.includes(word) ? 10 : 1);
        }
        return sum;
    };

    const excerpt = (words, text) => {
        const at = Math.max(0, text.toLowerCase().indexOf(words[0]) - 60);
        return (at ? '… ' : '') + text.slice(at, at + 180) + (text.length > at + 180 ? ' …' : '');
    };

    const row = (words, [page, pageTitle, id, title, text]) => {
        const item = document.createElement('li');
        const link = document.createElement('a');
        link.href = `${up}${page}#${id}`;
        link.textContent = title === pageTitle ? title : `${pageTitle}: ${title}`;
        const words_around = document.createElement('p');
        words_around.textContent = excerpt(words, text);
        item.append(link, words_around);
        return item;
    };

    const search = () => {
        const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
        results.hidden = words.length === 0;
        results.replaceChildren();
        if (results.hidden) return;
        const found = window.searchIndex.map(section => [score(words, section), section]).filter(([points]) => points > 0);
        found.sort((a, b) => b[0] - a[0]);
        const title = document.createElement('h2');
        title.textContent = found.length === 0 ? 'Nothing found' : found.length === 1 ? '1 section' : `${found.length} sections`;
        const list = document.createElement('ul');
        list.append(...found.slice(0, MOST).map(([, section]) => row(words, section)));
        results.append(title, list);
    };

    input.addEventListener('input', search);
    input.form.addEventListener('submit', event => {
        event.preventDefault();
        const first = results.querySelector('a');
        if (first) location.href = first.href;
    });
    results.addEventListener('click', event => {
        if (event.target.closest('a')) { input.value = ''; results.hidden = true; }
    });
    document.addEventListener('keydown', event => {
        if (event.key === '/' && document.activeElement !== input) { event.preventDefault(); input.focus(); }
        if (event.key === 'Escape') { input.value = ''; search(); }
    });
})();
