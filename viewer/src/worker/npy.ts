// npy: a magic number, a version, and a header that is a Python dict of three entries. The elements follow.
import { decodeText, swapped, viewOf } from '../../../js/src/bytes.js';
import { codecOf } from './elements.js';
import { elementsOf, wrong, type Tensor } from './model.js';

export const NPY_MAGIC = Uint8Array.of(0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59);
/** As many bytes as a header takes, and more: numpy itself refuses longer ones. */
export const NPY_HEADER = 10_012;

export interface Npy {
  dtype: string;
  shape: number[];
  order: 'C' | 'F';
  /** The length of one element in bytes. */
  width: number;
  /** Whether the bytes of each element are in the other order; and how many bytes are swapped at once. */
  swap: number;
  /** Where the elements start. */
  start: number;
  unreadable?: string;
}

const KINDS: Record<string, string | undefined> = {
  __proto__: null as never,
  b1: 'bool',
  u1: 'u8',
  u2: 'u16',
  u4: 'u32',
  u8: 'u64',
  i1: 'i8',
  i2: 'i16',
  i4: 'i32',
  i8: 'i64',
  f2: 'f16',
  f4: 'f32',
  f8: 'f64',
  c8: 'c64',
  c16: 'c128',
};

/** Reads the header at the start of these bytes, which are at `offset` in the file. */
export function readNpyHeader(bytes: Uint8Array, offset: number): Npy {
  if (bytes.length < 10 || NPY_MAGIC.some((byte, i) => bytes[i] !== byte)) throw wrong('there is no npy header', offset);
  const version = bytes[6]!;
  if (version < 1 || version > 3) throw wrong(`npy version ${version} is not known: 1 to 3 were expected`, offset + 6);
  const view = viewOf(bytes);
  const isLong = version > 1;
  if (isLong && bytes.length < 12) throw wrong('the npy header is cut off', offset);
  const start = (isLong ? 12 : 10) + (isLong ? view.getUint32(8, true) : view.getUint16(8, true));
  if (start > NPY_HEADER) throw wrong(`an npy header of ${start} bytes is longer than ${NPY_HEADER}`, offset + 8);
  if (start > bytes.length) throw wrong(`the npy header of ${start} bytes is cut off`, offset + bytes.length);
  const text = version === 3 ? decodeText(bytes.subarray(12, start)) : latin(bytes.subarray(isLong ? 12 : 10, start));
  const header = new Literal(text, offset + (isLong ? 12 : 10)).dict();
  const order = header.get('fortran_order');
  const shape = header.get('shape');
  const descr = header.get('descr');
  if (typeof order !== 'boolean') throw wrong('the npy header has no "fortran_order"', offset);
  if (!Array.isArray(shape) || !shape.every((one) => typeof one === 'number'))
    throw wrong('the npy header has no "shape"', offset);
  elementsOf(shape as number[], offset);
  return { shape: shape as number[], order: order && shape.length > 1 ? 'F' : 'C', start, ...typeOf(descr, offset) };
}

function latin(bytes: Uint8Array): string {
  let out = '';
  for (const byte of bytes) out += String.fromCharCode(byte);
  return out;
}

function typeOf(descr: unknown, offset: number): Pick<Npy, 'dtype' | 'width' | 'swap' | 'unreadable'> {
  if (Array.isArray(descr)) {
    return { dtype: 'structured', width: 0, swap: 0, unreadable: 'structured arrays are not shown here' };
  }
  if (typeof descr !== 'string') throw wrong('the npy header has no "descr"', offset);
  const found = /^([<>|=])([a-zA-Z])(\d{0,9})(\[[^\]]*\])?$/.exec(descr);
  if (!found) return { dtype: descr, width: 0, swap: 0, unreadable: `the dtype ${JSON.stringify(descr)} is not known` };
  const [, order, kind, digits] = found;
  const size = Number(digits);
  const dtype = KINDS[kind! + digits!];
  if (dtype) {
    const unit = kind === 'c' ? size / 2 : size;
    return { dtype, width: size, swap: order === '>' && unit > 1 ? unit : 0 };
  }
  if ((kind === 'M' || kind === 'm') && size === 8) {
    // Counts of their unit; the smallest integer is "not a time".
    return { dtype: 'i64', width: 8, swap: order === '>' ? 8 : 0 };
  }
  if (kind === 'O')
    return {
      dtype: 'object',
      width: 0,
      swap: 0,
      unreadable: 'arrays of Python objects are never read: they can run programs',
    };
  return {
    dtype: descr,
    width: kind === 'U' ? 4 * size : size,
    swap: 0,
    unreadable: `elements of ${JSON.stringify(descr)} are not shown here`,
  };
}

