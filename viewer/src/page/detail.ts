// The right side of the page: everything about one node.
import type { Detail, Fact, Node, Rows, Share, Statistics, TensorDetail } from '../shared/protocol.js';
import { bytesText, countText, numberText, plural, shown } from '../shared/text.js';
import { histogram, pictureElement } from './charts.js';
import { CancelError, FaultError, type Call, type Client } from './client.js';
import { announce, h } from './dom.js';

const PAGE = 50;

export function errorElement(error: unknown): HTMLElement {
  const title = error instanceof FaultError ? 'This cannot be read.' : 'Something went wrong.';
  const message = error instanceof Error ? error.message : String(error);
  return h('div', { class: 'fault', role: 'alert' }, h('strong', {}, title), h('p', {}, shown(message, 2000)));
}

/** Replaces what an element has by what comes, or by the error. What comes too late is dropped. */
async function fill<T>(
  place: HTMLElement,
  call: Call<T>,
  isCurrent: () => boolean,
  show: (result: T) => HTMLElement | null,
): Promise<void> {
  try {
    const result = await call.result;
    if (isCurrent()) place.replaceChildren(show(result) ?? '');
  } catch (error) {
    if (isCurrent() && !(error instanceof CancelError)) place.replaceChildren(errorElement(error));
  }
}

/** Names and values: side by side if they are short, and otherwise line by line. */
export function facts(list: Fact[], label: string, isShort = true): HTMLElement | null {
  if (list.length === 0) return null;
  return h(
    'dl',
    { class: isShort ? 'facts tiles' : 'facts', 'aria-label': label },
    ...list.map(([name, value]) =>
      h('div', {}, h('dt', {}, h('bdi', {}, shown(name))), h('dd', {}, h('bdi', {}, shown(value, 4000)))),
    ),
  );
}

/** How much there is of each dtype, as bars. */
function shareBars(shares: Share[]): HTMLElement {
  const total = shares.reduce((sum, share) => sum + share.bytes, 0) || 1;
  return h(
    'table',
    { class: 'shares' },
    h(
      'thead',
      { class: 'unseen' },
      h('tr', {}, ...['dtype', 'share', 'bytes', 'tensors'].map((name) => h('th', { scope: 'col' }, name))),
    ),
    h(
      'tbody',
      {},
      ...shares.map(({ dtype, tensors, bytes }) => {
        const bar = h('div', { class: 'share', role: 'img', 'aria-label': `${numberText((100 * bytes) / total, 2)} %` });
        bar.style.width = `${(100 * bytes) / total}%`;
        return h(
          'tr',
          {},
          h('th', { scope: 'row' }, shown(dtype, 40)),
          h('td', {}, bar),
          h('td', {}, bytesText(bytes)),
          h('td', {}, plural(tensors, 'tensor')),
        );
      }),
    ),
  );
}

function section(title: string, ...children: (HTMLElement | null)[]): HTMLElement {
  const id = `s${Math.random().toString(36).slice(2)}`;
  return h('section', { 'aria-labelledby': id }, h('h2', { id }, title), ...children);
}

/** A bar that shows how far a request is, with a button that stops it. */
export function progressBar(
  label: string,
  stop: () => void,
): { element: HTMLElement; set(done: number, total: number): void } {
  const bar = h('progress', { max: 1, value: 0, 'aria-label': label });
  const text = h('span', { class: 'percent' }, '0 %');
  return {
    element: h('div', { class: 'progress' }, bar, text, h('button', { type: 'button', onclick: stop }, 'Stop')),
    set(done, total) {
      const part = total > 0 ? Math.min(1, done / total) : 0;
      bar.value = part;
      text.textContent = `${Math.floor(100 * part)} %`;
    },
  };
}

export class DetailView {
  private shown = 0;
  private calls: Call<unknown>[] = [];

  constructor(
    private readonly client: Client,
    private readonly place: HTMLElement,
  ) {}

