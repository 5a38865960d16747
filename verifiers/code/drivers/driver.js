(async () => {
  const longestList = 1000000;
  const read = (json, type) => {
    if (Array.isArray(json) && json[0] === "dict" && json.length === 2 && Array.isArray(json[1])) {
      return Object.fromEntries(json[1].map(([key, value]) => [key, read(value)]));
    }
    if (typeof json === "string" && json.startsWith("float:")) return Number(json.slice(6).replace("inf", "Infinity"));
    if (type === "ListNode" && (json === null || Array.isArray(json))) {
      return (json || []).reduceRight((next, value) => new ListNode(value, next), null);
    }
    if (type === "TreeNode" && (json === null || Array.isArray(json))) {
      const nodes = (json || []).map(value => (value === null ? null : new TreeNode(value)));
      let next = 1;
      for (const node of nodes) {
        if (!node) continue;
        if (next < nodes.length) node.left = nodes[next++];
        if (next < nodes.length) node.right = nodes[next++];
      }
      return nodes.length ? nodes[0] : null;
    }
    const inner = type && type.endsWith("[]") ? type.slice(0, -2) : undefined;
    return Array.isArray(json) ? json.map(item => read(item, inner)) : json;
  };
  const isNode = (value, ...names) => typeof value === "object" && "val" in value && names.every(name => name in value);
  const values = root => {
    const found = [];
    if (isNode(root, "next")) {
      for (let node = root; node; node = node.next) {
        if (found.length === longestList) throw new Error("the linked list does not end");
        found.push(node.val);
      }
      return found;
    }
    const nodes = [root];
    let length = 0;
    for (let index = 0; index < nodes.length; index++) {
      if (nodes.length > longestList) throw new Error("the tree does not end");
      const node = nodes[index];
      found.push(node ? node.val : null);
      if (!node) continue;
      length = found.length;
      nodes.push(node.left, node.right);
    }
    return found.slice(0, length);
  };
  const write = value => {
    switch (typeof value) {
      case "number":
        if (!Number.isFinite(value)) return `{"$":"float","v":"${String(value).replace("Infinity", "inf").replace("NaN", "nan")}"}`;
        return Object.is(value, -0) ? "0" : truegold.stringify(value);
      case "bigint":
        return String(value);
      case "boolean":
        return String(value);
      case "string":
        return truegold.stringify(value).replace(/[\u007f-\uffff]/g, c => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
      case "undefined":
        return "null";
      case "function":
      case "symbol":
        throw new Error(`a ${typeof value} is no result`);
    }
    if (value === null) return "null";
    if (isNode(value, "next") || isNode(value, "left", "right")) return write(values(value));
    if (Array.isArray(value)) return `[${Array.from(value, write).join(",")}]`;
    if (ArrayBuffer.isView(value) || value instanceof Set) return `[${[...value].map(write).join(",")}]`;
    const pairs = value instanceof Map ? [...value] : Object.entries(value);
    return `{"$":"dict","v":[${pairs.map(([key, item]) => `[${write(key)},${write(item)}]`).join(",")}]}`;
  };
  const target = FUNCTION;
  if (typeof target !== "function") {
    truegold.reply('{"missing":"NAME"}');
    process.exit(0);
  }
  truegold.reply('{"loaded":true}');
  for (const line of truegold.lines) {
    try {
      const given = truegold.parse(line).map((json, index) => read(json, TYPES[index]));
      let value = await target(...given);
      if (IN_PLACE >= 0) value = given[IN_PLACE];
      else if (value === undefined && RETURNS === "void") value = given[0];
      if (value === null && /^(List|Tree)Node$/.test(RETURNS)) value = [];
      truegold.reply(`{"r":${write(value)}}`);
    } catch (error) {
      const [name, message] = error instanceof Error ? [error.name, error.message] : ["thrown", String(error)];
      truegold.reply(`{"raised":[${write(String(name))},${write(String(message).slice(0, 500))},null]}`);
    }
  }
  process.exit(0);
})();