/** A tensor whose header was read, and whose elements are given by `read`. */
export function npyTensor(header: Npy, bytes: number, offset: number, read: Tensor['read']): Tensor {
  const { dtype, shape, order, width, swap } = header;
  const expected = width * elementsOf(shape);
  const isSized = width > 0 || !header.unreadable;
  if (isSized && expected !== bytes) {
    throw wrong(
      `an array of ${dtype} with the shape [${shape.join(', ')}] has ${bytes} bytes instead of ${expected}`,
      offset,
    );
  }
  const unreadable = header.unreadable ?? (codecOf(dtype) ? undefined : `the dtype ${dtype} is not known`);
  return {
    dtype,
    shape,
    order,
    bytes,
    grain: 1,
    read: async (start, end) => (swap ? swapped(await read(start, end), swap) : read(start, end)),
    ...(unreadable ? { unreadable } : {}),
  };
}

/** The few literals of Python that numpy writes. Each step takes at least one character, and nesting is bounded. */
class Literal {
  private at = 0;
  constructor(
    private readonly text: string,
    private readonly offset: number,
  ) {}

  dict(): Map<unknown, unknown> {
    const found = this.value(0);
    if (!(found instanceof Map)) throw this.error('a dict was expected');
    if (this.text.slice(this.at).trim() !== '') throw this.error('text follows the dict');
    return found;
  }

  private error(what: string) {
    return wrong(`the npy header cannot be read: ${what}`, this.offset + this.at);
  }

  private skip(): string {
    while (/\s/.test(this.text[this.at] ?? '')) this.at++;
    return this.text[this.at] ?? '';
  }

  private value(depth: number): unknown {
    if (depth > 16) throw this.error('it is nested too deeply');
    const char = this.skip();
    if (char === '{') return this.entries(depth);
    if (char === '(') return this.list(')', depth);
    if (char === '[') return this.list(']', depth);
    const rest = this.text.slice(this.at);
    const string = /^u?(?:'([^'\\]*)'|"([^"\\]*)")/.exec(rest);
    const word = string ?? /^(?:True|False|None|-?\d{1,20}L?)/.exec(rest);
    if (!word) throw this.error('a value was expected');
    this.at += word[0].length;
    if (string) return string[1] ?? string[2];
    if (word[0] === 'True' || word[0] === 'False') return word[0] === 'True';
    return word[0] === 'None' ? null : Number.parseInt(word[0], 10);
  }

  private list(end: string, depth: number): unknown[] {
    const out: unknown[] = [];
    this.at++;
    while (this.skip() !== end) {
      out.push(this.value(depth + 1));
      if (this.skip() === ',') this.at++;
      else if (this.skip() !== end) throw this.error(`a comma or ${end} was expected`);
    }
    this.at++;
    return out;
  }

  private entries(depth: number): Map<unknown, unknown> {
    const out = new Map<unknown, unknown>();
    this.at++;
    while (this.skip() !== '}') {
      const key = this.value(depth + 1);
      if (this.skip() !== ':') throw this.error('a colon was expected');
      this.at++;
      if (out.has(key)) throw this.error(`the key ${JSON.stringify(key)} occurs twice`);
      out.set(key, this.value(depth + 1));
      if (this.skip() === ',') this.at++;
      else if (this.skip() !== '}') throw this.error('a comma or } was expected');
    }
    this.at++;
    return out;
  }
}
