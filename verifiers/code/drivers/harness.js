'use strict';
(() => {
  const fs = require('fs'), assert = require('assert'), inspector = require('inspector'), v8 = require('v8');
  const bytes = Buffer.alloc(64), { writeSync } = fs;
  const word = '\n' + bytes.toString('latin1', 0, fs.readSync(0, bytes, 0, 64));
  bytes.fill(0);
  const source = fs.readFileSync('FILE', 'utf8');
  fs.unlinkSync('FILE');
  for (const name of ['connect', 'connectToMainThread', 'post']) delete inspector.Session.prototype[name];
  for (const name of Object.keys(inspector)) delete inspector[name];
  for (const name of Object.keys(v8)) if (/heap|flags|query/i.test(name)) delete v8[name];
  require('module').syncBuiltinESMExports();
  delete process.binding;
  for (const tests of [assert, assert.strict]) Object.freeze(tests);
  Object.freeze(assert.AssertionError);
  CONSOLE_ASSERT  module._compile(source, __filename);
  AT_END
})();