  /** Shows a node, in place of what was shown before. */
  async show(node: Node, title: string, extra: HTMLElement | null): Promise<void> {
    const turn = ++this.shown;
    for (const call of this.calls) call.cancel();
    this.calls = [];
    let detail: Detail;
    const isCurrent = () => this.shown === turn;
    const call = this.call('detail', { node: node.id });
    try {
      detail = await call.result;
    } catch (error) {
      if (isCurrent() && !(error instanceof CancelError)) this.place.replaceChildren(heading(title), errorElement(error));
      return;
    }
    if (!isCurrent()) return;
    const parts: (HTMLElement | null)[] = [heading(title), facts(detail.facts, 'Facts'), extra];
    if (detail.text !== null) parts.push(h('pre', { class: 'content', tabindex: 0 }, cut(detail.text)));
    if (detail.shares.length > 0) parts.push(section('Dtypes', shareBars(detail.shares)));
    if (detail.table) parts.push(this.table(detail, isCurrent));
    if (detail.tensor) parts.push(...this.tensor(detail, detail.tensor, isCurrent));
    if (detail.metadata.length > 0) parts.push(section('Metadata', facts(detail.metadata, 'Metadata', false)));
    this.place.replaceChildren(...parts.filter((part) => part !== null));
    this.place.scrollTop = 0;
    announce(
      `${shown(title, 100)}. ${detail.facts
        .map(([name, value]) => `${name} ${value}`)
        .slice(0, 3)
        .join(', ')}`,
    );
  }

  private call: Client['call'] = (method, params, progress) => {
    const call = this.client.call(method, params, progress);
    this.calls.push(call);
    return call;
  };

  private tensor({ node }: Detail, tensor: TensorDetail, isCurrent: () => boolean): (HTMLElement | null)[] {
    if (tensor.unreadable !== null)
      return [h('p', { class: 'hint' }, `The elements are not shown: ${shown(tensor.unreadable)}.`)];
    if (tensor.elements === 0) return [h('p', { class: 'hint' }, 'This tensor has no elements.')];
    const name = shown(node.name, 100);
    const statistics = h('div', { class: 'wait' });
    this.statistics(statistics, node, tensor, isCurrent);
    const parts = [section('Statistics', statistics)];
    if (tensor.elements > 1) parts.push(this.pictures(node, tensor, name, isCurrent));
    return parts;
  }

  private statistics(place: HTMLElement, node: Node, tensor: TensorDetail, isCurrent: () => boolean): void {
    const show = (found: Statistics): HTMLElement => {
      const isSample = found.read < found.elements;
      const parts: (HTMLElement | null)[] = [];
      if (isSample) {
        const button = h('button', { type: 'button' }, `Read all ${bytesText(tensor.bytes)}`);
        button.addEventListener('click', () => {
          const call = this.call('statistics', { node: node.id, all: true }, (done, total) => bar.set(done, total));
          const bar = progressBar('Reading all elements', () => {
            call.cancel();
            place.replaceChildren(show(found));
          });
          place.replaceChildren(bar.element);
          void fill(place, call, isCurrent, (all) => {
            announce('Statistics of all elements are shown.');
            return show(all);
          });
        });
        const share = numberText((100 * found.read) / found.elements, 2);
        parts.push(
          h(
            'p',
            { class: 'sample' },
            h(
              'span',
              {},
              `Estimated from a sample: ${countText(found.read)} of ${countText(found.elements)} elements (${share} %).`,
            ),
            button,
          ),
        );
      }
      parts.push(facts(statisticsFacts(found), 'Statistics'), histogram(found));
      return h('div', {}, ...parts);
    };
    void fill(place, this.call('statistics', { node: node.id, all: false }), isCurrent, show);
  }

