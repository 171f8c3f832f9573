// The Node half: cbor-x, cborg, cbor and cbor2.
//
//     check.mjs read DIR    reads what tenarc wrote and compares it with the manifest beside it
//     check.mjs write DIR   writes DIR/LIBRARY for each library: files and a manifest for tenarc
//
// The form of manifests is described in ../src/data.rs.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { endianness } from 'node:os'

import * as cborX from 'cbor-x'
import * as cborg from 'cborg'
import cbor from 'cbor'
import * as cbor2 from 'cbor2'

// RFC 8746, section 2.1: little-endian tags and the arrays JavaScript has for them.
const TYPED = {
  u8: [64, Uint8Array],
  u16: [69, Uint16Array],
  u32: [70, Uint32Array],
  u64: [71, BigUint64Array],
  i8: [72, Int8Array],
  i16: [77, Int16Array],
  i32: [78, Int32Array],
  i64: [79, BigInt64Array],
  f32: [85, Float32Array],
  f64: [86, Float64Array],
}
// Those JavaScript has no array for stay a tag around bytes.
const UNTYPED = { 84: 'f16', 87: 'f128' }
const ROW_MAJOR = 40
const COLUMN_MAJOR = 1040
const COMPLEX_TAG = 43001
const NAMED_TAG = Buffer.from('TENS').readUInt32BE()

const LIBRARIES = {
  'cbor-x': {
    decode: bytes => new cborX.Decoder({ mapsAsObjects: false }).decode(bytes),
    // As objects, cbor-x writes the heads of maps longer than they need be; that stays in.
    encode: value => cborX.encode(value),
    tag: (number, content) => new cborX.Tag(content, number),
    isTag: value => value instanceof cborX.Tag,
    content: value => [value.tag, value.value],
    tensors: true,
  },
  cborg: {
    decode: bytes => cborg.decode(bytes, { useMaps: true }),
    encode: value => cborg.encode(value),
    isTag: () => false,
    // It knows neither tags nor typed arrays.
    tensors: false,
  },
  cbor: {
    decode: bytes => cbor.decodeFirstSync(bytes, { preferMap: true }),
    encode: value => cbor.encodeOne(value, { highWaterMark: 1 << 20 }),
    tag: (number, content) => new cbor.Tagged(number, content),
    isTag: value => value instanceof cbor.Tagged,
    content: value => [value.tag, value.value],
    tensors: true,
  },
  cbor2: {
    decode: bytes => cbor2.decode(bytes, { preferMap: true }),
    encode: value => cbor2.encode(value),
    tag: (number, content) => new cbor2.Tag(number, content),
    isTag: value => value instanceof cbor2.Tag,
    content: value => [value.tag, value.contents],
    tensors: true,
  },
}

class Mismatch extends Error {}

const hex = bytes => Buffer.from(bytes).toString('hex')
const bytesOf = view => new Uint8Array(view.buffer, view.byteOffset, view.byteLength)

// Reading

/** The dtype name and bytes of a typed array as a library gives it. */
function typed(library, value) {
  if (library.isTag(value)) {
    const [tag, content] = library.content(value)
    if (tag in UNTYPED) return [UNTYPED[tag], content]
    if (tag !== COMPLEX_TAG) throw new Mismatch(`tag ${tag} is no typed array`)
    const [parts, bytes] = typed(library, content)
    return [{ f32: 'c64', f64: 'c128' }[parts], bytes]
  }
  for (const [name, [, array]] of Object.entries(TYPED)) {
    // cbor2 gives a Buffer for tag 64, which is an Uint8Array too.
    if (value instanceof array) return [name, bytesOf(value)]
  }
  throw new Mismatch(`${Object.prototype.toString.call(value)} is no typed array`)
}

/** Dtype, shape, order and bytes of a tensor as a library gives it. */
function tensor(library, value) {
  const [tag, content] = library.content(value)
  if (tag === NAMED_TAG) return content
  if (tag !== ROW_MAJOR && tag !== COLUMN_MAJOR) throw new Mismatch(`tag ${tag} is no tensor`)
  const [shape, elements] = content
  const [dtype, bytes] = typed(library, elements)
  return [dtype, shape, tag === ROW_MAJOR ? 'C' : 'F', bytes]
}

function float(want) {
  const bits = Buffer.from(want.v, 'hex')
  return want.t === 'f32' ? bits.readFloatBE() : bits.readDoubleBE()
}

