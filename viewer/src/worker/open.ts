// Which format a file has: its first bytes say it, not its name.
import { TenarcError } from '../../../js/src/errors.js';
import type { OpenFile, Start } from './model.js';
import { folder, readAt, tensorNote } from './model.js';
import { openGguf } from './gguf.js';
import { NPY_HEADER, NPY_MAGIC, npyTensor, readNpyHeader } from './npy.js';
import { openNpz } from './npz.js';
import { isSafetensors, openSafetensors } from './safetensors.js';
import { isTenarc, openTenarc } from './tenarc.js';

const starts = (first: Uint8Array, magic: ArrayLike<number>) =>
  first.length >= magic.length && Array.from(magic).every((byte, i) => first[i] === byte);

export function openFile(start: Start): Promise<OpenFile> {
  const { first, size } = start;
  if (size === 0) throw new TenarcError('damaged', 'the file is empty', 0);
  if (isTenarc(first)) return openTenarc(start);
  if (starts(first, NPY_MAGIC)) return openNpy(start);
  // A member of a zip archive, or the end of one without members.
  if (starts(first, [0x50, 0x4b, 3, 4]) || starts(first, [0x50, 0x4b, 5, 6])) return openNpz(start);
  if (starts(first, [0x47, 0x47, 0x55, 0x46])) return openGguf(start);
  if (isSafetensors(first)) return openSafetensors(start);
  const found = Array.from(first.subarray(0, 8), (byte) => byte.toString(16).padStart(2, '0')).join(' ');
  throw new TenarcError(
    'damaged',
    `the file starts with the bytes ${found}; the start of a tenarc archive, or of a safetensors, npz, npy or GGUF file, was expected`,
    0,
  );
}

async function openNpy(start: Start): Promise<OpenFile> {
  const header = readNpyHeader(start.first.subarray(0, NPY_HEADER), 0);
  const tensor = npyTensor(header, start.size - header.start, header.start, (from, to) =>
    readAt(start, header.start + from, to - from, 'the array'),
  );
  const item = { name: 'array', path: 'array', kind: 'tensor' as const, note: tensorNote(header), count: 0, tensor };
  return {
    format: 'npy',
    root: { ...folder('', '', [item]), kind: 'file', facts: () => [['header', `${header.start} bytes`]] },
    warnings: [],
    check: null,
  };
}
