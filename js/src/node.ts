// Files of Node, as sources. This is an entry of its own, so that browsers need nothing of Node.
import { open as openFile, type FileHandle } from 'node:fs/promises';
import { Archive, type OpenOptions } from './archive.js';
import { fail } from './errors.js';
import { open } from './open.js';
import type { Source } from './source.js';

export * from './index.js';

/** An open file. Closing it is up to the caller. */
export function fileSource(file: FileHandle): Source {
  return {
    size: async () => (await file.stat()).size,
    async read(offset, length) {
      const bytes = new Uint8Array(length);
      for (let done = 0; done < length;) {
        const { bytesRead } = await file.read(bytes, done, length - done, offset + done);
        if (bytesRead === 0) return fail('io', 'the file became shorter while it was read', offset + done);
        done += bytesRead;
      }
      return bytes;
    },
  };
}

/** An archive in a file that is open until `close` is called. */
export interface FileArchive {
  archive: Archive;
  close(): Promise<void>;
}

/** Opens an archive in a file. Its first read is of 4,096 bytes. */
export async function openArchiveFile(path: string | URL, options: OpenOptions = {}): Promise<FileArchive> {
  const file = await openFile(path);
  try {
    const archive = await open(fileSource(file), { suffix: 4096, ...options });
    return { archive, close: () => file.close() };
  } catch (error) {
    await file.close();
    throw error;
  }
}
