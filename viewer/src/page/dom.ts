// Elements of the page. Texts from files only ever become text nodes.

type Child = Node | string | null | undefined | false;
type Props = Record<string, string | number | boolean | ((event: never) => void) | undefined>;

/** An element with attributes, listeners (`onclick`) and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  set(element, props);
  for (const child of children) if (child || child === '') element.append(child as Node | string);
  return element;
}

const SVG = 'http://www.w3.org/2000/svg';

export function svg(tag: string, props: Props = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS(SVG, tag);
  set(element, props);
  for (const child of children) if (child) element.append(child);
  return element;
}

function set(element: Element, props: Props): void {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name.slice(2), value as unknown as EventListener);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
}

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

let pending = 0;

/** Says something to those who cannot see that the page changed. */
export function announce(text: string): void {
  const region = byId('announcements');
  window.clearTimeout(pending);
  region.textContent = '';
  pending = window.setTimeout(() => (region.textContent = text), 50);
}
