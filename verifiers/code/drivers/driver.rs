mod truegold_driver {
    use super::{ListNode, TreeNode};
    use std::cell::RefCell;
    use std::io::Write;
    use std::rc::Rc;

    pub enum Json {
        Null,
        Bool(bool),
        Number(String),
        Text(String),
        List(Vec<Json>),
    }
    type Read<T> = Result<T, String>;
    const LONGEST_LIST: usize = 1_000_000;

    extern "C" {
        fn dup(descriptor: i32) -> i32;
        fn dup2(from: i32, to: i32) -> i32;
    }

    struct Reader<'a> {
        text: &'a [u8],
        at: usize,
    }
    impl Reader<'_> {
        fn value(&mut self) -> Json {
            match self.text[self.at] {
                b'[' => {
                    let mut items = Vec::new();
                    self.at += 1;
                    while self.text[self.at] != b']' {
                        items.push(self.value());
                        if self.text[self.at] == b',' {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    Json::List(items)
                }
                b'"' => Json::Text(self.string()),
                _ => {
                    let start = self.at;
                    while self.at < self.text.len() && !b",]".contains(&self.text[self.at]) {
                        self.at += 1;
                    }
                    match std::str::from_utf8(&self.text[start..self.at]).unwrap().trim() {
                        "null" => Json::Null,
                        "true" => Json::Bool(true),
                        "false" => Json::Bool(false),
                        word => Json::Number(word.to_string()),
                    }
                }
            }
        }
        fn string(&mut self) -> String {
            let mut units: Vec<u16> = Vec::new();
            self.at += 1;
            while self.text[self.at] != b'"' {
                let mut byte = self.text[self.at];
                self.at += 1;
                if byte == b'\\' {
                    byte = self.text[self.at];
                    self.at += 1;
                    if byte == b'u' {
                        let digits = std::str::from_utf8(&self.text[self.at..self.at + 4]).unwrap();
                        units.push(u16::from_str_radix(digits, 16).unwrap());
                        self.at += 4;
                        continue;
                    }
                    byte = match byte {
                        b'b' => 8,
                        b'f' => 12,
                        b'n' => 10,
                        b'r' => 13,
                        b't' => 9,
                        other => other,
                    };
                }
                units.push(byte as u16);
            }
            self.at += 1;
            String::from_utf16_lossy(&units)
        }
    }

    pub trait Form: Sized {
        fn read(_: &Json) -> Read<Self> {
            Err("TRUEGOLD_NO_FORM: it can be returned only".into())
        }
        fn write(&self, out: &mut String);
        fn read_option(json: &Json) -> Read<Option<Self>> {
            match json {
                Json::Null => Ok(None),
                _ => Self::read(json).map(Some),
            }
        }
        fn write_option(value: &Option<Self>, out: &mut String) {
            match value {
                Some(value) => value.write(out),
                None => out.push_str("null"),
            }
        }
    }
    macro_rules! whole {
        ($($kind:ty)*) => {$(impl Form for $kind {
            fn read(json: &Json) -> Read<Self> {
                match json {
                    Json::Number(word) => word.parse().map_err(|_| "the argument is no integer of that size".into()),
                    _ => Err("the argument is no integer".into()),
                }
            }
            fn write(&self, out: &mut String) {
                out.push_str(&self.to_string());
            }
        })*};
    }
    whole!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);
    macro_rules! floating {
        ($($kind:ty)*) => {$(impl Form for $kind {
            fn read(json: &Json) -> Read<Self> {
                match json {
                    Json::Number(word) => word.parse().map_err(|_| "the argument is no number".into()),
                    Json::Text(word) if word.starts_with("float:") => word[6..].parse().map_err(|_| "the argument is no number".into()),
                    _ => Err("the argument is no number".into()),
                }
            }
            fn write(&self, out: &mut String) {
                if self.is_finite() {
                    out.push_str(&format!("{:?}", self));
                } else {
                    let word = if self.is_nan() { "nan" } else if *self < 0.0 { "-inf" } else { "inf" };
                    out.push_str(&format!("{{\"$\":\"float\",\"v\":\"{}\"}}", word));
                }
            }
        })*};
    }
    floating!(f32 f64);
    impl Form for bool {
        fn read(json: &Json) -> Read<Self> {
            match json {
                Json::Bool(truth) => Ok(*truth),
                _ => Err("the argument is no truth value".into()),
            }
        }
        fn write(&self, out: &mut String) {
            out.push_str(if *self { "true" } else { "false" });
        }
    }
    pub fn quote(text: &str, out: &mut String) {
        out.push('"');
        for unit in text.encode_utf16() {
            match unit {
                34 | 92 => {
                    out.push('\\');
                    out.push(unit as u8 as char);
                }
                32..=126 => out.push(unit as u8 as char),
                _ => out.push_str(&format!("\\u{:04x}", unit)),
            }
        }
        out.push('"');
    }
    impl Form for String {
        fn read(json: &Json) -> Read<Self> {
            match json {
                Json::Text(text) => Ok(text.clone()),
                _ => Err("the argument is no text".into()),
            }
        }
        fn write(&self, out: &mut String) {
            quote(self, out);
        }
    }
    impl Form for &str {
        fn read(json: &Json) -> Read<Self> {
            Ok(Box::leak(String::read(json)?.into_boxed_str()))
        }
        fn write(&self, out: &mut String) {
            quote(self, out);
        }
    }
    impl Form for char {
        fn read(json: &Json) -> Read<Self> {
            match json {
                Json::Text(text) if text.chars().count() == 1 => Ok(text.chars().next().unwrap()),
                _ => Err("the argument is no single character".into()),
            }
        }
        fn write(&self, out: &mut String) {
            quote(&self.to_string(), out);
        }
    }
    fn items(json: &Json) -> Read<&Vec<Json>> {
        match json {
            Json::List(items) => Ok(items),
            _ => Err("the argument is no list".into()),
        }
    }
    fn write_items<'a, T: Form + 'a>(values: impl Iterator<Item = &'a T>, out: &mut String) {
        out.push('[');
        for (index, value) in values.enumerate() {
            if index > 0 {
                out.push(',');
            }
            value.write(out);
        }
        out.push(']');
    }
    macro_rules! list {
        ($($kind:ident: $($bound:path),*;)*) => {$(impl<T: Form $(+ $bound)*> Form for std::collections::$kind<T> {
            fn read(json: &Json) -> Read<Self> {
                items(json)?.iter().map(T::read).collect()
            }
            fn write(&self, out: &mut String) {
                write_items(self.iter(), out);
            }
        })*};
    }
    list!(HashSet: Eq, std::hash::Hash; BTreeSet: Ord; VecDeque:; );
    impl<T: Form> Form for Vec<T> {
        fn read(json: &Json) -> Read<Self> {
            items(json)?.iter().map(T::read).collect()
        }
        fn write(&self, out: &mut String) {
            write_items(self.iter(), out);
        }
    }
    impl<T: Form> Form for &[T] {
        fn write(&self, out: &mut String) {
            write_items(self.iter(), out);
        }
    }
    impl<T: Form, const N: usize> Form for [T; N] {
        fn write(&self, out: &mut String) {
            write_items(self.iter(), out);
        }
    }
    impl<T: Form> Form for &T {
        fn write(&self, out: &mut String) {
            (**self).write(out);
        }
    }
    impl Form for std::borrow::Cow<'_, str> {
        fn write(&self, out: &mut String) {
            quote(self, out);
        }
    }
    impl<T: Form> Form for Option<T> {
        fn read(json: &Json) -> Read<Self> {
            T::read_option(json)
        }
        fn write(&self, out: &mut String) {
            T::write_option(self, out);
        }
    }
    macro_rules! dictionary {
        ($($kind:ident: $($bound:path),*;)*) => {$(impl<K: Form $(+ $bound)*, V: Form> Form for std::collections::$kind<K, V> {
            fn read(json: &Json) -> Read<Self> {
                match &items(json)?[..] {
                    [Json::Text(tag), Json::List(pairs)] if tag == "dict" => {
                        pairs.iter().map(|pair| Ok((K::read(&items(pair)?[0])?, V::read(&items(pair)?[1])?))).collect()
                    }
                    _ => Err("the argument is no dictionary".into()),
                }
            }
            fn write(&self, out: &mut String) {
                out.push_str("{\"$\":\"dict\",\"v\":[");
                for (index, (key, value)) in self.iter().enumerate() {
                    out.push_str(if index > 0 { ",[" } else { "[" });
                    key.write(out);
                    out.push(',');
                    value.write(out);
                    out.push(']');
                }
                out.push_str("]}");
            }
        })*};
    }
    dictionary!(HashMap: Eq, std::hash::Hash; BTreeMap: Ord; );
    macro_rules! tuple {
        ($($count:literal: $($name:ident $index:tt)*;)*) => {$(impl<$($name: Form),*> Form for ($($name,)*) {
            fn read(json: &Json) -> Read<Self> {
                let parts = items(json)?;
                if parts.len() != $count {
                    return Err("the argument is no list of that length".into());
                }
                Ok(($($name::read(&parts[$index])?,)*))
            }
            fn write(&self, out: &mut String) {
                out.push('[');
                $(if $index > 0 { out.push(','); } self.$index.write(out);)*
                out.push(']');
            }
        })*};
    }
    tuple!(2: A 0 B 1; 3: A 0 B 1 C 2; 4: A 0 B 1 C 2 D 3; );
    // No node is an empty list or tree, which is the empty list of values.
    impl Form for Box<ListNode> {
        fn read(json: &Json) -> Read<Self> {
            Self::read_option(json)?.ok_or("the argument is an empty list".into())
        }
        fn write(&self, out: &mut String) {
            let mut values = vec![self.val];
            let mut node = &self.next;
            while let Some(each) = node {
                values.push(each.val);
                node = &each.next;
            }
            values.write(out);
        }
        fn read_option(json: &Json) -> Read<Option<Self>> {
            let mut head = None;
            if !matches!(json, Json::Null) {
                for value in items(json)?.iter().rev() {
                    let mut node = Box::new(ListNode::new(i32::read(value)?));
                    node.next = head;
                    head = Some(node);
                }
            }
            Ok(head)
        }
        fn write_option(value: &Option<Self>, out: &mut String) {
            match value {
                Some(node) => node.write(out),
                None => out.push_str("[]"),
            }
        }
    }
    type Node = Rc<RefCell<TreeNode>>;
    impl Form for Node {
        fn read(json: &Json) -> Read<Self> {
            Self::read_option(json)?.ok_or("the argument is an empty tree".into())
        }
        fn write(&self, out: &mut String) {
            let mut nodes: Vec<Option<Node>> = vec![Some(self.clone())];
            let (mut values, mut length, mut index) = (Vec::new(), 0, 0);
            while index < nodes.len() && nodes.len() <= LONGEST_LIST {
                match nodes[index].clone() {
                    None => values.push(None),
                    Some(node) => {
                        values.push(Some(node.borrow().val));
                        length = values.len();
                        nodes.push(node.borrow().left.clone());
                        nodes.push(node.borrow().right.clone());
                    }
                }
                index += 1;
            }
            values.truncate(length);
            values.write(out);
        }
        fn read_option(json: &Json) -> Read<Option<Self>> {
            let mut nodes: Vec<Option<Node>> = Vec::new();
            if !matches!(json, Json::Null) {
                for value in items(json)? {
                    nodes.push(match value {
                        Json::Null => None,
                        _ => Some(Rc::new(RefCell::new(TreeNode::new(i32::read(value)?)))),
                    });
                }
            }
            let mut next = 1;
            for node in nodes.iter().flatten() {
                if next < nodes.len() {
                    node.borrow_mut().left = nodes[next].clone();
                    next += 1;
                }
                if next < nodes.len() {
                    node.borrow_mut().right = nodes[next].clone();
                    next += 1;
                }
            }
            Ok(nodes.into_iter().next().flatten())
        }
        fn write_option(value: &Option<Self>, out: &mut String) {
            match value {
                Some(node) => node.write(out),
                None => out.push_str("[]"),
            }
        }
    }

    pub fn emit<T: Form>(value: &T) {
        let mut out = String::new();
        value.write(&mut out);
        let _ = std::io::stdout().write_all(format!("\n\x01{{\"r\":{}}}\n", out).as_bytes());
    }
    pub fn serve(count: usize, call: impl Fn(&[Json]) -> Read<String>) {
        use std::os::fd::FromRawFd;
        // What the program prints goes to stderr.
        let mut replies = unsafe { std::fs::File::from_raw_fd({ let copy = dup(1); dup2(2, 1); copy }) };
        let mut reply = |line: String| replies.write_all((line + "\n").as_bytes()).unwrap();
        reply("{\"loaded\":true}".into());
        for line in std::io::stdin().lines() {
            let line = line.unwrap();
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                match (Reader { text: line.as_bytes(), at: 0 }).value() {
                    Json::List(given) if given.len() == count => call(&given),
                    Json::List(given) => Err(format!("it takes {} arguments, the tests have {}", count, given.len())),
                    _ => Err("the request is cut".into()),
                }
            }));
            let message = match outcome {
                Ok(Ok(value)) => { reply(format!("{{\"r\":{}}}", value)); continue; }
                Ok(Err(message)) => message,
                Err(panic) => match panic.downcast_ref::<String>() {
                    Some(text) => text.clone(),
                    None => panic.downcast_ref::<&str>().unwrap_or(&"").to_string(),
                },
            };
            let mut text = String::new();
            quote(&message, &mut text);
            reply(format!("{{\"raised\":[\"panic\",{},null]}}", text));
        }
        std::process::exit(0);
    }
}
