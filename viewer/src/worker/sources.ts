// Files and URLs as sources of bytes.
import { blobSource, httpSource, TenarcError, type Source } from '../../../js/src/index.js';
import { concat } from '../../../js/src/bytes.js';
import type { Start } from './model.js';
import { MEBIBYTE } from './elements.js';

const FIRST = 65536;
const TIMEOUT = 60_000;
/** A server that does not answer requests for ranges sends the whole file, which then must fit in memory. */
const MAX_WHOLE = 256 * MEBIBYTE;

export async function startOf(from: Blob | string): Promise<Start> {
  if (typeof from !== 'string') {
    const source = guarded(blobSource(from));
    return { source, size: from.size, first: await source.read(0, Math.min(FIRST, from.size)), remote: false };
  }
  const source = httpSource(from, { fetch: bounded });
  // The first bytes say the length too. A request for the last bytes would need the server's permission first.
  const first = await source.read(0, FIRST);
  return { source: guarded(source), size: await source.size(), first, remote: !isNear(from) };
}

/** Whether a server is on this computer, as that of `tenarc view` is. */
function isNear(url: string): boolean {
  return /^(127\.\d+\.\d+\.\d+|localhost|\[::1\])$/.test(new URL(url).hostname);
}

/** Files can change or vanish while they are open. */
function guarded(source: Source): Source {
  return {
    size: () => source.size(),
    async read(offset, length) {
      try {
        return await source.read(offset, length);
      } catch (error) {
        if (error instanceof TenarcError) throw error;
        const why = error instanceof Error ? error.message : String(error);
        throw new TenarcError('io', `${length} bytes could not be read; the file may have changed: ${why}`, offset);
      }
    },
  };
}

/** A request that ends, and an answer with no more bytes than were asked for. */
const bounded: typeof fetch = async (input, init) => {
  const range = /^bytes=(\d+)-(\d+)$/.exec((init?.headers as Record<string, string>)['Range'] ?? '');
  const wanted = range ? Number(range[2]) - Number(range[1]) + 1 : FIRST;
  let response: Response;
  try {
    response = await fetch(input, {
      ...init,
      credentials: 'omit',
      redirect: 'follow',
      signal: AbortSignal.timeout(TIMEOUT),
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'TimeoutError')
      throw new Error('the server did not answer within a minute');
    throw new Error(
      'the server cannot be reached, sends the request on to another address, or does not allow other pages to read it (CORS)',
    );
  }
  if (response.status === 206 && !response.headers.has('content-range')) {
    throw new TenarcError(
      'io',
      'the server does not allow pages to see the header "Content-Range" (Access-Control-Expose-Headers)',
    );
  }
  const limit = response.status === 206 ? wanted : MAX_WHOLE;
  const pieces: Uint8Array[] = [];
  let length = 0;
  for (const reader = response.body?.getReader(); reader;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > limit) {
      void reader.cancel();
      throw new TenarcError(
        'io',
        response.status === 206
          ? `the server sent more than the ${wanted} bytes that were asked for`
          : `the server ignores requests for ranges, and the file has more than ${MAX_WHOLE} bytes`,
      );
    }
    pieces.push(value);
  }
  const { status, headers } = response;
  return new Response(status === 204 || status === 304 ? null : (concat(pieces) as Uint8Array<ArrayBuffer>), {
    status,
    headers,
  });
};
