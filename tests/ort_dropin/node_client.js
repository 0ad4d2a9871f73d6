// A program made for onnxruntime-node: what it prints must not depend on the library below.
//
//   node node_client.js api FOLDER      models made by node_test.py; one line of JSON for each check
//   node node_client.js models FOLDER   the ONNX test layout: a line PASS or FAIL for each model
//   node node_client.js hold MODEL      runs once, prints READY, ends with its standard input
//
// NODE_PATH says where onnxruntime-node is.
'use strict';
const fs = require('fs');
const path = require('path');
const ort = require('onnxruntime-node');

// ---- TensorProto, as much as test data have ----

const TYPES = {1: 'float32', 2: 'uint8', 3: 'int8', 4: 'uint16', 5: 'int16', 6: 'int32', 7: 'int64', 8: 'string',
  9: 'bool', 10: 'float16', 11: 'float64', 12: 'uint32', 13: 'uint64'};
const ARRAYS = {float32: Float32Array, uint8: Uint8Array, int8: Int8Array, uint16: Uint16Array, int16: Int16Array,
  int32: Int32Array, int64: BigInt64Array, bool: Uint8Array, float16: Uint16Array, float64: Float64Array,
  uint32: Uint32Array, uint64: BigUint64Array};

function* fields(bytes) {
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const key = Number(varint());
    const wire = key & 7;
    let value;
    if (wire === 0) value = varint();
    else if (wire === 2) { const size = Number(varint()); value = bytes.subarray(at, at + size); at += size; }
    else if (wire === 5) { value = bytes.subarray(at, at + 4); at += 4; }
    else { value = bytes.subarray(at, at + 8); at += 8; }
    yield [key >> 3, wire, value];
  }
}

function varints(wire, value) {
  if (wire === 0) return [value];
  const out = [];
  for (let at = 0; at < value.length;) {
    let number = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = value[at++];
      number |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    out.push(number);
  }
  return out;
}

function readTensor(file) {
  const dims = [], numbers = [], strings = [];
  let type = 0, raw = null;
  const packed = [];
  for (const [field, wire, value] of fields(fs.readFileSync(file))) {
    if (field === 1) dims.push(...varints(wire, value).map(Number));
    else if (field === 2) type = Number(value);
    else if (field === 9) raw = Buffer.from(value);
    else if (field === 4 || field === 10) packed.push(Buffer.from(value));
    else if (field === 5 || field === 7 || field === 11) numbers.push(...varints(wire, value));
    else if (field === 6) strings.push(Buffer.from(value).toString('utf8'));
  }
  const name = TYPES[type];
  if (name === undefined) throw new Error(`${file}: element type ${type}`);
  if (name === 'string') return new ort.Tensor('string', strings, dims);
  const Type = ARRAYS[name];
  let data;
  if (raw === null && packed.length > 0) raw = Buffer.concat(packed);
  if (raw !== null) data = new Type(new Uint8Array(raw).buffer);
  else if (name === 'int64') data = BigInt64Array.from(numbers.map(n => BigInt.asIntN(64, n)));
  else if (name === 'uint64') data = BigUint64Array.from(numbers);
  else data = Type.from(numbers.map(n => Number(BigInt.asIntN(64, n))));
  return new ort.Tensor(name, data, dims);
}

