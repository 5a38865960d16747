;(async () => {
  const read = (json, type) => {
    if (Array.isArray(json) && json[0] === "dict:" && json.length === 2 && Array.isArray(json[1])) {
      return Object.fromEntries(json[1].map(([key, value]) => [read(key), read(value)]));
    }
    if (typeof json === "string" && json.startsWith("float:")) return Number(json.slice(6).replace("inf", "Infinity"));
    if (typeof json === "string") return decodeURIComponent(json);
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
      truegold.reply(`{"r":${truegold.write(value)}}`);
    } catch (error) {
      const [name, message] = error instanceof Error ? [error.name, error.message] : ["thrown", String(error)];
      truegold.reply(`{"raised":[${truegold.write(String(name))},${truegold.write(String(message).slice(0, 500))},null]}`);
    }
  }
  process.exit(0);
})();
