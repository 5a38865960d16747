namespace truegold_driver {
struct Json {
    enum Kind { null, boolean, number, text, list } kind = null;
    bool truth = false;
    std::string word;
    std::vector<Json> items;
};
struct Mismatch : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Reader {
    const char* at;
    void expect(char c) {
        if (*at++ != c) throw Mismatch("the request is cut");
    }
    unsigned hex() {
        unsigned code = std::stoul(std::string(at, 4), nullptr, 16);
        at += 4;
        return code;
    }
    static void put(std::string& out, unsigned code) {
        if (code < 0x80) out += char(code);
        else if (code < 0x800) { out += char(0xC0 | code >> 6); out += char(0x80 | (code & 63)); }
        else if (code < 0x10000) {
            out += char(0xE0 | code >> 12); out += char(0x80 | (code >> 6 & 63)); out += char(0x80 | (code & 63));
        } else {
            out += char(0xF0 | code >> 18); out += char(0x80 | (code >> 12 & 63));
            out += char(0x80 | (code >> 6 & 63)); out += char(0x80 | (code & 63));
        }
    }
    std::string string() {
        std::string out;
        expect('"');
        while (*at != '"') {
            char c = *at++;
            if (c != '\\') { out += c; continue; }
            c = *at++;
            if (c == 'u') {
                unsigned code = hex();
                if (code >= 0xD800 && code < 0xDC00 && at[0] == '\\' && at[1] == 'u') {
                    at += 2;
                    code = 0x10000 + ((code - 0xD800) << 10) + (hex() - 0xDC00);
                }
                put(out, code);
            } else {
                const char* names = "bfnrt";
                const char* name = std::strchr(names, c);
                out += name ? "\b\f\n\r\t"[name - names] : c;
            }
        }
        at++;
        return out;
    }
    Json value() {
        Json json;
        if (*at == '[') {
            json.kind = Json::list;
            at++;
            while (*at != ']') {
                json.items.push_back(value());
                if (*at == ',') at++;
            }
            at++;
        } else if (*at == '"') {
            json.kind = Json::text;
            json.word = string();
        } else {
            const char* start = at;
            while (*at && !std::strchr(",]} \n", *at)) at++;
            json.word.assign(start, at);
            if (json.word == "null") return json;
            json.kind = json.word == "true" || json.word == "false" ? Json::boolean : Json::number;
            json.truth = json.word == "true";
        }
        return json;
    }
};

template <class T> constexpr bool is_unsupported = false;

template <class T, class = void> struct Form {
    static_assert(is_unsupported<T>, "TRUEGOLD_NO_FORM: this type has no form in JSON");
};

inline void check(bool fits, const char* what) {
    if (!fits) throw Mismatch(std::string("the argument is no ") + what);
}
// Replies are ASCII; a byte that is no UTF-8 becomes a lone surrogate.
inline std::string quoted(const std::string& text) {
    std::string out = "\"";
    auto escape = [&out](unsigned unit) {
        char code[8];
        std::snprintf(code, sizeof code, "\\u%04x", unit);
        out += code;
    };
    for (size_t start = 0; start < text.size();) {
        unsigned char first = text[start];
        size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
        unsigned code = length < 2 ? first : first & (0xFF >> (length + 1));
        bool is_whole = length > 0 && start + length <= text.size();
        for (size_t index = 1; is_whole && index < length; index++) {
            unsigned char next = text[start + index];
            is_whole = next >> 6 == 2;
            code = code << 6 | (next & 63);
        }
        if (!is_whole) { escape(0xDC00 + first); start++; continue; }
        start += length;
        if (code == '"' || code == '\\') { out += '\\'; out += char(code); }
        else if (code >= 32 && code < 127) out += char(code);
        else if (code < 0x10000) escape(code);
        else { escape(0xD800 + ((code - 0x10000) >> 10)); escape(0xDC00 + ((code - 0x10000) & 0x3FF)); }
    }
    return out + "\"";
}

template <> struct Form<bool> {
    static bool read(const Json& json) { check(json.kind == Json::boolean, "truth value"); return json.truth; }
    static std::string write(bool value) { return value ? "true" : "false"; }
};
template <> struct Form<char> {
    static char read(const Json& json) {
        check(json.kind == Json::text && json.word.size() == 1, "single character");
        return json.word[0];
    }
    static std::string write(char value) { return quoted(std::string(1, value)); }
};
template <class T> struct Form<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char>>> {
    static T read(const Json& json) {
        check(json.kind == Json::number && json.word.find_first_of(".eE") == std::string::npos, "integer");
        T value{};
        auto [end, error] = std::from_chars(json.word.data(), json.word.data() + json.word.size(), value);
        check(error == std::errc() && end == json.word.data() + json.word.size(), "integer of that size");
        return value;
    }
    static std::string write(T value) { return std::to_string(value); }
};
template <class T> struct Form<T, std::enable_if_t<std::is_floating_point_v<T>>> {
    static T read(const Json& json) {
        if (json.kind == Json::text && json.word.rfind("float:", 0) == 0) return std::stold(json.word.substr(6));
        check(json.kind == Json::number, "number");
        return std::stold(json.word);
    }
    static std::string write(T value) {
        if (std::isnan(value)) return "{\"$\":\"float\",\"v\":\"nan\"}";
        if (std::isinf(value)) return value < 0 ? "{\"$\":\"float\",\"v\":\"-inf\"}" : "{\"$\":\"float\",\"v\":\"inf\"}";
        char text[64];
        std::snprintf(text, sizeof text, "%.*g", 17, double(value));
        return std::strpbrk(text, ".e") ? text : std::string(text) + ".0";
    }
};
template <> struct Form<std::string> {
    static std::string read(const Json& json) { check(json.kind == Json::text, "text"); return json.word; }
    static std::string write(const std::string& value) { return quoted(value); }
};
template <> struct Form<const char*> {
    static std::string write(const char* value) { return value ? quoted(value) : "null"; }
};
template <> struct Form<char*> : Form<const char*> {};
template <> struct Form<std::string_view> {
    static std::string write(std::string_view value) { return quoted(std::string(value)); }
};
template <> struct Form<std::nullptr_t> {
    static std::string write(std::nullptr_t) { return "null"; }
};
template <class Items> std::string write_items(const Items& items) {
    std::string out = "[";
    for (auto&& item : items) {
        if (out.size() > 1) out += ',';
        out += Form<typename Items::value_type>::write(item);
    }
    return out + "]";
}
template <class Items> struct ListForm {
    static Items read(const Json& json) {
        check(json.kind == Json::list, "list");
        Items items;
        for (auto& item : json.items) items.insert(items.end(), Form<typename Items::value_type>::read(item));
        return items;
    }
    static std::string write(const Items& items) { return write_items(items); }
};
template <class T> struct Form<std::vector<T>> : ListForm<std::vector<T>> {};
template <class T> struct Form<std::list<T>> : ListForm<std::list<T>> {};
template <class T> struct Form<std::deque<T>> : ListForm<std::deque<T>> {};
template <class T> struct Form<std::set<T>> : ListForm<std::set<T>> {};
template <class T> struct Form<std::unordered_set<T>> : ListForm<std::unordered_set<T>> {};
template <class T> struct Form<std::multiset<T>> : ListForm<std::multiset<T>> {};
template <class T, size_t size> struct Form<std::array<T, size>> {
    static std::string write(const std::array<T, size>& items) { return write_items(items); }
    static std::array<T, size> read(const Json& json) {
        check(json.kind == Json::list && json.items.size() == size, "list of that length");
        std::array<T, size> items{};
        for (size_t index = 0; index < size; index++) items[index] = Form<T>::read(json.items[index]);
        return items;
    }
};
template <class... T> struct Form<std::tuple<T...>> {
    static std::tuple<T...> read(const Json& json) {
        check(json.kind == Json::list && json.items.size() == sizeof...(T), "list of that length");
        return read(json, std::index_sequence_for<T...>{});
    }
    template <size_t... index> static std::tuple<T...> read(const Json& json, std::index_sequence<index...>) {
        return std::tuple<T...>{Form<T>::read(json.items[index])...};
    }
    static std::string write(const std::tuple<T...>& items) {
        std::string out = "[";
        std::apply([&](auto&... item) { ((out += (out.size() > 1 ? "," : "") + Form<T>::write(item)), ...); }, items);
        return out + "]";
    }
};
template <class T, class U> struct Form<std::pair<T, U>> {
    static std::pair<T, U> read(const Json& json) {
        auto [first, second] = Form<std::tuple<T, U>>::read(json);
        return {first, second};
    }
    static std::string write(const std::pair<T, U>& pair) {
        return "[" + Form<T>::write(pair.first) + "," + Form<U>::write(pair.second) + "]";
    }
};
// Dictionaries travel as lists of pairs, since their keys may be numbers.
template <class Map> struct MapForm {
    using Key = typename Map::key_type;
    using Value = typename Map::mapped_type;
    static Map read(const Json& json) {
        check(json.kind == Json::list && json.items.size() == 2 && json.items[0].word == "dict", "dictionary");
        Map map;
        for (auto& pair : json.items[1].items) map[Form<Key>::read(pair.items[0])] = Form<Value>::read(pair.items[1]);
        return map;
    }
    static std::string write(const Map& map) {
        std::string out = "[";
        for (auto& [key, value] : map)
            out += (out.size() > 1 ? ",[" : "[") + Form<Key>::write(key) + "," + Form<Value>::write(value) + "]";
        return "{\"$\":\"dict\",\"v\":" + out + "]}";
    }
};
template <class K, class V> struct Form<std::map<K, V>> : MapForm<std::map<K, V>> {};
template <class K, class V> struct Form<std::unordered_map<K, V>> : MapForm<std::unordered_map<K, V>> {};
template <class T> struct Form<std::optional<T>> {
    static std::optional<T> read(const Json& json) {
        if (json.kind == Json::null) return std::nullopt;
        return Form<T>::read(json);
    }
    static std::string write(const std::optional<T>& value) { return value ? Form<T>::write(*value) : "null"; }
};

constexpr int longest_list = 1000000;
template <> struct Form<ListNode*> {
    static ListNode* read(const Json& json) {
        if (json.kind == Json::null) return nullptr;
        check(json.kind == Json::list, "linked list");
        ListNode* head = nullptr;
        for (size_t index = json.items.size(); index-- > 0;) {
            ListNode* node = new ListNode(Form<decltype(ListNode::val)>::read(json.items[index]));
            node->next = head;
            head = node;
        }
        return head;
    }
    static std::string write(ListNode* node) {
        std::vector<decltype(ListNode::val)> values;
        for (; node; node = node->next) {
            if (values.size() == longest_list) throw Mismatch("the linked list does not end");
            values.push_back(node->val);
        }
        return write_items(values);
    }
};
template <> struct Form<TreeNode*> {
    static TreeNode* read(const Json& json) {
        if (json.kind == Json::null) return nullptr;
        check(json.kind == Json::list, "tree");
        std::vector<TreeNode*> nodes;
        for (auto& item : json.items)
            nodes.push_back(item.kind == Json::null ? nullptr : new TreeNode(Form<decltype(TreeNode::val)>::read(item)));
        size_t next = 1;
        for (size_t index = 0; index < nodes.size(); index++) {
            if (!nodes[index]) continue;
            if (next < nodes.size()) nodes[index]->left = nodes[next++];
            if (next < nodes.size()) nodes[index]->right = nodes[next++];
        }
        return nodes.empty() ? nullptr : nodes[0];
    }
    static std::string write(TreeNode* root) {
        std::vector<TreeNode*> nodes{root};
        std::vector<std::string> words;
        size_t length = 0;
        for (size_t index = 0; index < nodes.size(); index++) {
            if (nodes.size() > longest_list) throw Mismatch("the tree does not end");
            TreeNode* node = nodes[index];
            words.push_back(node ? Form<decltype(TreeNode::val)>::write(node->val) : "null");
            if (!node) continue;
            length = words.size();
            nodes.push_back(node->left);
            nodes.push_back(node->right);
        }
        std::string out = "[";
        for (size_t index = 0; index < length; index++) out += (index ? "," : "") + words[index];
        return out + "]";
    }
};

inline void reply(std::string line) {
    line += '\n';
    for (size_t start = 0; start < line.size();) {
        ssize_t written = ::write(reply_descriptor, line.data() + start, line.size() - start);
        if (written <= 0) _exit(70);
        start += written;
    }
}

template <class R, class... A> struct Caller {
    using Arguments = std::tuple<std::decay_t<A>...>;
    template <class Function, size_t... index>
    static std::string call(Function&& function, const Json& json, int in_place, std::index_sequence<index...>) {
        Arguments arguments{Form<std::decay_t<A>>::read(json.items[index])...};
        std::string result;
        if constexpr (std::is_void_v<R>) {
            function(static_cast<A&&>(std::get<index>(arguments))...);
            if (in_place < 0) in_place = 0;
        } else {
            result = Form<std::decay_t<R>>::write(function(static_cast<A&&>(std::get<index>(arguments))...));
        }
        int position = 0;
        ((position++ == in_place ? void(result = Form<std::decay_t<A>>::write(std::get<index>(arguments))) : void()), ...);
        return result;
    }
    template <class Function> static int serve(Function&& function, int in_place) {
        reply("{\"loaded\":true}");
        for (std::string line; std::getline(std::cin, line);) {
            try {
                Json json = Reader{line.c_str()}.value();
                if (json.items.size() != sizeof...(A)) throw Mismatch(
                    "it takes " + std::to_string(sizeof...(A)) + " arguments, the tests have " + std::to_string(json.items.size()));
                reply("{\"r\":" + call(function, json, in_place, std::index_sequence_for<A...>{}) + "}");
            } catch (const std::exception& error) {
                reply("{\"raised\":[\"exception\"," + quoted(error.what()) + ",null]}");
            } catch (...) {
                reply("{\"raised\":[\"exception\",\"\",null]}");
            }
        }
        std::cout.flush();
        std::fflush(nullptr);
        _exit(0);
    }
};
template <class R, class... A> int serve(R (*function)(A...), int in_place) {
    return Caller<R, A...>::serve(function, in_place);
}
template <class C, class R, class... A> int serve(R (C::*method)(A...), int in_place) {
    // Each call has an object of its own, which is left to the end: its destructor is not what is tested.
    return Caller<R, A...>::serve([method](A... arguments) -> R {
        return ((new C())->*method)(static_cast<A&&>(arguments)...);
    }, in_place);
}
template <class C, class R, class... A> int serve(R (C::*method)(A...) const, int in_place) {
    return Caller<R, A...>::serve([method](A... arguments) -> R {
        return ((new C())->*method)(static_cast<A&&>(arguments)...);
    }, in_place);
}
template <class C, class R, class... A> int serve(R (C::*method)(A...) noexcept, int in_place) {
    return serve(static_cast<R (C::*)(A...)>(method), in_place);
}
template <class C, class R, class... A> int serve(R (C::*method)(A...) const noexcept, int in_place) {
    return serve(static_cast<R (C::*)(A...) const>(method), in_place);
}
}
