// Histograms, lines, heat maps and images.
import type { Picture, Statistics } from '../shared/protocol.js';
import { countText, numberText } from '../shared/text.js';
import { h, svg } from './dom.js';

const WIDTH = 640;
const HEIGHT = 140;

export function histogram({ histogram: found, of }: Statistics): HTMLElement | null {
  if (!found) return null;
  const { from, width, counts } = found;
  const most = Math.max(...counts);
  const total = counts.reduce((sum, count) => sum + count, 0);
  const bar = WIDTH / counts.length;
  const edge = (i: number) => numberText(from + i * width, 4);
  const readout = h('output', { class: 'readout' }, '\u00a0');
  const bars = counts.map((count, i) => {
    const tall = count === 0 ? 0 : Math.max(1, (count / most) * HEIGHT);
    const label = `${edge(i)} to ${edge(i + 1)}: ${countText(count)} (${numberText((100 * count) / total, 3)} %)`;
    const show = () => (readout.textContent = label);
    return svg(
      'g',
      { onpointerenter: show },
      svg('rect', { class: 'hit', x: i * bar, y: 0, width: bar, height: HEIGHT }),
      svg('rect', {
        class: 'bar',
        x: i * bar + (bar > 3 ? 0.5 : 0),
        y: HEIGHT - tall,
        width: Math.max(0.5, bar - (bar > 3 ? 1 : 0)),
        height: tall,
      }),
    );
  });
  const peak = counts.indexOf(most);
  const label = `Histogram from ${edge(0)} to ${edge(counts.length)}. Most elements, ${countText(most)}, are from ${edge(peak)} to ${edge(peak + 1)}.`;
  const zero = -from / width;
  return h(
    'figure',
    { class: 'chart' },
    svg(
      'svg',
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
      ...bars,
      zero > 0 && zero < counts.length && svg('line', { class: 'zero', x1: zero * bar, x2: zero * bar, y1: 0, y2: HEIGHT }),
    ),
    h('figcaption', { class: 'axis' }, h('span', {}, edge(0)), readout, h('span', {}, edge(counts.length))),
    of ? h('p', { class: 'hint' }, `Of the ${of}.`) : null,
  );
}

type Colour = [number, number, number];

/** Blue below zero, white at zero, red above. */
const DIVERGING: Colour[] = [
  [33, 82, 156],
  [106, 155, 208],
  [244, 243, 240],
  [224, 132, 100],
  [160, 40, 44],
];
/** From dark to light, readable without colours too. */
const SEQUENTIAL: Colour[] = [
  [30, 22, 60],
  [58, 76, 140],
  [38, 130, 142],
  [94, 190, 110],
  [246, 228, 80],
];
const MISSING: Colour = [128, 128, 128];

function colourAt(colours: Colour[], place: number): Colour {
  const at = Math.min(1, Math.max(0, place)) * (colours.length - 1);
  const i = Math.min(colours.length - 2, Math.floor(at));
  const part = at - i;
  return [0, 1, 2].map((c) => colours[i]![c]! * (1 - part) + colours[i + 1]![c]! * part) as Colour;
}

/** The range of colours: without the most extreme half percent at each end, so that single elements do not hide the others. */
function rangeOf(values: Float32Array): { low: number; high: number; colours: Colour[] } | undefined {
  const sorted = values.filter(Number.isFinite).sort();
  if (sorted.length === 0) return undefined;
  const low = sorted[Math.floor(sorted.length * 0.005)]!;
  const high = sorted[Math.ceil(sorted.length * 0.995) - 1]!;
  if (low < 0 && high > 0) {
    const most = Math.max(-low, high);
    return { low: -most, high: most, colours: DIVERGING };
  }
  return { low, high, colours: SEQUENTIAL };
}

export function pictureElement(picture: Picture, name: string): HTMLElement {
  switch (picture.kind) {
    case 'line':
      return lineElement(picture);
    case 'image': {
      const { width, height, rgba, note } = picture;
      const canvas = canvasOf(width, height, rgba, `Image of ${name}, ${width} by ${height} pixels`);
      return h(
        'figure',
        { class: 'picture' },
        canvas,
        h('figcaption', { class: 'hint' }, [`${width} × ${height} pixels`, note].filter(Boolean).join(', ')),
      );
    }
    case 'matrix':
      return matrixElement(picture, name);
  }
}

