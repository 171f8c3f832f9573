// The tree of a file: one line is in the order of the tabulator key, and arrows move between them.
import type { Node } from '../shared/protocol.js';
import { countText, shown } from '../shared/text.js';
import { announce, h } from './dom.js';
import type { Client } from './client.js';

const PAGE = 200;

interface Line {
  node: Node;
  element: HTMLLIElement;
  group: HTMLUListElement | null;
  parent: Line | null;
}

export class Tree {
  readonly element: HTMLUListElement;
  private readonly lines = new Map<HTMLLIElement, Line>();
  private current: Line | null = null;

  constructor(
    private readonly client: Client,
    private readonly label: string,
    private readonly select: (node: Node) => void,
    private readonly failed: (error: unknown) => void,
  ) {
    this.element = h('ul', { role: 'tree', 'aria-label': label, class: 'tree' });
    this.element.addEventListener('keydown', (event) => this.key(event));
    this.element.addEventListener('click', (event) => this.click(event));
    this.element.addEventListener('focusin', (event) => {
      const line = this.lineOf(event.target);
      if (line) this.makeCurrent(line);
    });
  }

  /** Shows these nodes, and nothing else. `flat` shows whole paths without what is below. */
  show(nodes: Node[], flat = false): void {
    this.lines.clear();
    this.current = null;
    this.element.replaceChildren();
    for (const node of nodes) this.element.append(this.line(node, null, flat).element);
    const first = this.first();
    if (first) this.makeCurrent(first);
  }

  /** The line of the file itself, with what is below. */
  async showRoot(root: Node): Promise<void> {
    this.show([{ ...root, name: this.label }]);
    const line = this.first()!;
    this.choose(line, false);
    await this.expand(line);
    // A file with one thing in it shows what that has.
    const only = line.group?.children.length === 1 ? this.lines.get(line.group.children[0] as HTMLLIElement) : undefined;
    if (only) await this.expand(only);
  }

  focus(): void {
    this.current?.element.focus();
  }

  private first(): Line | undefined {
    const element = this.element.firstElementChild;
    return element ? this.lines.get(element as HTMLLIElement) : undefined;
  }

  private line(node: Node, parent: Line | null, flat = false): Line {
    const canOpen = !flat && node.count !== 0;
    const name = flat ? node.path : node.name;
    const row = h(
      'div',
      { class: 'line' },
      h('span', { class: canOpen ? 'arrow' : 'arrow none', 'aria-hidden': true }),
      h('span', { class: `mark ${node.kind}`, 'aria-hidden': true }),
      // A path that is too long is cut at its start, and still reads from left to right.
      h(
        'span',
        { class: 'name', title: shown(node.path || name) },
        h('bdi', { dir: flat ? 'ltr' : 'auto' }, shown(name) || '""'),
      ),
      node.note && h('span', { class: 'note' }, shown(node.note, 120)),
    );
    const element = h(
      'li',
      {
        role: 'treeitem',
        tabindex: -1,
        // Otherwise its name would be the texts of all lines below it, too.
        'aria-label': [shown(name) || 'without a name', shown(node.note, 120)].filter(Boolean).join(', '),
        'aria-selected': 'false',
        'aria-expanded': canOpen ? 'false' : undefined,
      },
      row,
    );
    const line: Line = { node, element, group: null, parent };
    this.lines.set(element, line);
    return line;
  }

  private lineOf(target: EventTarget | null): Line | undefined {
    const element = (target as Element | null)?.closest('li[role=treeitem]');
    return element ? this.lines.get(element as HTMLLIElement) : undefined;
  }

  private makeCurrent(line: Line): void {
    if (this.current) this.current.element.tabIndex = -1;
    this.current = line;
    line.element.tabIndex = 0;
  }

  private click(event: MouseEvent): void {
    const target = event.target as Element;
    const line = this.lineOf(target);
    if (!line) return;
    if (target.classList.contains('arrow') && line.element.hasAttribute('aria-expanded')) void this.toggle(line);
    else this.choose(line, true);
  }

