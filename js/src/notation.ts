// The component of a map key in a path (annex A): a text itself, and otherwise the diagnostic notation of the key's value.
import { TAG, type Item } from './cbor.js';
import { hex } from './bytes.js';

export function component(key: Item): string {
  return key.type === 'text' ? key.value : notation(key);
}

function notation(item: Item): string {
  switch (item.type) {
    case 'int':
      return String(item.value);
    case 'float':
      return floatNotation(item.value);
    case 'text':
      return quoted(item.value);
    case 'bytes':
      return `h'${hex(item.value)}'`;
    case 'array':
      return `[${item.items.map(notation).join(', ')}]`;
    case 'map': {
      const entries: string[] = [];
      for (let i = 0; i < item.items.length; i += 2)
        entries.push(`${notation(item.items[i]!)}: ${notation(item.items[i + 1]!)}`);
      return `{${entries.join(', ')}}`;
    }
    case 'simple':
      return { 20: 'false', 21: 'true', 22: 'null', 23: 'undefined' }[item.value] ?? `simple(${item.value})`;
    case 'tensor':
      return ''; // rows of columns are never keys of the document
    case 'tag':
      return smallBignum(item.tag, item.content) ?? `${item.tag}(${notation(item.content)})`;
  }
}

/** The decimal number of a bignum from -2^127 to 2^128 - 1. */
function smallBignum(tag: number | bigint, content: Item): string | undefined {
  if ((tag !== TAG.BIGNUM && tag !== TAG.NEGATIVE_BIGNUM) || content.type !== 'bytes') return undefined;
  const digits = hex(content.value).replace(/^0+/, '');
  if (digits.length > 32) return undefined;
  const value = BigInt(`0x0${digits}`);
  if (tag === TAG.BIGNUM) return String(value);
  return value < 1n << 127n ? String(-1n - value) : undefined;
}

function floatNotation(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value < 0 ? '-Infinity' : 'Infinity';
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0';
  const magnitude = Math.abs(value);
  if (magnitude >= 1e-4 && magnitude < 1e16) {
    const plain = String(value);
    return plain.includes('.') ? plain : `${plain}.0`;
  }
  // JavaScript writes the fewest digits too, with a plus sign that is not wanted here.
  return value.toExponential().replace('e+', 'e');
}

function quoted(text: string): string {
  let out = '"';
  for (const char of text) {
    const code = char.codePointAt(0)!;
    if (char === '"' || char === '\\') out += `\\${char}`;
    else if (char === '\n') out += '\\n';
    else if (code < 0x20 || (code >= 0x7f && code < 0xa0)) out += `\\u${code.toString(16).padStart(4, '0')}`;
    else out += char;
  }
  return `${out}"`;
}
