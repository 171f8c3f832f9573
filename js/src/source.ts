// Where the bytes of an archive come from.
import { plainBytes } from './bytes.js';
import { fail } from './errors.js';

/** Random access to bytes. Other sources can be written by hand. */
export interface Source {
  /** The length in bytes. */
  size(): Promise<number>;
  /** Exactly these bytes. */
  read(offset: number, length: number): Promise<Uint8Array>;
  /** The last bytes, at most this many, and the length of all, in one read. Without it, `size` and `read` are used. */
  suffix?(length: number): Promise<{ bytes: Uint8Array; size: number }>;
}

/** Bytes in memory. A `Buffer` is one of these. */
export function bytesSource(from: Uint8Array): Source {
  const bytes = plainBytes(from);
  return {
    size: async () => bytes.length,
    read: async (offset, length) => bytes.subarray(offset, offset + length),
  };
}

/** A `Blob`, such as a `File` of an input element. */
export function blobSource(blob: Blob): Source {
  return {
    size: async () => blob.size,
    read: async (offset, length) => new Uint8Array(await blob.slice(offset, offset + length).arrayBuffer()),
  };
}

export interface HttpOptions {
  /** In place of the global `fetch`. */
  fetch?: typeof fetch;
  /** Sent with each request. */
  headers?: Record<string, string>;
}

/**
 * A file on a server that answers requests for ranges. A server that ignores them sends the whole file once. If the file
 * changes between requests, as its `ETag` shows, reading fails.
 */
export function httpSource(url: string | URL, options: HttpOptions = {}): Source {
  const send = options.fetch ?? fetch;
  let whole: Uint8Array | undefined;
  let etag: string | null | undefined;
  let known: number | undefined;

  async function request(range: string): Promise<{ bytes: Uint8Array; start: number } | undefined> {
    let response: Response;
    try {
      response = await send(url, { headers: { ...options.headers, Range: `bytes=${range}` } });
    } catch (error) {
      return fail('io', `the request for bytes ${range} failed: ${String(error)}`);
    }
    if (response.status === 416) return undefined;
    if (response.status !== 206 && response.status !== 200) {
      fail('io', `the server answered ${response.status} to a request for bytes ${range}`);
    }
    const tag = response.headers.get('etag');
    if (etag !== undefined && tag !== etag) fail('io', 'the file changed while it was read');
    etag = tag;
    const bytes = new Uint8Array(await response.arrayBuffer());
    if (response.status === 200) {
      whole = bytes;
      known = bytes.length;
      return undefined;
    }
    const found = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(response.headers.get('content-range') ?? '');
    if (!found) return fail('io', 'the server sent a range without saying which');
    const size = Number(found[3]);
    if (known !== undefined && size !== known) fail('io', 'the length of the file changed while it was read');
    known = size;
    return { bytes, start: Number(found[1]) };
  }

  const source: Required<Source> = {
    async suffix(length) {
      const answer = await request(`-${length}`);
      if (answer) return { bytes: answer.bytes, size: known! };
      // An empty file has no range.
      const all = whole ?? new Uint8Array(0);
      return { bytes: all.subarray(Math.max(0, all.length - length)), size: all.length };
    },
    async size() {
      if (known === undefined) await source.suffix(1);
      return known ?? 0;
    },
    async read(offset, length) {
      if (length === 0) return new Uint8Array(0);
      if (!whole) {
        const answer = await request(`${offset}-${offset + length - 1}`);
        if (answer) {
          if (answer.start !== offset) fail('io', `the server sent bytes from ${answer.start} on instead of ${offset}`);
          return answer.bytes;
        }
      }
      return (whole ?? new Uint8Array(0)).subarray(offset, offset + length);
    },
  };
  return source;
}

/** Anything that can be opened. */
export type SourceLike = Source | Uint8Array | ArrayBuffer | Blob | URL | string;

/** A source for bytes, a `Blob`, or a URL. */
export function sourceOf(from: SourceLike): Source {
  if (from instanceof Uint8Array) return bytesSource(from);
  if (from instanceof ArrayBuffer) return bytesSource(new Uint8Array(from));
  if (typeof Blob !== 'undefined' && from instanceof Blob) return blobSource(from);
  if (typeof from === 'string' || from instanceof URL) return httpSource(from);
  return from as Source;
}

/** A source with its size, whose reads are checked, and which keeps the bytes at its end that were read first. */
export class Input {
  readonly size: number;
  /** How many reads there were. */
  reads: number;
  private readonly source: Source;
  private kept: Uint8Array;
  private keptFrom: number;

  private constructor(source: Source, size: number, end: Uint8Array) {
    this.source = source;
    this.size = size;
    this.kept = end;
    this.keptFrom = size - end.length;
    this.reads = 1;
  }

  static async open(from: SourceLike, suffix: number): Promise<Input> {
    const source = sourceOf(from);
    if (source.suffix) {
      const { bytes, size } = await source.suffix(suffix);
      return new Input(source, size, plainBytes(bytes));
    }
    const size = await source.size();
    const length = Math.min(size, suffix);
    const bytes = plainBytes(await source.read(size - length, length));
    if (bytes.length !== length) fail('io', `a read of ${length} bytes gave ${bytes.length}`);
    return new Input(source, size, bytes);
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    if (length === 0) return new Uint8Array(0);
    if (offset + length > this.size) return fail('damaged', `the input ends before byte ${offset + length}`, this.size);
    if (offset >= this.keptFrom) return this.kept.subarray(offset - this.keptFrom, offset - this.keptFrom + length);
    this.reads++;
    const bytes = plainBytes(await this.source.read(offset, length));
    if (bytes.length !== length) fail('io', `a read of ${length} bytes gave ${bytes.length}`);
    return bytes;
  }

  /** As many bytes as there are, at most `length`. */
  readUpTo(offset: number, length: number): Promise<Uint8Array> {
    return this.read(offset, Math.max(0, Math.min(length, this.size - offset)));
  }

  get wholeIsKept(): boolean {
    return this.keptFrom === 0;
  }
}