  private choose(line: Line, isClick: boolean): void {
    this.element.querySelectorAll('[aria-selected=true]').forEach((one) => one.setAttribute('aria-selected', 'false'));
    line.element.setAttribute('aria-selected', 'true');
    this.makeCurrent(line);
    if (isClick) {
      line.element.focus({ preventScroll: true });
      const isGroup = line.node.kind === 'group' || line.node.kind === 'list' || line.node.kind === 'file';
      if (isGroup && this.isClosed(line)) void this.expand(line);
    }
    this.select(line.node);
  }

  private isClosed(line: Line): boolean {
    return line.element.getAttribute('aria-expanded') === 'false';
  }

  private async toggle(line: Line): Promise<void> {
    if (this.isClosed(line)) await this.expand(line);
    else this.collapse(line);
  }

  private collapse(line: Line): void {
    line.element.setAttribute('aria-expanded', 'false');
    if (line.group) line.group.hidden = true;
  }

  private async expand(line: Line): Promise<void> {
    if (!this.isClosed(line)) return;
    line.element.setAttribute('aria-expanded', 'true');
    if (line.group) {
      line.group.hidden = false;
      return;
    }
    line.group = h('ul', { role: 'group' });
    line.element.append(line.group);
    await this.more(line, 0);
  }

  /** Adds the next lines below one. Long lists come page by page. */
  private async more(line: Line, start: number): Promise<Line | undefined> {
    const group = line.group!;
    let nodes: Node[];
    line.element.setAttribute('aria-busy', 'true');
    try {
      nodes = await this.client.get('children', { node: line.node.id, start, end: start + PAGE });
    } catch (error) {
      if (start === 0) {
        line.group = null;
        group.remove();
        line.element.setAttribute('aria-expanded', 'false');
      }
      this.failed(error);
      return undefined;
    } finally {
      line.element.removeAttribute('aria-busy');
    }
    const lines = nodes.map((node) => this.line(node, line));
    group.append(...lines.map((one) => one.element));
    if (nodes.length === PAGE && (line.node.count < 0 || start + PAGE < line.node.count)) {
      const rest = line.node.count < 0 ? PAGE : line.node.count - start - PAGE;
      const label = rest > PAGE ? `Show ${PAGE} more of ${countText(rest)}` : `Show ${rest} more`;
      const button = this.line({ id: -1, name: label, path: '', kind: 'other', note: '', count: 0 }, line);
      button.element.classList.add('more');
      group.append(button.element);
    }
    if (start === 0 && lines.length === 0) line.element.removeAttribute('aria-expanded');
    return lines[0];
  }

  private visible(): Line[] {
    const all = [...this.element.querySelectorAll<HTMLLIElement>('li[role=treeitem]')];
    return all.filter((one) => !one.parentElement!.closest('ul[hidden]')).map((one) => this.lines.get(one)!);
  }

  private key(event: KeyboardEvent): void {
    const line = this.lineOf(event.target);
    if (!line || event.altKey || event.ctrlKey || event.metaKey) return;
    const lines = this.visible();
    const at = lines.indexOf(line);
    const go = (to: Line | undefined | null) => to?.element.focus();
    switch (event.key) {
      case 'ArrowDown':
        go(lines[at + 1]);
        break;
      case 'ArrowUp':
        go(lines[at - 1]);
        break;
      case 'Home':
        go(lines[0]);
        break;
      case 'End':
        go(lines[lines.length - 1]);
        break;
      case 'ArrowRight':
        if (this.isClosed(line)) void this.expand(line);
        else if (line.group) go(lines[at + 1]);
        break;
      case 'ArrowLeft':
        if (line.element.getAttribute('aria-expanded') === 'true') this.collapse(line);
        else go(line.parent);
        break;
      case 'Enter':
      case ' ':
        this.choose(line, false);
        break;
      default: {
        if (event.key.length !== 1 || event.key === '/') return;
        const order = [...lines.slice(at + 1), ...lines.slice(0, at + 1)];
        const found = order.find((one) => one.node.name.toLowerCase().startsWith(event.key.toLowerCase()));
        if (!found) return;
        go(found);
      }
    }
    event.preventDefault();
  }

  /** What a line that stands for more lines does. */
  async showMore(node: Node): Promise<boolean> {
    if (node.id !== -1) return false;
    const line = this.current!;
    const parent = line.parent!;
    line.element.remove();
    this.lines.delete(line.element);
    const first = await this.more(parent, parent.group!.children.length);
    first?.element.focus();
    announce('More lines are shown.');
    return true;
  }
}
