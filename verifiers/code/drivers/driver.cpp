namespace truegold_driver {
struct Mismatch : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// The tokens of a line of JSON with percent-encoded texts: brackets, texts and numbers. Commas are skipped.
struct Words {
    std::string line, word;
    size_t end = 0;
    explicit Words(std::string text) : line(std::move(text)) { next(); }
    std::string next() {
        std::string taken = std::move(word);
        size_t start = std::min(line.find_first_not_of(", ", end), line.size());
        end = std::min(std::max(start + 1, line.find_first_of("[], ", start)), line.size());
        word = line.substr(start, end - start);
        return taken;
    }
    bool take(const char* expected) {
        if (word != expected) return false;
        next();
        return true;
    }
    void need(const char* expected, const char* what) {
        if (!take(expected)) throw Mismatch(std::string("the argument is not a ") + what);
    }
    std::string text(const char* what) {
        if (word.empty() || word[0] != '"') throw Mismatch(std::string("the argument is not a ") + what);
        std::string quoted = next(), out;
        for (size_t index = 1; index + 1 < quoted.size(); index++)
            if (quoted[index] != '%') out += quoted[index];
            else { out += char(std::stoi(quoted.substr(index + 1, 2), nullptr, 16)); index += 2; }
        return out;
    }
    template <class Read> void items(Read read) {
        need("[", "list");
        while (!take("]")) read();
    }
};

template <class T> constexpr bool is_unsupported = false;

template <class T, class = void> struct Form {
    static_assert(is_unsupported<T>, "TRUEGOLD_NO_FORM: this type cannot be written as JSON");
};

// Replies are ASCII; a byte that is not valid UTF-8 becomes a lone surrogate.
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
    static bool read(Words& words) {
        if (words.take("true")) return true;
        words.need("false", "truth value");
        return false;
    }
    static std::string write(bool value) { return value ? "true" : "false"; }
};
template <> struct Form<char> {
    static char read(Words& words) {
        std::string text = words.text("single character");
        if (text.size() != 1) throw Mismatch("the argument is not a single character");
        return text[0];
    }
    static std::string write(char value) { return quoted(std::string(1, value)); }
};
template <class T> struct Form<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char>>> {
    static T read(Words& words) {
        T value{};
        std::string word = words.next();
        auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
        if (error != std::errc() || end != word.data() + word.size()) throw Mismatch("the argument is not an integer of that size");
        return value;
    }
    static std::string write(T value) { return std::to_string(value); }
};
template <class T> struct Form<T, std::enable_if_t<std::is_floating_point_v<T>>> {
    static T read(Words& words) {
        std::string word = words.next();
        if (word.rfind("\"float:", 0) == 0) return std::stold(word.substr(7));
        if (word.empty() || !std::strchr("-0123456789", word[0])) throw Mismatch("the argument is not a number");
        return std::stold(word);
    }
    static std::string write(T value) {
        if (std::isnan(value)) return "{\"$\":\"float\",\"v\":\"nan\"}";
        if (std::isinf(value)) return value < 0 ? "{\"$\":\"float\",\"v\":\"-inf\"}" : "{\"$\":\"float\",\"v\":\"inf\"}";
        char text[64];
        std::snprintf(text, sizeof text, "%.*g", 17, double(value));
        return std::strpbrk(text, ".e") ? text : std::string(text) + ".0";
    }
};
template <class T> struct Form<T, std::enable_if_t<std::is_enum_v<T>>> {
    static T read(Words& words) { return T(Form<long long>::read(words)); }
    static std::string write(T value) { return std::to_string((long long)value); }
};
template <> struct Form<std::string> {
    static std::string read(Words& words) { return words.text("text"); }
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
    static Items read(Words& words) {
        Items items;
        words.items([&] { items.insert(items.end(), Form<typename Items::value_type>::read(words)); });
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
    static std::array<T, size> read(Words& words) {
        std::array<T, size> items{};
        words.need("[", "list");
        for (T& item : items) item = Form<T>::read(words);
        words.need("]", "list of that length");
        return items;
    }
};
template <class... T> struct Form<std::tuple<T...>> {
    static std::tuple<T...> read(Words& words) {
        words.need("[", "list");
        std::tuple<T...> items{Form<T>::read(words)...};
        words.need("]", "list of that length");
        return items;
    }
    static std::string write(const std::tuple<T...>& items) {
        std::string out = "[";
        std::apply([&](auto&... item) { ((out += (out.size() > 1 ? "," : "") + Form<T>::write(item)), ...); }, items);
        return out + "]";
    }
};
template <class T, class U> struct Form<std::pair<T, U>> {
    static std::pair<T, U> read(Words& words) {
        auto [first, second] = Form<std::tuple<T, U>>::read(words);
        return {first, second};
    }
    static std::string write(const std::pair<T, U>& pair) {
        return "[" + Form<T>::write(pair.first) + "," + Form<U>::write(pair.second) + "]";
    }
};
// Dictionaries are sent as lists of pairs, since their keys may be numbers.
template <class Map> struct MapForm {
    using Key = typename Map::key_type;
    using Value = typename Map::mapped_type;
    static Map read(Words& words) {
        Map map;
        words.need("[", "dictionary");
        words.need("\"dict:\"", "dictionary");
        words.items([&] { map.insert(Form<std::pair<Key, Value>>::read(words)); });
        words.need("]", "dictionary");
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
    static std::optional<T> read(Words& words) {
        if (words.take("null")) return std::nullopt;
        return Form<T>::read(words);
    }
    static std::string write(const std::optional<T>& value) { return value ? Form<T>::write(*value) : "null"; }
};

constexpr int longest_list = 1000000;
template <> struct Form<ListNode*> {
    static ListNode* read(Words& words) {
        ListNode first(0), *last = &first;
        if (words.take("null")) return nullptr;
        words.items([&] { last = last->next = new ListNode(Form<decltype(ListNode::val)>::read(words)); last->next = nullptr; });
        return first.next;
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
    static TreeNode* read(Words& words) {
        if (words.take("null")) return nullptr;
        std::vector<TreeNode*> nodes;
        words.items([&] {
            nodes.push_back(words.take("null") ? nullptr : new TreeNode(Form<decltype(TreeNode::val)>::read(words)));
        });
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
        std::vector<std::optional<decltype(TreeNode::val)>> values;
        size_t length = 0;
        for (size_t index = 0; index < nodes.size(); index++) {
            if (nodes.size() > longest_list) throw Mismatch("the tree does not end");
            TreeNode* node = nodes[index];
            if (!node) { values.push_back(std::nullopt); continue; }
            values.push_back(node->val);
            length = values.size();
            nodes.push_back(node->left);
            nodes.push_back(node->right);
        }
        values.resize(length);
        return write_items(values);
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
    static std::string call(Function&& function, Words words, int in_place, std::index_sequence<index...>) {
        auto arity = [&](bool fits) {
            if (!fits) throw Mismatch("it takes " + std::to_string(sizeof...(A)) + " arguments, but the tests pass another number");
        };
        words.need("[", "list");
        Arguments arguments{(arity(words.word != "]"), Form<std::decay_t<A>>::read(words))...};
        arity(words.take("]"));
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
                reply("{\"r\":" + call(function, Words(line), in_place, std::index_sequence_for<A...>{}) + "}");
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
// Each call gets a new object, which is never deleted, since its destructor is not under test.
#define TRUEGOLD_SERVE(...) \
    template <class C, class R, class... A> int serve(R (C::*method)(A...) __VA_ARGS__, int in_place) { \
        return Caller<R, A...>::serve( \
            [method](A... arguments) -> R { return ((new C())->*method)(static_cast<A&&>(arguments)...); }, in_place); \
    }
TRUEGOLD_SERVE()
TRUEGOLD_SERVE(const)
TRUEGOLD_SERVE(noexcept)
TRUEGOLD_SERVE(const noexcept)
#undef TRUEGOLD_SERVE
}
