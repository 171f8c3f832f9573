// Verifying an archive (5.8): the walk, all hashes and paddings, the form of references, and the rows and digests of the
// directory.
import { equalBytes, isZero } from './bytes.js';
import { committedMark, readMetadata, verifyChunks } from './archive.js';
import { TAG, encodeHead, type Item, type TagItem } from './cbor.js';
import { readGroups } from './columns.js';
import type { SegmentEntry } from './directory.js';
import { TenarcError, fail } from './errors.js';
import { references } from './document.js';
import { Budget, bignum, complex, packed, reference, tensorInfo, typedItem, type Context } from './payload.js';
import { countRows, oddKeyError, padding, readHashes, segmentDigest, type BufferInfo, type Header } from './record.js';
import { Input, type SourceLike } from './source.js';
import { markError, walk } from './walk.js';

export interface Verification {
  /** Whether there are bytes of an unfinished append behind the last committed end mark. They are not verified. */
  state: 'whole' | 'unfinished';
  /** How many segments are committed. */
  segments: number;
}

/**
 * Verifies a whole archive. It throws the first fault that it finds: `damaged`, `torn` or `unsupported`. Compressed buffers are
 * verified as they are stored.
 */
export async function verify(from: SourceLike, options: { suffix?: number } = {}): Promise<Verification> {
  const input = await Input.open(from, options.suffix ?? 65536);
  const blocks: { entries: SegmentEntry[]; first: number }[] = [];
  const marks: { entries: SegmentEntry[]; first: number }[] = [];
  const walked = await walk(input, {
    block: (entries, first) => blocks.push({ entries, first }),
    mark: (mark, count) => marks.push({ entries: mark.segments, first: count - mark.segments.length }),
  });
  if (walked.rest instanceof TenarcError) throw walked.rest;
  // A walk that does not reach the end mark of an intact tail stops at something that this tail has committed.
  if (walked.rest === 'unfinished' && (await committedMark(input))) {
    fail('damaged', 'what the tail at the end has committed is not right', walked.end);
  }
  if (!walked.mark) throw new TenarcError('torn', 'the archive was never committed', walked.end);
  const odd = markError(walked);
  if (odd) throw odd;
  const count = walked.mark.count;
  const headers = walked.headers.slice(0, count);
  const digests: (Uint8Array | null)[] = [];
  for (const header of headers) digests.push(await verifySegment(input, header));
  const rows = headers.map((header) =>
    oddKeyError(header.extensions, 'segment', header.offset) ? undefined : countRows(header),
  );
  for (const { entries, first } of [...blocks, ...marks]) {
    entries.forEach((entry, i) => {
      const index = first + i;
      if (index >= count) return;
      if (rows[index] !== undefined && entry.rows != rows[index]) {
        fail(
          'damaged',
          `the directory says ${entry.rows} rows for segment ${index}, which has ${rows[index]}`,
          entry.offset,
        );
      }
      const digest = digests[index]!;
      if (entry.digest && !(digest && equalBytes(entry.digest, digest))) {
        fail('damaged', `the directory has another digest for segment ${index}`, entry.offset);
      }
    });
  }
  return { state: walked.rest === 'nothing' ? 'whole' : 'unfinished', segments: count };
}

/** Verifies one segment and gives its digest. */
export async function verifySegment(input: Input, header: Header): Promise<Uint8Array | null> {
  const hashItem = await verifyBody(input, header);
  if (!oddKeyError(header.extensions, 'segment', header.offset)) {
    try {
      verifyMetadata(header);
    } catch (error) {
      if (!(error instanceof TenarcError) || error.kind !== 'data') throw error;
      fail('damaged', error.reason, header.metadataOffset + (error.offset ?? 0));
    }
  }
  const digest = segmentDigest(header, hashItem);
  return digest === null ? null : digestBytes(digest);
}

function digestBytes(digest: bigint): Uint8Array {
  const out = new Uint8Array(16);
  for (let i = 15; i >= 0; i--, digest >>= 8n) out[i] = Number(digest & 255n);
  return out;
}

/** Everything of a segment behind its record. Gives item 3 of 5.2. */
async function verifyBody(input: Input, header: Header): Promise<Uint8Array> {
  const { buffers, check } = header;
  if (buffers.length === 0) return new Uint8Array(0);
  const start = header.offset + header.length;
  const before = await input.read(start, header.bodyOffset - start);
  const gap = header.bodyHead - start;
  if (!equalBytes(before.subarray(0, gap), padding(gap))) fail('damaged', 'the padding before a body is wrong', start);
  if (!equalBytes(before.subarray(gap), encodeHead(2, header.bodyLength)))
    fail('damaged', 'the head of a body is wrong', header.bodyHead);
  const bytes = await input.read(header.hashesOffset, header.hashesLength + 9);
  const hashes = readHashes(header, bytes);
  let at = header.bodyOffset;
  for (const buffer of buffers) {
    if (buffer.elsewhere) continue;
    if (!isZero(await input.read(at, buffer.offset - at))) fail('damaged', 'bytes between buffers are not zero', at);
    if (check?.name === 'xxh3-64') await verifyBuffer(input, header, buffer, hashes);
    at = buffer.offset + buffer.stored;
  }
  return bytes.subarray(0, header.hashesLength);
}

async function verifyBuffer(input: Input, header: Header, buffer: BufferInfo, hashes: Uint8Array): Promise<void> {
  let at = buffer.offset;
  for (let i = 0; i < buffer.chunks; i++) {
    const left = buffer.offset + buffer.stored - at;
    const length = buffer.codec ? buffer.codec.stored[i]! : Math.min(header.chunk, left);
    verifyChunks(header, buffer, await input.read(at, length), i, i + 1, hashes);
    at += length;
  }
}

function verifyMetadata(header: Header): void {
  const item = readMetadata(header);
  const context: Context = {
    buffers: header.buffers.map((buffer) => buffer.length),
    budget: new Budget(header.end - header.offset),
  };
  checkForm(item, context);
  const used = references(item);
  header.buffers.forEach((_, i) => {
    if (!used.has(i)) fail('damaged', `nothing refers to buffer ${i}`, header.offset);
  });
}

/** Checks the form of references, and of what else can be checked without the bytes of buffers. */
function checkForm(item: Item, context: Context): void {
  if (item.type === 'array' || item.type === 'map') {
    for (const inner of item.items) checkForm(inner, context);
  } else if (item.type === 'tag') {
    switch (item.tag) {
      case TAG.BUFFER:
        reference(item, context);
        break;
      case TAG.TENSOR:
      case TAG.TENSOR_F:
      case TAG.TENS:
        tensorInfo(item, context);
        break;
      case TAG.COLUMNS:
        readGroups(item, context);
        break;
      case TAG.TYPE:
        checkForm(typedItem(item).item, context);
        break;
      default:
        checkTag(item, context);
    }
  }
}

function checkTag(item: TagItem, context: Context): void {
  if (item.tag === TAG.COMPLEX) complex(item);
  else if (bignum(item) === undefined && !packed(item)) checkForm(item.content, context);
}

/**
 * How many segments of an archive that was never committed can be kept (5.8): all up to the last one that is whole, that is,
 * whose bytes are all there and whose hashes are right.
 */
export async function countWhole(from: SourceLike): Promise<number> {
  const input = await Input.open(from, 65536);
  const { headers } = await walk(input);
  for (let count = headers.length; count > 0; count--) {
    try {
      await verifyBody(input, headers[count - 1]!);
      return count;
    } catch (error) {
      if (!(error instanceof TenarcError)) throw error;
    }
  }
  return 0;
}