  private pictures(node: Node, tensor: TensorDetail, name: string, isCurrent: () => boolean): HTMLElement {
    const picture = h('div', { class: 'wait' });
    const values = h('div', { class: 'wait' });
    const isLine = tensor.shape.length < 2;
    let isImage = tensor.image !== null && tensor.image.channels > 1;
    const leading = tensor.leading.map(() => 0);
    const axisChoices: HTMLElement[] = [];
    const draw = () => {
      const axes = isImage ? tensor.image!.leading.length : leading.length;
      // An image has the other axes in itself.
      axisChoices.forEach((one) => (one.hidden = Number(one.dataset.axis) >= axes));
      const params = { node: node.id, leading: leading.slice(0, axes), image: isImage };
      void fill(picture, this.call('picture', params), isCurrent, (found) => pictureElement(found, name));
      void fill(values, this.call('values', { node: node.id, leading }), isCurrent, valuesTable);
    };
    const choices = h('div', { class: 'choices' });
    if (tensor.image) {
      const button = (label: string, image: boolean) =>
        h(
          'button',
          {
            type: 'button',
            'aria-pressed': String(isImage === image),
            onclick: (event: Event) => {
              isImage = image;
              for (const one of choices.querySelectorAll('[aria-pressed]'))
                one.setAttribute('aria-pressed', String(one === event.currentTarget));
              draw();
            },
          },
          label,
        );
      choices.append(
        h(
          'div',
          { class: 'switch', role: 'group', 'aria-label': 'Kind of picture' },
          button('Heat map', false),
          button('Image', true),
        ),
      );
    }
    tensor.leading.forEach((size, axis) => {
      if (size < 2) return;
      const input = h('input', { type: 'number', min: 0, max: size - 1, value: 0, id: `axis${axis}` });
      input.addEventListener('change', () => {
        const index = Math.min(size - 1, Math.max(0, Math.trunc(Number(input.value) || 0)));
        input.value = String(index);
        leading[axis] = index;
        draw();
      });
      axisChoices.push(
        h('label', { class: 'axis-choice', 'data-axis': axis }, `axis ${axis} `, input, ` of ${countText(size)}`),
      );
    });
    choices.append(...axisChoices);
    draw();
    return h(
      'div',
      {},
      section(
        isLine ? 'Elements in order' : tensor.image ? 'Picture' : 'Heat map',
        choices.childElementCount > 0 ? choices : null,
        picture,
      ),
      section('First values', values),
    );
  }

