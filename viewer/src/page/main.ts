// The page: opens a file, shows its tree, and beside it what is chosen there.
import type { Node, Opened } from '../shared/protocol.js';
import { bytesText, plural, shown } from '../shared/text.js';
import { CancelError, Client, type Call } from './client.js';
import { DetailView, errorElement, progressBar } from './detail.js';
import { announce, byId, h } from './dom.js';
import { Tree } from './tree.js';

/** The key under which a typed URL survives the reload that allows the page to read it. */
const TYPED = 'tenarc-viewer-url';

/** Narrows what the page may connect to. Policies add up: none can allow again what another forbids. */
function allowOnly(source: string): void {
  document.head.append(h('meta', { 'http-equiv': 'Content-Security-Policy', content: `connect-src ${source}` }));
}

let client: Client | undefined;

async function open(from: File | string, name: string): Promise<void> {
  client?.close();
  const own = (client = new Client());
  document.title = `${name} – tenarc viewer`;
  byId('start').hidden = true;
  byId('file').hidden = false;
  byId('file-name').textContent = shown(name, 120);
  byId('file-facts').textContent = 'opening…';
  byId('warnings').replaceChildren();
  const detail = byId('detail');
  const sidebar = byId('tree');
  detail.replaceChildren();
  sidebar.replaceChildren();
  let opened: Opened;
  try {
    opened = await own.get('open', { from });
  } catch (error) {
    if (own !== client || error instanceof CancelError) return;
    byId('file-facts').textContent = 'not opened';
    byId('contents').hidden = true;
    detail.replaceChildren(h('h1', { tabindex: -1, id: 'detail-title' }, shown(name, 120)), errorElement(error));
    byId('detail-title').focus();
    return;
  }
  if (own !== client) return;
  byId('file-facts').textContent = `${opened.format}, ${bytesText(opened.size)}`;
  byId('warnings').replaceChildren(...opened.warnings.map((text) => h('p', { role: 'status' }, shown(text))));
  byId('contents').hidden = false;
  showFile(own, opened, name);
  announce(`${name} is open: ${opened.format}, ${bytesText(opened.size)}`);
}

function showFile(own: Client, opened: Opened, name: string): void {
  const sidebar = byId('tree');
  const view = new DetailView(own, byId('detail'));
  const failed = (error: unknown) => {
    if (!(error instanceof CancelError)) byId('detail').replaceChildren(errorElement(error));
  };
  const check = h('div', { class: 'check' });
  resetCheck(own, opened, check);
  const select = async (node: Node, from: Tree) => {
    if (await from.showMore(node)) return;
    const isFile = node.id === opened.root.id;
    await view.show(node, isFile ? name : node.path || node.name, isFile ? check : null);
    // Where the tree is above the details, these may be below the end of the window.
    if (!isFile && matchMedia('(max-width: 720px)').matches) byId('detail').scrollIntoView({ block: 'start' });
  };
  const tree: Tree = new Tree(own, shown(name, 120), (node) => void select(node, tree), failed);
  const found: Tree = new Tree(own, 'Search results', (node) => void select(node, found), failed);
  sidebar.replaceChildren(tree.element);
  void tree.showRoot(opened.root);
  // What had the focus is hidden now.
  tree.focus();

  const input = byId<HTMLInputElement>('search');
  const note = byId('search-note');
  input.value = '';
  note.textContent = '';
  let search: Call<unknown> | undefined;
  let timer = 0;
  input.oninput = () => {
    window.clearTimeout(timer);
    search?.cancel();
    const text = input.value.trim();
    if (text === '') {
      note.textContent = '';
      sidebar.replaceChildren(tree.element);
      return;
    }
    timer = window.setTimeout(() => {
      const call = own.call('search', { text });
      search = call;
      call.result.then(
        ({ matches, note: more }) => {
          const count = plural(matches.length, 'match', 'matches');
          note.textContent = more ? `${count}; ${more}` : count;
          found.show(matches, true);
          sidebar.replaceChildren(found.element);
          announce(note.textContent);
        },
        (error: unknown) => {
          if (!(error instanceof CancelError))
            note.textContent = error instanceof Error ? shown(error.message) : String(error);
        },
      );
    }, 150);
  };
  input.onkeydown = (event) => {
    if (event.key === 'Escape' && input.value !== '') {
      input.value = '';
      input.dispatchEvent(new Event('input'));
    } else if (event.key === 'ArrowDown') {
      (input.value.trim() === '' ? tree : found).focus();
    } else return;
    event.preventDefault();
  };
}

