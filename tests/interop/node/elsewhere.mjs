// Runs the JavaScript program of docs/columns-elsewhere.md.
//
//     elsewhere.mjs PROGRAM DIR    reads the records in DIR as columns, and compares them with the same as rows

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [program, directory] = process.argv.slice(2)
const { decoded } = await import(pathToFileURL(program))

let passed = 0
let failed = 0

function check(name, work) {
  try {
    work()
    passed += 1
  } catch (error) {
    console.log(`${name}: ${error.message.slice(0, 500)}`)
    failed += 1
  }
}

// The example in SPEC.md 7.
const EXAMPLE = 'da54434f4c8202a2626964d84042070963746167836474657874d84042020163616263'
check('SPEC.md', () => {
  const rows = [new Map([['id', 7], ['tag', 'ab']]), new Map([['id', 9], ['tag', 'c']])]
  assert.deepEqual(decoded(Buffer.from(EXAMPLE, 'hex')), rows)
})
// A column of tensors of bool.
const UNREADABLE = 'da54434f4c8202a16168da54454e538464626f6f6c8202016143420100'
check('a column of bool', () => {
  assert.throws(() => decoded(Buffer.from(UNREADABLE, 'hex')), /a column that this program cannot read: tag 1413828179/)
})
for (const name of readdirSync(directory).filter(name => name.endsWith('.columns')).sort()) {
  check(name, () => {
    const columns = readFileSync(join(directory, name))
    const rows = readFileSync(join(directory, name.replace('.columns', '.rows')))
    assert(columns.includes('TCOL'), 'there are no columns')
    assert.deepEqual(decoded(columns), decoded(rows))
  })
}
console.log(`passed=${passed} failed=${failed}`)
