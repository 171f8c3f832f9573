// Compares values with the JSON of the conformance files. JavaScript has one type of numbers, so widths of floats, and floats
// from integers, are not kept apart.
import { Entries, Some, Tensor } from '../dist/index.js';

export function hexOf(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export function bytesOfHex(text) {
  return Uint8Array.from(text.replace(/\s/g, '').match(/../g) ?? [], (byte) => parseInt(byte, 16));
}

function number(kind, text) {
  const view = new DataView(bytesOfHex(text).buffer);
  if (kind === 'f64') return view.getFloat64(0);
  if (kind === 'f32') return view.getFloat32(0);
  const bits = view.getUint16(0);
  const [sign, exponent, mantissa] = [bits >> 15 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return mantissa ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + mantissa / 1024) * 2 ** (exponent - 15) : mantissa * 2 ** -24);
}

/** What differs, as a text; undefined if nothing does. */
export function difference(found, expected, where = 'value') {
  const differs = (a, b) => `${where}: ${show(a)} instead of ${show(b)}`;
  if (expected === null || typeof expected === 'boolean' || typeof expected === 'string') {
    return found === expected ? undefined : differs(found, expected);
  }
  if (typeof expected === 'number')
    return Number(found) === expected && typeof found !== 'boolean' ? undefined : differs(found, expected);
  if (Array.isArray(expected)) {
    const items = found instanceof Tensor && found.shape.length === 1 ? Array.from(found.data) : found;
    if (!Array.isArray(items) && !ArrayBuffer.isView(items)) return differs(found, expected);
    if (items.length !== expected.length) return differs(items.length, expected.length);
    for (let i = 0; i < expected.length; i++) {
      const one = difference(items[i], expected[i], `${where}[${i}]`);
      if (one) return one;
    }
    return undefined;
  }
  const [[kind, value]] = Object.entries(expected);
  switch (kind) {
    case 'int':
      return BigInt(found) === BigInt(value) ? undefined : differs(found, value);
    case 'f16':
    case 'f32':
    case 'f64':
      return Object.is(found, number(kind, value)) ? undefined : differs(found, number(kind, value));
    case 'bytes':
      return found instanceof Uint8Array && hexOf(found) === value ? undefined : differs(found, expected);
    case 'some':
      return found instanceof Some ? difference(found.value, value, `${where}.some`) : differs(found, expected);
    case 'map': {
      const entries =
        found instanceof Map || found instanceof Entries
          ? [...found]
          : typeof found === 'object' && found
            ? Object.entries(found)
            : [];
      if (entries.length !== value.length) return differs(entries.length, value.length);
      for (let i = 0; i < value.length; i++) {
        const one =
          difference(entries[i][0], value[i][0], `${where} key ${i}`) ??
          difference(entries[i][1], value[i][1], `${where}.${show(value[i][0])}`);
        if (one) return one;
      }
      return undefined;
    }
    case 'tensor': {
      if (!(found instanceof Tensor)) return differs(found, expected);
      const own = { dtype: found.dtype, shape: found.shape, order: found.order, payload: hexOf(found.bytes) };
      const other = { ...value, shape: value.shape.map((one) => (typeof one === 'object' ? Number(one.int) : one)) };
      return JSON.stringify(own) === JSON.stringify(other) ? undefined : differs(JSON.stringify(own), JSON.stringify(other));
    }
    default:
      return `${where}: unknown kind ${kind}`;
  }
}

function show(value) {
  return String(JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? String(one) : one))).slice(0, 200);
}
