const truegoldLongestList = 1000000

// What the program prints goes to stderr.
var truegoldReplies = func() *truegoldos.File {
	replies := truegoldos.Stdout
	truegoldos.Stdout = truegoldos.Stderr
	return replies
}()

func truegoldQuote(text string) string {
	var out truegoldstrings.Builder
	out.WriteByte('"')
	for _, unit := range truegoldutf16.Encode([]rune(text)) {
		switch {
		case unit == '"' || unit == '\\':
			out.WriteString("\\" + string(rune(unit)))
		case unit < 32 || unit > 126:
			out.WriteString(truegoldfmt.Sprintf("\\u%04x", unit))
		default:
			out.WriteByte(byte(unit))
		}
	}
	return out.String() + "\""
}

func truegoldRead(data any, kind truegoldreflect.Type) truegoldreflect.Value {
	value := truegoldreflect.New(kind).Elem()
	mismatch := func(what string) { panic(truegoldfmt.Sprintf("the argument is no %s", what)) }
	items := func() []any {
		list, ok := data.([]any)
		if !ok {
			mismatch("list")
		}
		return list
	}
	number := func() string {
		word, ok := data.(truegoldjson.Number)
		if !ok {
			mismatch("number")
		}
		return string(word)
	}
	if kind == truegoldreflect.TypeOf((*ListNode)(nil)) {
		var head *ListNode
		if data != nil {
			list := items()
			for index := len(list) - 1; index >= 0; index-- {
				head = &ListNode{Val: int(truegoldRead(list[index], truegoldreflect.TypeOf(0)).Int()), Next: head}
			}
		}
		return truegoldreflect.ValueOf(head)
	}
	if kind == truegoldreflect.TypeOf((*TreeNode)(nil)) {
		var nodes []*TreeNode
		if data != nil {
			for _, item := range items() {
				var node *TreeNode
				if item != nil {
					node = &TreeNode{Val: int(truegoldRead(item, truegoldreflect.TypeOf(0)).Int())}
				}
				nodes = append(nodes, node)
			}
		}
		next := 1
		for _, node := range nodes {
			if node == nil {
				continue
			}
			if next < len(nodes) {
				node.Left = nodes[next]
				next++
			}
			if next < len(nodes) {
				node.Right = nodes[next]
				next++
			}
		}
		if len(nodes) == 0 {
			return truegoldreflect.ValueOf((*TreeNode)(nil))
		}
		return truegoldreflect.ValueOf(nodes[0])
	}
	switch kind.Kind() {
	case truegoldreflect.Bool:
		truth, ok := data.(bool)
		if !ok {
			mismatch("truth value")
		}
		value.SetBool(truth)
	case truegoldreflect.Int, truegoldreflect.Int8, truegoldreflect.Int16, truegoldreflect.Int32, truegoldreflect.Int64:
		if text, ok := data.(string); ok && kind.Kind() == truegoldreflect.Int32 && len([]rune(text)) == 1 {
			value.SetInt(int64([]rune(text)[0]))
			break
		}
		whole, err := truegoldstrconv.ParseInt(number(), 10, kind.Bits())
		if err != nil {
			mismatch("integer of that size")
		}
		value.SetInt(whole)
	case truegoldreflect.Uint, truegoldreflect.Uint8, truegoldreflect.Uint16, truegoldreflect.Uint32, truegoldreflect.Uint64:
		if text, ok := data.(string); ok && kind.Kind() == truegoldreflect.Uint8 && len(text) == 1 {
			value.SetUint(uint64(text[0]))
			break
		}
		whole, err := truegoldstrconv.ParseUint(number(), 10, kind.Bits())
		if err != nil {
			mismatch("integer of that size")
		}
		value.SetUint(whole)
	case truegoldreflect.Float32, truegoldreflect.Float64:
		word, _ := data.(string)
		word = truegoldstrings.TrimPrefix(word, "float:")
		if word == "" {
			word = number()
		}
		float, err := truegoldstrconv.ParseFloat(word, 64)
		if err != nil {
			mismatch("number")
		}
		value.SetFloat(float)
	case truegoldreflect.String:
		text, ok := data.(string)
		if !ok {
			mismatch("text")
		}
		value.SetString(text)
	case truegoldreflect.Slice:
		list := items()
		value.Set(truegoldreflect.MakeSlice(kind, len(list), len(list)))
		for index, item := range list {
			value.Index(index).Set(truegoldRead(item, kind.Elem()))
		}
	case truegoldreflect.Array:
		list := items()
		if len(list) != kind.Len() {
			mismatch("list of that length")
		}
		for index, item := range list {
			value.Index(index).Set(truegoldRead(item, kind.Elem()))
		}
	case truegoldreflect.Map:
		tagged := items()
		if len(tagged) != 2 || tagged[0] != "dict" {
			mismatch("dictionary")
		}
		value.Set(truegoldreflect.MakeMap(kind))
		for _, pair := range tagged[1].([]any) {
			key, item := pair.([]any)[0], pair.([]any)[1]
			value.SetMapIndex(truegoldRead(key, kind.Key()), truegoldRead(item, kind.Elem()))
		}
	case truegoldreflect.Interface:
		natural := truegoldNatural(data)
		if natural != nil {
			value.Set(truegoldreflect.ValueOf(natural))
		}
	default:
		panic("TRUEGOLD_NO_FORM: " + kind.String())
	}
	return value
}