function canvasOf(width: number, height: number, rgba: Uint8ClampedArray<ArrayBuffer>, label: string): HTMLCanvasElement {
  const canvas = h('canvas', { width: Math.max(1, width), height: Math.max(1, height), role: 'img', 'aria-label': label });
  if (width > 0 && height > 0) canvas.getContext('2d')!.putImageData(new ImageData(rgba, width, height), 0, 0);
  // Small pictures are shown larger, by whole pixels.
  const scale = Math.max(1, Math.min(24, Math.floor(512 / Math.max(width, height, 1))));
  canvas.style.width = `${width * scale}px`;
  canvas.style.aspectRatio = `${width} / ${height}`;
  return canvas;
}

function matrixElement(
  { width, height, values, rows, columns, note }: Picture & { kind: 'matrix' },
  name: string,
): HTMLElement {
  const range = rangeOf(values);
  const rgba = new Uint8ClampedArray(width * height * 4);
  values.forEach((value, i) => {
    const span = range ? range.high - range.low : 0;
    const place = span > 0 ? (value - range!.low) / span : 0.5;
    const colour = range && !Number.isNaN(value) ? colourAt(range.colours, place) : MISSING;
    rgba.set([...colour, 255], 4 * i);
  });
  const text = range ? `from ${numberText(range.low, 4)} to ${numberText(range.high, 4)}` : 'without finite elements';
  const canvas = canvasOf(width, height, rgba, `Heat map of ${name}, ${height} rows and ${width} columns, ${text}`);
  const readout = h('output', { class: 'readout' }, '\u00a0');
  canvas.addEventListener('pointermove', (event) => {
    const box = canvas.getBoundingClientRect();
    const x = Math.min(width - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * width)));
    const y = Math.min(height - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * height)));
    readout.textContent = `[${rows[y]}, ${columns[x]}] = ${numberText(values[y * width + x]!, 7)}`;
  });
  const legend =
    range &&
    h(
      'div',
      { class: 'legend', 'aria-hidden': true },
      h('span', {}, numberText(range.low, 4)),
      gradient(range.colours),
      h('span', {}, numberText(range.high, 4)),
    );
  return h(
    'figure',
    { class: 'picture' },
    canvas,
    h('figcaption', {}, legend, readout, note && h('p', { class: 'hint' }, `Shows ${note}.`)),
  );
}

function gradient(colours: Colour[]): HTMLCanvasElement {
  const canvas = h('canvas', { width: 128, height: 1 });
  const rgba = new Uint8ClampedArray(128 * 4);
  for (let i = 0; i < 128; i++) rgba.set([...colourAt(colours, i / 127), 255], 4 * i);
  canvas.getContext('2d')!.putImageData(new ImageData(rgba, 128, 1), 0, 0);
  return canvas;
}

function lineElement({ low, high, note }: Picture & { kind: 'line' }): HTMLElement {
  const count = low.length;
  const finite = [...low, ...high].filter(Number.isFinite);
  const least = Math.min(...finite);
  const most = Math.max(...finite);
  const span = most - least || 1;
  const x = (i: number) => (count < 2 ? WIDTH / 2 : (i / (count - 1)) * WIDTH);
  const y = (value: number) => HEIGHT - 4 - ((value - least) / span) * (HEIGHT - 8);
  let upper = '';
  let lower = '';
  for (let i = 0; i < count; i++) {
    if (!Number.isFinite(low[i]) || !Number.isFinite(high[i])) continue;
    upper += `${upper ? 'L' : 'M'}${x(i).toFixed(2)} ${y(high[i]!).toFixed(2)}`;
    lower = `L${x(i).toFixed(2)} ${y(low[i]!).toFixed(2)}${lower}`;
  }
  if (finite.length === 0) return h('p', { class: 'hint' }, 'No element is finite.');
  const label = `Line of the elements in order, between ${numberText(least, 4)} and ${numberText(most, 4)}`;
  return h(
    'figure',
    { class: 'chart' },
    svg(
      'svg',
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
      svg('path', { class: 'line', d: `${upper}${lower}Z` }),
    ),
    h(
      'figcaption',
      { class: 'axis' },
      h('span', {}, `${numberText(least, 4)} to ${numberText(most, 4)}`),
      h('span', {}, note),
    ),
  );
}
