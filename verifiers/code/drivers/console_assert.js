Object.defineProperty(console, 'assert', { writable: false, configurable: false, value: (holds, ...what) => { if (!holds) throw new Error(`assertion failed ${what}`); } });