func truegoldNatural(data any) any {
	switch each := data.(type) {
	case truegoldjson.Number:
		if whole, err := truegoldstrconv.Atoi(string(each)); err == nil {
			return whole
		}
		float, _ := each.Float64()
		return float
	case []any:
		list := make([]any, len(each))
		for index, item := range each {
			list[index] = truegoldNatural(item)
		}
		return list
	}
	return data
}

func truegoldWrite(out *truegoldstrings.Builder, value truegoldreflect.Value) {
	if !value.IsValid() {
		out.WriteString("null")
		return
	}
	list := func(length int, item func(int)) {
		out.WriteByte('[')
		for index := 0; index < length; index++ {
			if index > 0 {
				out.WriteByte(',')
			}
			item(index)
		}
		out.WriteByte(']')
	}
	if head, ok := value.Interface().(*ListNode); ok {
		var values []int
		for node := head; node != nil; node = node.Next {
			if len(values) == truegoldLongestList {
				panic("the linked list does not end")
			}
			values = append(values, node.Val)
		}
		list(len(values), func(index int) { out.WriteString(truegoldstrconv.Itoa(values[index])) })
		return
	}
	if root, ok := value.Interface().(*TreeNode); ok {
		nodes, words, length := []*TreeNode{root}, []string{}, 0
		for index := 0; index < len(nodes); index++ {
			if len(nodes) > truegoldLongestList {
				panic("the tree does not end")
			}
			node := nodes[index]
			if node == nil {
				words = append(words, "null")
				continue
			}
			words = append(words, truegoldstrconv.Itoa(node.Val))
			length = len(words)
			nodes = append(nodes, node.Left, node.Right)
		}
		list(length, func(index int) { out.WriteString(words[index]) })
		return
	}
	switch value.Kind() {
	case truegoldreflect.Bool:
		out.WriteString(truegoldstrconv.FormatBool(value.Bool()))
	case truegoldreflect.Int32:
		if TRUEGOLD_LETTERS {
			out.WriteString(truegoldQuote(string(rune(value.Int()))))
		} else {
			out.WriteString(truegoldstrconv.FormatInt(value.Int(), 10))
		}
	case truegoldreflect.Int, truegoldreflect.Int8, truegoldreflect.Int16, truegoldreflect.Int64:
		out.WriteString(truegoldstrconv.FormatInt(value.Int(), 10))
	case truegoldreflect.Uint8:
		if TRUEGOLD_LETTERS {
			out.WriteString(truegoldQuote(string(rune(value.Uint()))))
		} else {
			out.WriteString(truegoldstrconv.FormatUint(value.Uint(), 10))
		}
	case truegoldreflect.Uint, truegoldreflect.Uint16, truegoldreflect.Uint32, truegoldreflect.Uint64:
		out.WriteString(truegoldstrconv.FormatUint(value.Uint(), 10))
	case truegoldreflect.Float32, truegoldreflect.Float64:
		word := truegoldstrconv.FormatFloat(value.Float(), 'g', -1, value.Type().Bits())
		switch {
		case word == "NaN" || truegoldstrings.Contains(word, "Inf"):
			out.WriteString(`{"$":"float","v":"` + truegoldstrings.ToLower(truegoldstrings.TrimPrefix(word, "+")) + `"}`)
		case truegoldstrings.ContainsAny(word, ".e"):
			out.WriteString(word)
		default:
			out.WriteString(word + ".0")
		}
	case truegoldreflect.String:
		out.WriteString(truegoldQuote(value.String()))
	case truegoldreflect.Slice, truegoldreflect.Array:
		list(value.Len(), func(index int) { truegoldWrite(out, value.Index(index)) })
	case truegoldreflect.Map:
		keys := value.MapKeys()
		out.WriteString(`{"$":"dict","v":`)
		list(len(keys), func(index int) {
			list(2, func(part int) {
				if part == 0 {
					truegoldWrite(out, keys[index])
				} else {
					truegoldWrite(out, value.MapIndex(keys[index]))
				}
			})
		})
		out.WriteByte('}')
	case truegoldreflect.Interface, truegoldreflect.Pointer:
		if value.IsNil() {
			out.WriteString("null")
		} else {
			truegoldWrite(out, value.Elem())
		}
	default:
		panic("TRUEGOLD_NO_FORM: " + value.Type().String())
	}
}