function compare(library, got, want) {
  const check = same => {
    if (same) return
    const found = typeof got === 'object' ? Object.prototype.toString.call(got) : String(got)
    throw new Mismatch(`found ${found.slice(0, 200)}, wanted ${JSON.stringify(want).slice(0, 200)}`)
  }
  const within = (place, item, wanted) => {
    try {
      compare(library, item, wanted)
    } catch (error) {
      throw new Mismatch(`[${String(place)}] ${error.message}`)
    }
  }
  switch (want.t) {
    case 'null':
      return check(got === null)
    case 'bool':
      return check(got === want.v)
    case 'int':
      return check(['number', 'bigint'].includes(typeof got) && BigInt(got) === BigInt(want.v))
    case 'f32':
    case 'f64':
      // JavaScript has one float type, and one NaN.
      return check(typeof got === 'number' && Object.is(got, float(want)))
    case 'text':
      return check(got === want.v)
    case 'bytes':
      return check(got instanceof Uint8Array && hex(got) === want.v)
    case 'array':
      check(Array.isArray(got) && got.length === want.v.length)
      return want.v.forEach((wanted, index) => within(index, got[index], wanted))
    case 'map': {
      check(got instanceof Map && got.size === want.v.length)
      const entries = [...got]
      return want.v.forEach(([key, wanted], index) => {
        within('key', entries[index][0], key)
        within(entries[index][0], entries[index][1], wanted)
      })
    }
    case 'tag': {
      check(library.isTag(got))
      const [tag, content] = library.content(got)
      check(tag === want.tag)
      return within('tag', content, want.v)
    }
    case 'numbers': {
      const [dtype, bytes] = typed(library, got)
      return check(dtype === want.dtype && hex(bytes) === want.v)
    }
    case 'tensor': {
      check(library.isTag(got))
      const [dtype, shape, order, bytes] = tensor(library, got)
      check(dtype === want.dtype && shape.join() === want.shape.join() && order === want.order)
      return check(hex(bytes) === want.v)
    }
    default:
      throw new Mismatch(`unknown description ${want.t}`)
  }
}

function read(directory) {
  const manifest = JSON.parse(readFileSync(join(directory, 'manifest.json'), 'utf8'))
  let passed = 0
  let failed = 0
  for (const [name, library] of Object.entries(LIBRARIES)) {
    for (const entry of manifest.files) {
      if (!entry.plain && !library.tensors) continue
      try {
        compare(library, library.decode(readFileSync(join(directory, entry.file))), entry.value)
        passed += 1
      } catch (error) {
        failed += 1
        console.log(`FAILED ${entry.file} by ${name}: ${error}`)
      }
    }
  }
  return [passed, failed]
}

// Writing

const text = value => ({ t: 'text', v: value })
const int = value => ({ t: 'int', v: String(value) })

/** The description of a plain JavaScript value. */
function describe(value) {
  if (value === null) return { t: 'null' }
  if (value === undefined) return { t: 'undefined' }
  if (typeof value === 'boolean') return { t: 'bool', v: value }
  if (typeof value === 'string') return text(value)
  const whole = Number.isInteger(value) && !Object.is(value, -0)
  if (typeof value === 'bigint' || whole) return int(value)
  if (typeof value === 'number') {
    const bits = Buffer.alloc(8)
    bits.writeDoubleBE(value)
    return { t: 'float', v: hex(bits) }
  }
  if (value instanceof Uint8Array) return { t: 'bytes', v: hex(value) }
  if (Array.isArray(value)) return { t: 'array', v: value.map(describe) }
  const entries = Object.entries(value)
  return { t: 'map', v: entries.map(([key, item]) => [text(key), describe(item)]) }
}

/** Plain values, with `bytes` in the form the library takes for a byte string. */
function plain(bytes) {
  const list = Array.from({ length: 30 }, (_, n) => n)
  return {
    numbers: [0, 1, 23, 24, 255, 256, 65535, 65536, 4294967295, -1, -24, -25, -256, -2147483648],
    large: [2n ** 53n, 2n ** 63n - 1n, 2n ** 64n - 1n, -(2n ** 53n), -(2n ** 63n)],
    floats: [0.1, -1.5, 1e-7, 5e-324, Infinity, -Infinity, NaN],
    words: [null, true, false],
    text: ['', 'a', 'ü', '水', '𐅑', 'x'.repeat(300), 'ü'.repeat(200)],
    bytes: [bytes([]), bytes([0, 255]), bytes(Array(300).fill(7))],
    nested: { a: [1, [2, [3, {}]]], b: { c: { d: null } }, list },
    mixed: { id: 7, name: 'seven', ratio: 0.5, tags: ['x', 'y'], flags: { on: true } },
  }
}

const FLOATS = [0.5, -1.5, 0.1, 1e10, -0, 0.25]
const INTEGERS = [0, 1, 2, 3, 100, 127]

