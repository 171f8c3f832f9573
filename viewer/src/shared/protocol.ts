// The messages between the page and the worker. The worker reads the file; the page shows what the worker found.

export type Kind = 'file' | 'group' | 'list' | 'tensor' | 'table' | 'column' | 'text' | 'number' | 'bytes' | 'other';

/** A line of the tree. */
export interface Node {
  id: number;
  name: string;
  /** The whole path, as search shows it. */
  path: string;
  kind: Kind;
  /** What stands beside the name: dtype and shape, or a short value. */
  note: string;
  /** The number of lines below it; -1 if it has some but has not been read. */
  count: number;
}

export type Fact = [name: string, value: string];

export interface Opened {
  format: string;
  size: number;
  root: Node;
  warnings: string[];
  /** What verifying this file means, in a sentence; its absence means that nothing can be verified. */
  check: string | null;
}

/** How much there is of a dtype. */
export interface Share {
  dtype: string;
  tensors: number;
  bytes: number;
}

/** What the page shows for a node. */
export interface Detail {
  node: Node;
  facts: Fact[];
  /** Names and values that the file itself holds. */
  metadata: Fact[];
  text: string | null;
  shares: Share[];
  tensor: TensorDetail | null;
  table: { rows: number; sortLimit: number } | null;
}

export interface TensorDetail {
  dtype: string;
  shape: number[];
  bytes: number;
  elements: number;
  /** Why the elements cannot be shown, if they cannot. */
  unreadable: string | null;
  /** The axes that make an image, if the shape looks like one. */
  image: { leading: number[]; height: number; width: number; channels: number } | null;
  /** The lengths of the axes in front of the matrix that is shown. */
  leading: number[];
}

export interface Statistics {
  elements: number;
  read: number;
  nan: number;
  infinite: number;
  zeros: number;
  /** As text, because integers of 64 bits are exact. Null if no element is finite. */
  min: string | null;
  max: string | null;
  mean: number;
  deviation: number;
  histogram: { from: number; width: number; counts: number[] } | null;
  /** What the numbers are, if they are not the elements themselves. */
  of: string | null;
}

export type Picture =
  | { kind: 'matrix'; height: number; width: number; values: Float32Array; rows: number[]; columns: number[]; note: string }
  | { kind: 'image'; height: number; width: number; rgba: Uint8ClampedArray<ArrayBuffer>; note: string }
  | { kind: 'line'; low: Float32Array; high: Float32Array; at: number[]; note: string };

/** A corner of a tensor, as texts. */
export interface Values {
  columns: string[];
  rows: { name: string; cells: string[] }[];
  note: string;
}

export interface Rows {
  columns: { name: string; path: string[]; numeric: boolean }[];
  rows: { name: string; cells: (string | null)[] }[];
}

export interface Search {
  matches: Node[];
  note: string;
}

export interface Requests {
  open: { params: { from: File | string }; result: Opened };
  children: { params: { node: number; start: number; end: number }; result: Node[] };
  search: { params: { text: string }; result: Search };
  detail: { params: { node: number }; result: Detail };
  statistics: { params: { node: number; all: boolean }; result: Statistics };
  picture: { params: { node: number; leading: number[]; image: boolean }; result: Picture };
  values: { params: { node: number; leading: number[] }; result: Values };
  rows: {
    params: { node: number; start: number; end: number; sort: { path: string[]; descending: boolean } | null };
    result: Rows;
  };
  verify: { params: Record<string, never>; result: string };
}

export type Method = keyof Requests;

export interface Request {
  id: number;
  method: Method;
  params: Requests[Method]['params'];
}

/** What went wrong, as the page shows it. */
export interface Fault {
  message: string;
  /** The byte of the file, if it is known. */
  offset: number | null;
}

export type Answer =
  | { id: number; done: number; total: number }
  | { id: number; result: Requests[Method]['result'] }
  | { id: number; fault: Fault };

/** The page gives up on a request. */
export interface Cancel {
  cancel: number;
}
