const truegold = (() => {
  const files = require("fs");
  const write = files.writeSync, stringify = JSON.stringify, parse = JSON.parse;
  const lines = files.readFileSync(0, "utf8").split("\n").filter(line => line);
  // What the program prints goes to stderr.
  process.stdout.write = (...parts) => process.stderr.write(...parts);
  for (const name of ["log", "info", "debug", "dir", "table", "group"]) console[name] = console.error;
  const reply = message => {
    const bytes = Buffer.from(message + "\n");
    for (let start = 0; start < bytes.length; ) start += write(1, bytes, start);
  };
  return { lines, reply, stringify, parse };
})();