function arrays() {
  return Object.entries(TYPED).map(([name, [, array]]) => {
    if (name.startsWith('f')) return [name, new array(FLOATS)]
    const extreme = name.startsWith('i') ? [-1, -128] : [128, 255]
    const values = [...INTEGERS.slice(2), ...extreme]
    return [name, new array(name.endsWith('64') ? values.map(BigInt) : values)]
  })
}

function write(directory, name, library) {
  mkdirSync(directory, { recursive: true })
  const files = []
  const add = (file, value, wanted, more) => {
    writeFileSync(join(directory, `${file}.cbor`), library.encode(value))
    files.push({ file: `${file}.cbor`, value: wanted, ...more })
  }

  // cbor-x and cbor take an Uint8Array for a typed array, cbor2 takes a Buffer for an object.
  const bytes = ['cbor-x', 'cbor'].includes(name) ? Buffer : Uint8Array
  for (const [file, value] of Object.entries(plain(list => bytes.from(list)))) {
    add(`plain-${file}`, value, describe(value))
  }
  add('undefined', [undefined, 1], describe([undefined, 1]))
  if (library.tensors) {
    add('bignums', [2n ** 64n, -(2n ** 64n) - 1n], describe([2n ** 64n, -(2n ** 64n) - 1n]))
    writeTensors(add, name, library)
  }
  const manifest = { writer: `npm's ${name}`, files }
  writeFileSync(join(directory, 'manifest.json'), JSON.stringify(manifest))
}

function writeTensors(add, name, library) {
  const { tag } = library
  const tensorOf = (dtype, shape, order, values) =>
    ({ t: 'tensor', dtype, shape, order, v: hex(bytesOf(values)) })
  for (const [dtype, values] of arrays()) {
    // cbor2 writes an Uint8Array as a byte string, which the tag around it makes a typed array.
    const payload = name === 'cbor2' && dtype === 'u8' ? tag(64, values) : values
    add(`numbers-${dtype}`, payload, { t: 'numbers', dtype, v: hex(bytesOf(values)) })
    const rows = tag(ROW_MAJOR, [[2, 3], payload])
    add(`tensor-${dtype}-rows`, rows, tensorOf(dtype, [2, 3], 'C', values))
    const columns = tag(COLUMN_MAJOR, [[3, 2], payload])
    add(`tensor-${dtype}-columns`, columns, tensorOf(dtype, [3, 2], 'F', values))
  }
  const parts = new Float32Array(FLOATS)
  const complex = tag(ROW_MAJOR, [[3], tag(COMPLEX_TAG, parts)])
  add('tensor-c64', complex, tensorOf('c64', [3], 'C', parts))
  const clamped = Uint8ClampedArray.from([1, 2, 300])
  add('numbers-clamped', clamped, { t: 'numbers', dtype: 'u8', v: hex(clamped) })
  const bools = Uint8Array.from([1, 0])
  const content = name === 'cbor2' ? bools : Buffer.from(bools)
  const named = tag(NAMED_TAG, ['bool', [2], 'C', content])
  add('tensor-bool', named, tensorOf('bool', [2], 'C', bools))

  const [weight, bias] = [new Float32Array(FLOATS), new Float64Array([0.5, -1.5])]
  const history = Float32Array.from({ length: 10 }, (_, step) => 1 / (step + 1))
  const record = {
    name: `written by ${name}`,
    epoch: 3,
    weight: tag(ROW_MAJOR, [[2, 3], weight]),
    bias: tag(ROW_MAJOR, [[2], bias]),
    history,
    note: null,
  }
  const wanted = {
    t: 'map',
    v: [
      [text('name'), text(record.name)],
      [text('epoch'), int(3)],
      [text('weight'), tensorOf('f32', [2, 3], 'C', weight)],
      [text('bias'), tensorOf('f64', [2], 'C', bias)],
      [text('history'), { t: 'numbers', dtype: 'f32', v: hex(bytesOf(history)) }],
      [text('note'), { t: 'null' }],
    ],
  }
  add('record', record, wanted, { as: 'record' })
}

const [command, directory] = process.argv.slice(2)
// JavaScript's typed arrays are in the host's byte order.
if (endianness() !== 'LE') throw new Error('the descriptions are written for little-endian hosts')
if (command === 'write') {
  for (const [name, library] of Object.entries(LIBRARIES)) {
    write(join(directory, name), name, library)
  }
} else {
  const [passed, failed] = read(directory)
  // Read by the script that adds up all steps.
  console.log(`passed=${passed} failed=${failed}`)
  process.exitCode = failed > 0 ? 1 : 0
}
