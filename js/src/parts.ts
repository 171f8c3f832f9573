// Parts (6): one value in several pieces, the metadata first, then each buffer.
import { plainBytes } from './bytes.js';
import { TAG } from './cbor.js';
import { readMetadata, verifyChunks } from './archive.js';
import { Document, references, type Store, type TensorEntry } from './document.js';
import { TenarcError, fail } from './errors.js';
import { notesOf, oddKeyError, readHashes, readHeader, readRecord, recordLength, type Header } from './record.js';
import type { Tensor } from './tensor.js';
import type { ValueOptions } from './value.js';

export interface PartsOptions extends ValueOptions {
  /** Whether buffers are compared with their hashes: true. */
  verify?: boolean;
  /** How many bytes rows of columns may take, as in `OpenOptions`. */
  memory?: number;
}

/** A value that came in parts. */
export class Parts {
  readonly name: string | null;
  private readonly header: Header;
  private readonly document: Document;

  /** Takes the pieces: the metadata of the parts, and the buffers in order. */
  constructor(from: Uint8Array[], options: PartsOptions = {}) {
    const [metadata, ...buffers] = from.map(plainBytes);
    if (!metadata) throw new TenarcError('damaged', 'there are no pieces');
    const header = (this.header = readPartsHeader(metadata));
    this.name = header.name;
    const odd = oddKeyError(header.extensions, 'value', 0);
    if (odd) throw odd;
    const end = header.length + (header.buffers.length > 0 ? header.hashesLength + 9 : 0);
    if (metadata.length !== end) fail('damaged', `the metadata of parts has ${metadata.length} bytes instead of ${end}`, 0);
    if (buffers.length !== header.buffers.length)
      fail('damaged', `${buffers.length} buffers instead of ${header.buffers.length}`);
    checkBuffers(header, metadata, buffers, options.verify !== false);
    this.document = new Document(readMetadata(header), new PartsStore(header, buffers), options);
    const used = references(this.document.root);
    if (used.size < buffers.length) fail('damaged', 'nothing refers to a buffer');
  }

  /** The whole value. */
  value(): Promise<unknown> {
    return this.run((document) => document.get(''));
  }

  get(path: string): Promise<unknown> {
    return this.run((document) => document.get(path));
  }

  tensor(path: string): Promise<Tensor> {
    return this.run((document) => document.tensor(path));
  }

  slice(path: string, start: number, end: number): Promise<Tensor> {
    return this.run((document) => document.slice(path, start, end));
  }

  /** The tensors in the value, by path. */
  list(): Promise<TensorEntry[]> {
    return this.run((document) => document.list());
  }

  notes(): Map<string, string> {
    return notesOf(this.header.extensions, 0);
  }

  private async run<T>(work: (document: Document) => Promise<T>): Promise<T> {
    try {
      return await work(this.document);
    } catch (error) {
      if (!(error instanceof TenarcError) || error.kind !== 'data') throw error;
      return fail('damaged', error.reason, this.header.metadataOffset + (error.offset ?? 0));
    }
  }
}

function readPartsHeader(metadata: Uint8Array): Header {
  const record = readRecord(metadata, 0);
  if (record.tag !== TAG.HEADER) fail('damaged', 'parts must begin with the header of a segment', 0);
  const header = readHeader(record, true);
  if (header.buffers.some((buffer) => buffer.codec || buffer.elsewhere)) {
    fail('damaged', 'parts must not have compressed buffers, or buffers elsewhere', 0);
  }
  return header;
}

function checkBuffers(header: Header, metadata: Uint8Array, buffers: Uint8Array[], verify: boolean): void {
  buffers.forEach((buffer, i) => {
    const expected = header.buffers[i]!.length;
    if (buffer.length !== expected) fail('damaged', `buffer ${i} has ${buffer.length} bytes instead of ${expected}`);
  });
  if (buffers.length === 0) return;
  const hashes = readHashes(header, metadata.subarray(header.length));
  if (!verify || header.check === null) return;
  if (header.check.name !== 'xxh3-64') fail('unsupported', `the check ${JSON.stringify(header.check.name)} is not known`);
  buffers.forEach((buffer, i) => {
    const info = header.buffers[i]!;
    verifyChunks(header, info, buffer, 0, info.chunks, hashes);
  });
}

class PartsStore implements Store {
  readonly lengths: readonly (number | bigint)[];
  readonly size: number;
  private readonly buffers: Uint8Array[];

  constructor(header: Header, buffers: Uint8Array[]) {
    this.buffers = buffers;
    this.lengths = buffers.map((buffer) => buffer.length);
    this.size = buffers.reduce((sum, buffer) => sum + buffer.length, header.length);
  }

  async range(index: number, start: number, end: number): Promise<Uint8Array> {
    return this.buffers[index]!.subarray(start, end);
  }

  async whole(indexes: Iterable<number>): Promise<Map<number, Uint8Array>> {
    const out = new Map<number, Uint8Array>();
    for (const index of indexes) if (this.buffers[index]) out.set(index, this.buffers[index]!);
    return out;
  }
}

/** Divides parts that follow each other on a stream into their pieces. */
export function* splitParts(from: Uint8Array): Generator<Uint8Array[], void, void> {
  const bytes = plainBytes(from);
  for (let at = 0; at < bytes.length;) {
    const rest = bytes.subarray(at);
    // The hash of the record has the seed 0 wherever the parts are on the stream.
    const header = readPartsHeader(rest.subarray(0, recordLength(rest) ?? rest.length));
    let end = header.length + (header.buffers.length > 0 ? header.hashesLength + 9 : 0);
    const pieces = [rest.subarray(0, end)];
    for (const buffer of header.buffers) pieces.push(rest.subarray(end, (end += Number(buffer.length))));
    if (end > rest.length) fail('damaged', 'parts are cut off', bytes.length);
    yield pieces;
    at += end;
  }
}
