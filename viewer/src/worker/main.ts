// The worker: reads the file, one request after the other or side by side, and sends what it found.
import { TenarcError } from '../../../js/src/errors.js';
import type { Answer, Cancel, Detail, Fact, Fault, Node, Request, Requests } from '../shared/protocol.js';
import { countText, shapeText } from '../shared/text.js';
import { codecOf, type Codec } from './elements.js';
import { elementsOf, overview, shares, type Item, type OpenFile, type Progress, type Tensor } from './model.js';
import { openFile } from './open.js';
import { firstValues, imageOf, picture } from './preview.js';
import { startOf } from './sources.js';
import { statisticsOf } from './statistics.js';
import { SORT_LIMIT, Sorted, rowsOf } from './tables.js';

/** An item that the page has seen. */
class Known {
  private resolved: Promise<Item> | undefined;
  private readonly below = new Map<number, Known>();
  readonly sorted = new Sorted();
  constructor(
    readonly id: number,
    private shallow: Item,
  ) {}

  node(): Node {
    const { name, path, kind, note, count } = this.shallow;
    return { id: this.id, name, path, kind, note, count };
  }

  /** The item, with what is only known once it has been read. */
  async item(): Promise<Item> {
    const { resolve } = this.shallow;
    if (!resolve) return this.shallow;
    this.resolved ??= resolve().catch((error) => {
      this.resolved = undefined;
      throw error;
    });
    return (this.shallow = await this.resolved);
  }

  async children(file: File_, start: number, end: number): Promise<Known[]> {
    const item = await this.item();
    const last = Math.min(end, item.count);
    let missing = start;
    while (missing < last && this.below.has(missing)) missing++;
    if (missing < last) {
      const items = (await item.children?.(missing, last)) ?? [];
      items.forEach((one, i) => {
        if (!this.below.has(missing + i)) this.below.set(missing + i, file.add(one));
      });
    }
    const out: Known[] = [];
    for (let i = start; i < last; i++) {
      const one = this.below.get(i);
      if (one) out.push(one);
    }
    return out;
  }
}

class File_ {
  readonly known: Known[] = [];
  constructor(
    readonly open: OpenFile,
    readonly isRemote: boolean,
  ) {
    this.add(open.root);
  }
  add(item: Item): Known {
    const known = new Known(this.known.length, item);
    this.known.push(known);
    return known;
  }
  get(id: number): Known {
    return this.known[id]!;
  }
}

const PAGE = 500;
const MAX_MATCHES = 300;
const MAX_METADATA = 2000;
/** A search looks at this many lines at most, so that it ends. */
const MAX_SEARCHED = 200_000;

let file: File_ | undefined;

function current(): File_ {
  if (!file) throw new TenarcError('usage', 'no file is open');
  return file;
}

type Handlers = {
  [M in keyof Requests]: (params: Requests[M]['params'], progress: Progress) => Promise<Requests[M]['result']>;
};