function halfToNumber(bits) {
  const exponent = bits >> 10 & 31, fraction = bits & 1023, sign = bits >> 15 ? -1 : 1;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

const asNumber = (tensor, i) => tensor.type === 'float16' ? halfToNumber(tensor.data[i]) : Number(tensor.data[i]);

// How far `found` is from `expected`: "" if within the tolerance.
function difference(found, expected, rtol, atol) {
  if (found.type !== expected.type) return `type ${found.type}, expected ${expected.type}`;
  if (found.dims.join() !== expected.dims.join()) return `dims [${found.dims}], expected [${expected.dims}]`;
  for (let i = 0; i < expected.data.length; ++i) {
    if (expected.type === 'string') {
      if (found.data[i] !== expected.data[i]) return `string ${i} '${found.data[i]}', expected '${expected.data[i]}'`;
      continue;
    }
    const a = asNumber(found, i), b = asNumber(expected, i);
    if (Object.is(a, b) || a === b) continue;
    if (!(Math.abs(a - b) <= atol + rtol * Math.abs(b))) return `element ${i} is ${a}, expected ${b}`;
  }
  return '';
}

// ---- models ----

const pbFiles = (folder, prefix) => fs.readdirSync(folder)
  .filter(name => name.startsWith(prefix) && name.endsWith('.pb'))
  .sort((a, b) => a.length - b.length || (a < b ? -1 : 1)).map(name => path.join(folder, name));

async function testModel(folder, file) {
  let data = {};
  try { data = JSON.parse(fs.readFileSync(path.join(folder, 'data.json'))); } catch {}
  const rtol = data.rtol ?? 1e-3;
  const atol = name => data.outputs?.[name]?.atol ?? data.atol ?? 1e-5;
  const session = await ort.InferenceSession.create(path.join(folder, file));
  let count = 0;
  for (const name of fs.readdirSync(folder).filter(n => n.startsWith('test_data_set')).sort()) {
    const set = path.join(folder, name);
    const feeds = {};
    pbFiles(set, 'input_').forEach((f, i) => { feeds[session.inputNames[i]] = readTensor(f); });
    const expected = pbFiles(set, 'output_').map(readTensor);
    const results = await session.run(feeds);
    expected.forEach((tensor, i) => {
      const output = session.outputNames[i];
      const wrong = difference(results[output], tensor, rtol, atol(output));
      if (wrong) throw new Error(`${name}, ${output}: ${wrong}`);
      ++count;
    });
  }
  await session.release();
  return count;
}

async function testModels(root) {
  for (const name of fs.readdirSync(root).sort()) {
    for (const file of ['model.onnx', 'model.ort']) {
      if (!fs.existsSync(path.join(root, name, file))) continue;
      try {
        console.log(`PASS ${name}/${file} ${await testModel(path.join(root, name), file)}`);
      } catch (error) {
        console.log(`FAIL ${name}/${file} ${String(error.message).split('\n')[0]}`);
      }
    }
  }
}

// ---- the API ----

const show = tensor => ({type: tensor.type, dims: tensor.dims,
  data: Array.from(tensor.data, x => typeof x === 'bigint' ? x.toString() : Number.isNaN(x) ? 'NaN' : x)});

async function testApi(folder) {
  const report = (what, value) => console.log(JSON.stringify({what, value}));
  const refusal = async (what, call) => {
    try { await call(); report(what, 'no error'); } catch (error) {
      report(what, {isError: error instanceof Error});
      console.error(`${what}: ${error.message}`);
    }
  };
  const file = name => path.join(folder, name);

  // All element types, from a file and from a buffer.
  for (const [type, Type] of Object.entries({...ARRAYS, string: Array})) {
    const values = type === 'string' ? ['a', '', '日本'] : type.includes('64') && type !== 'float64'
      ? [0n, 1n, 77n] : type === 'bool' ? [0, 1, 1] : [0, 1, 77];
    const tensor = new ort.Tensor(type, type === 'string' ? values : Type.from(values), [3]);
    for (const source of [file(`identity_${type}.onnx`), fs.readFileSync(file(`identity_${type}.onnx`))]) {
      const session = await ort.InferenceSession.create(source);
      report(`identity ${type}`, show((await session.run({x: tensor})).y));
      await session.release();
    }
  }

  // Names, metadata, options, outputs by name, outputs given beforehand.
  const options = {intraOpNumThreads: 1, interOpNumThreads: 1, graphOptimizationLevel: 'all', executionMode: 'sequential',
    enableCpuMemArena: false, enableMemPattern: false, executionProviders: ['cpu'], logSeverityLevel: 3, logId: 'client',
    freeDimensionOverrides: {other: 5}, extra: {session: {disable_prepacking: '1', intra_op: {allow_spinning: '0'}}}};
  const two = await ort.InferenceSession.create(file('two.onnx'), options);
  report('names', [two.inputNames, two.outputNames]);
  report('metadata', [two.inputMetadata, two.outputMetadata]);
  const x = new ort.Tensor('float32', Float32Array.from([1, 2, 3]), [1, 3]);
  report('both', Object.fromEntries(Object.entries(await two.run({x})).map(([k, v]) => [k, show(v)])));
  report('subset', Object.keys(await two.run({x}, ['z'])));
  const given = new Float32Array(3);
  const z = new ort.Tensor('float32', given, [1, 3]);
  await two.run({x}, {z});
  report('preallocated', Array.from(given));
  report('run options', show((await two.run({x}, ['y'], {tag: 'tag', logSeverityLevel: 3})).y));
  const parallel = await Promise.all([1, 2, 3, 4].map(n =>
    two.run({x: new ort.Tensor('float32', Float32Array.from([n, n, n]), [1, 3])}, ['y'])));
  report('parallel', parallel.map(result => result.y.data[0]));

  // Refusals.
  await refusal('wrong shape', () => two.run({x: new ort.Tensor('float32', new Float32Array(4), [1, 4])}));
  await refusal('wrong type', () => two.run({x: new ort.Tensor('int32', new Int32Array(3), [1, 3])}));
  await refusal('missing input', () => two.run({}));
  await refusal('unknown output', () => two.run({x}, ['nobody']));
  await refusal('wrong output', () => two.run({x}, {z: new ort.Tensor('float32', new Float32Array(4), [2, 2])}));
  await refusal('no file', () => ort.InferenceSession.create(file('nowhere.onnx')));
  await refusal('garbage', () => ort.InferenceSession.create(Buffer.from('this is no model')));
  await refusal('provider', () => ort.InferenceSession.create(file('two.onnx'), {executionProviders: ['coreml']}));
  report('still works', show((await two.run({x}, ['y'])).y));
  await two.release();

  // External data given as bytes, and in a file beside the model.
  const data = fs.readFileSync(file('weights.bin'));
  const external = await ort.InferenceSession.create(fs.readFileSync(file('external.onnx')),
    {externalData: [{path: 'weights.bin', data}]});
  report('external data', show((await external.run({x}, ['y'])).y));
  const beside = await ort.InferenceSession.create(file('external.onnx'));
  report('external file', show((await beside.run({x}, ['y'])).y));

  // A profile.
  const profiled = await ort.InferenceSession.create(file('two.onnx'),
    {enableProfiling: true, profileFilePrefix: file('profile')});
  await profiled.run({x});
  profiled.endProfiling();
  const traces = fs.readdirSync(folder).filter(name => name.startsWith('profile'));
  const events = JSON.parse(fs.readFileSync(file(traces[0])));
  report('profile', [traces.length, events.some(event => event.name === 'model_run'),
    events.some(event => event.name.startsWith('adder') && event.args.op_name === 'Add')]);
}

async function hold(model, dims) {
  const session = await ort.InferenceSession.create(model, {intraOpNumThreads: 1});
  const feeds = {};
  for (const input of session.inputMetadata) {
    const shape = input.shape.map(d => typeof d === 'number' ? d : dims);
    const count = shape.reduce((a, b) => a * b, 1);
    feeds[input.name] = new ort.Tensor(input.type, new ARRAYS[input.type](count), shape);
  }
  await session.run(feeds);
  console.log('READY');
  process.stdin.resume();
  await new Promise(resolve => process.stdin.on('end', resolve));
  return session;
}

const [mode, place, more] = process.argv.slice(2);
const modes = {api: testApi, models: testModels, hold: model => hold(model, Number(more ?? 1))};
modes[mode](place).catch(error => { console.error(error); process.exit(1); });