/** The button that verifies the file; its place later has the bar and the result. */
function resetCheck(own: Client, opened: Opened, place: HTMLElement): void {
  if (opened.check === null) {
    place.replaceChildren(
      h(
        'p',
        { class: 'hint' },
        `${opened.format} files have no checksums. The places and lengths of all tensors were checked.`,
      ),
    );
    return;
  }
  const button = h('button', { type: 'button', id: 'verify' }, 'Verify');
  button.addEventListener('click', () => {
    const call = own.call('verify', {}, (done, total) => bar.set(done, total));
    const bar = progressBar('Verifying', () => {
      call.cancel();
      resetCheck(own, opened, place);
      place.querySelector('button')?.focus();
    });
    place.replaceChildren(bar.element);
    bar.element.querySelector('button')!.focus();
    announce('Verifying');
    call.result.then(
      (text) => place.replaceChildren(h('p', { class: 'good', role: 'status' }, h('strong', {}, 'Verified. '), text)),
      (error: unknown) => {
        if (error instanceof CancelError) return;
        const message = error instanceof Error ? error.message : String(error);
        place.replaceChildren(
          h(
            'div',
            { class: 'fault', role: 'alert' },
            h('strong', {}, 'This file is damaged.'),
            h('p', {}, shown(message, 2000)),
          ),
        );
      },
    );
  });
  place.replaceChildren(button, h('span', { class: 'hint' }, opened.check));
}

function openUrl(text: string): void {
  let url: URL;
  try {
    url = new URL(text);
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new Error();
  } catch {
    const place = byId('url-error');
    place.textContent = 'This is not the address of a file: it should start with https:// or http://.';
    byId('url').setAttribute('aria-invalid', 'true');
    return;
  }
  try {
    sessionStorage.setItem(TYPED, url.href);
  } catch {
    byId('url-error').textContent = 'This browser lets no page of this kind keep the address while it reloads.';
    return;
  }
  location.reload();
}

function start(): void {
  const params = new URLSearchParams(location.search);
  let typed: string | null = null;
  try {
    typed = sessionStorage.getItem(TYPED);
    sessionStorage.removeItem(TYPED);
  } catch {
    // Some browsers give pages without a server no storage; then no URL can have been typed.
  }
  // The server of `tenarc view` has one file beside the page.
  const served = location.protocol.startsWith('http') ? params.get('file') : null;
  const url = typed ?? (served === null ? null : new URL('file', location.href).href);
  // Without its query, which policies do not compare, and without characters that would end the address in a policy.
  const source = url?.replace(/[?#].*$/s, '').replace(/[;,\s']/g, encodeURIComponent);
  allowOnly(source ?? "'none'");

  const pick = byId<HTMLInputElement>('pick');
  pick.addEventListener('change', () => {
    const [file] = pick.files ?? [];
    if (file) void open(file, file.name);
    pick.value = '';
  });
  for (const id of ['choose', 'open-other']) byId(id).addEventListener('click', () => pick.click());
  byId('url-form').addEventListener('submit', (event) => {
    event.preventDefault();
    openUrl(byId<HTMLInputElement>('url').value.trim());
  });
  byId('close').addEventListener('click', () => {
    client?.close();
    client = undefined;
    byId('file').hidden = true;
    byId('start').hidden = false;
    document.title = 'tenarc viewer';
    byId('choose').focus();
  });

  let depth = 0;
  const over = (isOver: boolean) => document.body.classList.toggle('over', isOver);
  addEventListener('dragenter', (event) => {
    event.preventDefault();
    depth++;
    over(true);
  });
  addEventListener('dragover', (event) => event.preventDefault());
  addEventListener('dragleave', () => over(--depth > 0));
  addEventListener('drop', (event) => {
    event.preventDefault();
    depth = 0;
    over(false);
    const [file] = event.dataTransfer?.files ?? [];
    if (file) void open(file, file.name);
  });
  addEventListener('keydown', (event) => {
    const isTyping = event.target instanceof HTMLInputElement;
    if (event.key === '/' && !isTyping && !byId('file').hidden) {
      byId('search').focus();
      event.preventDefault();
    }
  });
  if (url) void open(url, served !== null && typed === null ? served : decodeName(url));
}

function decodeName(url: string): string {
  const last = new URL(url).pathname.split('/').pop() || url;
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}

start();
