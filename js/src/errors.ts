/**
 * What kind of error it is:
 *
 * - `damaged`: the bytes of an archive or of parts break the format, or a hash is wrong
 * - `torn`: an archive that was never committed
 * - `unsupported`: a later version, an odd key of `ext`, an unknown codec or algorithm; the message names it
 * - `data`: a message or value that breaks the format, or that is not what was asked for
 * - `usage`: a call that asks for something else than what is there, such as a tensor where there is a text
 * - `limit`: more memory or nesting than the limits allow
 * - `missing`: no such segment or path
 * - `io`: the source did not give the bytes
 */
export type ErrorKind = 'damaged' | 'torn' | 'unsupported' | 'data' | 'usage' | 'limit' | 'missing' | 'io';

/** Every error of this package. */
export class TenarcError extends Error {
  readonly kind: ErrorKind;
  /** The byte of the archive or message at which the fault is, if it is known. */
  readonly offset: number | undefined;
  /** The path or the name that was asked for, if there is one. */
  path: string | undefined;
  /** The message without the offset. */
  readonly reason: string;

  constructor(kind: ErrorKind, message: string, offset?: number, path?: string) {
    super(offset === undefined ? message : `${message} (at byte ${offset})`);
    this.name = 'TenarcError';
    this.kind = kind;
    this.reason = message;
    this.offset = offset;
    this.path = path;
  }
}

export function fail(kind: ErrorKind, message: string, offset?: number): never {
  throw new TenarcError(kind, message, offset);
}
