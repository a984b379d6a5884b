// What the pages of the site do in a browser, in place of mdBook's own script, which Debian's mdBook
// does not have: colours in blocks of code, a button that copies a block, the list of pages, and the theme.
'use strict';

(function code() {
    for (const block of document.querySelectorAll('pre code')) {
        const language = [...block.classList].find((c) => c.startsWith('language-'));
        if (window.hljs && language && hljs.getLanguage(language.slice('language-'.length))) {
            hljs.highlightBlock(block);
        }
        block.classList.add('hljs');
        if (!navigator.clipboard) {
            continue;
        }
        const buttons = document.createElement('div');
        const copy = document.createElement('button');
        buttons.className = 'buttons';
        copy.className = 'fa fa-copy clip-button';
        copy.title = 'Copy to clipboard';
        copy.setAttribute('aria-label', copy.title);
        copy.addEventListener('click', () => {
            navigator.clipboard.writeText(block.textContent.replace(/^\$ /gm, ''));
            copy.className = 'fa fa-check clip-button';
            setTimeout(() => { copy.className = 'fa fa-copy clip-button'; }, 1000);
        });
        buttons.append(copy);
        block.parentElement.prepend(buttons);
    }
})();

function store(key, value) {
    try {
        if (value === null) {
            localStorage.removeItem(key);
        } else {
            localStorage.setItem(key, value);
        }
    } catch (e) { /* a browser that stores nothing */ }
}

(function sidebar() {
    const root = document.documentElement;
    const toggle = document.getElementById('sidebar-toggle-anchor');
    const panel = document.getElementById('sidebar');
    const show = () => {
        root.classList.toggle('sidebar-visible', toggle.checked);
        root.classList.toggle('sidebar-hidden', !toggle.checked);
        document.getElementById('sidebar-toggle').setAttribute('aria-expanded', toggle.checked);
        panel.setAttribute('aria-hidden', !toggle.checked);
        for (const link of panel.querySelectorAll('a')) {
            link.tabIndex = toggle.checked ? 0 : -1;
        }
    };
    toggle.addEventListener('change', () => {
        show();
        store('mdbook-sidebar', toggle.checked ? 'visible' : 'hidden');
    });
    show();
})();

(function themes() {
    const root = document.documentElement;
    const button = document.getElementById('theme-toggle');
    const list = document.getElementById('theme-list');
    const names = [...list.querySelectorAll('button.theme')].map((b) => b.id);
    const dark = window.matchMedia('(prefers-color-scheme: dark)');
    const byDefault = () => (dark.matches ? default_dark_theme : default_light_theme);
    const sheets = {
        light: 'highlight-css', rust: 'highlight-css', ayu: 'ayu-highlight-css',
        coal: 'tomorrow-night-css', navy: 'tomorrow-night-css',
    };
    const stored = () => {
        try {
            return localStorage.getItem('mdbook-theme');
        } catch (e) {
            return null;
        }
    };
    const apply = () => {
        const theme = names.includes(stored()) && stored() !== 'default_theme' ? stored() : byDefault();
        root.classList.remove(...names);
        root.classList.add(theme);
        for (const id of new Set(Object.values(sheets))) {
            const sheet = document.getElementById(id) || document.querySelector(`[href$="${id.replace('-css', '.css')}"]`);
            if (sheet) {
                sheet.disabled = sheets[theme] !== id;
            }
        }
    };
    const open = (yes) => {
        list.style.display = yes ? 'block' : 'none';
        button.setAttribute('aria-expanded', yes);
    };
    button.addEventListener('click', () => open(list.style.display !== 'block'));
    list.addEventListener('click', (e) => {
        const chosen = e.target.closest('button.theme');
        if (chosen) {
            store('mdbook-theme', chosen.id === 'default_theme' ? null : chosen.id);
            apply();
            open(false);
        }
    });
    document.addEventListener('click', (e) => {
        if (!button.contains(e.target) && !list.contains(e.target)) {
            open(false);
        }
    });
    document.addEventListener('keydown', (e) => {
        if (e.key === 'Escape') {
            open(false);
        }
    });
    dark.addEventListener('change', apply);
    apply();
})();