const handlers: Handlers = {
  async open({ from }) {
    const start = await startOf(from);
    const open = await openFile(start);
    file = new File_(open, start.remote);
    const { format, warnings, check } = open;
    return { format, size: start.size, root: file.get(0).node(), warnings, check };
  },

  async children({ node, start, end }) {
    const known = await current()
      .get(node)
      .children(current(), start, Math.min(end, start + PAGE));
    return known.map((one) => one.node());
  },

  async search({ text }, progress) {
    const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
    const matches: Node[] = [];
    const found = current();
    let looked = 0;
    const visit = async (known: Known): Promise<boolean> => {
      const { count } = await known.item();
      for (let start = 0; start < count; start += PAGE) {
        await progress(looked, MAX_SEARCHED);
        for (const child of await known.children(found, start, start + PAGE)) {
          if (++looked > MAX_SEARCHED || matches.length >= MAX_MATCHES) return false;
          const node = child.node();
          const line = `${node.path} ${node.note}`.toLowerCase();
          if (wanted.every((word) => line.includes(word))) matches.push(node);
          if (node.count !== 0 && !(await visit(child))) return false;
        }
      }
      return true;
    };
    const isAll = await visit(found.get(0));
    const note = isAll
      ? ''
      : matches.length >= MAX_MATCHES
        ? `the first ${MAX_MATCHES} are shown`
        : `only the first ${countText(MAX_SEARCHED)} lines were searched`;
    return { matches, note };
  },

  async detail({ node }): Promise<Detail> {
    const { open } = current();
    const known = current().get(node);
    const item = await known.item();
    const { tensor, table } = item;
    const tensors = await item.tensors?.();
    return {
      node: known.node(),
      facts: [
        ...(tensor ? tensorFacts(tensor) : []),
        ...((await item.facts?.()) ?? []),
        ...(tensors ? overview(tensors) : []),
      ],
      shares: shares(tensors ?? []),
      metadata: cut((await item.metadata?.()) ?? []),
      text: item.text ?? null,
      table: table ? { rows: table.rows, sortLimit: SORT_LIMIT } : null,
      tensor: tensor
        ? {
            dtype: tensor.dtype,
            shape: tensor.shape,
            bytes: tensor.bytes,
            elements: elementsOf(tensor.shape),
            unreadable: tensor.unreadable ?? null,
            image: open.format === 'GGUF' ? null : imageOf(tensor.shape),
            leading: tensor.shape.slice(0, Math.max(0, tensor.shape.length - 2)),
          }
        : null,
    };
  },

  async statistics({ node, all }, progress) {
    const { tensor, codec } = await tensorAt(node);
    return statisticsOf(tensor, codec, all, current().isRemote, progress);
  },

  async picture({ node, leading, image }) {
    const { tensor, codec } = await tensorAt(node);
    return picture(tensor, codec, leading, image, current().isRemote);
  },

  async values({ node, leading }) {
    const { tensor, codec } = await tensorAt(node);
    return firstValues(tensor, codec, leading);
  },

  async rows({ node, start, end, sort }) {
    const known = current().get(node);
    const { table } = await known.item();
    if (!table) throw new TenarcError('usage', 'this is no table');
    const order = sort ? await known.sorted.get(table, sort.path, sort.descending) : undefined;
    return rowsOf(table, start, Math.min(end, start + PAGE), order);
  },

  async verify(_, progress) {
    const { open } = current();
    if (!open.verify) throw new TenarcError('usage', `${open.format} files have no checksums`);
    return open.verify(progress);
  },
};

/** As much metadata as a page can show. */
function cut(metadata: Fact[]): Fact[] {
  if (metadata.length <= MAX_METADATA) return metadata;
  return [...metadata.slice(0, MAX_METADATA), ['…', `${countText(metadata.length - MAX_METADATA)} more`]];
}

async function tensorAt(node: number): Promise<{ tensor: Tensor; codec: Codec }> {
  const { tensor } = await current().get(node).item();
  if (!tensor) throw new TenarcError('usage', 'this is no tensor');
  const codec = codecOf(tensor.dtype);
  if (!codec || tensor.unreadable)
    throw new TenarcError('unsupported', tensor.unreadable ?? `the dtype ${tensor.dtype} is not known`);
  return { tensor, codec };
}

function tensorFacts({ dtype, shape, bytes }: Tensor): [string, string][] {
  return [
    ['dtype', dtype],
    ['shape', shapeText(shape)],
    ['elements', countText(elementsOf(shape))],
    ['bytes', countText(bytes)],
  ];
}

function faultOf(error: unknown): Fault {
  if (error instanceof TenarcError) return { message: error.reason, offset: error.offset ?? null };
  if (error instanceof RangeError && /stack/i.test(error.message))
    return { message: 'the file is nested too deeply', offset: null };
  return { message: error instanceof Error ? error.message : String(error), offset: null };
}

const running = new Set<number>();
const cancelled = new Set<number>();
class Given extends Error {}

const send = (answer: Answer, transfer: Transferable[] = []) => (self as unknown as Worker).postMessage(answer, transfer);

async function answer({ id, method, params }: Request): Promise<void> {
  running.add(id);
  let last = 0;
  const progress: Progress = async (done, total) => {
    const now = performance.now();
    if (now - last > 50) {
      last = now;
      send({ id, done, total });
      // Messages are only seen between two tasks.
      await new Promise((resolve) => setTimeout(resolve));
    }
    if (cancelled.has(id)) throw new Given();
  };
  try {
    const result = await (
      handlers[method] as (params: unknown, progress: Progress) => Promise<Requests[typeof method]['result']>
    )(params, progress);
    send({ id, result });
  } catch (error) {
    if (!(error instanceof Given)) send({ id, fault: faultOf(error) });
  } finally {
    running.delete(id);
    cancelled.delete(id);
  }
}

self.onmessage = ({ data }: MessageEvent<Request | Cancel>) => {
  if (!('cancel' in data)) void answer(data);
  else if (running.has(data.cancel)) cancelled.add(data.cancel);
};