  private table({ node, table }: Detail, isCurrent: () => boolean): HTMLElement {
    const place = h('div', { class: 'wait' });
    let sort: { path: string[]; descending: boolean } | null = null;
    let start = 0;
    const { rows, sortLimit } = table!;
    const canSort = rows <= sortLimit;
    const load = (focus?: string) => {
      const call = this.call('rows', { node: node.id, start, end: start + PAGE, sort });
      place.setAttribute('aria-busy', 'true');
      const scrolled = place.querySelector('.scroll')?.scrollLeft ?? 0;
      void fill(place, call, isCurrent, (found) => h('div', {}, grid(found), pager())).finally(() => {
        place.removeAttribute('aria-busy');
        place.querySelector('.scroll')?.scrollTo({ left: scrolled });
        if (focus) place.querySelector<HTMLElement>(`[data-focus="${focus}"]`)?.focus({ preventScroll: true });
      });
    };
    const move = (to: number, focus: string) => {
      start = Math.max(0, Math.min(to, Math.floor((rows - 1) / PAGE) * PAGE));
      load(focus);
      announce(`Rows ${start} to ${Math.min(rows, start + PAGE) - 1}`);
    };
    const pager = () => {
      const last = Math.max(0, Math.floor((rows - 1) / PAGE) * PAGE);
      const button = (label: string, mark: string, to: number, focus: string, isOff: boolean) =>
        h(
          'button',
          {
            type: 'button',
            'aria-label': label,
            title: label,
            'data-focus': focus,
            disabled: isOff,
            onclick: () => move(to, focus),
          },
          mark,
        );
      return h(
        'nav',
        { class: 'pager', 'aria-label': 'Rows' },
        button('First rows', '«', 0, 'first', start === 0),
        button('Previous rows', '‹', start - PAGE, 'previous', start === 0),
        h(
          'span',
          {},
          rows === 0
            ? 'no rows'
            : `${countText(start)} – ${countText(Math.min(rows, start + PAGE) - 1)} of ${countText(rows)}`,
        ),
        button('Next rows', '›', start + PAGE, 'next', start >= last),
        button('Last rows', '»', last, 'last', start >= last),
        canSort
          ? null
          : h('span', { class: 'hint' }, `Tables of more than ${countText(sortLimit)} rows are not sorted here.`),
      );
    };
    const grid = (found: Rows) =>
      h(
        'div',
        { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': `Rows of ${shown(node.name, 100)}` },
        h(
          'table',
          { class: 'grid' },
          h(
            'thead',
            {},
            h(
              'tr',
              {},
              h('th', { scope: 'col', class: 'number' }, '#'),
              ...found.columns.map((column, i) => {
                const isSorted =
                  sort !== null &&
                  sort.path.length === column.path.length &&
                  sort.path.every((part, at) => part === column.path[at]);
                const state = !isSorted ? 'none' : sort!.descending ? 'descending' : 'ascending';
                const name = h('bdi', {}, shown(column.name, 60) || '""');
                const click = () => {
                  sort = !isSorted
                    ? { path: column.path, descending: false }
                    : sort!.descending
                      ? null
                      : { path: column.path, descending: true };
                  start = 0;
                  load(`column${i}`);
                  announce(
                    sort
                      ? `Sorted by ${shown(column.name, 60)}, ${sort.descending ? 'descending' : 'ascending'}`
                      : 'In the order of the file',
                  );
                };
                return h(
                  'th',
                  { scope: 'col', class: column.numeric ? 'number' : '', 'aria-sort': state },
                  canSort
                    ? h(
                        'button',
                        { type: 'button', class: 'sort', 'data-focus': `column${i}`, onclick: click },
                        name,
                        h('span', { class: 'direction', 'aria-hidden': true }),
                      )
                    : name,
                );
              }),
            ),
          ),
          h(
            'tbody',
            {},
            ...found.rows.map((row) =>
              h(
                'tr',
                {},
                h('th', { scope: 'row', class: 'number' }, row.name),
                ...row.cells.map((cell, i) =>
                  h(
                    'td',
                    { class: found.columns[i]!.numeric ? 'number' : '' },
                    cell === null ? h('span', { class: 'null' }, 'null') : h('bdi', {}, shown(cell, 200)),
                  ),
                ),
              ),
            ),
          ),
        ),
      );
    load();
    const rowsSection = section('Rows', place);
    rowsSection.className = 'wide';
    return rowsSection;
  }
}

function heading(title: string): HTMLElement {
  return h('h1', { tabindex: -1, id: 'detail-title' }, h('bdi', {}, shown(title)));
}

function cut(text: string): string {
  const limit = 100_000;
  return text.length > limit ? `${text.slice(0, limit)}\n… ${countText(text.length - limit)} more characters` : text;
}

function statisticsFacts(found: Statistics): Fact[] {
  const out: Fact[] = [];
  if (found.min !== null && found.max !== null) {
    out.push(['min', found.min], ['max', found.max], ['mean', numberText(found.mean)], ['std', numberText(found.deviation)]);
  }
  const share = (count: number) => `${countText(count)} (${numberText((100 * count) / found.read, 2)} %)`;
  out.push(['zeros', found.zeros === 0 ? '0' : share(found.zeros)]);
  out.push(['NaN', found.nan === 0 ? '0' : share(found.nan)]);
  out.push(['infinite', found.infinite === 0 ? '0' : share(found.infinite)]);
  return out;
}

function valuesTable({
  columns,
  rows,
  note,
}: {
  columns: string[];
  rows: { name: string; cells: string[] }[];
  note: string;
}): HTMLElement {
  return h(
    'div',
    {},
    h(
      'div',
      { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'First values' },
      h(
        'table',
        { class: 'grid values' },
        h(
          'thead',
          {},
          h('tr', {}, h('td', {}), ...columns.map((column) => h('th', { scope: 'col', class: 'number' }, column))),
        ),
        h(
          'tbody',
          {},
          ...rows.map((row) =>
            h(
              'tr',
              {},
              h('th', { scope: 'row', class: 'number' }, row.name),
              ...row.cells.map((cell) => h('td', { class: 'number' }, cell)),
            ),
          ),
        ),
      ),
    ),
    note && h('p', { class: 'hint' }, note),
  );
}