func truegoldCall(function truegoldreflect.Value, line []byte, inPlace int) (reply string) {
	defer func() {
		if problem := recover(); problem != nil {
			reply = `{"raised":["panic",` + truegoldQuote(truegoldfmt.Sprint(problem)) + `,null]}`
		}
	}()
	decoder := truegoldjson.NewDecoder(truegoldstrings.NewReader(string(line)))
	decoder.UseNumber()
	var given []any
	if err := decoder.Decode(&given); err != nil {
		panic(err)
	}
	kind := function.Type()
	if kind.NumIn() != len(given) {
		panic(truegoldfmt.Sprintf("it takes %d arguments, the tests have %d", kind.NumIn(), len(given)))
	}
	arguments := make([]truegoldreflect.Value, len(given))
	for index := range given {
		arguments[index] = truegoldRead(given[index], kind.In(index))
	}
	values := function.Call(arguments)
	if len(values) == 0 && inPlace < 0 {
		inPlace = 0
	}
	if inPlace >= 0 {
		values = arguments[inPlace : inPlace+1]
	}
	var out truegoldstrings.Builder
	if len(values) == 1 {
		truegoldWrite(&out, values[0])
	} else {
		for index, value := range values {
			out.WriteString(map[bool]string{true: "[", false: ","}[index == 0])
			truegoldWrite(&out, value)
		}
		out.WriteByte(']')
	}
	return `{"r":` + out.String() + "}"
}

func truegoldServe(function any, inPlace int) {
	truegoldfmt.Fprintln(truegoldReplies, `{"loaded":true}`)
	input := truegoldbufio.NewReader(truegoldos.Stdin)
	for {
		line, err := input.ReadBytes('\n')
		if len(line) > 0 {
			truegoldfmt.Fprintln(truegoldReplies, truegoldCall(truegoldreflect.ValueOf(function), line, inPlace))
		}
		if err != nil {
			truegoldos.Exit(0)
		}
	}
}

func truegoldEmit(values ...any) {
	var out truegoldstrings.Builder
	truegoldWrite(&out, truegoldreflect.ValueOf(values))
	line := out.String()
	if len(values) == 1 {
		line = line[1 : len(line)-1]
	}
	truegoldfmt.Fprintln(truegoldReplies, "\n\x01{\"r\":"+line+"}")
}
