import { Archive, checkMagic, committedMark, type OpenOptions } from './archive.js';
import { TenarcError } from './errors.js';
import { Input, type SourceLike } from './source.js';
import { markError, walk } from './walk.js';

const SUFFIX = 65536;

/**
 * Opens an archive. One that was committed takes one read of its end, and one more if its end mark is long. Otherwise its headers
 * are walked over from the start: an archive with bytes of an unfinished append opens in its last committed state.
 */
export async function open(from: SourceLike, options: OpenOptions = {}): Promise<Archive> {
  const input = await Input.open(from, options.suffix ?? SUFFIX);
  const mark = await committedMark(input);
  if (mark) {
    if (input.wholeIsKept) checkMagic(await input.read(0, 12));
    return new Archive(input, options, 'whole', mark);
  }
  const walked = await walk(input);
  if (walked.rest instanceof TenarcError) throw walked.rest;
  const odd = markError(walked);
  if (odd) throw odd;
  if (walked.mark) return new Archive(input, options, walked.rest === 'nothing' ? 'whole' : 'unfinished', walked.mark);
  if (!options.torn) {
    throw new TenarcError(
      'torn',
      `the archive was never committed; ${walked.headers.length} segments are all there`,
      walked.end,
    );
  }
  const entries = walked.headers.map((header) => ({
    offset: header.offset,
    name: header.name,
    headerLength: header.length,
    rows: null,
    digest: null,
  }));
  return new Archive(input, options, 'torn', undefined, entries);
}
