// Requests to the worker.
import type { Answer, Fault, Method, Requests } from '../shared/protocol.js';

export class FaultError extends Error {
  constructor(readonly fault: Fault) {
    super(fault.offset === null ? fault.message : `${fault.message} (at byte ${fault.offset.toLocaleString('en-US')})`);
  }
}

/** The page has given up on a request. */
export class CancelError extends Error {}

export interface Call<T> {
  result: Promise<T>;
  cancel(): void;
}

interface Open {
  resolve(result: unknown): void;
  reject(error: Error): void;
  progress?: (done: number, total: number) => void;
}

/** A worker with its requests. Each file gets a worker of its own, so that a file that keeps one busy cannot stop the page. */
export class Client {
  private readonly worker: Worker;
  private readonly open = new Map<number, Open>();
  private next = 1;

  constructor() {
    const source = document.getElementById('worker-source')!.textContent!;
    const url = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
    this.worker = new Worker(url);
    URL.revokeObjectURL(url);
    this.worker.onmessage = ({ data }: MessageEvent<Answer>) => this.receive(data);
    this.worker.onerror = (event) =>
      this.fail(new Error(event.message || 'the worker stopped; the file may need more memory than there is'));
  }

  call<M extends Method>(
    method: M,
    params: Requests[M]['params'],
    progress?: (done: number, total: number) => void,
  ): Call<Requests[M]['result']> {
    const id = this.next++;
    const result = new Promise<Requests[M]['result']>((resolve, reject) => {
      this.open.set(id, { resolve: resolve as (result: unknown) => void, reject, ...(progress ? { progress } : {}) });
    });
    this.worker.postMessage({ id, method, params });
    const cancel = () => {
      this.worker.postMessage({ cancel: id });
      this.open.get(id)?.reject(new CancelError());
      this.open.delete(id);
    };
    return { result, cancel };
  }

  get<M extends Method>(method: M, params: Requests[M]['params']): Promise<Requests[M]['result']> {
    return this.call(method, params).result;
  }

  close(): void {
    this.worker.terminate();
    this.fail(new CancelError());
  }

  private receive(answer: Answer): void {
    const request = this.open.get(answer.id);
    if (!request) return;
    if ('done' in answer) {
      request.progress?.(answer.done, answer.total);
      return;
    }
    this.open.delete(answer.id);
    if ('fault' in answer) request.reject(new FaultError(answer.fault));
    else request.resolve(answer.result);
  }

  private fail(error: Error): void {
    for (const request of this.open.values()) request.reject(error);
    this.open.clear();
  }
}
